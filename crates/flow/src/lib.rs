//! Types that frontends, the engine and backends share.
//!
//! What it is: protocol-neutral requests and replies, the messages about a request in flight, the owners of streams
//! and timers, and the traits through which a frontend uses the engine ([`requests::Requests`],
//! [`address_limits::AddressLimits`]). What it depends on: HTTP heads as `wire` parses them, and stream ids. What it
//! must never depend on: a pool, a program, the encoding of frames or heads.
//!
//! ```text
//!   frontend ── Requests ──▶ engine ── BackendEffect ──▶ backend
//!       ◀────── ReplyEvent ───       ◀────── BackendEvent ──────
//! ```

#![forbid(unsafe_code)]

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
pub mod recycler;
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
