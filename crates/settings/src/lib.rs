//! Every option, declared once.
//!
//! What it is: the table of options and everything that is generated from it: the parsed [`Configuration`], errors with
//! location and suggested fix, the reference page. What it depends on: names, types, defaults, ranges. What it must
//! never depend on: a socket, a thread, a runtime; what an option is used for.
//!
//! An option is one row, at the field of the `model` that it fills: name, type, range, default, meaning, and whether a
//! reload changes it. The parser, the defaults, the reference page and the reload rule are generated from the rows.
//! `options::declare` describes how rows are written.
//!
//! A file is processed in four steps: `tree` (TOML with locations, with recovery from errors) → `walk` (matches the
//! tree with the rows) → `checks` (rules between options) → the model. Faults are collected in all steps. The model is
//! filled only if there are none.
//!
//! The layers. Each module imports only from the layers above its own, or from an earlier module of the same line:
//!
//! - `quantities` (numbers with units), `values` (addresses, keys and similar values, and how they are read);
//! - `options` (the definition of a row), `model` (the rows, and the typed configuration), `table` (its sections),
//!   `shown`;
//! - `source`, `fault`, `tree`, `sources`, `diagnostics`, `remarks`: files, and errors at their locations in them;
//! - `walk`: the content of the file, option by option;
//! - `checks`: rules between options;
//! - `parse`, `builder`, `flags`, `include`, `load`: the entry points; `reload`, `secrets` and `reference` answer questions about
//!   configurations and the table.
//!
//! ```
//! let text = "[listener.main]\nlisten = \":7000\"\npool = \"echo\"\n[pool.echo]\nprogram = [\"cat\"]\n";
//! let source = settings::Source { name: "roadstead.toml".into(), text: text.into() };
//! let configuration = settings::parse(&source, &|_| None).expect("the file is right");
//! assert_eq!(configuration.pools[0].workers.max, 4);
//! ```

mod builder;
mod checks;
mod diagnostics;
mod fault;
mod flags;
mod foreign;
mod include;
mod load;
mod mask;
mod model;
mod nearest;
mod options;
mod parse;
mod quantities;
mod reference;
mod reload;
mod remarks;
mod secrets;
mod shown;
mod source;
mod sources;
mod table;
mod tree;
mod values;
mod walk;

pub use builder::{Builder, ListenerBuilder, OptionValue, PoolBuilder, RouteBuilder};
pub use checks::warnings;
pub use diagnostics::{Diagnostic, Diagnostics};
pub use flags::{Flag, FlagValue, from_flags};
pub use load::{FILE_BYTES_MAX, load, reread_source, source};
pub use model::*;
pub use parse::parse;
pub use reference::reference;
pub use reload::{in_order_of, replaces, restart_required};
pub use remarks::{Remark, placed};
pub use secrets::passed_variable;
pub use source::Source;
pub use sources::Sources;
