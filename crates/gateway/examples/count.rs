//! Runs one shard without a supervisor: `count FILE` serves the listener `main` of a configuration. Handlers, including
//! those of databases, acknowledge each request immediately and do nothing else.
//!
//! Use it to count what a request costs in the gateway itself: with `perf stat --per-thread -e instructions:u -p PID`,
//! or with valgrind, which cannot follow the supervisor.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use event::{Address, BindSettings, Epoll, Loop, LoopSettings};
use exchange::{Batch, Factory, Handler, HandlerError, Outbox, Outcome, Slice, Stop};
use gateway::{Fleet, HandlerRegistry, Parts, Shard, ShardMail, Threads};
use settings::Source;

#[path = "ring/unkept.rs"]
mod unkept;

struct Acknowledging;

impl Handler for Acknowledging {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, _: &Stop) {
        for index in 0..batch.requests.len() {
            outbox.answer(index, Outcome::Reply(Slice::from("ok")));
        }
    }
}

impl Factory for Acknowledging {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        Ok(Box::new(Self))
    }
}

impl HandlerRegistry for Acknowledging {
    fn factory(&self, _: &settings::Pool) -> Result<Arc<dyn Factory>, gateway::FactoryError> {
        Ok(Arc::new(Self))
    }
}

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: count FILE");
        return ExitCode::from(2);
    };
    match serve(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let source = Source { name: file.to_owned(), text: std::fs::read_to_string(file)? };
    let configuration = settings::parse(&source, &|_| None).map_err(|errors| errors.to_string())?;
    let address = Address::Internet(([127, 0, 0, 1], 0).into());
    let (socket, bound) = event::bind(&address, &BindSettings::default())?;
    let metrics = Arc::new(gateway::metrics_for(&configuration));
    let mut turning: Loop<Epoll, ShardMail> = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let fleet = Fleet::new(vec![turning.mailbox()], &configuration);
    let mut shard = Shard::new(Parts {
        configuration,
        sockets: vec![("main".to_owned(), socket)],
        handler_registry: Arc::new(Acknowledging),
        spawner: Box::new(unkept::Unkept::new(turning.mailbox())),
        runner: Box::new(Threads),
        admission: None,
        access_log: None,
        fleet,
        shard: 0,
        metrics,
        started: (Instant::now(), SystemTime::now()),
        seed: 1,
    })?;
    shard.start(&mut turning.context());
    println!("ready {bound}");
    turning.run(&mut shard)?;
    Ok(())
}
