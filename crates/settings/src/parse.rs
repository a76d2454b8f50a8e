//! From the text of a configuration file to what it says.

use crate::diagnostics::{Diagnostics, Fault};
use crate::model::Configuration;
use crate::source::Source;
use crate::tree::{self, Table};
use crate::{checks, fill, walk};

/// Makes a configuration of a text, or says everything that is wrong with it.
///
/// Nothing is read but the arguments. `_environment` looks up a variable of the daemon; it is the
/// only way in for secrets written `env:NAME`, and no option is a secret yet.
///
/// # Errors
///
/// All errors of the text at once, in its order.
pub fn parse(
    source: &Source,
    _environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Configuration, Diagnostics> {
    let (table, faults) = tree::read(&source.text);
    configuration(source, &table, faults)
}

/// What files and command lines have in common: a tree, and the faults found while it was read.
pub(crate) fn configuration(
    source: &Source,
    table: &Table,
    mut faults: Vec<Fault>,
) -> Result<Configuration, Diagnostics> {
    let sections = walk::walk(table, &source.text, &mut faults);
    checks::check(&sections, &mut faults);
    if faults.is_empty() { Ok(fill::fill(&sections)) } else { Err(Diagnostics::of(source, faults)) }
}
