//! Builds the handlers that pools name: the one place that knows every kind of them.

use std::sync::Arc;

use database::sqlite::{SqliteOptions, factory};
use gateway::Workshop;
use settings::{Action, Database, OnConflict, Pool, Record, Sync, Target, Worker};

/// Handlers for the databases of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handlers;

impl Workshop for Handlers {
    fn factory(&self, pool: &Pool) -> Result<Arc<dyn exchange::Factory>, String> {
        let Worker::Database(database) = &pool.worker else {
            return Err(
                "this program has no handlers but those of databases; see `roadstead::embed`"
                    .to_owned(),
            );
        };
        let factory = factory(options(database.clone())).map_err(|error| error.to_string())?;
        factory.check().map_err(|error| error.to_string())?;
        Ok(Arc::new(factory))
    }
}

/// The settings of a database pool as its handler wants them.
fn options(database: Database) -> SqliteOptions {
    let Database { target, action, create, record, ack, sync, lock_wait } = database;
    let Target::Sqlite(path) = target;
    SqliteOptions {
        path,
        action: match action {
            Action::Insert(insert) => {
                let settings::Insert { table, columns, on_conflict } = insert;
                let on_conflict = match on_conflict {
                    OnConflict::Refuse => database::OnConflict::Refuse,
                    OnConflict::Nothing => database::OnConflict::Nothing,
                };
                database::Action::Insert { table, columns, on_conflict }
            }
            Action::Statement(statement) => database::Action::Statement(statement),
        },
        create,
        record: match record {
            Record::Json => database::Record::Json,
            Record::Tsv => database::Record::Tsv,
            Record::Logfmt => database::Record::Logfmt,
        },
        ack,
        sync: match sync {
            Sync::Full => database::Sync::Full,
            Sync::Normal => database::Sync::Normal,
        },
        lock_wait,
    }
}
