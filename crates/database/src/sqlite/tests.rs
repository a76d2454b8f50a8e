//! Tests with real files: what is stored and what is answered.

use std::path::PathBuf;
use std::time::Duration;

use exchange::{
    Batch, Handler, HandlerError, Outbox, Outcome, Peer, Phase, Request, RequestId, Slice, Stop,
};
use rusqlite::Connection;

use super::*;
use crate::handler::RowsHandler;
use crate::{Action, OnConflict, Record, Sync, UnknownFields};

type SqliteHandler = RowsHandler<SqliteDriver>;

const CREATE: &str = "create table if not exists hits \
     (id integer primary key, path text not null, status integer) strict";

/// A file in a temporary directory, and how it is written.
struct Place {
    /// The directory is removed when this is dropped.
    _folder: tempfile::TempDir,
    options: SqliteOptions,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteOptions {
            path: folder.path().join("hits.db"),
            job: Job {
                create: Some(CREATE.to_owned()),
                ack: "ok {id}".to_owned(),
                sync: Sync::Normal,
                lock_timeout: Duration::ZERO,
                ..Job::new(Action::insert("hits", ["id", "path", "status"]))
            },
        };
        Self { _folder: folder, options }
    }

    fn statement(sql: &str) -> Self {
        let mut place = Self::new();
        place.options.job.action = Action::Statement(sql.to_owned());
        place
    }

    fn with_create(create: &str) -> Self {
        let mut place = Self::new();
        place.options.job.create = Some(create.to_owned());
        place
    }

    fn path(&self) -> PathBuf {
        self.options.path.clone()
    }

    fn handler(&self) -> SqliteHandler {
        SqliteHandler::open(setup(self.options.clone()).unwrap()).unwrap()
    }

    /// Returns all rows, read by a connection that is independent of the handler.
    fn rows(&self) -> Vec<String> {
        rows(&self.path())
    }
}

fn rows(path: &std::path::Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let sql = "select id || ' ' || path || ' ' || ifnull(status, 'NULL') from hits order by id";
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn batch<T: AsRef<[u8]>>(bodies: impl IntoIterator<Item = T>) -> Batch {
    let requests = bodies.into_iter().enumerate().map(|(index, body)| Request {
        id: RequestId::new(index as u64),
        peer: Peer::Local,
        body: Slice::copy_of(body.as_ref()),
        at_us: 1_700_000_000_000_000,
        head: None,
    });
    Batch { requests: requests.collect() }
}

fn hit(id: i64) -> String {
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

fn serve_until(handler: &mut SqliteHandler, batch: &Batch, stop: &Stop) -> Vec<String> {
    let mut answers = Answers::default();
    handler.serve(batch, &mut answers, stop);
    assert_eq!(answers.0.len(), batch.requests.len(), "every request is answered");
    answers
        .0
        .iter()
        .map(|answer| shown(answer.as_ref().expect("every request is answered")))
        .collect()
}

fn serve<T: AsRef<[u8]>>(
    handler: &mut SqliteHandler,
    bodies: impl IntoIterator<Item = T>,
) -> Vec<String> {
    serve_until(handler, &batch(bodies), &Stop::default())
}

mod failed;
mod moved;
mod records;
mod refused;
mod stored;
mod truncated;
mod values;
