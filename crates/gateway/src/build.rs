//! A configuration made ready: names resolved to ids, settings mapped to what each room wants.
//!
//! Each mapping takes its settings apart completely, so that a new option does not compile until
//! somebody has decided where it goes.

use exchange::PoolId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::balance::BalanceConfig;
use crate::error::BuildError;
use crate::names::Names;
use crate::request_shape::RequestShape;
use crate::workers::WorkersConfig;

mod balance;
mod branch;
mod check;
mod cookie;
mod fallback;
mod files;
mod launch;
mod listener;
mod program;
mod routes;
mod servers;
mod shape;

mod workers;

pub(crate) use branch::{branch, elsewhere, shared_servers};
pub use files::unread;
pub(crate) use listener::listener;

/// Makes the handlers of pools whose workers run in this process. `main` implements it, so that
/// drivers stay out of the data plane.
pub trait Workshop: Send + Sync {
    /// The factory for the handlers of this pool.
    ///
    /// # Errors
    /// A sentence for the operator when they cannot be made.
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, String>;
}

/// One pool of the plan.
pub(crate) struct PoolPlan {
    pub(crate) name: String,
    pub(crate) pool: pool::Settings,
    pub(crate) then: Option<PoolId>,
    pub(crate) balance: BalanceConfig,
    /// What requests of HTTP become for it.
    pub(crate) takes: RequestShape,
    /// Its programs are connections' own.
    pub(crate) own: Option<OwnPlan>,
    /// Its programs are asked by ids of ours.
    pub(crate) is_tagged: bool,
    pub(crate) workers: WorkersConfig,
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

pub(crate) fn pool(pool: settings::Pool, site: Site<'_>) -> Result<PoolPlan, BuildError> {
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
    let then = then.map(|next| places.get(&next).copied().ok_or(BuildError::NoPool(next)));
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
    let (servers, takes_objects) = (workers_plan.addresses(), takes == RequestShape::Objects);
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
