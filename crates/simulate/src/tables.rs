//! The handlers that write the table of the database.
//!
//! The answer of a handler to a batch may be lost with the daemon, although the rows are committed.

use std::panic::resume_unwind;
use std::sync::Arc;

use exchange::mutant::{Mutant, active};
use exchange::{Batch, Cause, Factory, Handler, HandlerError, Outbox, Outcome, Phase, Slice, Stop};
use gateway::HandlerRegistry;

use crate::lockstep::{Crashed, ThreadContext};
use crate::store::{Fate, id_of};
use crate::world::Shared;

/// The factory of the handlers of a world.
#[derive(Debug)]
pub(crate) struct Tables(pub(crate) Shared);

impl HandlerRegistry for Tables {
    fn factory(&self, _pool: &settings::Pool) -> Result<Arc<dyn Factory>, gateway::FactoryError> {
        Ok(Arc::new(Self(self.0.clone())))
    }
}

impl Factory for Tables {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        let context = ThreadContext::of_this_thread();
        let fails = self.0.lock().fault(30);
        if fails {
            return Err(HandlerError::Open("the disk is not there".into()));
        }
        context.set_idle(1);
        Ok(Box::new(Table { context }))
    }
}

struct Table {
    context: ThreadContext,
}

impl Drop for Table {
    fn drop(&mut self) {
        if !self.context.is_running() {
            // A crash is ignored here, because the thread ends in any case.
            let _ = self.context.arrive();
        }
    }
}

impl Handler for Table {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop) {
        let served = self.context.arrive().and_then(|()| self.store(batch, outbox, stop));
        match served {
            // Answers that were not flushed are sent at the end of the batch.
            Ok(()) => self.context.set_idle(1),
            Err(Crashed) => resume_unwind(Box::new("the daemon crashed")),
        }
    }
}

impl Table {
    /// Stores and answers a batch.
    pub(crate) fn store(
        &mut self,
        batch: &Batch,
        outbox: &mut dyn Outbox,
        stop: &Stop,
    ) -> Result<(), Crashed> {
        let (fate, [work, commit, tell]) = self.context.shared.lock().fate_of_batch();
        let mut rows = Vec::new();
        for (index, request) in batch.requests.iter().enumerate() {
            match id_of(&request.body) {
                Some(id) if id % 50 != 49 => rows.push((index, id)),
                _ => {
                    let text = "no such row is taken";
                    outbox.answer(index, Outcome::ended(Cause::Row, Phase::Work, text));
                }
            }
        }
        self.context.pass(work)?;
        if stop.requested() {
            let outcome = Outcome::ended(Cause::Database, Phase::Work, "stopped before the commit");
            rows.iter().for_each(|(index, _)| outbox.answer(*index, outcome.clone()));
            return Ok(());
        }
        if active(Mutant::AckBeforeCommit) {
            answer(outbox, &rows);
            outbox.flush();
        }
        if fate == (Fate::Panics { stored: false }) {
            self.panic();
        }
        self.context.pass(commit)?;
        let stored = match fate {
            Fate::Commits | Fate::Forgets | Fate::InParts => true,
            Fate::Fails => false,
            Fate::Lost { stored } | Fate::Panics { stored } => stored,
        };
        if stored {
            self.context.shared.lock().commit(&rows);
        }
        self.context.pass(tell)?;
        match fate {
            Fate::Commits => answer(outbox, &rows),
            Fate::Fails => {
                let outcome = Outcome::ended(Cause::Database, Phase::Work, "the disk is full");
                rows.iter().for_each(|(index, _)| outbox.answer(*index, outcome.clone()));
            }
            Fate::Lost { .. } => {
                let outcome = Outcome::ended(Cause::Commit, Phase::Work, "the connection is lost");
                rows.iter().for_each(|(index, _)| outbox.answer(*index, outcome.clone()));
            }
            Fate::Panics { .. } => self.panic(),
            Fate::Forgets => {
                let half = rows.len() / 2;
                answer(outbox, &rows[..half]);
            }
            Fate::InParts => {
                let half = rows.len() / 2;
                answer(outbox, &rows[..half]);
                outbox.flush();
                self.context.pass(commit)?;
                answer(outbox, &rows[half..]);
            }
        }
        Ok(())
    }

    /// Ends the work of the thread as a panic does, without the panic message.
    pub(crate) fn panic(&self) -> ! {
        self.context.shared.lock().note("a handler panics", 0, 0);
        resume_unwind(Box::new("a handler panics"))
    }
}

/// Acknowledges rows.
fn answer(outbox: &mut dyn Outbox, rows: &[(usize, u64)]) {
    for (index, id) in rows {
        let text = format!("ok {id}");
        outbox.answer(*index, Outcome::Reply(Slice::from(text.as_bytes())));
    }
}
