//! The shipped gateway: one pool a ring, asked by the client within the process.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use event::{Epoll, Loop, LoopSettings};
use gateway::{Access, Fleet, HandlerRegistry, Mail, Outcome, Parts, PoolAccess, Shard, Threads};
use settings::{Configuration, Source};
use spawn::Spawn;

use crate::unkept::Unkept;
use crate::{Plan, set_up, token};

/// There are no handlers in a ring of programs.
struct None;

impl HandlerRegistry for None {
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, String> {
        Err(format!("pool {} has no programs", pool.name))
    }
}

struct Ring {
    access: Access,
    pools: Vec<PoolAccess>,
    kept: bool,
    plan: Plan,
    left: AtomicUsize,
    ready: AtomicUsize,
    begun: Mutex<(Instant, Duration)>,
}

/// With a keeper, as the daemon does, or without: see [`crate::unkept`].
pub(crate) fn run(plan: Plan, kept: bool) -> io::Result<Duration> {
    let configuration = configuration(plan)?;
    let metrics = Arc::new(gateway::metrics_for(&configuration));
    let mut turning: Loop<Epoll, Mail> = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let reports = turning.mailbox();
    let fleet = Fleet::new(vec![turning.mailbox()], &configuration);
    let spawner: Box<dyn Spawn> = if kept {
        let report = Box::new(move |report| reports.post(Mail::Program(report)));
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
    shard.start(&mut turning.calls());
    let access = Access::new(fleet, vec![metrics]);
    let ring = Arc::new(Ring {
        pools: (0..plan.rings).filter_map(|number| access.pool(&pool(number))).collect(),
        access,
        plan,
        kept,
        left: AtomicUsize::new(plan.rings),
        ready: AtomicUsize::new(0),
        begun: Mutex::new((began, Duration::ZERO)),
    });
    // A ring is there when each of its programs has answered once.
    for number in 0..plan.rings {
        let warm = Arc::new(AtomicUsize::new(plan.programs));
        for _ in 0..plan.programs {
            let (ring, warm) = (Arc::clone(&ring), Arc::clone(&warm));
            ring.clone().pools[number].ask(b"0", move |_| {
                if warm.fetch_sub(1, Ordering::Relaxed) == 1 {
                    set_up(number, ring.plan, began);
                    if ring.ready.fetch_add(1, Ordering::Relaxed) + 1 == ring.plan.rings {
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
    (0..ring.plan.rings).for_each(|number| hop(ring, number, ring.plan.hops));
}

/// The token goes to the ring's next program, which is that of its pool whose turn it is.
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
            // Nobody would report the ends of the programs.
            ring.access.drain();
        }
    }
}

fn pool(number: usize) -> String {
    format!("ring{number}")
}

fn configuration(plan: Plan) -> io::Result<Configuration> {
    let pools = (0..plan.rings).map(|number| {
        format!("[pool.{}]\nprogram = [\"cat\"]\nworkers = {}\n", pool(number), plan.programs)
    });
    let source = Source { name: "ring".into(), text: pools.collect() };
    settings::parse(&source, &|_| Option::None).map_err(|error| io::Error::other(error.to_string()))
}
