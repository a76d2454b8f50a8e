//! A codec for HTTP/1.1 and HTTP/1.0 (RFC 9112), in both directions.
//!
//! What it is: state machines for a sequence of messages in one direction of a connection. They find a head, parse it,
//! separate the body from the following bytes, and write a head. What it depends on: the rules, the limits, and a
//! [`Refusal`] with a reason for each. What it must never depend on: a stream, a clock, the worker that answers, the
//! handling of a refusal.
//!
//! ```text
//!           HeadScan::next        read                Body::run / Body::next
//!   bytes ───────────────▶ Found ──────▶ RequestHead ─────────────────────▶ spans of those bytes
//!     ▲                                  ReplyHead                             │
//!     └────────────── the next message, unless this one was the last ◀──is_done┘
//!
//!   from    input               to       note
//!   Head    a part of a head    Head     scanned bytes are not scanned again
//!   Head    a complete head     Body     the head alone determines the framing
//!   Head    1xx, not 101        Head     replies only: at most eight before the final one
//!   Head    101                 Tunnel   only if the request asked for an upgrade
//!   Body    bytes of it         Body     `Pass` is forwarded unchanged, `Drop` is not forwarded
//!   Body    its last byte       Head     the following bytes belong to the next message
//!   Body    end of stream       Over     complete if the end of the stream ends the body, otherwise truncated
//!   any     a broken rule       Over     the following bytes are never read
//! ```
//!
//! A message is rejected if another recipient could interpret it differently. There are no exceptions for bare line
//! feeds, folded lines, blanks before colons, lists of lengths, or codings other than one final `chunked`. A head is
//! forwarded line by line as it was read; its framing, its version and the sizes of its chunks are written in canonical
//! form. Syntax that is accepted in several forms is forwarded in one form.

mod body;
mod chunked;
mod client_fields;
mod encode;
mod forward;
mod grammar;
mod head;
pub mod keys;
mod limits;
mod method;
pub mod object;
mod refusal;
mod reply;
mod request;
pub mod response;
mod semantics;
mod status;
mod upgrades;
mod via;

pub use body::{Body, BodyKind, Run, WholeChunks};
pub use chunked::{Kind, Span};
pub use encode::{Added, Answer, Sending, chunk_head, decimal, write_answer, write_open_answer};
pub use forward::{Forwarded, ForwardedFor};
pub use head::{Found, HeadScan};
pub use limits::Limits;
pub use method::Method;
pub use refusal::{Refusal, Rule};
pub use reply::{ReplyHead, RequestInfo};
pub use request::RequestHead;
pub use semantics::{Connection, Version};
pub use status::reason;
pub use upgrades::Upgrades;
pub use via::Via;

#[cfg(test)]
mod tests;
