//! Runs the ring through the complete gateway: one pool per ring, with requests from within the process.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use event::{Epoll, Loop, LoopSettings};
use gateway::{
    Access, Fleet, HandlerRegistry, Outcome, Parts, PoolAccess, Shard, ShardMail, Threads,
};
use settings::{Configuration, Source};
use spawn::Spawn;

use crate::unkept::Unkept;
use crate::{Plan, set_up, token};

/// A registry without handlers: a ring consists of programs.
struct None;

impl HandlerRegistry for None {
    fn factory(
        &self,
        pool: &settings::Pool,
    ) -> Result<Arc<dyn exchange::Factory>, gateway::FactoryError> {
        Err(format!("pool {} has no programs", pool.name).into())
    }
}

struct Ring {
    access: Access,
    pools: Vec<PoolAccess>,
    kept: bool,
    config: Plan,
    left: AtomicUsize,
    ready: AtomicUsize,
    begun: Mutex<(Instant, Duration)>,
}

/// Runs with a supervisor, like the daemon, or without one: see [`crate::unkept`].
pub(crate) fn run(config: Plan, kept: bool) -> io::Result<Duration> {
    let configuration = configuration(config)?;
    let metrics = Arc::new(gateway::metrics_for(&configuration));
    let mut turning: Loop<Epoll, ShardMail> = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let reports = turning.mailbox();
    let fleet = Fleet::new(vec![turning.mailbox()], &configuration);
    let spawner: Box<dyn Spawn> = if kept {
        let report = Box::new(move |report| reports.post(ShardMail::Program(report)));
        Box::new(spawn::Spawner::new(report).map_err(io::Error::other)?)
    } else {
        Box::new(Unkept::new(reports))
    };
    let began = Instant::now();
    let mut shard = Shard::new(Parts {
        configuration,
        sockets: Vec::new(),
        handler_registry: Arc::new(None),
        spawner,
        runner: Box::new(Threads),
        admission: Option::None,
        access_log: Option::None,
        fleet: Arc::clone(&fleet),
        shard: 0,
        metrics: Arc::clone(&metrics),
        started: (began, SystemTime::now()),
        seed: 1,
    })
    .map_err(io::Error::other)?;
    shard.start(&mut turning.context());
    let access = Access::new(fleet, vec![metrics]);
    let ring = Arc::new(Ring {
        pools: (0..config.rings).filter_map(|number| access.pool(&pool(number))).collect(),
        access,
        config,
        kept,
        left: AtomicUsize::new(config.rings),
        ready: AtomicUsize::new(0),
        begun: Mutex::new((began, Duration::ZERO)),
    });
    // A ring is set up when each of its programs has answered once.
    for number in 0..config.rings {
        let warm = Arc::new(AtomicUsize::new(config.programs));
        for _ in 0..config.programs {
            let (ring, warm) = (Arc::clone(&ring), Arc::clone(&warm));
            ring.clone().pools[number].ask(b"0", move |_| {
                if warm.fetch_sub(1, Ordering::Relaxed) == 1 {
                    set_up(number, ring.config, began);
                    if ring.ready.fetch_add(1, Ordering::Relaxed) + 1 == ring.config.rings {
                        begin(&ring);
                    }
                }
            });
        }
    }
    turning.run(&mut shard)?;
    let took = ring.begun.lock().unwrap_or_else(PoisonError::into_inner).1;
    Ok(took)
}

fn begin(ring: &Arc<Ring>) {
    ring.begun.lock().unwrap_or_else(PoisonError::into_inner).0 = Instant::now();
    (0..ring.config.rings).for_each(|number| hop(ring, number, ring.config.hops));
}

/// Sends the token to the next program of the ring. The pool selects its programs in turn.
fn hop(ring: &Arc<Ring>, number: usize, left: u64) {
    let next = Arc::clone(ring);
    ring.pools[number].ask(left.to_string().as_bytes(), move |outcome| {
        let Outcome::Reply(line) = outcome else { panic!("{outcome:?}") };
        assert!(line.iter().all(u8::is_ascii_digit), "{}", line.escape_ascii());
        match token(&line) {
            0 | 1 => end(&next),
            left => hop(&next, number, left - 1),
        }
    });
}

fn end(ring: &Ring) {
    if ring.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        let mut begun = ring.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.1 = begun.0.elapsed();
        ring.access.drain();
        if !ring.kept {
            // The ends of the programs would not be reported.
            ring.access.drain();
        }
    }
}

fn pool(number: usize) -> String {
    format!("ring{number}")
}

fn configuration(config: Plan) -> io::Result<Configuration> {
    let pools = (0..config.rings).map(|number| {
        format!("[pool.{}]\nprogram = [\"cat\"]\nworkers = {}\n", pool(number), config.programs)
    });
    let source = Source { name: "ring".into(), text: pools.collect() };
    settings::parse(&source, &|_| Option::None).map_err(|error| io::Error::other(error.to_string()))
}
