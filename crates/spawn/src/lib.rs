#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: [`Spawner`], and the supervisor behind it: a process that is the parent of every program. What it
//! depends on: the processes, pipes and signals of the kernel. What it must never depend on: a protocol, a pool, the
//! purpose of a program.
//!
//! A program starts with:
//!
//! - its own session and process group;
//! - pipes for standard input, output and error, and no other descriptor;
//! - the default action for every signal;
//! - the limit of descriptors that the daemon was started with;
//! - the environment of the daemon without the [withheld](withhold) variables, plus `ROADSTEAD_WORKER` (the name of the
//!   worker) and `ROADSTEAD_START` (a mark by which the supervisor finds processes that the program left behind).
//!
//! [`Wiring`] selects other connections. [`Bounds`] set its user, limits, processors and control group.

mod bounds;
mod channel;
mod command;
mod cpus;
mod error;
mod exit;
mod heap;
mod launch;
mod limits;
mod message;
mod port_owner;
mod process;
mod program_socket;
mod resident;
mod socket;
mod spawner;
mod supervisor;
mod system;
mod wiring;
mod withheld;

pub use bounds::{Bounds, Cgroup, Limits};
pub use command::{Command, Report, Spawn, Stop};
pub use cpus::{allowed_cpus, pin_to_current_cpu};
pub use error::{SpawnError, StartError, Step};
pub use exit::{Exit, Status};
pub use heap::return_large_blocks;
pub use launch::{SUPERVISOR, init};
pub use limits::{COMMAND_BYTES_MAX, SUPERVISOR_START_MAX};
pub use port_owner::{PortOwner, PortProgram};
pub use program_socket::{ProgramAddress, ProgramSocket, SocketKind};
pub use resident::resident;
pub use socket::{Port, Socket};
pub use spawner::Spawner;
pub use wiring::{DescriptorNumbers, Io, Pipes, Unbuffer, Wiring};
pub use withheld::withhold;

/// Returns the id of the group with this name or number. It may query a directory service, and may block.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    system::group_shared(name)
}

/// Whether this process can start programs as the user with this name or number (it has `CAP_SETUID`), but could not end
/// them (it lacks `CAP_KILL`). Such programs are rejected at their start. It may query a directory service, and may
/// block.
#[must_use]
pub fn cannot_kill_programs_of(user: &str) -> bool {
    supervisor::cannot_kill(user)
}
