//! Names and values in one buffer.
//!
//! What it is: [`Fields`], an ordered list of named values whose bytes all lie in one buffer;
//! [`Rows`], a batch of them that share their names; and the formats that both are read from and
//! written to. What it depends on: bytes, how names are compared, that a value may be NULL or a number,
//! and how lists of names and values are written down. What it must never depend on: where the bytes
//! come from, who reads them, what they mean.
//!
//! ```text
//!   entries  [name, value, length + marks, tag] …              16 bytes each, in their order
//!   memory   |== adopted block ==|===== own buffer =====|      positions count through both
//!   packed   |name|value|name|value| …                         parameters, what is made here
//!   record   |{"|name|":"|value|"}                             adopted: what stands between is dead
//!   lines    |name: value CR LF|name: value CR LF| …           heads: sent as they lie
//!   law      used = live + dead, and dead ≤ max(live, 512 bytes) after every change
//! ```
//!
//! Names may occur more than once and keep their spelling; case is ignored where a set says so;
//! NULL is not the empty value; `clear` keeps the memory. A look-up is one bit for most names that
//! are absent, and else a walk over the tags in the entries: there is no table to be flooded.

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

pub use codec::{DecodeError, DecodeReason, Unfit, UnfitReason};
pub use limit::{FieldError, Limits};
pub use lookup::Lookup;
pub use name::{AsName, Case, Name, NameSet, Tag, known};
pub use reuse::{POOLED_BYTES_MAX, POOLED_FIELDS_MAX, POOLED_SETS_MAX};
pub use rows::{ROWS_BYTES_MAX, Row, RowError, Rows, Schema};
pub use set::{Fields, Format, Iter, Stats};
pub use value::{Field, Value};

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
