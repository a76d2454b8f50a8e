//! The event loops of a daemon, each on a thread of its own.
//!
//! What it is: the loops, their shards with their parts, and how they run and end together. What it must never depend
//! on: the protocol of a listener, a pool.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use event::{Fd, Kernel, Loop, LoopSettings};
use gateway::{
    Access, Admission, BuildError, DrainResult, Fleet, HandlerRegistry, LogSink, Lookup, Parts,
    Shard, ShardMail, Threads,
};
use settings::{Configuration, Shards};
use spawn::{Report, Spawn};

use crate::binding;

/// The position of the shard's number in the tokens of programs, in bits.
const TOKEN_SHIFT: u32 = 56;

/// Loops and the shards that run in them.
pub(crate) struct ShardThreads<K: Kernel> {
    members: Vec<(Loop<K, ShardMail>, Shard)>,
    fleet: Arc<Fleet>,
    metrics: Vec<Arc<gateway::metrics::Metrics>>,
}

/// Loops without shards.
pub(crate) struct EventLoops<K: Kernel> {
    loops: Vec<Loop<K, ShardMail>>,
    fleet: Arc<Fleet>,
}

/// The parts that all shards are built from.
pub(crate) struct Common {
    pub(crate) configuration: Configuration,
    pub(crate) sockets: Vec<(String, Fd)>,
    pub(crate) handler_registry: Arc<dyn HandlerRegistry>,
    pub(crate) spawner: Box<dyn Spawn>,
    pub(crate) admission: Option<Admission>,
    pub(crate) access_log: Option<LogSink>,
}

/// Why the shards could not be built.
#[derive(Debug)]
pub(crate) enum ShardsError {
    Build(BuildError),
    System(io::Error),
}

/// Returns the number of loops for this setting on this machine.
pub(crate) fn count(shards: Shards) -> u32 {
    match shards {
        Shards::Count(count) => count,
        Shards::Auto => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            u32::try_from(processors).unwrap_or(1).min(exchange::SHARDS_MAX)
        }
    }
}

impl<K: Kernel> EventLoops<K> {
    pub(crate) fn new(
        configuration: &Configuration,
        kernel: impl Fn() -> io::Result<K>,
        lookup: Option<Lookup>,
    ) -> io::Result<Self> {
        let loops = (0..count(configuration.daemon.shards))
            .map(|_| Loop::new(kernel()?, LoopSettings::default()))
            .collect::<io::Result<Vec<_>>>()?;
        let mailboxes = loops.iter().map(Loop::mailbox).collect();
        Ok(Self { loops, fleet: Fleet::with_lookup(mailboxes, configuration, lookup) })
    }

    /// Resolves the host names of servers now, and then repeatedly.
    pub(crate) fn find_names(&self, configuration: &Configuration) -> Result<(), ShardsError> {
        self.fleet.look_up(configuration).map_err(ShardsError::Build)?;
        self.fleet.watch_names(configuration).map_err(ShardsError::System)
    }

    pub(crate) const fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// Builds a shard for each loop. The shard is opened when it starts.
    pub(crate) fn build(self, common: Common) -> Result<ShardThreads<K>, ShardsError> {
        let Self { loops, fleet } = self;
        let Common { configuration, mut sockets, handler_registry, spawner, admission, access_log } =
            common;
        let started = (Instant::now(), SystemTime::now());
        let seed = binding::seed().map_err(ShardsError::System)?;
        let spawner = Arc::new(Mutex::new(spawner));
        let admission = admission.map(|admission| Arc::new(Mutex::new(admission)));
        let (mut members, mut metrics) = (Vec::new(), Vec::new());
        for (turning, shard) in loops.into_iter().zip(0..) {
            let last = shard as usize + 1 == fleet.length();
            let sockets = share(&mut sockets, &fleet, shard, last).map_err(ShardsError::System)?;
            let numbers = Arc::new(gateway::metrics_for(&configuration));
            let parts = Parts {
                configuration: configuration.clone(),
                sockets,
                handler_registry: Arc::clone(&handler_registry),
                spawner: Box::new(SharedSpawner { spawner: Arc::clone(&spawner), shard }),
                runner: Box::new(Threads),
                fleet: Arc::clone(&fleet),
                shard,
                metrics: Arc::clone(&numbers),
                started,
                seed: seed.wrapping_add(u64::from(shard) << 32),
                admission: admission.as_ref().map(shared_admission),
                access_log: access_log.clone(),
            };
            members.push((turning, Shard::new(parts).map_err(ShardsError::Build)?));
            metrics.push(numbers);
        }
        Ok(ShardThreads { members, fleet, metrics })
    }
}

