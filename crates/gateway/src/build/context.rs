//! What is needed to build pools, besides their settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use exchange::PoolId;

use crate::resolver::Resolver;
use crate::shared_bindings::SharedBindings;

/// Creates the handlers of pools whose workers run in this process. `main` implements it, so that database drivers stay
/// out of the data plane.
pub trait HandlerRegistry: Send + Sync {
    /// Returns the factory for the handlers of this pool.
    ///
    /// # Errors
    /// If the handlers cannot be created: why, and the option that causes it.
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, FactoryError>;
}

/// Why the handlers of a pool cannot be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactoryError {
    /// A sentence for the operator.
    pub why: String,
    /// The configuration keys below the pool that lead to the option, as in [`settings::Remark`]. Empty: the pool.
    pub option: Vec<String>,
}

impl From<String> for FactoryError {
    fn from(why: String) -> Self {
        Self { why, option: Vec::new() }
    }
}

/// What is needed to build pools.
#[derive(Clone, Copy)]
pub(crate) struct BuildContext<'a> {
    pub(crate) places: &'a BTreeMap<String, PoolId>,
    pub(crate) handler_registry: &'a dyn HandlerRegistry,
    /// The secret of cookies for which no secret is configured.
    pub(crate) drawn: &'a [u8],
    /// The resolver for names of servers.
    pub(crate) names: &'a Resolver,
    /// The bindings that are shared with other daemons.
    pub(crate) bindings: Option<&'a SharedBindings>,
}

/// Returns a duration setting; zero means never.
pub(super) fn unless_zero(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
