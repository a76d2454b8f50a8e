//! The parts of the `roadstead` program, and the library for programs that embed its data plane with their own
//! handlers.
//!
//! What it is: the command line and the implementation of each command: the daemon, the load generator with its ledger,
//! the demo; and [`embed`]. What it depends on: every other crate, and all kinds of handlers; it builds the handlers,
//! names them and passes them to `gateway`. What it must never depend on: how a request is routed and processed.
//!
//! ```
//! use std::io::Read;
//! use std::net::TcpStream;
//!
//! let text = r#"
//!     [listener.main]
//!     listen = "127.0.0.1:0"
//!     protocol = "connect"              # the connection is the request
//!     pool = "hello"
//!
//!     [pool.hello]
//!     handler = "greeter"
//! "#;
//! let server = roadstead::embed::Embed::from_text(text)?
//!     .answering("greeter", || Ok(|_request: &_| "hello\n".into()))
//!     .start()?;
//! let mut said = String::new();
//! TcpStream::connect(server.address("main").unwrap())?.read_to_string(&mut said)?;
//! assert_eq!(said, "hello\n");
//! assert!(server.drain().is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All modules except [`embed`] are behind features, which are on by default. A program that embeds Roadstead turns
//! them off (`default-features = false`).
//!
//! | feature | what it adds |
//! |---|---|
//! | `daemon` | the program and its commands |
//! | `admin` | the admin address with its async runtime, `ask` and `ctl` |
//! | `cluster` | bindings that several machines share, over NATS |
//! | `databases` | pools of databases; `ledger` |
//! | `tls` | encrypted connections to databases |

#![forbid(unsafe_code)]

#[cfg(feature = "daemon")]
mod access_log;
#[cfg(feature = "admin")]
mod admin;
#[cfg(feature = "admin")]
pub mod ask;
pub mod binding;
#[cfg(feature = "daemon")]
pub mod cli;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "cluster_without_nats.rs"]
mod cluster;
#[cfg(feature = "databases")]
pub mod connect;
#[cfg(feature = "daemon")]
pub mod cpu;
#[cfg(feature = "admin")]
pub mod ctl;
#[cfg(feature = "daemon")]
pub mod daemon;
#[cfg(all(feature = "admin", feature = "databases"))]
pub mod dead;
#[cfg(all(feature = "admin", feature = "databases"))]
pub mod demo;
#[cfg(feature = "daemon")]
mod descriptors;
#[cfg(feature = "daemon")]
pub mod doctor;
pub mod embed;
#[cfg(feature = "daemon")]
pub mod error_log;
#[cfg(feature = "daemon")]
pub mod exposure;
#[cfg(feature = "daemon")]
pub mod files;
#[cfg(feature = "databases")]
pub mod handler_registry;
#[cfg(all(feature = "daemon", not(feature = "databases")))]
#[path = "handler_registry_without_databases.rs"]
pub mod handler_registry;
#[cfg(feature = "daemon")]
pub mod ledger;
#[cfg(feature = "daemon")]
pub mod load;
#[cfg(feature = "daemon")]
mod memory;
#[cfg(feature = "daemon")]
pub mod missing;
#[cfg(feature = "daemon")]
pub mod outcomes;
#[cfg(feature = "daemon")]
mod private_folder;
#[cfg(feature = "daemon")]
pub mod record;
#[cfg(feature = "daemon")]
mod reload;
#[cfg(feature = "admin")]
pub mod running;
#[cfg(feature = "daemon")]
pub mod server_sockets;
mod shard_reload;
mod shards;
#[cfg(feature = "daemon")]
pub mod worker;
