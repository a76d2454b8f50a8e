//! The gateway in a simulated world.
//!
//! What it is: a simulated kernel, spawner, threads, clients, programs, servers and database for real
//! [`gateway::Shard`]s, one or several, each on a real [`event::Loop`]. One seed determines everything that happens.
//! What it depends on: how each of these parts may misbehave, and the guarantees of the gateway to clients. What it
//! must never depend on: a real clock, a real socket, anything that could differ in another run.
//!
//! `cargo test -p roadstead-simulate` runs some thousand seeds. If a guarantee is violated, it prints the violation and
//! the command that replays this world and prints all its events:
//!
//! ```text
//! SIMULATE_SEED=26 SIMULATE_SHARDS=2 cargo test -p roadstead-simulate -- --nocapture replay
//! ```
//!
//! The layers; each module imports only from the lines above its own, or from an earlier module of the same line:
//!
//! - `ids`, `chance`, `scheduled_event`, `scenario`: ids, random numbers, events, and the configuration of a world;
//! - `timeline`: the time of a world and its queue of events;
//! - `flow`, `net`, `plants`, `asks`, `clients`, `datagrams`, `http`, `loops`, `programs`, `store`, `threads`: the
//!   state of the actors and objects in a world;
//! - `transcripts`, `record`: the observations of a run;
//! - `world`: all of this under one lock, and, in its submodules, the actions of each kind of actor;
//! - `kernel`, `spawner`, `lockstep`, `tables`, `turns`: the replacements of real parts that the gateway uses;
//! - `check`, `shards`, `echo`, `run`: runs, and the checks after them.
//!
//! The simulation replaces the real parts at [`event::Kernel`], [`spawn::Spawn`], [`gateway::ThreadSpawner`], and at
//! the seed and clock of a shard. Handlers run on threads of the system, one at a time: a baton is passed to a thread
//! for each of its steps. Real descriptors of `/dev/null` represent the pipes of programs, because the gateway must own
//! descriptors.
//!
//! ```
//! let options = simulate::Options { seed: 7, shards: 2, mutant: None, trace: false };
//! let job = simulate::Job::Gateway;
//! let (one, other) = (job.run(options), job.run(options));
//! assert!(one.violations.is_empty());
//! assert_eq!(one.digest, other.digest);
//! ```

#![forbid(unsafe_code)]

mod asks;
mod chance;
mod check;
mod clients;
mod datagrams;
mod echo;
mod flow;
mod http;
mod ids;
mod kernel;
mod lockstep;
mod loops;
mod net;
mod plants;
mod programs;
mod record;
mod run;
mod scenario;
mod scheduled_event;
mod shards;
mod spawner;
mod store;
mod tables;
mod threads;
mod timeline;
mod transcripts;
mod turns;
mod world;

pub use plants::Mutant;
pub use run::{Job, Options, Report, replay};
pub use transcripts::Transcript;
