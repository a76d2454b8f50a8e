//! `roadstead check --connect`: checks a configuration against its databases.

use settings::{Configuration, Diagnostics, Remark, Sources};

use crate::handler_registry::{HandlerRegistryError, database_of};

/// Connects to the database of every pool that has one, runs its `create` statement, and prepares the statement of the
/// pool. Returns a remark for each property of the database that is less safe than the settings require.
///
/// # Errors
/// Every mismatch, each at the location in the file that causes it.
pub fn check(source: &Sources, configuration: &Configuration) -> Result<Vec<Remark>, Diagnostics> {
    let (mut remarks, mut doubts) = (Vec::new(), Vec::new());
    for pool in &configuration.pools {
        if pool.database().is_none() {
            continue;
        }
        let checked =
            database_of(pool).and_then(|it| it.doubts().map_err(HandlerRegistryError::from));
        let error = match checked {
            Ok(found) => {
                let path = ["pool", &pool.name, "database"].map(str::to_owned).to_vec();
                let doubt = |message| Remark { path: path.clone(), message };
                doubts.extend(found.into_iter().map(doubt));
                continue;
            }
            Err(error) => error,
        };
        let Some(option) = error.option(pool) else { continue };
        let path = ["pool", &pool.name].into_iter().map(str::to_owned).chain(option).collect();
        remarks.push(Remark { path, message: error.to_string() });
    }
    if remarks.is_empty() {
        return Ok(doubts);
    }
    Err(settings::placed(source, &remarks))
}
