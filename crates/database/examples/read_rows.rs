//! Runs a query of 1000 rows with 12 columns repeatedly in several threads: into `fields::Rows`, into one allocation
//! per value, and into the driver's rows. This is the use for which the sets of naviserver were rebuilt.
//!
//! ```text
//! read_rows postgres://USER@HOST:PORT/DATABASE THREADS QUERIES rows|strings|driver
//! ```
//!
//! The threads share the queries. Prints one JSON object: the seconds for all queries; for one query its allocations
//! and the bytes that its result occupies; and the bytes of its values, as the server sends them in rows.

use std::alloc::System;
use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use database::postgres::{PostgresOptions, factory};
use database::{Action, Host, Job, Query, Server, Tls};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Row, Statement};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

type Failed = Box<dyn Error + Send + Sync>;

/// Twelve columns as texts, so that all three variants store the same data.
fn sql() -> String {
    let columns: Vec<String> = (0..12)
        .map(|column| format!("(n * {} || '.value')::text as c{column}", column + 7))
        .collect();
    format!("select {} from generate_series(1, 1000) as n", columns.join(", "))
}

/// A variant of reading.
enum Reader {
    Rows(database::Reader, fields::Rows),
    Driver(Runtime, Client, Statement),
}

impl Reader {
    fn open(target: &str, way: &str) -> Result<Self, Failed> {
        if way == "rows" {
            let config: tokio_postgres::Config = target.parse()?;
            let port = config.get_ports().first().copied().unwrap_or(5432);
            let server = Server {
                host: Host::Internet("127.0.0.1".to_owned(), port),
                user: config.get_user().unwrap_or_default().to_owned(),
                password: None,
                database: config.get_dbname().unwrap_or_default().to_owned(),
                tls: Tls::Off,
                connect_timeout: Duration::from_secs(10),
            };
            let job = Job::new(Action::Query(Query::new(&sql())));
            let reader = factory(PostgresOptions { server, job })?.reader()?;
            return Ok(Self::Rows(reader, fields::Rows::default()));
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, statement) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(target, NoTls).await?;
            tokio::spawn(connection);
            let statement = client.prepare(&sql()).await?;
            Ok::<_, Failed>((client, statement))
        })?;
        Ok(Self::Driver(runtime, client, statement))
    }

    /// Runs the query. Returns the size of its values in bytes. `look` is called while they are in memory.
    fn read(&mut self, way: &str, look: impl FnOnce()) -> Result<usize, Failed> {
        match self {
            Self::Rows(reader, rows) => {
                reader.read(b"{}", rows)?;
                look();
                let fields = rows.iter().flat_map(|row| row.iter());
                Ok(fields.map(|field| field.value.bytes_or_empty().len()).sum())
            }
            Self::Driver(runtime, client, statement) => {
                let rows = runtime.block_on(client.query(&*statement, &[]))?;
                if way == "driver" {
                    look();
                    return Ok(rows
                        .iter()
                        .map(|row| (0..12).map(|it| text(row, it).len()).sum::<usize>())
                        .sum());
                }
                let strings: Vec<Vec<String>> = rows
                    .iter()
                    .map(|row| (0..12).map(|it| text(row, it).to_owned()).collect())
                    .collect();
                drop(rows);
                look();
                Ok(strings.iter().flatten().map(String::len).sum())
            }
        }
    }
}

fn text(row: &Row, column: usize) -> &str {
    row.get(column)
}

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [target, threads, queries, way] = words.as_slice() else {
        return Err("read_rows TARGET THREADS QUERIES rows|strings|driver".into());
    };
    let (threads, queries) = (threads.parse::<usize>()?, queries.parse::<usize>()?);
    let begun = AtomicUsize::new(0);
    let mut reader = Reader::open(target, way)?;
    reader.read(way, || {})?;
    if let Reader::Rows(_, rows) = &mut reader {
        *rows = fields::Rows::default();
    }
    // Runs alone, so that only its own allocations are counted. The connection is warm by now.
    let region = Region::new(ALLOCATOR);
    let mut counted = None;
    let bytes = reader.read(way, || counted = Some(region.change()))?;
    let counted = counted.ok_or("nothing was counted")?;
    let held = counted.bytes_allocated as i64 - counted.bytes_deallocated as i64;
    let ready = Barrier::new(threads + 1);
    let seconds = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let opened = Reader::open(target, way);
                    ready.wait();
                    let mut reader = opened?;
                    let start = Instant::now();
                    while begun.fetch_add(1, Ordering::Relaxed) < queries {
                        reader.read(way, || {})?;
                    }
                    Ok::<_, Failed>((start, Instant::now()))
                })
            })
            .collect();
        ready.wait();
        // The threads may start before this one wakes up, so they measure the time.
        let times = running.into_iter().map(|it| it.join().expect("it does not panic"));
        let times = times.collect::<Result<Vec<_>, Failed>>()?;
        let start = times.iter().map(|(start, _)| *start).min().ok_or("no threads")?;
        let end = times.iter().map(|(_, end)| *end).max().ok_or("no threads")?;
        Ok::<_, Failed>((end - start).as_secs_f64())
    })?;
    println!(
        r#"{{"seconds":{seconds:.6},"allocations":{},"held":{held},"bytes":{bytes}}}"#,
        counted.allocations
    );
    Ok(())
}
