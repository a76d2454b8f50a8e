//! Builds the handlers of pools. Only this module depends on all kinds of handlers.

use std::path::Path;
use std::sync::Arc;

use database::mysql::{self, MysqlOptions};
use database::postgres::{self, PostgresOptions};
use database::sqlite::{self, SqliteOptions};
use database::{About, DatabaseError, Host, Job, Server};
use gateway::{FactoryError, HandlerRegistry};
use settings::{
    Action, Affected, Database, DatabaseHost, Durability, InputFormat, OnConflict, OutputFormat,
    Pool, Secret, ServerTarget, Target, Tls, UnknownFields,
};

/// Handlers for the databases of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handlers;

/// Why the database of a pool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerRegistryError {
    /// The pool has no database.
    NoDatabase,
    /// A secret cannot be read. The text names the secret and the cause.
    Secret(String),
    /// The error of the database.
    Database(DatabaseError),
}

impl std::fmt::Display for HandlerRegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDatabase => f.write_str(
                "this program has no handlers but those of databases; see `roadstead::embed`",
            ),
            Self::Secret(text) => f.write_str(text),
            Self::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandlerRegistryError {}

impl From<DatabaseError> for HandlerRegistryError {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl HandlerRegistryError {
    /// Returns the keys below the pool that lead to the option that may have caused the error, as in
    /// [`settings::Remark`]. `None`: the pool has no database.
    #[must_use]
    pub fn option(&self, pool: &Pool) -> Option<Vec<String>> {
        let (option, byte) = match self {
            Self::NoDatabase => return None,
            Self::Secret(_) => (vec!["password"], None),
            Self::Database(error) => (option_of(error, &pool.database()?.action), error.byte()),
        };
        let option = option.into_iter().map(str::to_owned);
        Some(option.chain(byte.map(|byte| format!("@{byte}"))).collect())
    }
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

impl HandlerRegistry for Handlers {
    fn factory(&self, pool: &Pool) -> Result<Arc<dyn exchange::Factory>, FactoryError> {
        let unusable = |error: HandlerRegistryError| FactoryError {
            why: error.to_string(),
            option: error.option(pool).unwrap_or_default(),
        };
        let database = database_of(pool).map_err(unusable)?;
        match database.check() {
            // The error may be temporary. The pool starts its handlers again until they succeed.
            Err(error) if error.is_for_now() => {
                tracing::warn!(pool = pool.name, "{error}");
            }
            checked => checked.map_err(|error| unusable(error.into()))?,
        }
        Ok(Arc::new(database))
    }
}

/// Returns the database of a pool and its action. No connection is opened.
///
/// # Errors
/// The pool has no database, or its settings must be fixed.
pub fn database_of(pool: &Pool) -> Result<database::Database, HandlerRegistryError> {
    let database = pool.database().ok_or(HandlerRegistryError::NoDatabase)?;
    let Database {
        target,
        action,
        create,
        input_format: record,
        ack,
        durability: sync,
        lock_timeout,
        retry_timeout: retry,
        resend,
        dead_letter_table: dead,
        affected,
        unknown_fields,
        log_error_details,
        password,
        tls,
        tls_ca,
        connect_timeout,
    } = database.clone();
    let job = Job {
        action: action_of(action),
        create,
        record: match record {
            InputFormat::Json => database::Record::Json,
            InputFormat::Tsv => database::Record::Tsv,
            InputFormat::Logfmt => database::Record::Logfmt,
        },
        ack,
        sync: match sync {
            Durability::Full => database::Sync::Full,
            Durability::Normal => database::Sync::Normal,
        },
        lock_timeout,
        retry,
        resend,
        dead,
        affected: match affected {
            Affected::Row => database::Affected::Row,
            Affected::Any => database::Affected::Any,
        },
        unknown_fields: match unknown_fields {
            UnknownFields::Reject => database::UnknownFields::Reject,
            UnknownFields::Ignore => database::UnknownFields::Ignore,
        },
        log_error_details,
    };
    let server = |target: ServerTarget| -> Result<Server, HandlerRegistryError> {
        let ServerTarget { host, user, database } = target;
        let encrypted = match tls {
            Tls::On => true,
            Tls::Off => false,
            Tls::Auto => !host.is_here(),
        };
        Ok(Server {
            host: match host {
                DatabaseHost::Internet(host, port) => Host::Internet(host, port),
                DatabaseHost::Socket(path, port) => Host::Socket(path, port),
            },
            user,
            password: password.as_ref().map(secret).transpose()?,
            database,
            tls: if encrypted { database::Tls::On(tls_ca.clone()) } else { database::Tls::Off },
            connect_timeout,
        })
    };
    Ok(match target {
        Target::Sqlite(path) => sqlite::factory(SqliteOptions { path, job })?,
        Target::Postgres(target) => {
            postgres::factory(PostgresOptions { server: server(target)?, job })?
        }
        Target::Mysql(target) => mysql::factory(MysqlOptions { server: server(target)?, job })?,
    })
}

fn action_of(action: Action) -> database::Action {
    match action {
        Action::Insert(insert) => {
            let settings::Insert { table, columns, on_conflict, key } = insert;
            let on_conflict = match on_conflict {
                OnConflict::Refuse => database::OnConflict::Refuse,
                OnConflict::Nothing => database::OnConflict::Nothing(key),
            };
            database::Action::Insert { table, columns, on_conflict }
        }
        Action::Statement(statement) => database::Action::Statement(statement),
        Action::Query(query) => {
            let settings::Query { sql, output_format: rows, rows_max, reply_max, http_path: _ } =
                query;
            database::Action::Query(database::Query {
                sql,
                rows: match rows {
                    OutputFormat::Json => database::Format::Json,
                    OutputFormat::Lines => database::Format::Lines,
                    OutputFormat::Tsv => database::Format::Tsv,
                },
                rows_max: rows_max as usize,
                reply_max,
            })
        }
    }
}

/// Reads a secret.
fn secret(secret: &Secret) -> Result<database::Secret, HandlerRegistryError> {
    let text = match secret {
        Secret::Environment(name) => std::env::var(name).map_err(|error| {
            HandlerRegistryError::Secret(format!("`password`: `{name}`: {error}"))
        })?,
        Secret::File(path) => read_secret(path)?,
    };
    Ok(database::Secret::new(text))
}

/// Reads the text of a file without the line end that editors append.
fn read_secret(path: &Path) -> Result<String, HandlerRegistryError> {
    let text = gateway::read_secret_text(path).map_err(|error| {
        HandlerRegistryError::Secret(format!("`password`: `{}`: {error}", path.display()))
    })?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}
