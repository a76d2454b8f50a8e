//! Bare clients of PostgreSQL or MariaDB, without Roadstead: what writing rows costs by itself.
//!
//! Each of the writers has a thread and a connection, and commits as many rows at once as it is told.
//! Prints one JSON object.
//!
//! ```text
//! bare_writer TARGET METHOD WRITERS ROWS SECONDS
//!   TARGET   postgres://USER@HOST:PORT/DATABASE or mysql://…
//!   METHOD   single   a statement for each row, committed by itself (ROWS is 1)
//!            unnest   PostgreSQL: one array a column, as Roadstead does
//!            copy     PostgreSQL: COPY in binary
//!            values   one statement with all rows, as Roadstead does for MariaDB
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

/// Numbers of rows, each given once.
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
            "unnest" => "insert into hits select * from unnest($1::bigint[], $2::bigint[], \
                         $3::text[], $4::integer[])"
                .to_owned(),
            _ => format!("insert into hits values {}", marks(rows, |mark| format!("${mark}"))),
        };
        let statement = runtime.block_on(client.prepare(&sql))?;
        Ok(Self::Postgres(runtime, client, statement))
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
    let [target, method, writers, rows, seconds] = words.as_slice() else {
        return Err("bare_writer TARGET METHOD WRITERS ROWS SECONDS".into());
    };
    let (writers, rows) = (writers.parse::<usize>()?, rows.parse::<i64>()?);
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    let ready = Barrier::new(writers + 1);
    let (written, seconds, cpu) = thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|_| {
                scope.spawn(|| {
                    let opened = Writer::open(target, method, rows);
                    ready.wait();
                    let mut writer = opened?;
                    let (start, mut written) = (Instant::now(), 0);
                    while start.elapsed() < time {
                        let first = NEXT.fetch_add(rows, Ordering::Relaxed);
                        writer.write(first, rows, method)?;
                        written += rows;
                    }
                    Ok::<_, Failed>(written)
                })
            })
            .collect();
        ready.wait();
        let (start, before) = (Instant::now(), cpu());
        let written = threads.into_iter().map(|it| it.join().expect("it does not panic"));
        let written = written.sum::<Result<i64, Failed>>()?;
        Ok::<_, Failed>((written, start.elapsed().as_secs_f64(), cpu() - before))
    })?;
    let cpu_us = cpu * 1e6 / written as f64;
    println!(r#"{{"rows":{written},"seconds":{seconds:.6},"cpu_us":{cpu_us:.4}}}"#);
    Ok(())
}

/// Seconds of CPU time of this process so far.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
