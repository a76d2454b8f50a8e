//! The callbacks of a pool: what they are called with, and how a panic of one is contained.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type OnOpenError = dyn Fn(&str, &(dyn Error + Send + Sync + 'static)) + Send + Sync;
type OnPanic = dyn Fn(&str, &str) + Send + Sync;

/// The callbacks of the settings.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) open_error: Option<Arc<OnOpenError>>,
    pub(super) panic: Option<Arc<OnPanic>>,
}

impl Hooks {
    /// A thread could not be started or opened.
    pub(super) fn report_open_error(
        &self,
        thread: &str,
        error: &(dyn Error + Send + Sync + 'static),
    ) {
        if let Some(hook) = &self.open_error {
            contain(|| hook(thread, error));
        }
    }

    /// A job has panicked.
    pub(super) fn report_panic(&self, thread: &str, message: &str) {
        if let Some(hook) = &self.panic {
            contain(|| hook(thread, message));
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("open_error", &self.open_error.is_some())
            .field("panic", &self.panic.is_some())
            .finish()
    }
}

/// The message of a panic.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // The panic hook of the standard library prints the same.
    text.unwrap_or("Box<dyn Any>")
}

/// Drops a value whose drop may panic.
pub(super) fn discard<T>(it: T) {
    contain(|| drop(it));
}

/// Runs foreign code and ignores its panic.
fn contain(run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        // If the payload of the panic also panics in its drop, its memory is leaked.
        std::mem::forget(panic);
    }
}
