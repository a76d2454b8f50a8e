//! Parses the text of a configuration file into a configuration.

use std::collections::BTreeSet;

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::model::{Balancing, Configuration, HealthCheck, Retries};
use crate::options::Options;
use crate::source::Source;
use crate::sources::Sources;
use crate::tree::Table;
use crate::walk::Section;
use crate::{checks, mask, walk};

/// Parses the text of a configuration.
///
/// Nothing is read except the arguments. `environment` looks up a variable of the daemon, for options that are written
/// `env:NAME`. Secrets are not resolved here, but where they are used.
///
/// # Errors
///
/// Returns all errors of the text, in its order.
pub fn parse(
    source: impl Into<Sources>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Configuration, Diagnostics> {
    let sources = source.into();
    let (table, faults) = sources.tree();
    configuration(&sources, &table, environment, faults)
}

/// Makes a configuration from a tree and the faults found while it was parsed. Files and command lines share this step.
pub(crate) fn configuration(
    sources: &Sources,
    table: &Table,
    environment: &dyn Fn(&str) -> Option<String>,
    mut faults: Vec<Fault>,
) -> Result<Configuration, Diagnostics> {
    let walk::Walked { sections, variables, hidden } =
        walk::walk(table, sources.text(), environment, &mut faults);
    checks::check(&sections, &mut faults);
    if faults.is_empty() {
        return Ok(filled(&sections, variables));
    }
    for fault in &mut faults {
        hidden.iter().for_each(|value| fault.reworded(|text| mask::piece(text, value)));
    }
    Err(Diagnostics::of(sources, faults))
}

/// Returns the model of sections that were walked and checked without a fault.
fn filled(sections: &[Section], variables: BTreeSet<String>) -> Configuration {
    fn of<T: Options>(sections: &[Section], name: &str) -> Vec<T> {
        let sections = sections.iter().filter(|section| section.kind.name == name);
        sections.map(|section| T::fill(&section.group)).collect()
    }
    Configuration {
        daemon: of(sections, "daemon")
            .pop()
            .expect("the walk adds this section where it is missing"),
        admin: of(sections, "admin").pop(),
        access_log: of(sections, "access_log").pop(),
        cluster: of(sections, "cluster").pop(),
        listeners: of(sections, "listener"),
        pools: of(sections, "pool"),
        variables,
    }
}

/// Returns the defaults of a pool.
fn pool_defaults() -> Balancing {
    let text = "[pool.main]\nprogram = [\"cat\"]\n".to_owned();
    let source = Source { name: String::new(), text };
    let mut read = parse(&source, &|_| None).expect("a pool needs nothing but its worker");
    read.pools.remove(0).balancing
}

impl Default for Balancing {
    /// Returns the defaults.
    fn default() -> Self {
        pool_defaults()
    }
}

impl Default for Retries {
    /// Returns the defaults.
    fn default() -> Self {
        pool_defaults().retries
    }
}

impl Default for HealthCheck {
    /// Returns the defaults.
    fn default() -> Self {
        pool_defaults().health_check
    }
}
