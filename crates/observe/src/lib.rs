//! What a daemon counts and logs.
//!
//! What it is: counters that one shard writes and others read, the page of metrics, lines of the access log, the
//! rate limit of the error log, and the types that describe the status. What it knows: ids, ends of requests, and
//! names of header fields. What it must never know: a protocol, a setting, a stream, a pool.

#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations)]

pub mod access_log;
pub mod calendar;
pub mod closings;
pub mod error_log;
pub mod http_status;
pub mod metrics;
pub mod printable;
pub mod rejections;
pub mod status;
