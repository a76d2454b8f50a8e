//! Tests of a daemon from outside: the real binary, real programs, a real database.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../support/client.rs"]
mod client;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../support/daemon.rs"]
mod daemon;
#[path = "../support/http_server.rs"]
mod http_server;

mod access_log;
mod addresses;
mod admin;
mod alignment;
mod balance;
mod cluster;
mod cluster_commands;
mod cluster_embedded;
mod cluster_health;
mod cluster_limits;
mod commands;
mod database_faults;
mod datagrams;
mod details;
mod doctor;
mod drain;
mod dropped;
mod examples;
mod framing_faults;
mod framings;
mod histories;
mod http;
mod isolation;
mod kernels;
mod leaving;
mod lines;
mod links;
mod lives;
mod log;
mod memory;
mod messages;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../../../cluster/tests/support/nats.rs"]
mod nats;
mod order;
mod pages;
mod parameters;
mod partial;
mod paused;
#[cfg(feature = "plants")]
mod plants;
mod programs;
mod protocols;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../../../database/tests/support/proxy.rs"]
mod proxy;
mod questions;
mod records;
mod reload;
mod repeats;
mod rows;
mod secrets;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../../../database/tests/support/server.rs"]
mod server;
mod servers;
mod sessions;
mod shards;
mod shared;
mod silent;
mod store;
mod terms;
#[allow(dead_code, reason = "each test program uses its own part of the support")]
#[path = "../../../database/tests/support/tmpfs.rs"]
mod tmpfs;
mod unawaited;
#[path = "../../../database/tests/support/untested.rs"]
mod untested;
mod web_pages;
