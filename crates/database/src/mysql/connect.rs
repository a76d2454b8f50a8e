//! From a server to a connection that is ready.

#[cfg(feature = "tls")]
use mysql_async::SslOpts;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder};
use tokio::time::timeout;

use super::link::{MysqlLink, Ready, Run};
use super::{MysqlDriver, durability, engines, fault, letters, place, schema};
use crate::ack;
use crate::fault::Blame;
use crate::named::{self, Dialect};
use crate::rows::Shape;
use crate::server::{KEEPALIVE, runtime};
#[cfg(feature = "tls")]
use crate::server::{crypto, roots};
use crate::source::{Members, Source};
use crate::{Action, DatabaseError, Host, OnConflict, Server, Sync, Tls};

/// Opens a connection and prepares what a handler needs.
pub(super) fn connect(driver: &MysqlDriver) -> Result<MysqlLink, DatabaseError> {
    let name = driver.server.to_string();
    let runtime = runtime(&name)?;
    let wait = driver.server.connect_wait;
    let late = || {
        let text = format!("no answer within {wait:?}");
        DatabaseError::Unreachable(name.clone(), text.into())
    };
    let ready = runtime.block_on(async {
        timeout(wait, prepare(driver, &name)).await.unwrap_or_else(|_| Err(late()))
    })?;
    Ok(MysqlLink::new(runtime, ready))
}

async fn prepare(driver: &MysqlDriver, name: &str) -> Result<Ready, DatabaseError> {
    let job = &driver.job;
    let options = options(driver, name)?;
    let opened = Conn::new(options.clone()).await;
    let mut connection = opened.map_err(|error| refused(name, &error))?;
    if let Some(create) = &job.create {
        connection.query_drop(create).await.map_err(|error| {
            unless_for_now(name, &error, |text| DatabaseError::Create(text.into()))
        })?;
    }
    if let Some(table) = &job.dead {
        letters::prepare(&mut connection, name, table).await?;
    }
    let mut members = Members::default();
    let sources = driver.names.iter().map(|name| members.source(name));
    let sources: Vec<Source> = sources.collect::<Result<_, _>>()?;
    let mut key = None;
    let run = match &job.action {
        Action::Insert { table, columns, on_conflict } => {
            schema::check(&mut connection, name, table, columns, &sources).await?;
            if let OnConflict::Nothing(named) = on_conflict {
                key = schema::check_key(&mut connection, name, table, columns, named).await?;
            }
            Run::Values(schema::Values::new(table, columns, on_conflict))
        }
        Action::Statement(_) | Action::Query(_) => {
            let prepared = connection.prep(&driver.sql).await.map_err(|error| {
                let at = place_of(driver, &error);
                unless_for_now(name, &error, |text| DatabaseError::statement(&text, at))
            })?;
            match &job.action {
                Action::Query(_) => Run::Query(prepared),
                _ => {
                    schema::check_statement(&mut connection, name, driver.source()).await?;
                    Run::Rows(prepared)
                }
            }
        }
    };
    let mut doubts = match (&job.action, job.sync) {
        (Action::Query(_), _) | (_, Sync::Normal) => Vec::new(),
        (_, Sync::Full) => durability::doubts(&mut connection, name).await?,
    };
    let engines = engines::check(&mut connection, name, &job.action).await?;
    let is_atomic = engines.is_empty();
    doubts.extend(engines);
    let ack = ack::of(job, &mut members, &[])?;
    let shape = Shape::new(job, members, sources, ack)?;
    let affected = job.affected;
    let packet_max: Option<usize> = connection
        .query_first("select @@max_allowed_packet")
        .await
        .map_err(|error| refused(name, &error))?;
    let request_max = schema::request_max(packet_max.unwrap_or(usize::MAX));
    Ok(Ready { connection, options, run, shape, key, affected, doubts, is_atomic, request_max })
}

/// Which byte of the statement of the settings an error is about.
fn place_of(driver: &MysqlDriver, error: &Error) -> Option<usize> {
    let Error::Server(said) = error else { return None };
    let at = place::of(&driver.sql, said.code, &said.message)?;
    Some(named::origin(driver.source(), Dialect::Question, at))
}

fn options(driver: &MysqlDriver, name: &str) -> Result<Opts, DatabaseError> {
    let Server { host, user, password, database, tls, connect_wait: _ } = &driver.server;
    let mut options = OptsBuilder::default()
        .user(Some(user))
        .db_name(Some(database))
        .prefer_socket(false)
        .tcp_keepalive(Some(KEEPALIVE))
        // A row that an update matches counts, also where it has the values already.
        .client_found_rows(matches!(driver.job.action, Action::Statement(_)))
        .setup(session(driver));
    if let Some(password) = password {
        options = options.pass(Some(password.text()));
    }
    options = match host {
        Host::Internet(host, port) => options.ip_or_hostname(host).tcp_port(*port),
        Host::Socket(path, _) => options.socket(Some(path.display().to_string())),
    };
    #[cfg(feature = "tls")]
    if let Tls::On(file) = tls {
        crypto();
        let roots = roots(name, file.as_deref())?;
        let roots = roots.into_iter().map(Into::into).collect();
        let tls = SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots);
        options = options.ssl_opts(tls);
    }
    #[cfg(not(feature = "tls"))]
    if let Tls::On(_) = tls {
        return Err(crate::server::without_tls(name));
    }
    Ok(options.into())
}

/// What holds for the whole session.
fn session(driver: &MysqlDriver) -> Vec<String> {
    // Whole seconds, and at least one.
    let lock_wait = driver.job.lock_wait.as_secs_f64().ceil().clamp(1.0, 1e6);
    let mut session = vec![
        "set session sql_mode = concat(@@sql_mode, ',STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION')"
            .to_owned(),
        format!(
            "set session innodb_lock_wait_timeout = {lock_wait}, session lock_wait_timeout = \
             {lock_wait}"
        ),
    ];
    session.push(match driver.job.action {
        Action::Query(_) => "set session transaction read only".to_owned(),
        Action::Insert { .. } | Action::Statement(_) => "set session autocommit = 0".to_owned(),
    });
    session
}

/// What an error says to an operator who wants in.
pub(super) fn refused(server: &str, error: &Error) -> DatabaseError {
    unless_for_now(server, error, |text| DatabaseError::Denied(server.to_owned(), text.into()))
}

/// `otherwise`, unless time may mend it.
pub(super) fn unless_for_now(
    server: &str,
    error: &Error,
    otherwise: impl FnOnce(String) -> DatabaseError,
) -> DatabaseError {
    let fault = fault::of(error);
    let text = match error {
        Error::Server(said) => said.message.clone(),
        other => other.to_string(),
    };
    if text.contains("TLS") || text.contains("certificate") {
        return DatabaseError::Denied(server.to_owned(), text.into());
    }
    if fault.again && fault.blame != Blame::Conflict {
        return DatabaseError::Unreachable(server.to_owned(), text.into());
    }
    otherwise(text)
}
