//! The vocabulary that frontends, the engine and backends share.
//!
//! What it is: requests and replies that are written for no client and no worker yet, what is said about a request
//! on its way, who owns a stream or a timer, and the traits by which a frontend reaches the engine
//! ([`requests::Requests`], [`address_limits::AddressLimits`]). What it knows: heads of HTTP as `wire` reads them,
//! streams by their ids. What it must never know: a pool, a program, how a frame or a head is written.
//!
//! ```text
//!   frontend ── Requests ──▶ engine ── BackendEffect ──▶ backend
//!       ◀────── Delivery ───       ◀────── Upward ──────
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations)]

pub mod address_limits;
pub mod backend_effect;
pub mod client;
pub mod delivery;
pub mod form;
pub mod forwarding;
pub mod http_request;
pub mod ids;
pub mod order;
pub mod owners;
pub mod page;
pub mod payload;
pub mod permit;
pub mod plain_reply;
pub mod question;
pub mod rejected;
pub mod reply_head;
pub mod request_control;
pub mod request_shape;
pub mod requests;
pub mod stream_event;
pub mod translation;
pub mod upward;
pub mod window;
pub mod words;
pub mod worker_report;
pub mod worker_traits;

pub use event::StreamId;
