//! The cluster in a program that was built without it (the feature `cluster`).

use std::sync::Arc;

use gateway::Fleet;
use settings::Configuration;

/// It cannot be created.
pub(crate) struct ClusterThread(std::convert::Infallible);

impl ClusterThread {
    pub(crate) fn start(
        configuration: &Configuration,
        _: &Arc<Fleet>,
    ) -> Result<Option<Self>, String> {
        match configuration.cluster {
            None => Ok(None),
            Some(_) => {
                let text = "`[cluster]`: this program was built without it (the feature `cluster`)";
                Err(text.to_owned())
            }
        }
    }

    pub(crate) fn wait(&self) {
        match self.0 {}
    }

    pub(crate) fn metrics(&self) -> String {
        match self.0 {}
    }
}
