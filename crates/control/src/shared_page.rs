//! Pages that all anonymous clients share, so that many clients cost no more than one.

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

#[derive(Debug, Default)]
pub(crate) struct SharedPage {
    /// The page and the time at which it was requested.
    page: Mutex<Option<(Instant, Bytes)>>,
}

impl SharedPage {
    /// Returns the current page, or one from `render`, for which all other callers wait. `None` is not cached.
    pub(crate) async fn get(&self, render: impl AsyncFnOnce() -> Option<String>) -> Option<Bytes> {
        let mut page = self.page.lock().await;
        match &*page {
            Some((since, bytes)) if since.elapsed() < AGE_MAX => return Some(bytes.clone()),
            _ => *page = None,
        }
        let since = Instant::now();
        let bytes = Bytes::from(render().await?);
        *page = Some((since, bytes.clone()));
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
    async fn a_client_that_leaves_while_it_waits_costs_nothing_and_keeps_nobody_waiting() {
        let page = SharedPage::default();
        let gone = tokio::time::timeout(AGE_MAX, page.get(async || std::future::pending().await));
        assert!(gone.await.is_err());
        assert_eq!(page.get(async || None).await, None);
        assert_eq!(page.get(async || Some("page".to_owned())).await, Some("page".into()));
    }
}
