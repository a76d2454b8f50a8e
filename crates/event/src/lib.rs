//! One event loop that pushes.
//!
//! What it is: streams, listeners, timers and mail behind one interface; the loop owns the
//! descriptors, does the reading and writing, and hands its [`Owner`] what happened. What it
//! depends on: the kernel and time. What it must never depend on: a protocol, a request, a pool.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod bind;
mod calls;
mod data;
mod datagram;
mod epoll;
mod fd;
mod inherited;
mod interface;
mod kernel;
mod level;
mod listener;
mod mail;
mod output;
mod owner;
mod poll;
mod random;
mod relay;
mod select;
mod slab;
mod state;
mod stream;
mod system;
mod turn;
mod wait;
mod wheel;

pub use bind::{BindSettings, bind, bind_datagrams};
pub use block::{Block, Slice};
pub use calls::Calls;
pub use data::Data;
pub use datagram::Origin;
pub use epoll::Epoll;
pub use fd::Fd;
pub use inherited::{Inherited, InheritedKind, inherited};
pub use interface::*;
pub use kernel::{Conduit, Happened, Interest, Kernel, Medium, Readiness, Token, Wake};
pub use level::{Level, LevelSet};
pub use mail::Mailbox;
pub use owner::{Event, Owner};
pub use poll::{Poll, PollSet};
pub use random::fill_random;
pub use select::{Select, SelectSet};
pub use state::Counts;
pub use system::keep_alive;
pub use turn::Loop;
