#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: streams, listeners, timers and mail behind one interface. The loop owns the descriptors, reads and
//! writes, and delivers events to its [`EventHandler`]. What it depends on: the kernel and time. What it must never
//! depend on: a protocol, a request, a pool.

mod bind;
mod bound_file;
mod context;
mod data;
mod datagram;
mod epoll;
mod fd;
mod handler;
mod inherited;
mod interface;
mod kernel;
mod kernel_error;
mod level;
mod listener;
mod mail;
mod output;
mod poll;
mod random;
mod refuse_descriptors;
mod relay;
mod released;
mod select;
mod slab;
mod state;
mod stream;
mod system;
mod turn;
mod unix_datagram;
mod wait;
mod wheel;

pub use bind::{BindSettings, bind, bind_datagrams};
pub use block::{Block, Slice};
pub use bound_file::BoundFile;
pub use context::Context;
pub use data::{Data, LineTooLong};
pub use datagram::{DatagramKind, FileId, Origin};
pub use epoll::Epoll;
pub use fd::Fd;
pub use handler::{Event, EventHandler};
pub use inherited::{Inherited, InheritedKind, inherited};
pub use interface::*;
pub use kernel::{
    Completeness, FdKind, Interest, Kernel, Readiness, ReadyEvent, SplicePipe, Token, Wake,
};
pub use kernel_error::KernelError;
pub use mail::Mailbox;
pub use poll::Poll;
pub use random::fill_random;
pub use refuse_descriptors::refuse_descriptors;
pub use released::Released;
pub use select::Select;
pub use state::Counts;
pub use system::keep_alive;
pub use turn::Loop;
