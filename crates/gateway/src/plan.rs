//! A configuration made ready: names resolved to ids, settings mapped to what each room wants.
//!
//! Each mapping takes its settings apart completely, so that a new option does not compile until
//! somebody has decided where it goes.

use exchange::{ListenerId, PoolId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use event::StreamLimits;
use wire::Marks;

use crate::bodies::{Bodies, BodyLimits};
use crate::names::Names;

mod balance;
mod branch;
mod check;
mod cookie;
mod files;
mod listener;
mod page;
mod program;
mod routes;
mod servers;
mod takes;
mod terms;
mod workers;

pub(crate) use balance::BalancePlan;
pub(crate) use branch::{branch, elsewhere, shared_servers};
pub(crate) use check::{CheckPlan, HttpProbePlan, ProbePlan, check_address};
pub(crate) use cookie::CookiePlan;
pub use files::unread;
pub(crate) use listener::listener;
pub(crate) use page::{Page, SorryPlan};
pub(crate) use program::{HostedPlan, ProgramPlan, StreamPlan, TimesPlan};
pub(crate) use routes::{Action, GuardPlan, RoutePlan, Routing};
pub(crate) use servers::ServersPlan;
pub(crate) use takes::Takes;
pub(crate) use terms::Terms;
pub(crate) use workers::WorkersPlan;

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
    /// The system draws nothing for what is to be secret, for this reason.
    NoSecret(String),
    /// Secrets in the environment of this process cannot be protected, for this reason.
    Unprotected(String),
    /// What a pool answers with when it is sorry cannot be had.
    Sorry {
        /// The pool.
        pool: String,
        /// Why.
        why: String,
    },
    /// What the cookies of a pool are made with cannot be had.
    Cookie {
        /// The pool.
        pool: String,
        /// Why.
        why: String,
    },
    /// What a route answers with, or a secret of it, cannot be had.
    Route {
        /// The listener.
        listener: String,
        /// The keys below the listener that name it.
        place: Vec<String>,
        /// Why.
        why: String,
    },
    /// A pool has had more servers since the daemon started than it may: a place is kept for each.
    Servers(String),
    /// A variable that is passed to the programs of a pool is not set.
    Variable {
        /// The pool.
        pool: String,
        /// Why it cannot be passed.
        why: String,
    },
    /// `reset` of a pool is no request that its programs reply to.
    Reset {
        /// The pool.
        pool: String,
        /// Why.
        why: &'static str,
    },
    /// A server of a pool has a name, and no address is found for it.
    Name {
        /// The pool.
        pool: String,
        /// The name, with its port.
        name: String,
        /// Why.
        why: String,
    },
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
            Self::NoSecret(why) => write!(f, "no secret can be drawn: {why}"),
            Self::Unprotected(why) => {
                write!(f, "secrets in the environment cannot be protected: {why}")
            }
            Self::NoSocket(name) => write!(f, "listener `{name}` was given no socket"),
            Self::Route { listener, place: _, why } => write!(f, "listener `{listener}`: {why}"),
            Self::Servers(pool) => {
                let most = crate::shares::PLACES_MAX;
                write!(f, "pool `{pool}` has had {most} servers: restart the daemon for others")
            }
            Self::Name { pool, name, why } => {
                write!(f, "pool `{pool}`: `{name}` cannot be looked up: {why}")
            }
            Self::Reset { pool, why } => {
                write!(f, "pool `{pool}`: `reset` is no request that gets a reply: {why}")
            }
            Self::Handler { pool, why }
            | Self::Sorry { pool, why }
            | Self::Variable { pool, why }
            | Self::Cookie { pool, why } => {
                write!(f, "pool `{pool}`: {why}")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// What a session needs to know of its listener.
#[derive(Debug)]
pub(crate) struct ListenerPlan {
    pub(crate) name: String,
    pub(crate) id: ListenerId,
    /// Its pool; where routes alone say who answers, the first that one names, or the first there is.
    pub(crate) pool: PoolId,
    pub(crate) keeps_half_closed: bool,
    pub(crate) connections_max: u32,
    /// Bytes of a datagram that is taken.
    pub(crate) datagram_max: usize,
    pub(crate) idle: Option<Duration>,
    pub(crate) first_request_timeout: Option<Duration>,
    pub(crate) write_stall: Option<Duration>,
    /// Bytes a second that a client must take over each `write_stall`.
    pub(crate) send_rate_min: usize,
    /// Bytes of a reply that its worker need not wait with.
    pub(crate) reply_buffered: usize,
    pub(crate) limits: StreamLimits,
    pub(crate) front: FrontPlan,
    pub(crate) addresses: settings::Addresses,
    /// Its requests are in the access log.
    pub(crate) is_logged: bool,
}

/// What clients speak.
#[derive(Debug)]
pub(crate) enum FrontPlan {
    Frames(Arc<FramesPlan>),
    /// The connection is the request.
    Connect,
    /// A datagram is one. There are no sessions.
    Datagrams,
    Http(Arc<HttpPlan>),
}

/// What a front of HTTP needs to know.
#[derive(Debug)]
pub(crate) struct HttpPlan {
    pub(crate) limits: wire::http1::Limits,
    /// Bytes of the bodies that are being taken whole, of all shards, and the most there may be.
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) body_limits: BodyLimits,
    /// Bytes a second that a body must bring over each `read`.
    pub(crate) body_rate_min: usize,
    /// A tunnel in which neither side says anything for so long is ended.
    pub(crate) tunnel_idle: Option<Duration>,
    pub(crate) forwarded: wire::http1::Forwarded,
    /// What is added to messages that are forwarded.
    pub(crate) via: wire::http1::Via,
    pub(crate) allow_trace: bool,
    pub(crate) allow_upgrade: bool,
    trusted: Vec<settings::Network>,
    /// What a server is told where the client names no host.
    pub(crate) host: String,
    pub(crate) read: Option<Duration>,
    /// None where all goes to one pool as it comes.
    pub(crate) routing: Option<Routing>,
}

impl HttpPlan {
    /// Whether what this client says of those before it is believed.
    pub(crate) fn trusts(&self, client: std::net::IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(client))
    }
}

