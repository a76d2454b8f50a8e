//! Names and values in one buffer.
//!
//! What it is: [`Fields`], an ordered list of named values whose bytes all lie in one buffer, and
//! [`json`], which fills it from a JSON object. What it knows: bytes, and that a value may be NULL
//! or a number. What it must never know: where the bytes come from, who reads them, what they mean.
//!
//! ```text
//!   bytes     |name|value|name|value| … |name|value|          only ever grows until `clear`
//!   entries   [name, value, end, kind] …                      16 bytes each, in their order
//!   law       name ≤ value ≤ end ≤ bytes.len(), and the end of an entry is the name of the next
//! ```
//!
//! Names may occur more than once; NULL is not the empty value; `clear` keeps the memory.

pub mod json;
mod set;

pub use set::{BYTES_MAX, Field, Fields, Overflow, Value};
