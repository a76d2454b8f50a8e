//! Opens a connection to a server and prepares it.

use std::net::IpAddr;
use std::sync::Arc;

#[cfg(feature = "tls")]
use mysql_async::SslOpts;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder};

use super::driver::MysqlDriver;
use super::fault::{refused, unless_for_now};
use super::form::Form;
use super::link::{LockWait, MysqlLink, Run, Session};
use super::{durability, engines, letters, link, schema};
use crate::ack;
use crate::link::Opened;
use crate::loopback;
use crate::rows::Shape;
use crate::server::{self, KEEPALIVE};
#[cfg(feature = "tls")]
use crate::server::{crypto, roots};
use crate::source::{self, Members, Source};
use crate::{Action, DatabaseError, Host, OnConflict, Server, Sync, Tls};

/// Opens a connection and prepares what a handler needs.
pub(super) fn connect(driver: &MysqlDriver) -> Result<MysqlLink, DatabaseError> {
    let name = driver.server.to_string();
    let (runtime, session) = server::connect(&driver.server, prepare(driver, &name))?;
    Ok(MysqlLink::new(runtime, session))
}

async fn prepare(driver: &MysqlDriver, name: &str) -> Result<Session, DatabaseError> {
    let job = &driver.job;
    let place = loopback::place(&driver.server, name).await?;
    let options = options(driver, name, place)?;
    let opened = Conn::new(options.clone()).await;
    let mut connection = opened.map_err(|error| refused(name, &error))?;
    if let Some(create) = &job.create {
        connection.query_drop(create).await.map_err(|error| {
            unless_for_now(name, &error, |text| DatabaseError::Create(text.into()))
        })?;
    }
    let mut unfit = match &job.dead {
        Some(table) => letters::prepare(&mut connection, name, table).await?,
        None => None,
    };
    let mut members = Members::default();
    let sources = driver.names.iter().map(|name| members.source(name));
    let sources: Vec<Source> = sources.collect::<Result<_, _>>()?;
    let mut key = schema::Key::default();
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
                Action::Query(_) => {
                    let json = schema::json_columns(&mut connection, &prepared).await;
                    Run::Query(prepared, json)
                }
                _ => {
                    schema::check_statement(&mut connection, name, driver.source()).await?;
                    Run::Rows(prepared)
                }
            }
        }
    };
    // Before the types, so that the types are never older.
    let form = Form::of(&mut connection, &job.action, key.index.as_deref()).await;
    let form = form.map_err(|error| refused(name, &error))?;
    let takes = schema::takes(&mut connection, &job.action, &driver.names).await;
    let (takes, uncompared) = takes.map_err(|error| refused(name, &error))?;
    let mut doubts = match (&job.action, job.sync) {
        (Action::Query(_), _) | (_, Sync::Normal) => Vec::new(),
        (_, Sync::Full) => durability::doubts(&mut connection, name).await?,
    };
    let engines = engines::check(&mut connection, name, job).await?;
    let is_atomic = engines.doubts.is_empty();
    if let Action::Statement(sql) = &job.action {
        doubts.extend(sql::unchecked(sql, sql::Dialect::Question, source::is_reserved));
    }
    doubts.extend(sql::uncompared(&uncompared));
    doubts.extend(engines.doubts);
    doubts.extend(key.doubts);
    unfit = unfit.or(engines.unfit);
    let ack = ack::of(job, &mut members, &[])?;
    let shape = Arc::new(Shape::new(job, members, sources, ack)?);
    let server: Option<(usize, String)> = connection
        .query_first("select @@max_allowed_packet, @@version")
        .await
        .map_err(|error| refused(name, &error))?;
    let (packet_max, version) = server.unwrap_or((usize::MAX, String::new()));
    let request_max = schema::request_max(packet_max);
    let usual = lock_timeout(driver);
    // The minimum wait of MySQL is one second.
    let least = u64::from(!version.contains("MariaDB"));
    let locks = LockWait { usual, least, now: usual };
    let resend_key = key.columns;
    let opened = Opened { shape, takes, resend_key, is_atomic, doubts, unfit };
    Ok(Session {
        connection,
        options,
        run,
        opened,
        form,
        job: Arc::clone(job),
        names: driver.names.clone(),
        request_max,
        locks,
    })
}

/// Returns the byte of the statement in the settings that an error concerns.
fn place_of(driver: &MysqlDriver, error: &Error) -> Option<usize> {
    let Error::Server(said) = error else { return None };
    let at = sql::mysql_error_place(&driver.sql, said.code, &said.message)?;
    Some(sql::origin(driver.source(), sql::Dialect::Question, at))
}

/// Returns the connection options. `place`: the verified address of the host.
fn options(driver: &MysqlDriver, name: &str, place: Option<IpAddr>) -> Result<Opts, DatabaseError> {
    let Server { host, user, password, database, tls, connect_timeout: _ } = &driver.server;
    let mut options = OptsBuilder::default()
        .user(Some(user))
        .db_name(Some(database))
        .prefer_socket(false)
        .tcp_keepalive(Some(KEEPALIVE))
        // A row that an update matches counts, also if it has the values already.
        .client_found_rows(matches!(driver.job.action, Action::Statement(_)))
        .setup(session(driver));
    if let Some(password) = password {
        options = options.pass(Some(password.text()));
    }
    options = match host {
        Host::Internet(host, port) => {
            let host = place.map_or_else(|| host.clone(), |place| place.to_string());
            options.ip_or_hostname(host).tcp_port(*port)
        }
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
        return Err(server::without_tls(name));
    }
    Ok(options.into())
}

/// Returns how long statements wait for a lock: whole seconds, at least one.
fn lock_timeout(driver: &MysqlDriver) -> u64 {
    let wait = driver.job.lock_timeout;
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).clamp(1, 1_000_000)
}

/// Returns the statements that set up the session.
fn session(driver: &MysqlDriver) -> Vec<String> {
    let mut session = vec![
        // Times with a zone are converted to UTC before they are stored.
        "set session time_zone = '+00:00'".to_owned(),
        // A server with 0 reports no warnings, and the warnings of a rollback say what was not undone.
        "set session max_error_count = greatest(@@max_error_count, 64)".to_owned(),
        // Otherwise a server may end the connection after each ROLLBACK, or begin another transaction.
        "set session completion_type = 0".to_owned(),
        "set session sql_select_limit = 18446744073709551615".to_owned(),
        // With `NO_AUTO_VALUE_ON_ZERO` a counter keeps a 0 that it is given.
        "set session sql_mode = concat(@@sql_mode, \
         ',STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO')"
            .to_owned(),
        // An empty string is not NULL.
        "set session sql_mode = replace(@@sql_mode, 'EMPTY_STRING_IS_NULL', '')".to_owned(),
        // A server may ignore the character set that a client requests at login, or change it afterwards.
        "set names utf8mb4".to_owned(),
        link::lock_timeout(lock_timeout(driver)),
    ];
    if let Action::Insert { .. } = driver.job.action {
        // Keys are looked up as they are stored, without padding blanks.
        let mode = "set session sql_mode = replace(@@sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', '')";
        session.push(mode.to_owned());
    }
    session.push(match driver.job.action {
        Action::Query(_) => "set session transaction read only".to_owned(),
        Action::Insert { .. } | Action::Statement(_) => "set session autocommit = 0".to_owned(),
    });
    session
}