/// What a front of frames needs to know.
#[derive(Debug)]
pub(crate) struct FramesPlan {
    pub(crate) framing: wire::Framing,
    pub(crate) over: wire::Over,
    pub(crate) marks: Marks,
    /// A rejection adds no bytes: it resets the connection.
    pub(crate) resets: bool,
    pub(crate) accepts_last: bool,
    pub(crate) frame_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) reply_held_max: usize,
    pub(crate) send_max: usize,
    pub(crate) read: Option<Duration>,
}

impl FramesPlan {
    /// What a frame is called in a text for its client.
    pub(crate) const fn word(&self) -> &'static str {
        match self.framing {
            wire::Framing::Lines => "line",
            wire::Framing::JsonRpc | wire::Framing::ContentLength => "message",
            _ => "request",
        }
    }
}

/// One pool of the plan.
pub(crate) struct PoolPlan {
    pub(crate) name: String,
    pub(crate) pool: pool::Settings,
    pub(crate) then: Option<PoolId>,
    pub(crate) balance: BalancePlan,
    /// What requests of HTTP become for it.
    pub(crate) takes: Takes,
    /// Its programs are connections' own.
    pub(crate) own: Option<OwnPlan>,
    /// Its programs are asked by ids of ours.
    pub(crate) is_tagged: bool,
    pub(crate) workers: WorkersPlan,
}

/// What becomes of a connection's own program after it.
pub(crate) struct OwnPlan {
    /// It is told this, and what it answers is discarded; without it, it is replaced.
    pub(crate) reset: Option<String>,
    /// What it says unasked can be told from its answers.
    pub(crate) tells_apart: bool,
}

/// A duration setting of which zero means never.
fn unless_zero(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}

/// Workers started in one step of growth at most.
const GROW_STEP_MAX: u32 = 16;
/// The first pause after a worker that ended too soon, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Workers that may end too soon, one after the other, before requests are refused at once.
const BACKOFF_OPEN_AFTER: u32 = 5;
/// What pools are made ready with.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) places: &'a BTreeMap<String, PoolId>,
    pub(crate) workshop: &'a dyn Workshop,
    /// What cookies are made with where nobody gave a secret.
    pub(crate) drawn: &'a [u8],
    /// Where servers are that have names.
    pub(crate) names: &'a Names,
}

pub(crate) fn pool(pool: settings::Pool, site: Site<'_>) -> Result<PoolPlan, PlanError> {
    let Site { places, drawn, .. } = site;
    let takes = workers::takes(&pool.worker);
    let (workers_plan, said) = workers::plan(&pool, site)?;
    let is_tagged = pool.program().is_some_and(program::is_tagged);
    let workers::Said { slots, settle, recycle, own, members } = said;
    let settings::Pool {
        name,
        worker: _,
        workers,
        queue,
        schedule,
        batch,
        then,
        deadline: _,
        idempotent: _,
        // It is for its workers.
        response: _,
        balance,
    } = pool;
    let then = then.map(|next| places.get(&next).copied().ok_or(PlanError::NoPool(next)));
    let settings::Workers { min, max, spare, idle, grow_after, grow_above } = workers;
    let settings::Queue { length, bytes, wait } = queue;
    let settings::Batch { rows, bytes: batch_bytes, wait: batch_wait } = batch;
    let mut pool = pool::Settings {
        slots,
        batch: pool::Batching { rows, bytes: batch_bytes, wait: batch_wait },
        queue: pool::QueueLimits { length, bytes, wait },
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
        recycle,
        members,
        ..pool::Settings::default()
    };
    let (servers, takes_objects) = (workers_plan.addresses(), takes == Takes::Objects);
    let program = workers_plan.helper();
    let whole = balance::Whole { name: &name, places, servers, takes_objects, program, drawn };
    let balance = balance::balance(whole, schedule, balance, &mut pool)?;
    Ok(PoolPlan {
        name,
        pool,
        then: then.transpose()?,
        balance,
        takes,
        own,
        is_tagged,
        workers: workers_plan,
    })
}