/// Returns the sockets of one shard: a separate descriptor for each listener that the shard serves.
fn share(
    sockets: &mut Vec<(String, Fd)>,
    fleet: &Fleet,
    shard: u32,
    last: bool,
) -> io::Result<Vec<(String, Fd)>> {
    if last {
        sockets.retain(|(name, _)| fleet.listens(shard, name));
        return Ok(std::mem::take(sockets));
    }
    let mine = sockets.iter().filter(|(name, _)| fleet.listens(shard, name));
    mine.map(|(name, fd)| Ok((name.clone(), fd.duplicate()?))).collect()
}

impl<K: Kernel + Send + 'static> ShardThreads<K> {
    pub(crate) fn access(&self) -> Access {
        Access::new(Arc::clone(&self.fleet), self.metrics.clone())
    }

    /// Opens the listeners and starts the first workers.
    pub(crate) fn start(&mut self) {
        for (turning, shard) in &mut self.members {
            shard.start(&mut turning.context());
        }
    }

    /// Runs the loops until all have ended: the first on this thread, each other on a thread of its own.
    ///
    /// # Errors
    /// A loop cannot continue or its thread cannot be started, or a thread panicked. The others then end immediately.
    pub(crate) fn run(self) -> io::Result<DrainResult> {
        let Self { members, fleet, metrics: _ } = self;
        let mut members = members.into_iter();
        let first = members.next();
        let threads: io::Result<Vec<JoinHandle<_>>> = members
            .zip(1..)
            .map(|(member, number)| {
                let fleet = Arc::clone(&fleet);
                let thread = std::thread::Builder::new().name(format!("shard/{number}"));
                thread.spawn(move || turn(member, &fleet))
            })
            .collect();
        if threads.is_err() {
            fleet.send_to_all(|| ShardMail::Stop);
        }
        let mut sum = DrainResult::default();
        let mut add = |result: io::Result<DrainResult>| -> io::Result<()> {
            let DrainResult { cut, unread } = result?;
            sum.cut += cut;
            sum.unread += unread;
            Ok(())
        };
        let mut ended = first.map_or(Ok(()), |member| add(turn(member, &fleet)));
        for thread in threads? {
            let result =
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a shard panicked")));
            let counted = add(result);
            ended = ended.and(counted);
        }
        ended.map(|()| sum)
    }
}

fn turn<K: Kernel>(
    (mut turning, mut shard): (Loop<K, ShardMail>, Shard),
    fleet: &Arc<Fleet>,
) -> io::Result<DrainResult> {
    let alarm = StopOnPanic(Arc::clone(fleet));
    if let Err(error) = turning.run(&mut shard) {
        fleet.send_to_all(|| ShardMail::Stop);
        return Err(error);
    }
    drop(alarm);
    Ok(shard.end())
}

/// Stops all shards if one has panicked, because the state of that one is lost.
struct StopOnPanic(Arc<Fleet>);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send_to_all(|| ShardMail::Stop);
        }
    }
}

/// Returns the function that passes reports about programs to their shards.
pub(crate) fn reports(fleet: Arc<Fleet>) -> Box<dyn Fn(Report) + Send> {
    Box::new(move |mut report| {
        let shard = match &mut report {
            Report::Started { token, .. }
            | Report::StartFailed { token, .. }
            | Report::Exited { token, .. } => {
                let shard = u32::try_from(*token >> TOKEN_SHIFT).unwrap_or_default();
                *token &= (1 << TOKEN_SHIFT) - 1;
                shard
            }
            Report::SupervisorLost | Report::SupervisorReplaced => 0,
        };
        fleet.mailbox(shard).post(ShardMail::Program(report));
    })
}

/// The common spawner, as used by one shard.
struct SharedSpawner {
    spawner: Arc<Mutex<Box<dyn Spawn>>>,
    shard: u32,
}

impl SharedSpawner {
    /// The spawner is consistent after every call, so a poisoned lock can be used after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, Box<dyn Spawn>> {
        self.spawner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self, token: u64) -> u64 {
        token | u64::from(self.shard) << TOKEN_SHIFT
    }
}

impl Spawn for SharedSpawner {
    fn start(&mut self, token: u64, command: spawn::Command) {
        self.lock().start(self.token(token), command);
    }

    fn stop(&mut self, token: u64, how: spawn::Stop) {
        self.lock().stop(self.token(token), how);
    }

    fn program_socket(&mut self, how: spawn::SocketKind) -> io::Result<spawn::ProgramSocket> {
        self.lock().program_socket(how)
    }

    fn port_owner(&self, program: &mut spawn::PortProgram, own: SocketAddr) -> spawn::PortOwner {
        self.lock().port_owner(program, own)
    }

    fn resident(&self, pid: u32) -> Option<u64> {
        self.lock().resident(pid)
    }
}

/// Returns the embedder's callback for new connections, for use by one shard. One call runs at a time.
fn shared_admission(admission: &Arc<Mutex<Admission>>) -> Admission {
    let admission = Arc::clone(admission);
    Box::new(move |listener, peer| {
        let mut admits = admission.lock().unwrap_or_else(PoisonError::into_inner);
        admits(listener, peer)
    })
}
