//! Pages that all anonymous clients share, so that many clients cost no more than one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The maximum age of a page for an anonymous client.
const AGE_MAX: Duration = Duration::from_secs(1);

/// The pages of the address that any client may read and that are expensive.
#[derive(Debug, Default)]
pub(crate) struct SharedPages {
    pub(crate) metrics: SharedPage,
    pub(crate) status: SharedPage,
    pub(crate) health: SharedPage,
}

impl SharedPages {
    /// Makes all pages outdated, after a change that they must show.
    pub(crate) fn invalidate(&self) {
        for page in [&self.metrics, &self.status, &self.health] {
            page.changes.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct SharedPage {
    page: Mutex<Option<Rendered>>,
    /// The number of changes so far.
    changes: AtomicU64,
}

#[derive(Debug)]
struct Rendered {
    /// When it was requested, and how many changes there were before.
    since: Instant,
    changes: u64,
    bytes: Bytes,
}

impl SharedPage {
    /// Returns the current page, or one from `render`, for which all other callers wait. `None` is not cached.
    pub(crate) async fn get(&self, render: impl AsyncFnOnce() -> Option<String>) -> Option<Bytes> {
        let mut page = self.page.lock().await;
        let changes = self.changes.load(Ordering::SeqCst);
        match &*page {
            Some(it) if it.changes == changes && it.since.elapsed() < AGE_MAX => {
                return Some(it.bytes.clone());
            }
            _ => *page = None,
        }
        let since = Instant::now();
        let bytes = Bytes::from(render().await?);
        *page = Some(Rendered { since, changes, bytes: bytes.clone() });
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_page_is_rendered_once_a_second_for_all_who_ask() {
        let (page, count) = (SharedPage::default(), Cell::new(0));
        let render = async || {
            let ready = Instant::now() + Duration::from_millis(100);
            tokio::time::interval_at(ready, AGE_MAX).tick().await;
            count.set(count.get() + 1);
            Some(format!("page {}", count.get()))
        };
        let (one, two) = tokio::join!(page.get(render), page.get(render));
        assert_eq!((one, two, count.get()), (Some("page 1".into()), Some("page 1".into()), 1));
        tokio::time::advance(AGE_MAX - Duration::from_millis(101)).await;
        assert_eq!(page.get(render).await, Some("page 1".into()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(page.get(render).await, Some("page 2".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_from_before_a_change_is_not_shown_after_it() {
        let (pages, count) = (SharedPages::default(), Cell::new(0));
        let render = async || {
            count.set(count.get() + 1);
            // A change while the page is rendered may be missing in it.
            if count.get() == 2 {
                pages.invalidate();
            }
            Some(count.get().to_string())
        };
        assert_eq!(pages.status.get(render).await, Some("1".into()));
        pages.invalidate();
        assert_eq!(pages.status.get(render).await, Some("2".into()));
        assert_eq!(pages.status.get(render).await, Some("3".into()));
        assert_eq!(pages.status.get(render).await, Some("3".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_while_it_waits_costs_nothing_and_keeps_nobody_waiting() {
        let page = SharedPage::default();
        let gone = tokio::time::timeout(AGE_MAX, page.get(async || std::future::pending().await));
        assert!(gone.await.is_err());
        assert_eq!(page.get(async || None).await, None);
        assert_eq!(page.get(async || Some("page".to_owned())).await, Some("page".into()));
    }
}
