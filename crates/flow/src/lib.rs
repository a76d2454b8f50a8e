//! The vocabulary that frontends, the engine and backends share.
//!
//! What it is: requests and replies that are written for no client and no worker yet, what is said about a request
//! on its way, who owns a stream or a timer, and the traits by which a frontend reaches the engine
//! ([`requests::Requests`], [`address_limits::AddressLimits`]). What it knows: heads of HTTP as `wire` reads them,
//! streams by their ids. What it must never know: a pool, a program, how a frame or a head is written.
//!
//! ```text
//!   frontend ── Requests ──▶ engine ── BackendEffect ──▶ backend
//!       ◀────── ReplyEvent ───       ◀────── BackendEvent ──────
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations)]

pub mod address_limits;
pub mod backend_effect;
pub mod backend_event;
pub mod client;
pub mod forwarding;
pub mod http_request;
pub mod ids;
pub mod json_reply;
pub mod order;
pub mod page;
pub mod payload;
pub mod permit;
pub mod plain_reply;
pub mod query_record;
pub mod rejected;
pub mod reply_event;
pub mod reply_head;
pub mod request_control;
pub mod request_meta;
pub mod request_shape;
pub mod requests;
pub mod stream_event;
pub mod stream_owner;
pub mod window;
pub mod words;
pub mod worker_report;
pub mod worker_traits;

pub use event::StreamId;
