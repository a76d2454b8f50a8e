//! Which way a request goes, what is changed on it, and who may go it.
//!
//! What it is: the table of routes, compiled once ([`Table`]), paths in the one spelling that is
//! compared and goes on ([`Path`]), what takes the place of a target ([`Rewrite`], [`Template`]),
//! what is changed in a head ([`Edits`]), and who is let through ([`Guard`]). What it depends on: hosts,
//! paths, methods, header fields. What it must never depend on: a connection, a pool, a clock, where a
//! secret comes from.
//!
//! ```text
//!   target ──Path::read──▶ path ───┐                        ┌▶ Guard::admits
//!   Host ────────────host_name─────┼─Table::find─▶ place ───┼▶ Rewrite::write, Template::write
//!   method, fields ────────────────┘                        └▶ Edits::apply
//! ```
//!
//! A route cannot be passed by spelling: what is compared is what goes on, and a path that two
//! readers could understand in two ways is refused.

mod edits;
mod guard;
mod host;
mod loose;
mod path;
mod pattern;
mod rule;
mod table;
mod template;

pub use edits::{EDIT_VALUE_MAX, EditFault, Edits};
pub use guard::{CREDENTIALS_MAX, Guard, GuardFault, TOKEN_MIN};
pub use host::{HOST_MAX, Host, HostFault, host_name};
pub use path::{Path, PathFault};
pub use pattern::{PATTERN_MAX, Pattern, PatternFault};
pub use rule::{Asked, FieldRule, PathRule, Rule, Wanted};
pub use table::Table;
pub use template::{Filling, Rewrite, Template, TemplateFault};
