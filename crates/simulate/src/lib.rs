//! The gateway in a world of its own.
//!
//! What it is: a simulated kernel, spawner, threads, clients, programs and database under the real
//! [`gateway::Shard`] on the real [`event::Loop`]; everything that happens follows from one seed.
//! What it knows: how each of them may misbehave, and what a client may hold the gateway to. What
//! it must never know: a real clock, a real socket, anything that another run would do otherwise.

mod asks;
mod chance;
mod check;
mod clients;
mod echo;
mod flow;
mod kernel;
mod net;
mod plants;
mod programs;
mod run;
mod scenario;
mod store;
mod threads;
mod world;

pub use plants::Plant;
pub use run::{Options, Report, replay, run, run_echo};
