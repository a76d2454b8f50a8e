//! The handler alone, without the daemon: rows per second through parsing, storing, committing and acknowledging.
//! Compare with `row_by_row --batch N`.
//!
//! ```text
//! cargo run --release -p roadstead-database --example through_handler -- FILE BATCH SECONDS full
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use database::sqlite::{SqliteOptions, factory};
use database::{Action, Job, Sync};
use exchange::{
    Batch, Factory, HandlerError, Outbox, Outcome, Peer, Request, RequestId, Slice, Stop,
};

/// Counts the acknowledgements.
#[derive(Default)]
struct Counted {
    replies: u64,
    others: u64,
}

impl Outbox for Counted {
    fn part(&mut self, _: usize, _: Slice) -> Result<(), HandlerError> {
        Ok(())
    }

    fn answer(&mut self, _: usize, outcome: Outcome) {
        match outcome {
            Outcome::Reply(_) => self.replies += 1,
            Outcome::Ended(..) | Outcome::Fallback(..) => self.others += 1,
        }
    }

    fn flush(&mut self) {}
}

fn batch_of(rows: u32) -> Batch {
    let request = |row: u32| Request {
        id: RequestId::new(row.into()),
        peer: Peer::Inside,
        body: Slice::from(&*format!(
            r#"{{"id":{row},"at":1700000000000,"path":"/index.html","status":200}}"#
        )),
        at_us: 0,
        head: None,
    };
    Batch { requests: (0..rows).map(request).collect() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, rows, seconds, sync] = words.as_slice() else {
        return Err("through_handler FILE BATCH SECONDS full|normal".into());
    };
    let factory = factory(SqliteOptions {
        path: file.into(),
        job: Job {
            create: Some(
                "create table if not exists hits (id integer, at integer, path text, status integer)"
                    .to_owned(),
            ),
            ack: "ok {id}".to_owned(),
            sync: if sync == "full" { Sync::Full } else { Sync::Normal },
            ..Job::new(Action::insert("hits", ["id", "at", "path", "status"]))
        },
    })?;
    factory.check()?;
    let mut handler = factory.open()?;
    let batch = batch_of(rows.parse()?);
    let time = Duration::try_from_secs_f64(seconds.parse()?)?;
    let mut counted = Counted::default();
    let start = Instant::now();
    while start.elapsed() < time {
        handler.serve(&batch, &mut counted, &Stop::default());
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        r#"{{"rows":{},"others":{},"seconds":{seconds:.6},"rows_per_second":{:.0}}}"#,
        counted.replies,
        counted.others,
        counted.replies as f64 / seconds
    );
    Ok(())
}
