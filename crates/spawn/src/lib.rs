//! Start, watch and stop programs, so that none outlives us.
//!
//! What it is: [`Spawner`], and behind it the keeper, a process that is every program's parent.
//! What it depends on: the kernel's processes, pipes and signals. What it must never depend on: a protocol, a
//! pool, what a program is for.
//!
//! ```no_run
//! use spawn::{Command, Report, Spawn, Spawner};
//!
//! fn main() -> Result<(), spawn::SpawnError> {
//!     spawn::init()?; // first: this very executable may be running as the keeper
//!     let mut spawner = Spawner::new(Box::new(|report| match report {
//!         Report::Started { token, pid, pipes } => drop((token, pid, pipes)),
//!         Report::StartFailed { token, error } => eprintln!("{token}: {error}"),
//!         Report::Exited { token, exit } => eprintln!("{token}: {exit}"),
//!         Report::KeeperLost | Report::KeeperBack => {}
//!     }))?;
//!     spawner.start(1, Command { program: "cat".into(), ..Command::default() });
//!     spawner.finish();
//!     Ok(())
//! }
//! ```
//!
//! A program starts in a session and process group of its own, with pipes for standard input,
//! output and error and no other descriptor, all signals at their default, the limit of
//! descriptors that the daemon was started with, the daemon's environment without what is
//! [withheld](withhold), and in it `ROADSTEAD_WORKER` (its name) and `ROADSTEAD_START` (by which the keeper knows what it left
//! behind). [`Wiring`] connects it in other ways; [`Bounds`] hold it to a user, limits, processors
//! and a control group of its own.

mod bounds;
mod channel;
mod command;
mod error;
mod heap;
mod home;
mod keeper;
mod launch;
mod limits;
mod message;
mod place;
mod port_owner;
mod process;
mod resident;
mod socket;
mod spawner;
mod system;
mod wiring;
mod withheld;

pub use bounds::{Bounds, Cgroup, Limits};
pub use command::{Command, Exit, Report, Spawn, Status, Stop};
pub use error::{SpawnError, StartError, Step};
pub use heap::return_large_blocks;
pub use home::{At, Home, Serves};
pub use launch::{KEEPER, init};
pub use limits::{COMMAND_BYTES_MAX, KEEPER_START_MAX};
pub use place::{allowed, stay_here};
pub use port_owner::{PortOwner, PortProgram};
pub use resident::resident;
pub use socket::{Port, Socket};
pub use spawner::Spawner;
pub use wiring::{Io, Numbers, Pipes, Unbuffer, Wiring};
pub use withheld::withhold;

/// The id of the group of this name or number. It may ask a directory service, and block.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    system::group_shared(name)
}
