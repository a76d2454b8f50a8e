//! HTTP/1.1 and 1.0 (RFC 9112), both ways.
//!
//! What it is: the machines of one message after the other on one direction of a connection: find
//! a head, read it, tell body from what follows, and write a head again. What it knows: the rules
//! and the limits, and a [`Refusal`] with a reason for each. What it must never know: a stream, a
//! clock, who answers, what becomes of a refusal.
//!
//! ```text
//!           HeadScan::next        read                Body::run / Body::next
//!   bytes ───────────────▶ Found ──────▶ RequestHead ─────────────────────▶ spans of those bytes
//!     ▲                                  ReplyHead                             │
//!     └────────────── the next message, unless this one was the last ◀──is_done┘
//!
//!   from    what comes          to       where
//!   Head    a part of a head    Head     what was looked at is not looked at again
//!   Head    all of it           Body     its framing is what the head says, and nothing else
//!   Head    1xx, not 101        Head     of replies: eight at most before the final one
//!   Head    101                 Tunnel   only where an upgrade was asked for
//!   Body    bytes of it         Body     `Pass` goes on as it lies, `Drop` does not
//!   Body    its last byte       Head     what follows belongs to the next message
//!   Body    the end             Over     whole where the end ends it, truncated elsewhere
//!   any     a broken rule       Over     nothing behind it is ever read
//! ```
//!
//! Whatever is accepted means the same to everyone who reads it after us: that, and not politeness,
//! decides what is refused. There are no allowances for bare line feeds, folded lines, blanks
//! before colons, lists of lengths or codings other than one final `chunked`. A head goes on as it
//! was read, line by line, with its framing, its version and the sizes of its chunks in canonical spelling:
//! what is accepted in more than one spelling is forwarded in one.

mod body;
mod chunked;
mod claims;
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
pub use reply::{Asked, ReplyHead};
pub use request::RequestHead;
pub use semantics::{Connection, Version};
pub use status::reason;
pub use upgrades::Upgrades;
pub use via::Via;

#[cfg(test)]
mod tests;
