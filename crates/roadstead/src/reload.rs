//! Reloads the configuration of a running daemon: the file is read again and validated completely, and then applied by
//! all shards or by none.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use gateway::{Fleet, HandlerRegistry, Reload};
#[cfg(feature = "admin")]
use serde_json::{Value, json};
use settings::{Configuration, Diagnostics, Sources};

use crate::memory::memory_max;
use crate::shard_reload::{self, Applied};
use crate::{descriptors, error_log, exposure};

/// Reloads the configuration file of a daemon.
pub(crate) struct Reloader {
    file: PathBuf,
    fleet: Arc<Fleet>,
    handler_registry: Arc<dyn HandlerRegistry>,
    /// The running configuration.
    serving: Mutex<Configuration>,
}

impl Reloader {
    pub(crate) fn new(
        file: PathBuf,
        serving: Configuration,
        fleet: Arc<Fleet>,
        handler_registry: Arc<dyn HandlerRegistry>,
    ) -> Arc<Self> {
        Arc::new(Self { file, fleet, handler_registry, serving: Mutex::new(serving) })
    }

    /// Reloads the file. Returns a message for the operator.
    ///
    /// # Errors
    /// Every reason for a rejection, with its location. The running configuration is kept, and the last line of the
    /// message says so.
    pub(crate) fn reload(&self) -> Result<String, String> {
        // The value is consistent after every call, so a poisoned lock can be used after a panic elsewhere.
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let told = self.take_over(&mut serving);
        match &told {
            Ok(text) => tracing::info!("{text}"),
            Err(text) => tracing::error!("the configuration was not reloaded:\n{text}"),
        }
        told
    }

    /// Returns the effect of a reload as JSON: the `file`, whether it `needs_restart`, and the `messages` with the
    /// reasons for a rejection. Changes nothing.
    #[cfg(feature = "admin")]
    pub(crate) fn preview(&self) -> Value {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let file = std::fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        let compared = self.read().map(|(source, new)| {
            let fixed = settings::restart_required(&serving, &new);
            let lines = settings::placed(&source, &fixed);
            let place = |it: &settings::Diagnostic| match source.name() == it.file {
                true => format!("line {}", it.line),
                false => format!("{} line {}", it.file, it.line),
            };
            lines.iter().map(|it| format!("{}: {}", place(it), it.message)).collect::<Vec<_>>()
        });
        let file = file.display().to_string();
        match compared {
            Ok(messages) => {
                json!({ "file": file, "needs_restart": !messages.is_empty(), "messages": messages })
            }
            Err(errors) => {
                json!({ "file": file, "needs_restart": false, "messages": [errors.to_string()] })
            }
        }
    }

    fn read(&self) -> Result<(Sources, Configuration), Diagnostics> {
        let source = settings::reread_source(&self.file)?;
        let environment = |variable: &str| std::env::var(variable).ok();
        let new = settings::parse(&source, &environment)?;
        error_log::hide(&new);
        Ok((source, new))
    }

    fn take_over(&self, serving: &mut Configuration) -> Result<String, String> {
        let rejected = |text: String| {
            format!("{}\nthe reload was rejected: nothing changed\n", text.trim_end())
        };
        let (reloads, new) = self.prepare(serving).map_err(|why| rejected(why.to_string()))?;
        let Applied { late, warnings } =
            shard_reload::apply(&self.fleet, reloads).ok_or("the daemon is about to end\n")?;
        if let Err(error) = self.fleet.watch_names(&new) {
            tracing::error!("names of servers are not looked up again: {error}");
        }
        self.fleet.set_memory_max(memory_max(new.daemon.memory_max));
        descriptors::publish(&self.fleet);
        descriptors::compare(&new);
        let exposed = exposure::late_secrets(serving, &new);
        let as_root = exposure::checks_as_root(&new).into_iter().map(|remark| remark.message);
        let warnings = warnings.into_iter().chain(exposed).chain(as_root).collect::<Vec<_>>();
        let summary = new.summary();
        *serving = new;
        let file = self.file.display();
        let force = match late {
            0 => "is in force".to_owned(),
            late => {
                format!("comes into force on {late} shards that are busy, and is on all others")
            }
        };
        let warnings = warnings.iter().map(|warning| format!("\nwarning: {warning}"));
        let warnings = warnings.collect::<String>();
        Ok(format!("{file} {force}: {summary}{warnings}"))
    }

    /// Reads the file and prepares what the shards apply.
    fn prepare(
        &self,
        serving: &Configuration,
    ) -> Result<(Vec<Reload>, Configuration), Diagnostics> {
        let (source, mut new) = self.read()?;
        let users = exposure::users_beyond_control(&new);
        if !users.is_empty() {
            return Err(settings::placed(&source, &users));
        }
        let registry = self.handler_registry.as_ref();
        let reloads = shard_reload::prepare(serving, &mut new, &self.fleet, registry)
            .map_err(|remarks| settings::placed(&source, &remarks))?;
        Ok((reloads, new))
    }

    /// Starts a thread that reloads when the returned function is called. Calls during a reload are merged into one.
    pub(crate) fn start(self: &Arc<Self>) -> std::io::Result<impl Fn() + Send + use<>> {
        let (order, orders) = sync_channel(1);
        let reloader = Arc::clone(self);
        std::thread::Builder::new().name("reload".to_owned()).spawn(move || {
            for () in orders {
                // The error has been logged.
                let _ = reloader.reload();
            }
        })?;
        // A call that is already pending will read the current content of the file.
        Ok(move || order.try_send(()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
