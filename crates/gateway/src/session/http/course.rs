//! Which way a request goes that becomes something else on it.

use std::sync::Arc;

use exchange::PoolId;

use crate::question::Question;
use crate::routing::{RouteConfig, RouteId};

/// Which way an object goes, and what its route changes in it.
pub(super) struct Course<'a> {
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    pub(super) changes: Option<&'a RouteConfig>,
}

/// A question on its way to its pool.
pub(super) struct Asking<'a> {
    pub(super) question: Arc<Question>,
    pub(super) pool: PoolId,
    pub(super) route: RouteId,
    /// What its route made of the target.
    pub(super) target: Option<&'a [u8]>,
}
