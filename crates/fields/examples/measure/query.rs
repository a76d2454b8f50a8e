//! The use case of the original store: repeated queries of 1000 rows with 12 columns on each thread. It is measured
//! with a real database, and without one (storing only).

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use fields::{Case, Fields, Rows, Schema, Value};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{Run, THREADS, alternate, timed};

const ROWS: usize = 1000;
const COLUMNS: usize = 12;
const VALUE: [u8; 22] = *b"a value of 22 bytes ok";
/// The number of queries per thread and round. The original was measured with 100.
const QUERIES: usize = 20;

fn schema() -> Schema {
    Schema::new((0..COLUMNS).map(|column| format!("column_{column}")), Case::Exact)
}

/// A store that keeps all rows of a query until its end.
trait Keep {
    fn begin(schema: &Schema) -> Self;
    fn row<'v>(&mut self, schema: &Schema, values: impl Iterator<Item = Value<'v>>);
}

impl Keep for Rows {
    fn begin(schema: &Schema) -> Self {
        Self::with_capacity(schema.clone(), ROWS, ROWS * COLUMNS * VALUE.len())
    }

    fn row<'v>(&mut self, _: &Schema, values: impl Iterator<Item = Value<'v>>) {
        self.push(values).expect("a row");
    }
}

impl Keep for Vec<Fields> {
    fn begin(_: &Schema) -> Self {
        Self::new()
    }

    fn row<'v>(&mut self, schema: &Schema, values: impl Iterator<Item = Value<'v>>) {
        let mut set = Fields::with_capacity(COLUMNS, 400);
        for (name, value) in schema.names().zip(values) {
            set.append(name, value).expect("the fields are within the limits");
        }
        self.push(set);
    }
}

/// One allocation for each name and value of each row: the original before its rewrite.
impl Keep for Vec<Vec<[Box<[u8]>; 2]>> {
    fn begin(_: &Schema) -> Self {
        Self::new()
    }

    fn row<'v>(&mut self, schema: &Schema, values: impl Iterator<Item = Value<'v>>) {
        let boxed = |bytes: &[u8]| -> Box<[u8]> { bytes.into() };
        let mut set = Vec::with_capacity(10);
        for (name, value) in schema.names().zip(values) {
            set.push([boxed(name), boxed(value.bytes_or_empty())]);
        }
        self.push(set);
    }
}

fn store<K: Keep>(schema: &Schema, cells: &[[u8; 22]]) {
    let mut all = K::begin(schema);
    for row in cells.chunks_exact(COLUMNS) {
        all.row(schema, row.iter().map(Value::from));
    }
    black_box(&all);
}

/// An in-memory database with the rows. Each thread has its own database, so that threads share no lock.
fn database() -> Connection {
    let connection = Connection::open_in_memory().expect("a database in memory");
    let columns: Vec<_> = (0..COLUMNS).map(|column| format!("column_{column} text")).collect();
    let make = format!("create table hits ({})", columns.join(", "));
    connection.execute_batch(&make).expect("a table");
    let marks = ["?1"; COLUMNS].join(", ");
    let mut insert =
        connection.prepare(&format!("insert into hits values ({marks})")).expect("an insert");
    let text = std::str::from_utf8(&VALUE).expect("text");
    for _ in 0..ROWS {
        insert.execute([text]).expect("a row");
    }
    drop(insert);
    connection
}

fn query<K: Keep>(connection: &Connection, schema: &Schema) {
    let mut all = K::begin(schema);
    let mut statement = connection.prepare_cached("select * from hits").expect("a query");
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().expect("a row") {
        let value = |column| match row.get_ref(column) {
            Ok(ValueRef::Text(text)) => Value::Bytes(text),
            _ => Value::Null,
        };
        all.row(schema, (0..COLUMNS).map(value));
    }
    drop(rows);
    black_box(&all);
}

/// The cost of the database alone.
fn query_alone(connection: &Connection) {
    let mut statement = connection.prepare_cached("select * from hits").expect("a query");
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().expect("a row") {
        for column in 0..COLUMNS {
            black_box(row.get_ref(column).is_ok());
        }
    }
}

pub(crate) fn time(rounds: usize) {
    real(rounds);
    let schema = schema();
    let cells: Arc<[[u8; 22]]> = vec![VALUE; ROWS * COLUMNS].into();
    for threads in THREADS {
        let of = |store: fn(&Schema, &[[u8; 22]])| -> Run {
            let (schema, cells) = (schema.clone(), Arc::clone(&cells));
            Box::new(move || {
                timed(threads, QUERIES * ROWS, || {
                    (0..QUERIES).for_each(|_| store(&schema, &cells));
                })
            })
        };
        let subjects = vec![
            ("Rows", of(store::<Rows>)),
            ("Fields, one set a row", of(store::<Vec<Fields>>)),
            ("one allocation a string", of(store::<Vec<Vec<[Box<[u8]>; 2]>>>)),
        ];
        alternate("T4 a row, only stored", threads, rounds, subjects);
    }
}

fn real(rounds: usize) {
    let schema = schema();
    for threads in THREADS {
        let of = |query: fn(&Connection, &Schema)| -> Run {
            let schema = schema.clone();
            Box::new(move || {
                let ready = std::sync::Barrier::new(threads);
                timed_after(
                    threads,
                    &ready,
                    || {
                        let connection = database();
                        query(&connection, &schema);
                        connection
                    },
                    |connection| (0..QUERIES).for_each(|_| query(connection, &schema)),
                )
            })
        };
        let subjects = vec![
            ("Rows", of(query::<Rows>)),
            ("Fields, one set a row", of(query::<Vec<Fields>>)),
            ("one allocation a string", of(query::<Vec<Vec<[Box<[u8]>; 2]>>>)),
            ("SQLite alone, nothing stored", of(|connection, _| query_alone(connection))),
        ];
        alternate("T4 a row of a real query", threads, rounds, subjects);
    }
}

/// The wall time per row, from the start of the first thread after all threads are prepared, to the end of the last
/// thread.
fn timed_after<T>(
    threads: usize,
    ready: &std::sync::Barrier,
    prepare: impl Fn() -> T + Sync,
    work: impl Fn(&T) + Sync,
) -> super::Round {
    let run = || {
        let prepared = prepare();
        ready.wait();
        let began = Instant::now();
        work(&prepared);
        (began, Instant::now())
    };
    let (began, ended) = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mine = run();
        let both = |(began, ended): (Instant, Instant), (other_began, other_ended)| {
            (began.min(other_began), ended.max(other_ended))
        };
        others.into_iter().map(|other| other.join().expect("no thread fails")).fold(mine, both)
    });
    let units = (threads * QUERIES * ROWS) as f64;
    super::Round { ns: (ended - began).as_nanos() as f64 / units, parts: Vec::new() }
}
