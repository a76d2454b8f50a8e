//! Bare clients of PostgreSQL or MariaDB, without Roadstead: measures the cost of writing rows alone.
//!
//! Each writer has a thread and a connection, and commits the given number of rows together. Prints one JSON object.
//!
//! ```text
//! bare_writer TARGET METHOD WRITERS ROWS SECONDS [RATE]
//!   TARGET   postgres://USER@HOST:PORT/DATABASE or mysql://…
//!   METHOD   single   one statement and one commit per row (ROWS is 1)
//!            unnest   PostgreSQL: one array per column, as Roadstead does
//!            records  as unnest, with each row first parsed from its line of JSON
//!            copy     PostgreSQL: COPY in binary
//!            values   one statement with all rows, as Roadstead does for MariaDB
//!   RATE     batches per second of each writer; without it, as many as possible
//! ```

use std::error::Error;
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::NoTls;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

type Failed = Box<dyn Error + Send + Sync>;

const AT: i64 = 1_700_000_000_000;
const PATH: &str = "/index.html";

/// A row as clients of Roadstead write it.
#[derive(serde::Deserialize)]
struct Hit<'l> {
    id: i64,
    at: i64,
    path: &'l str,
    status: i32,
}

fn line(id: i64) -> String {
    format!(r#"{{"id":{id},"at":{AT},"path":"{PATH}","status":200}}"#)
}

/// Numbers of rows, each used once.
static NEXT: AtomicI64 = AtomicI64::new(0);

/// A connection that can write a batch.
enum Writer {
    Postgres(Runtime, tokio_postgres::Client, tokio_postgres::Statement),
    Copy(Runtime, tokio_postgres::Client),
    Mysql(Runtime, mysql_async::Conn, mysql_async::Statement),
}

fn marks(rows: i64, mark: impl Fn(i64) -> String) -> String {
    let row = |row: i64| {
        let marks: Vec<String> = (1..=4).map(|column| mark(row * 4 + column)).collect();
        format!("({})", marks.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

impl Writer {
    fn open(target: &str, method: &str, rows: i64) -> Result<Self, Failed> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        if target.starts_with("mysql:") {
            let (connection, statement) = runtime.block_on(async {
                let mut connection = mysql_async::Conn::from_url(target).await?;
                let sql = format!("insert into hits values {}", marks(rows, |_| "?".to_owned()));
                let statement = connection.prep(sql).await?;
                Ok::<_, Failed>((connection, statement))
            })?;
            return Ok(Self::Mysql(runtime, connection, statement));
        }
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(target, NoTls).await?;
            tokio::spawn(connection);
            Ok::<_, Failed>(client)
        })?;
        let sql = match method {
            "copy" => return Ok(Self::Copy(runtime, client)),
            "unnest" | "records" => {
                "insert into hits select * from unnest($1::bigint[], $2::bigint[], \
                         $3::text[], $4::integer[])"
                    .to_owned()
            }
            _ => format!("insert into hits values {}", marks(rows, |mark| format!("${mark}"))),
        };
        let statement = runtime.block_on(client.prepare(&sql))?;
        Ok(Self::Postgres(runtime, client, statement))
    }

    /// Writes the rows parsed from `lines`.
    fn write_records(&mut self, lines: &[String]) -> Result<(), Failed> {
        let Self::Postgres(runtime, client, statement) = self else {
            return Err("records are for PostgreSQL".into());
        };
        let count = lines.len();
        let (mut ids, mut at) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut paths, mut status) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for line in lines {
            let hit: Hit<'_> = serde_json::from_str(line)?;
            ids.push(hit.id);
            at.push(hit.at);
            paths.push(hit.path);
            status.push(hit.status);
        }
        let values: [&(dyn ToSql + Sync); 4] = [&ids, &at, &paths, &status];
        runtime.block_on(client.execute(&*statement, &values))?;
        Ok(())
    }

    fn write(&mut self, first: i64, rows: i64, method: &str) -> Result<(), Failed> {
        let ids: Vec<i64> = (first..first + rows).collect();
        match self {
            Self::Postgres(runtime, client, statement) if method == "unnest" => {
                let (at, paths) = (vec![AT; ids.len()], vec![PATH; ids.len()]);
                let status = vec![200_i32; ids.len()];
                let values: [&(dyn ToSql + Sync); 4] = [&ids, &at, &paths, &status];
                runtime.block_on(client.execute(&*statement, &values))?;
            }
            Self::Postgres(runtime, client, statement) => {
                let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(ids.len() * 4);
                ids.iter().for_each(|id| {
                    values.extend([id as &(dyn ToSql + Sync), &AT, &PATH, &200_i32]);
                });
                runtime.block_on(client.execute(&*statement, &values))?;
            }
            Self::Copy(runtime, client) => runtime.block_on(async {
                let sink = client.copy_in("copy hits from stdin (format binary)").await?;
                let types = [Type::INT8, Type::INT8, Type::TEXT, Type::INT4];
                let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
                for id in &ids {
                    writer.as_mut().write(&[id, &AT, &PATH, &200_i32]).await?;
                }
                writer.finish().await?;
                Ok::<_, Failed>(())
            })?,
            Self::Mysql(runtime, connection, statement) => {
                let mut values: Vec<mysql_async::Value> = Vec::with_capacity(ids.len() * 4);
                ids.iter().for_each(|&id| {
                    values.extend([id.into(), AT.into(), PATH.into(), 200_i32.into()]);
                });
                let values = mysql_async::Params::Positional(values);
                runtime.block_on(connection.exec_drop(&*statement, values))?;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (words, rate) = words.split_at(words.len().min(5));
    let [target, method, writers, rows, seconds] = words else {
        return Err("bare_writer TARGET METHOD WRITERS ROWS SECONDS [RATE]".into());
    };
    let rate = rate.first().map(|rate| rate.parse::<f64>()).transpose()?;
    let (writers, rows) = (writers.parse::<usize>()?, rows.parse::<i64>()?);
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    // Made before the measurement, and parsed again for each batch.
    let lines: Vec<String> = (0..rows).map(line).collect();
    let ready = Barrier::new(writers + 1);
    let (written, mut took, seconds, cpu) = thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|_| {
                scope.spawn(|| {
                    let opened = Writer::open(target, method, rows);
                    ready.wait();
                    let mut writer = opened?;
                    let (start, mut written) = (Instant::now(), 0);
                    let mut took = Vec::new();
                    while start.elapsed() < time {
                        if let Some(rate) = rate {
                            let due = Duration::from_secs_f64(took.len() as f64 / rate);
                            thread::sleep(due.saturating_sub(start.elapsed()));
                        }
                        let begun = Instant::now();
                        let first = NEXT.fetch_add(rows, Ordering::Relaxed);
                        match method.as_str() {
                            "records" => writer.write_records(&lines)?,
                            method => writer.write(first, rows, method)?,
                        }
                        written += rows;
                        took.push(begun.elapsed());
                    }
                    Ok::<_, Failed>((written, took))
                })
            })
            .collect();
        ready.wait();
        let (start, before) = (Instant::now(), cpu());
        let ended = threads.into_iter().map(|it| it.join().expect("it does not panic"));
        let (written, took): (Vec<i64>, Vec<Vec<Duration>>) =
            ended.collect::<Result<Vec<_>, Failed>>()?.into_iter().unzip();
        let (written, took) = (written.iter().sum::<i64>(), took.concat());
        Ok::<_, Failed>((written, took, start.elapsed().as_secs_f64(), cpu() - before))
    })?;
    took.sort_unstable();
    let p50_ms = took.get(took.len() / 2).map_or(0.0, |it| it.as_secs_f64() * 1e3);
    let cpu_us = cpu * 1e6 / written as f64;
    println!(
        r#"{{"rows":{written},"seconds":{seconds:.6},"cpu_us":{cpu_us:.4},"p50_ms":{p50_ms:.4}}}"#
    );
    Ok(())
}

/// Returns the CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
