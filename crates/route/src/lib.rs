//! Routing of requests, changes of their heads, and access control.
//!
//! What it is: the compiled table of routes ([`Table`]), paths in canonical form for comparison and forwarding
//! ([`Path`]), the replacement of targets ([`Rewrite`], [`Template`]), the changes of heads ([`Edits`]), and the check
//! of credentials ([`Authenticator`]). What it depends on: hosts, paths, methods, header fields. What it must never depend on:
//! a connection, a pool, a clock, the source of a secret.
//!
//! ```text
//!   target ──Path::read──▶ path ───┐                        ┌▶ Authenticator::admits
//!   Host ────────────host_name─────┼─Table::find─▶ index ───┼▶ Rewrite::write, Template::write
//!   method, fields ────────────────┘                        └▶ Edits::apply
//! ```
//!
//! ```
//! use fields::Fields;
//! use route::{Host, Path, PathRule, RouteRequest, Rule, Table};
//!
//! let api = Rule {
//!     hosts: vec![Host::parse("*.example.org").unwrap()],
//!     path: Some(PathRule::Below(b"/api".as_slice().into())),
//!     ..Rule::default()
//! };
//! let table = Table::new(vec![api, Rule::default()]);
//! let find = |host: &str, target: &str| {
//!     let mut scratch = Vec::new();
//!     let path = Path::read(target.as_bytes(), &mut scratch).unwrap();
//!     let fields = Fields::headers();
//!     let path = Some(path.plain());
//!     let request = RouteRequest { host: host.as_bytes(), method: b"GET", path, fields: &fields };
//!     table.find(&request)
//! };
//! assert_eq!(find("www.example.org:8080", "/api/v1"), Some(0));
//! assert_eq!(find("www.example.org", "/%61pi/v1"), Some(0), "another spelling of the same path");
//! assert_eq!(find("example.net", "/api/v1"), Some(1));
//! ```
//!
//! A different spelling does not bypass a route: the path that is compared is also the path that is forwarded, and a
//! path with more than one possible interpretation is rejected.

mod edits;
mod guard;
mod host;
mod lenient;
mod path;
mod pattern;
mod rule;
mod table;
mod template;

pub use edits::{EDIT_VALUE_MAX, EditFault, Edits};
pub use guard::{AuthFault, Authenticator, CREDENTIALS_MAX, TOKEN_MIN};
pub use host::{HOST_MAX, Host, HostFault, host_name};
pub use path::{Path, PathFault};
pub use pattern::{PATTERN_MAX, Pattern, PatternFault};
pub use rule::{FieldCondition, FieldRule, PathRule, RouteRequest, Rule};
pub use table::Table;
pub use template::{Rewrite, Template, TemplateFault, TemplateValues};
