//! Opens a connection to a server and prepares it.

use std::future::Future;
use std::sync::Arc;

use sql::quoted;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{DbError, ErrorPosition};
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use super::decode::Decode;
use super::driver::PostgresDriver;
use super::fault::{refused, unless_for_now};
use super::form::Form;
use super::link::{PostgresLink, Run, Session};
use super::stale::{Columns, Prepared};
use super::tls::Rustls;
use super::{durability, foreign, letters, schema};
use crate::ack::{self, Piece};
use crate::link::Opened;
use crate::loopback;
use crate::rows::Shape;
#[cfg(feature = "tls")]
use crate::server::roots;
use crate::server::{self, KEEPALIVE};
use crate::source::{self, Members, Source};
use crate::{Action, DatabaseError, Format, Host, Server, Sync, Tls};

/// Opens a connection and prepares what a handler needs.
pub(super) fn connect(driver: &PostgresDriver) -> Result<PostgresLink, DatabaseError> {
    let name = driver.server.to_string();
    let (runtime, session) = server::connect(&driver.server, prepare(driver, &name))?;
    Ok(PostgresLink::new(runtime, session))
}

async fn prepare(driver: &PostgresDriver, name: &str) -> Result<Session, DatabaseError> {
    let (server, job) = (&driver.server, &driver.job);
    let (client, tls) = open(server, name).await?;
    let told = |error: Error| refused(name, &error);
    client.batch_execute(&session(driver)).await.map_err(told)?;
    if let Some(create) = &job.create {
        make(&client, create).await.map_err(|error| {
            unless_for_now(name, &error, |text| DatabaseError::Create(text.into()))
        })?;
    }
    let unfit = match &job.dead {
        Some(table) => letters::prepare(&client, name, table).await?,
        None => None,
    };
    let statement = |error: Error| {
        let letter = match error.as_db_error().and_then(DbError::position) {
            Some(ErrorPosition::Original(letter)) => Some(*letter),
            _ => None,
        };
        let at = letter.and_then(|letter| driver.text.origin(letter));
        unless_for_now(name, &error, |text| DatabaseError::statement(&text, at))
    };
    let mut members = Members::default();
    let names = driver.text.names.iter();
    let sources: Vec<Source> = names.map(|name| members.source(name)).collect::<Result<_, _>>()?;
    // Before everything that depends on the columns, so that a change in between is noticed.
    let mut form = Form::of(&client, &job.action).await.map_err(told)?;
    let mut resend_key = None;
    let mut returned = Vec::new();
    let takes;
    let of_statement = |prepared: &Statement| {
        let (action, names, prepared) = (&job.action, &driver.text.names, prepared.clone());
        let client = &client;
        async move { schema::takes_of_statement(client, action, names, &prepared).await }
    };
    let (mut run, columns, sources) = match &job.action {
        Action::Insert { table, columns, on_conflict } => {
            let plan = schema::insert(&client, name, table, columns, on_conflict).await?;
            let prepared = client.prepare(&plan.sql).await.map_err(statement)?;
            let sources: Vec<Source> =
                columns.iter().map(|column| members.source(column)).collect::<Result<_, _>>()?;
            schema::check_reserved(columns, &sources, &plan.types)?;
            let absent = match &plan.absent {
                Some(sql) => Some(client.prepare(sql).await.map_err(statement)?),
                None => None,
            };
            let columns = Columns::Insert(plan.text());
            (resend_key, takes) = (plan.key, plan.takes);
            let by_row = plan.has_rules;
            if let Some(form) = form.as_mut().filter(|_| !by_row) {
                form.watch_rules(&client, table).await.map_err(told)?;
            }
            (Run::Arrays { insert: prepared, absent, by_row }, columns, sources)
        }
        Action::Statement(_) => {
            let prepared = client.prepare(&driver.text.sql).await.map_err(statement)?;
            schema::check_parameters(&driver.text, &sources, &prepared)?;
            let (accepted, error) = of_statement(&prepared).await.map_err(told)?;
            error.map_or(Ok(()), Err)?;
            takes = accepted;
            let known = Columns::of(&prepared, takes.clone());
            let columns = prepared.columns().iter();
            returned = columns.map(|column| column.name().to_owned()).collect();
            (Run::Rows { statement: prepared, plan: Vec::new() }, known, sources)
        }
        Action::Query(asked) => {
            let prepared = client.prepare(&driver.text.sql).await.map_err(statement)?;
            schema::check_parameters(&driver.text, &sources, &prepared)?;
            (takes, _) = of_statement(&prepared).await.map_err(told)?;
            let columns = Columns::of(&prepared, takes.clone());
            let in_json = asked.rows != Format::Tsv;
            let run = query(&client, &driver.text.sql, prepared, in_json).await;
            let run = run.map_err(statement)?;
            (run, columns, sources)
        }
    };
    let mut doubts = durability::doubts(&client, name, job).await?;
    if let Action::Statement(sql) = &job.action {
        doubts.extend(sql::unchecked(sql, sql::Dialect::Dollar, source::is_reserved));
    }
    let ack = ack::of(job, &mut members, &returned)?;
    let reads = ack.iter().any(|piece| matches!(piece, Piece::Returned(_)));
    if let (true, Run::Rows { statement, plan }) = (reads, &mut run) {
        for column in statement.columns() {
            let Some(decode) = Decode::of(column.type_()) else {
                let (column, of) = (column.name().to_owned(), column.type_().name().to_owned());
                return Err(DatabaseError::Returned { column, of });
            };
            plan.push(decode.leaving(true));
        }
    }
    let shape = Arc::new(Shape::new(job, members, sources, ack)?);
    let has_foreign = foreign::is_there(&client).await.map_err(told)?;
    client.batch_execute(READS_BY_DEFAULT).await.map_err(told)?;
    let prepared = Prepared {
        server: name.to_owned(),
        job: Arc::clone(job),
        sql: driver.text.sql.clone(),
        names: driver.text.names.clone(),
        columns,
    };
    // A transaction undoes everything.
    let opened = Opened { shape, takes, resend_key, is_atomic: true, doubts, unfit };
    Ok(Session { client, tls, run, prepared, opened, has_foreign, form })
}

