//! The gateway in a world of its own.
//!
//! What it is: a simulated kernel, spawner, threads, clients, programs, servers and database under real
//! [`gateway::Shard`]s, one or several, each on a real [`event::Loop`]; everything that happens follows
//! from one seed.
//! What it depends on: how each of them may misbehave, and what a client may hold the gateway to. What
//! it must never depend on: a real clock, a real socket, anything that another run would do otherwise.
//!
//! `cargo test -p roadstead-simulate` runs some thousand seeds. Where somebody is wronged it says
//! who, and the one command that tells all that happened in that world:
//!
//! ```text
//! SIMULATE_SEED=26 SIMULATE_SHARDS=2 cargo test -p roadstead-simulate -- --nocapture replay
//! ```
//!
//! The layers; each module imports only from those above its own, or from an earlier one of the same line:
//!
//! - `ids`, `chance`, `happening`, `scenario`: names, random numbers, what can happen, and in which world;
//! - `timeline`: the time of a world, and what is to happen in it;
//! - `flow`, `net`, `plants`, `asks`, `clients`, `datagrams`, `http`, `loops`, `programs`, `store`, `threads`:
//!   the state of those who live in a world;
//! - `transcripts`, `record`: what was seen in it;
//! - `world`: all of them under one lock, and, in the files below it, what each of them does;
//! - `kernel`, `cradle`, `lockstep`, `tables`, `turns`: what the gateway is given in place of the real ones;
//! - `check`, `crew`, `echo`, `run`: runs, and what must hold after them.
//!
//! The seams are those of the real house: [`event::Kernel`], [`spawn::Spawn`], [`gateway::ThreadSpawner`]
//! and the seed and clock that a shard is given. Handlers run on threads of the system, one at a
//! time, passed a baton at each of their steps; real descriptors of `/dev/null` stand for the pipes
//! of programs, which the gateway must be able to own.
//!
//! ```
//! let options = simulate::Options { seed: 7, shards: 2, plant: None, told: false };
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
mod cradle;
mod crew;
mod datagrams;
mod echo;
mod flow;
mod happening;
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
mod store;
mod tables;
mod threads;
mod timeline;
mod transcripts;
mod turns;
mod world;

pub use plants::Plant;
pub use run::{Job, Options, Report, replay};
pub use transcripts::Transcript;
