//! `roadstead check --connect`: checks a configuration against its databases.

use database::{About, DatabaseError};
use settings::{Action, Configuration, Diagnostics, Remark, Sources};

use crate::handler_registry::{HandlerRegistryError, database_of};

/// Connects to the database of every pool that has one, runs its `create` statement, and prepares the statement of the
/// pool. Returns a remark for each property of the database that is less safe than the settings require.
///
/// # Errors
/// Every mismatch, each at the location in the file that causes it.
pub fn check(source: &Sources, configuration: &Configuration) -> Result<Vec<Remark>, Diagnostics> {
    let (mut remarks, mut doubts) = (Vec::new(), Vec::new());
    for pool in &configuration.pools {
        let Some(database) = pool.database() else { continue };
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
        let (option, byte) = match &error {
            HandlerRegistryError::NoDatabase => continue,
            HandlerRegistryError::Secret(_) => (vec!["password"], None),
            HandlerRegistryError::Database(error) => {
                (option_of(error, &database.action), error.byte())
            }
        };
        let path = ["pool", &pool.name].into_iter().chain(option).map(str::to_owned);
        let path = path.chain(byte.map(|byte| format!("@{byte}"))).collect();
        remarks.push(Remark { path, message: error.to_string() });
    }
    if remarks.is_empty() {
        return Ok(doubts);
    }
    Err(settings::placed(source, &remarks))
}

/// Returns the options that may have caused an error.
fn option_of<'e>(error: &'e DatabaseError, action: &Action) -> Vec<&'e str> {
    match error.about() {
        About::Database => vec!["database"],
        About::Create => vec!["create"],
        About::Insert => vec!["insert"],
        About::Table => vec!["insert", "table"],
        About::Column(name) => vec!["insert", "columns", name],
        About::Statement => vec![match action {
            Action::Insert(_) => "insert",
            Action::Statement(_) => "statement",
            Action::Query(_) => "query",
        }],
        About::Ack => vec!["ack"],
        About::Dead => vec!["dead_letter_table"],
    }
}