/// Returns a query whose columns all have a form that can be decoded.
async fn query(
    client: &Client,
    sql: &str,
    prepared: Statement,
    in_json: bool,
) -> Result<Run, Error> {
    let columns = prepared.columns();
    let names: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
    let known: Vec<Option<Decode>> =
        columns.iter().map(|column| Decode::of(column.type_())).collect();
    if known.iter().all(Option::is_some) {
        return Ok(Run::Query { prepared, names, plan: known.into_iter().flatten().collect() });
    }
    let plan = known.iter().zip(columns);
    let plan =
        plan.map(|(known, it)| known.unwrap_or_else(|| Decode::of_text(it.type_(), in_json)));
    let plan: Vec<Decode> = plan.collect();
    // Columns are selected by name, so that another order has no effect, and a missing name is an error. If a name
    // occurs twice, only the order distinguishes the columns.
    let is_unique = names.iter().all(|name| names.iter().filter(|it| *it == name).count() == 1);
    let aliases: Vec<String> = match is_unique {
        true => names.iter().map(|name| quoted(name, '"')).collect(),
        false => (1..=columns.len()).map(|number| format!("c{number}")).collect(),
    };
    let chosen = known.iter().zip(&plan).zip(&aliases);
    let chosen: Vec<String> = chosen
        .map(|((known, plan), alias)| match (known, plan) {
            (Some(_), _) => alias.clone(),
            (None, Decode::Json) => format!("array_to_json({alias})"),
            (None, _) => format!("{alias}::text"),
        })
        .collect();
    // The line end terminates a comment at the end of the query.
    let chosen = chosen.join(", ");
    let aliases = if is_unique { String::new() } else { format!(" ({})", aliases.join(", ")) };
    let types: Vec<_> = prepared.params().to_vec();
    let sql = format!("select {chosen} from ({sql}\n) as q{aliases}");
    let prepared = client.prepare_typed(&sql, &types).await?;
    Ok(Run::Query { prepared, names, plan })
}

async fn open(server: &Server, name: &str) -> Result<(Client, Option<Rustls>), DatabaseError> {
    let place = loopback::place(server, name).await?;
    let mut config = Config::new();
    config
        .user(&server.user)
        .dbname(&server.database)
        .application_name("roadstead")
        .keepalives_idle(KEEPALIVE)
        .keepalives_interval(KEEPALIVE / 4)
        .connect_timeout(server.connect_timeout);
    match &server.host {
        Host::Internet(host, port) => config.host(host).port(*port),
        Host::Socket(folder, port) => config.host_path(folder).port(*port),
    };
    if let Some(place) = place {
        config.hostaddr(place);
    }
    if let Some(password) = &server.password {
        config.password(password.text());
    }
    match &server.tls {
        Tls::Off => {
            config.ssl_mode(SslMode::Disable);
            let opened = config.connect(NoTls).await;
            let (client, connection) = opened.map_err(|error| refused(name, &error))?;
            drive(connection);
            Ok((client, None))
        }
        #[cfg(not(feature = "tls"))]
        Tls::On(_) => Err(server::without_tls(name)),
        #[cfg(feature = "tls")]
        Tls::On(file) => {
            config.ssl_mode(SslMode::Require);
            let tls = Rustls::new(name, roots(name, file.as_deref())?)?;
            let opened = config.connect(tls.clone()).await;
            let (client, connection) = opened.map_err(|error| refused(name, &error))?;
            drive(connection);
            Ok((client, Some(tls)))
        }
    }
}

/// Runs the connection while its thread waits for it. The next operation notices its end.
fn drive(connection: impl Future<Output = Result<(), Error>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    });
}

/// A transaction that writes is declared as such when it begins (`link::BEGIN`). Rows are sent together with BEGIN, and
/// nothing is stored if BEGIN fails.
const READS_BY_DEFAULT: &str = "set default_transaction_read_only = on";

/// Returns the statements that set up the session.
fn session(driver: &PostgresDriver) -> String {
    let job = &driver.job;
    // Zero would mean no limit.
    let lock_timeout = job.lock_timeout.as_millis().clamp(1, i32::MAX as u128);
    let sync = match job.sync {
        Sync::Normal => "set synchronous_commit = off;",
        // The server's own setting may wait for more than its own disk. It is never reduced.
        Sync::Full => {
            "select set_config('synchronous_commit', 'on', false) \
             where current_setting('synchronous_commit') in ('off', 'local', 'remote_write');"
        }
    };
    let reads = match job.action {
        Action::Query(_) => READS_BY_DEFAULT,
        Action::Insert { .. } | Action::Statement(_) => "",
    };
    format!(
        "set client_min_messages = warning; set datestyle = 'ISO'; set array_nulls = on; \
         set extra_float_digits = 3; set quote_all_identifiers = off; \
         set lock_timeout = {lock_timeout}; {sync} {reads}"
    )
}

/// Creates what is missing. Two sessions that create the same table at the same time conflict, but afterwards the table
/// exists.
async fn make(client: &Client, create: &str) -> Result<(), Error> {
    match client.batch_execute(create).await {
        Err(error) if error.code().is_some_and(|it| matches!(it.code(), "23505" | "42P07")) => {
            client.batch_execute(create).await
        }
        other => other,
    }
}
