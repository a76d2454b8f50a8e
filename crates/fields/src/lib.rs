#![doc = include_str!("../README.md")]
//!
//! # Scope
//!
//! What it is: [`Fields`], an ordered list of named values whose bytes are all in one buffer; [`Rows`], a batch of
//! value lists with the same names; and the formats that both are read from and written to. What it depends on: bytes,
//! the comparison of names, values that may be NULL or numbers, and the formats of lists of names and values. What it
//! must never depend on: the source of the bytes, their reader, their meaning.
//!
//! ```text
//!   entries    [name, value, length + marks, tag] …              16 bytes each, in their order
//!   memory     |== adopted block ==|===== own buffer =====|      positions count through both
//!   packed     |name|value|name|value| …                         parameters, fields that are created here
//!   record     |{"|name|":"|value|"}                             adopted: the bytes in between are dead
//!   lines      |name: value CR LF|name: value CR LF| …           heads: sent without copying
//!   invariant  used = live + dead, and dead ≤ max(live, 512 bytes) after every change
//! ```
//!
//! A name may occur several times. Names keep their spelling; case is ignored if the set is created with
//! [`Case::Ignored`]. NULL differs from the empty value. `clear` keeps the memory. For most absent names, a lookup
//! tests one bit; otherwise it scans the tags in the entries. There is no hash table that a client could fill with
//! collisions.

mod buffer;
pub mod cgi;
mod codec;
pub mod fastcgi;
mod glob;
mod grammar;
#[cfg(feature = "http")]
mod header_map;
pub mod http1;
pub mod json;
mod limit;
pub mod logfmt;
mod lookup;
mod name;
pub mod netstring;
mod reuse;
mod rows;
#[cfg(feature = "serde")]
mod serialize;
mod set;
pub mod tsv;
mod value;

pub use codec::{DecodeError, DecodeReason, EncodeError, EncodeReason};
pub use limit::{FieldError, Limits};
pub use lookup::Lookup;
pub use name::{AsName, Case, Name, NameSet, Tag, known};
pub use reuse::{POOLED_BYTES_MAX, POOLED_FIELDS_MAX, POOLED_SETS_MAX};
pub use rows::{ROWS_BYTES_MAX, Row, RowError, Rows, Schema};
pub use set::{Fields, Format, Iter, Stats};
pub use value::{Field, Value};
