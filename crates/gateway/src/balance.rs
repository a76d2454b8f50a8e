//! What balancing means for the requests of a pool, beside the settings of [`pool`].

use std::sync::Arc;

use exchange::PoolId;

use crate::cookies::CookieConfig;
use crate::page::Page;
use crate::reply_head::Head;
use crate::request_keys::Wishes;

/// What is looked for in requests, and what is answered in place of a refusal.
#[derive(Debug, Default)]
pub(crate) struct BalanceConfig {
    pub(crate) wishes: Wishes,
    pub(crate) sorry: Option<FallbackConfig>,
    /// Ends of requests say how fit their workers are.
    pub(crate) judges: bool,
    /// Replies of these statuses, both ends included, are as bad as none.
    pub(crate) failing: Option<(u16, u16)>,
    /// A cookie that tells clients' servers.
    pub(crate) cookie: Option<CookieConfig>,
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
pub(crate) enum FallbackConfig {
    /// The body alone to clients that read no head.
    Page(Arc<Page>),
    /// The place of another pool.
    Pool(PoolId),
}
