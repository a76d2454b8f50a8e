//! One event loop that pushes.
//!
//! What it is: streams, listeners, timers and mail behind one interface; the loop owns the
//! descriptors, does the reading and writing, and hands its [`Owner`] what happened. What it
//! knows: the kernel and time. What it must never know: a protocol, a request, a pool.

mod interface;

pub use interface::*;
