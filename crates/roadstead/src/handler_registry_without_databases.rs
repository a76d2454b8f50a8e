//! The handlers of a program that was built without the feature `databases`: there are no handlers.

use std::sync::Arc;

use gateway::{FactoryError, HandlerRegistry};
use settings::Pool;

/// Handlers for the databases of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handlers;

impl HandlerRegistry for Handlers {
    fn factory(&self, _: &Pool) -> Result<Arc<dyn exchange::Factory>, FactoryError> {
        Err("this program was built without databases (the feature `databases`)".to_owned().into())
    }
}
