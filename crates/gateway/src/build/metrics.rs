//! Creates the metrics of a configuration.

use route::PathFault;
use settings::{Configuration, Protocol};
use wire::http1::Refusal;

use observe::metrics::{Metrics, RejectReasons};

/// Creates metrics with a place for every listener and pool of the configuration. Each shard has its own metrics.
#[must_use]
pub fn metrics_for(configuration: &Configuration) -> Metrics {
    let Configuration { listeners, pools, .. } = configuration;
    let reasons = if listeners.iter().any(|listener| listener.protocol == Protocol::Http) {
        RejectReasons {
            messages: Refusal::ALL.iter().map(|reason| reason.as_str()).collect(),
            paths: PathFault::ALL.iter().map(|reason| reason.as_str()).collect(),
        }
    } else {
        RejectReasons::default()
    };
    Metrics::new(
        listeners.iter().map(|listener| listener.name.clone()).collect(),
        pools.iter().map(|pool| pool.name.clone()).collect(),
        &reasons,
    )
}
