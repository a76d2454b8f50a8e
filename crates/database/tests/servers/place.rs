//! A separate database for each test.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use database::{Action, Database, DatabaseError, Host, Job, Server, Tls, UnknownFields};
use exchange::{
    Batch, Factory, Handler, HandlerError, Outbox, Outcome, Peer, Phase, Request, RequestId, Slice,
    Stop,
};

use crate::proxy::Proxy;
use crate::server::{self, Kind};

/// The database of a test.
pub(crate) enum Place {
    Sqlite(tempfile::TempDir),
    Server(&'static server::Server, String),
}

fn servers(kind: Kind) -> &'static server::Server {
    static POSTGRES: OnceLock<server::Server> = OnceLock::new();
    static MARIADB: OnceLock<server::Server> = OnceLock::new();
    let one = if kind == Kind::Postgres { &POSTGRES } else { &MARIADB };
    one.get_or_init(|| server::Server::start_forever(kind))
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    fn on(kind: Kind) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = servers(kind);
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.database(&name);
        Self::Server(server, name)
    }

    pub(crate) fn postgres() -> Self {
        Self::on(Kind::Postgres)
    }

    pub(crate) fn mariadb() -> Self {
        Self::on(Kind::Mariadb)
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Server(server, _) if server.kind == Kind::Postgres)
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        matches!(self, Self::Server(server, _) if server.kind == Kind::Mariadb)
    }

    /// Runs statements with the client program of the database, and returns the lines of their results, with values
    /// separated by `|`.
    pub(crate) fn run(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Sqlite(folder) => {
                let file = folder.path().join("test.db");
                let output = Command::new("sqlite3").arg(file).arg(sql).output();
                let output = output.expect("this test needs sqlite3: apt-get install sqlite3");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
            }
            Self::Server(server, name) => server.run(name, sql),
        }
    }

    /// Starts a session that runs these statements and then stays open while it is held.
    pub(crate) fn session(&self, sql: &str) -> Session {
        match self {
            Self::Sqlite(folder) => {
                let connection = rusqlite::Connection::open(folder.path().join("test.db")).unwrap();
                connection.execute_batch(sql).unwrap();
                Session::Sqlite { _connection: connection }
            }
            Self::Server(server, name) => {
                let wait = match server.kind {
                    Kind::Postgres => "select pg_sleep(3600)",
                    Kind::Mariadb => "select sleep(3600)",
                };
                let child = server.session(name, &format!("{sql}; {wait}"));
                Session::Server(server, name.clone(), child)
            }
        }
    }

    pub(crate) fn options(&self, job: Job) -> Result<Database, DatabaseError> {
        match self {
            Self::Sqlite(folder) => {
                let path = folder.path().join("test.db");
                database::sqlite::factory(database::sqlite::SqliteOptions { path, job })
            }
            Self::Server(server, _) => options_of(server.kind, self.login(), job),
        }
    }

    /// Returns how to connect to a server.
    pub(crate) fn login(&self) -> Server {
        let Self::Server(server, name) = self else { panic!("SQLite is no server") };
        Server {
            host: Host::Internet("127.0.0.1".to_owned(), server.port),
            user: if server.kind == Kind::Postgres { "roadstead" } else { "root" }.to_owned(),
            password: None,
            database: name.clone(),
            tls: Tls::Off,
            connect_timeout: Duration::from_secs(10),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        let Self::Server(server, _) = self else { panic!("SQLite is no server") };
        server.port
    }

    pub(crate) fn handler(&self, job: Job) -> Box<dyn Handler> {
        self.options(job).unwrap().open().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns a handler whose connection to the server goes through `proxy`.
    pub(crate) fn handler_by(&self, proxy: &Proxy, job: Job) -> Box<dyn Handler> {
        let host = Host::Internet("127.0.0.1".to_owned(), proxy.port());
        let Self::Server(server, _) = self else { panic!("SQLite is no server") };
        let options = options_of(server.kind, Server { host, ..self.login() }, job);
        options.unwrap().open().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Creates the usual table.
    pub(crate) fn with_hits(&self) -> &Self {
        self.run(
            "create table hits (id bigint primary key, path varchar(20) not null, status integer)",
        );
        self
    }

    /// Returns all rows of the usual table.
    pub(crate) fn hits(&self) -> Vec<String> {
        self.run("select id, path, coalesce(cast(status as char(9)), 'NULL') from hits order by id")
            .into_iter()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }
}

/// Returns the database of a server with this login.
pub(crate) fn options_of(kind: Kind, server: Server, job: Job) -> Result<Database, DatabaseError> {
    match kind {
        Kind::Postgres => {
            let options = database::postgres::PostgresOptions { server, job };
            database::postgres::factory(options)
        }
        Kind::Mariadb => {
            let options = database::mysql::MysqlOptions { server, job };
            database::mysql::factory(options)
        }
    }
}

/// A session of the client program of the database.
pub(crate) enum Session {
    Sqlite { _connection: rusqlite::Connection },
    Server(&'static server::Server, String, std::process::Child),
}

impl Drop for Session {
    fn drop(&mut self) {
        let Self::Server(server, name, child) = self else { return };
        // A server does not notice the end of a client while it works for that client.
        match server.kind {
            Kind::Postgres => drop(server.run(
                name,
                "select pg_terminate_backend(pid) from pg_stat_activity \
                 where datname = current_database() and pid <> pg_backend_pid() \
                 and query like '%pg_sleep(3600)'",
            )),
            Kind::Mariadb => {
                let sleeps = "select concat('kill ', id) from information_schema.processlist \
                              where db = database() and id <> connection_id() \
                              and info like '%sleep(3600)%'";
                server.run(name, sleeps).iter().for_each(|kill| drop(server.run(name, kill)));
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Returns an insert into the usual table.
pub(crate) fn insert() -> Job {
    Job {
        ack: "ok {id}".to_owned(),
        lock_timeout: Duration::from_secs(20),
        ..Job::new(Action::insert("hits", ["id", "path", "status"]))
    }
}

pub(crate) fn statement(sql: &str) -> Job {
    let unknown_fields = UnknownFields::Ignore;
    Job { action: Action::Statement(sql.to_owned()), unknown_fields, ..insert() }
}

pub(crate) fn hit(id: usize) -> String {
    format!(r#"{{"id":{id},"path":"/{id}","status":200}}"#)
}

/// Keeps the first answer to each request, as a gateway does.
#[derive(Default)]
struct Answers(Vec<Option<Outcome>>);

impl Outbox for Answers {
    fn part(&mut self, _: usize, _: Slice) -> Result<(), HandlerError> {
        Ok(())
    }

    fn answer(&mut self, index: usize, outcome: Outcome) {
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        self.0[index].get_or_insert(outcome);
    }

    fn flush(&mut self) {}
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(reply) => String::from_utf8_lossy(reply).into_owned(),
        Outcome::Ended(end, text) | Outcome::Fallback(end, text) => {
            assert_eq!(end.phase, Phase::Work);
            format!("!{} {}", end.cause.as_str(), String::from_utf8_lossy(text))
        }
    }
}

pub(crate) fn batch<T: AsRef<[u8]>>(bodies: impl IntoIterator<Item = T>) -> Batch {
    let requests = bodies.into_iter().enumerate().map(|(index, body)| Request {
        id: RequestId::new(index as u64),
        peer: Peer::Local,
        body: Slice::copy_of(body.as_ref()),
        at_us: 1_700_000_000_000_000,
        head: None,
    });
    Batch { requests: requests.collect() }
}

/// Returns a batch that was received now.
pub(crate) fn batch_now<T: AsRef<[u8]>>(bodies: impl IntoIterator<Item = T>) -> Batch {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut batch = batch(bodies);
    for request in &mut batch.requests {
        request.at_us = i64::try_from(now.as_micros()).unwrap();
    }
    batch
}

pub(crate) fn serve_until(handler: &mut dyn Handler, batch: &Batch, stop: &Stop) -> Vec<String> {
    let mut answers = Answers::default();
    handler.serve(batch, &mut answers, stop);
    assert_eq!(answers.0.len(), batch.requests.len(), "every request is answered");
    let answers = answers.0.iter();
    answers.map(|answer| shown(answer.as_ref().expect("every request is answered"))).collect()
}

pub(crate) fn serve<T: AsRef<[u8]>>(
    handler: &mut Box<dyn Handler>,
    bodies: impl IntoIterator<Item = T>,
) -> Vec<String> {
    serve_until(handler.as_mut(), &batch(bodies), &Stop::default())
}

/// Serves requests that must not block. After a minute a handler that still waits is stopped.
pub(crate) fn serve_soon(handler: &mut Box<dyn Handler>, rows: &[String]) -> Vec<String> {
    let (stop, done) = (Stop::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let since = Instant::now();
            while !done.load(Ordering::Acquire) && since.elapsed() < Duration::from_secs(60) {
                thread::park_timeout(Duration::from_secs(1));
            }
            stop.request();
        });
        let answers = serve_until(handler.as_mut(), &batch_now(rows), &stop);
        done.store(true, Ordering::Release);
        watch.thread().unpark();
        answers
    })
}

/// Whether an answer is a rejection of the row itself.
pub(crate) fn is_refused(answer: &str) -> bool {
    answer.starts_with("!row ")
}
