//! A configuration made ready: names resolved to places, settings mapped to what each room wants.
//!
//! Each mapping takes its settings apart completely, so that a new option does not compile until
//! somebody has decided where it goes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use settings::{Configuration, HalfClose, LastLine, Protocol, ReplyStyle, Worker};
use wire::lines::Marks;

mod terms;

pub(crate) use terms::Terms;

/// Makes the handlers of pools whose workers run in this process. `main` implements it, so that
/// drivers stay out of the data plane.
pub trait Workshop: Send + Sync {
    /// The factory for the handlers of this pool.
    ///
    /// # Errors
    /// A sentence for the operator when they cannot be made.
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, String>;
}

/// Why a configuration cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// A listener or a `then` names a pool that is not there. `settings` checks this first.
    NoPool(String),
    /// A listener was given no socket.
    NoSocket(String),
    /// The handlers of a pool cannot be made.
    Handler {
        /// The pool.
        pool: String,
        /// Why.
        why: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPool(name) => write!(f, "there is no pool `{name}`"),
            Self::NoSocket(name) => write!(f, "listener `{name}` was given no socket"),
            Self::Handler { pool, why } => write!(f, "pool `{pool}`: {why}"),
        }
    }
}

impl std::error::Error for PlanError {}

/// What a session needs to know of its listener.
#[derive(Debug)]
pub(crate) struct ListenerPlan {
    pub(crate) name: String,
    /// The place of its pool.
    pub(crate) pool: usize,
    pub(crate) marks: Marks,
    pub(crate) keeps_half_closed: bool,
    pub(crate) accepts_last_line: bool,
    pub(crate) connections_max: u32,
    pub(crate) line_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) reply_held_max: usize,
    pub(crate) idle: Option<Duration>,
    pub(crate) read: Option<Duration>,
    pub(crate) write_stall: Option<Duration>,
    pub(crate) limits: StreamLimits,
}

/// What the workers of a program pool are started and held to.
#[derive(Clone, Debug)]
pub(crate) struct ProgramPlan {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) cwd: Option<std::path::PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) terms: Box<Terms>,
    pub(crate) reply_max: usize,
    pub(crate) grace: Duration,
    pub(crate) deadline: Duration,
}

/// One pool of the plan.
pub(crate) struct PoolPlan {
    pub(crate) name: String,
    pub(crate) pool: pool::Settings,
    pub(crate) then: Option<usize>,
    pub(crate) workers: WorkersPlan,
}

/// What the workers of a pool are.
pub(crate) enum WorkersPlan {
    Programs(ProgramPlan),
    Handlers { factory: Arc<dyn exchange::Factory>, deadline: Duration },
}

/// A duration setting of which zero means never.
fn unless_zero(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}

pub(crate) fn places(configuration: &Configuration) -> BTreeMap<String, usize> {
    configuration.pools.iter().enumerate().map(|(place, pool)| (pool.name.clone(), place)).collect()
}

pub(crate) fn listener(
    listener: settings::Listener,
    places: &BTreeMap<String, usize>,
) -> Result<ListenerPlan, PlanError> {
    let settings::Listener {
        name,
        listen: _,  // bound by whoever starts the shard
        backlog: _, // the same
        protocol: Protocol::Lines,
        pool,
        reply,
        half_close,
        last_line,
        connections_max,
        line_max,
        in_flight_max,
        reply_held_max,
        send_max,
        idle,
        read,
        write_stall,
    } = listener;
    let pool = *places.get(&pool).ok_or(PlanError::NoPool(pool))?;
    Ok(ListenerPlan {
        name,
        pool,
        marks: match reply {
            ReplyStyle::Plain => Marks::Plain,
            ReplyStyle::Status => Marks::Status,
        },
        keeps_half_closed: half_close == HalfClose::Keep,
        accepts_last_line: last_line == LastLine::Accept,
        connections_max,
        line_max,
        in_flight_max: in_flight_max as usize,
        reply_held_max,
        idle: unless_zero(idle),
        read: unless_zero(read),
        write_stall: unless_zero(write_stall),
        limits: StreamLimits {
            // A line that is still coming, and what one read may bring behind it.
            hold_max: line_max + HOLD_SLACK,
            send_high: send_max / 4,
            send_low: send_max / 16,
            send_max,
        },
    })
}

/// Received bytes that may wait beyond one line: what comes in one turn behind it.
const HOLD_SLACK: usize = 512 << 10;
/// Workers started in one step of growth at most.
const GROW_STEP_MAX: u32 = 16;
/// The first pause after a worker that ended too soon, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Workers that may end too soon, one after the other, before requests are refused at once.
const BACKOFF_OPEN_AFTER: u32 = 5;
/// How long a handler's thread must live to count as having started well.
const HANDLER_SETTLE: Duration = Duration::from_secs(1);

pub(crate) fn pool(
    pool: settings::Pool,
    places: &BTreeMap<String, usize>,
    workshop: &dyn Workshop,
) -> Result<PoolPlan, PlanError> {
    let whole = pool.clone();
    let settings::Pool { name, worker, workers, queue, schedule, batch, then, deadline } = pool;
    let then = then.map(|next| places.get(&next).copied().ok_or(PlanError::NoPool(next)));
    let (slots, settle, workers_plan) = match worker {
        Worker::Program(program) => {
            let settings::Program {
                command,
                framing: settings::Framing::Lines,
                pipeline,
                reply_max,
                cwd,
                env,
                grace,
                settle,
                wiring,
                bounds,
            } = program;
            let (program, arguments) = match command.split_first() {
                Some((program, arguments)) => (program.clone(), arguments.to_vec()),
                None => (String::new(), Vec::new()),
            };
            let terms = Box::new(Terms::new(wiring, bounds));
            let plan =
                ProgramPlan { program, arguments, cwd, env, terms, reply_max, grace, deadline };
            (pipeline, settle, WorkersPlan::Programs(plan))
        }
        Worker::Database(_) => {
            let factory = workshop
                .factory(&whole)
                .map_err(|why| PlanError::Handler { pool: name.clone(), why })?;
            (1, HANDLER_SETTLE, WorkersPlan::Handlers { factory, deadline })
        }
    };
    let settings::Workers { min, max, spare, idle, grow_after, grow_above } = workers;
    let settings::Queue { length, bytes, wait } = queue;
    let settings::Batch { rows, bytes: batch_bytes, wait: batch_wait } = batch;
    let pool = pool::Settings {
        slots,
        batch: pool::Batching { rows, bytes: batch_bytes, wait: batch_wait },
        queue: pool::QueueLimits { length, bytes, wait },
        schedule: match schedule {
            settings::Schedule::RoundRobin => pool::Schedule::RoundRobin,
            settings::Schedule::LeastOutstanding => pool::Schedule::LeastOutstanding,
        },
        sizing: elastic::Sizing {
            min,
            max,
            spare,
            idle,
            grow_after,
            grow_step_max: GROW_STEP_MAX,
            grow_above,
        },
        backoff: pool::BackoffSettings {
            first: BACKOFF_FIRST,
            max: BACKOFF_MAX,
            settle,
            open_after: BACKOFF_OPEN_AFTER,
        },
    };
    Ok(PoolPlan { name, pool, then: then.transpose()?, workers: workers_plan })
}
