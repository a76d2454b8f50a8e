//! Every option declared once.
//!
//! What it is: the table of options and what is made of it: the parsed [`Configuration`], errors
//! with place and mend, the reference page. What it knows: names, types, defaults, ranges. What it
//! must never know: a socket, a thread, a runtime; what an option is used for.

mod model;

pub use model::*;
