//! Balancing options of a pool that concern the engine, in addition to [`pool::Settings`].

use std::sync::Arc;

use exchange::PoolId;

use crate::cookies::CookieConfig;
use crate::request_keys::PoolKeys;
use flow::page::Page;
use flow::reply_head::Head;

/// Request keys, passive health checks and the fallback of a pool.
#[derive(Debug, Default)]
pub struct BalanceConfig {
    /// The keys that are extracted from requests.
    pub keys: PoolKeys,
    /// The fallback for rejected requests.
    pub fallback: Option<FallbackConfig>,
    /// Outcomes of requests count for passive health checks.
    pub judges: bool,
    /// The inclusive range of statuses that count as failures.
    pub failing: Option<(u16, u16)>,
    /// The session affinity cookie.
    pub cookie: Option<CookieConfig>,
}

impl BalanceConfig {
    /// Whether a reply counts as a failure of its worker.
    pub(crate) fn is_bad(&self, head: &Head) -> bool {
        self.is_bad_status(head.effective_status())
    }

    /// Whether a reply with this status counts as a failure of its worker.
    pub(crate) fn is_bad_status(&self, status: u16) -> bool {
        self.failing.is_some_and(|(from, to)| (from..=to).contains(&status))
    }
}

/// The fallback of a pool.
#[derive(Clone, Debug)]
pub enum FallbackConfig {
    /// A response. Clients that do not speak HTTP receive its body only.
    Page(Arc<Page>),
    /// Another pool, which receives the request.
    Pool(PoolId),
}
