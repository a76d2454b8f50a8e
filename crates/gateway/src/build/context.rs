//! What pools are constructed with, beside their settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use exchange::PoolId;

use crate::resolver::Resolver;

/// Makes the handlers of pools whose workers run in this process. `main` implements it, so that
/// drivers stay out of the data plane.
pub trait HandlerRegistry: Send + Sync {
    /// The factory for the handlers of this pool.
    ///
    /// # Errors
    /// A sentence for the operator when they cannot be made.
    fn factory(&self, pool: &settings::Pool) -> Result<Arc<dyn exchange::Factory>, String>;
}

/// What pools are made ready with.
#[derive(Clone, Copy)]
pub(crate) struct BuildContext<'a> {
    pub(crate) places: &'a BTreeMap<String, PoolId>,
    pub(crate) handler_registry: &'a dyn HandlerRegistry,
    /// What cookies are made with where nobody gave a secret.
    pub(crate) drawn: &'a [u8],
    /// Where servers are that have names.
    pub(crate) names: &'a Resolver,
}

/// A duration setting of which zero means never.
pub(super) fn unless_zero(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
