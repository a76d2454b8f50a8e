//! Metrics, logs and status of a daemon.
//!
//! What it is: counters that one shard writes and other threads read, the metrics page, the access log, the rate limit
//! of the error log, and the types of the status. What it depends on: ids, causes and phases of finished requests, and
//! names of header fields. What it must never depend on: a protocol, a setting, a stream, a pool.

#![forbid(unsafe_code)]

pub mod access_log;
pub mod calendar;
pub mod closings;
pub mod error_log;
pub mod http_status;
pub mod metrics;
pub mod printable;
pub mod rejections;
pub mod status;
