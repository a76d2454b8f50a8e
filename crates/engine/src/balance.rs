//! What balancing means for the requests of a pool, beside the settings of [`pool`].

use std::sync::Arc;

use exchange::PoolId;

use crate::cookies::CookieConfig;
use crate::request_keys::PoolKeys;
use flow::page::Page;
use flow::reply_head::Head;

/// What is looked for in requests, and what is answered in place of a refusal.
#[derive(Debug, Default)]
pub struct BalanceConfig {
    pub keys: PoolKeys,
    pub sorry: Option<FallbackConfig>,
    /// Ends of requests say how fit their workers are.
    pub judges: bool,
    /// Replies of these statuses, both ends included, are as bad as none.
    pub failing: Option<(u16, u16)>,
    /// A cookie that tells clients' servers.
    pub cookie: Option<CookieConfig>,
}

impl BalanceConfig {
    /// Whether a reply speaks against its worker.
    pub(crate) fn is_bad(&self, head: &Head) -> bool {
        self.is_bad_status(head.understood_status())
    }

    /// The same by the status of the reply.
    pub(crate) fn is_bad_status(&self, status: u16) -> bool {
        self.failing.is_some_and(|(from, to)| (from..=to).contains(&status))
    }
}

/// What a pool answers with when it is sorry.
#[derive(Clone, Debug)]
pub enum FallbackConfig {
    /// The body alone to clients that read no head.
    Page(Arc<Page>),
    /// The place of another pool.
    Pool(PoolId),
}
