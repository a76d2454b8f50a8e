//! The database: a table that survives a crash, and handlers that write it.
//!
//! A row is there once its commit has happened, and never before; a batch commits as a whole. What
//! a handler then says of it may still get lost with the daemon.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use exchange::plant::{Plant, active};
use exchange::{Batch, Cause, Factory, Handler, HandlerError, Outbox, Outcome, Phase, Slice, Stop};
use gateway::Workshop;

use crate::threads::{Crashed, Seat};
use crate::world::{Shared, World};

/// What is committed: rows by their id, and how many times each.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) rows: BTreeMap<u64, u32>,
}

/// How a batch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Commits,
    /// The commit fails; nothing is stored.
    Fails,
    /// The connection is lost during the commit, before or after it took effect.
    Lost {
        stored: bool,
    },
    /// The handler panics before the commit, or behind it.
    Panics {
        stored: bool,
    },
    /// It commits and forgets to answer some.
    Forgets,
    /// It answers in parts.
    InParts,
}

/// Makes the handlers of a world.
#[derive(Debug)]
pub(crate) struct Tables(pub(crate) Shared);

impl Workshop for Tables {
    fn factory(&self, _pool: &settings::Pool) -> Result<Arc<dyn Factory>, String> {
        Ok(Arc::new(Self(self.0.clone())))
    }
}

impl Factory for Tables {
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        let seat = Seat::of_this_thread();
        let fails = self.0.lock().fault(30);
        if fails {
            return Err(HandlerError::Open("the disk is not there".into()));
        }
        seat.rest(1);
        Ok(Box::new(Table { seat }))
    }
}

struct Table {
    seat: Seat,
}

impl Drop for Table {
    fn drop(&mut self) {
        if !self.seat.is_running() {
            // A crash is as good as an answer here.
            let _ = self.seat.arrive();
        }
    }
}

impl Handler for Table {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop) {
        let served = self.seat.arrive().and_then(|()| self.store(batch, outbox, stop));
        match served {
            // What was not flushed goes with the end of the batch.
            Ok(()) => self.seat.rest(1),
            Err(Crashed) => resume_unwind(Box::new("the daemon crashed")),
        }
    }
}

impl Table {
    /// Stores and answers a batch.
    fn store(
        &mut self,
        batch: &Batch,
        outbox: &mut dyn Outbox,
        stop: &Stop,
    ) -> Result<(), Crashed> {
        let (fate, [work, commit, tell]) = self.seat.shared.lock().fate_of_batch();
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
        self.seat.pass(work)?;
        if stop.requested() {
            let outcome = Outcome::ended(Cause::Database, Phase::Work, "stopped before the commit");
            rows.iter().for_each(|(index, _)| outbox.answer(*index, outcome.clone()));
            return Ok(());
        }
        if active(Plant::AckBeforeCommit) {
            answer(outbox, &rows);
            outbox.flush();
        }
        if fate == (Fate::Panics { stored: false }) {
            self.panic();
        }
        self.seat.pass(commit)?;
        let stored = match fate {
            Fate::Commits | Fate::Forgets | Fate::InParts => true,
            Fate::Fails => false,
            Fate::Lost { stored } | Fate::Panics { stored } => stored,
        };
        if stored {
            self.seat.shared.lock().commit(&rows);
        }
        self.seat.pass(tell)?;
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
                self.seat.pass(commit)?;
                answer(outbox, &rows[half..]);
            }
        }
        Ok(())
    }

    /// Ends the thread's work as a panic does, without its message.
    fn panic(&self) -> ! {
        self.seat.shared.lock().note("a handler panics", 0, 0);
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

/// The id that a line begins with.
pub(crate) fn id_of(line: &[u8]) -> Option<u64> {
    let word = line.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

impl World {
    /// How a batch goes, and how long its three steps take.
    fn fate_of_batch(&mut self) -> (Fate, [Duration; 3]) {
        let most = self.scenario.commit_max;
        let mut time = || self.chance.time(Duration::from_micros(20), most);
        let mut steps = [time(), time(), time()];
        if self.fault(25) {
            // Longer than the deadline of its pool.
            steps[1] = self.scenario.deadline * 2;
        }
        let fate = if self.fault(150) {
            self.chance.pick(&[
                Fate::Fails,
                Fate::Lost { stored: true },
                Fate::Lost { stored: false },
                Fate::Panics { stored: true },
                Fate::Panics { stored: false },
                Fate::Forgets,
                Fate::InParts,
            ])
        } else {
            Fate::Commits
        };
        self.tell(|| format!("a batch will end as {fate:?}, after {steps:?}"));
        (fate, steps)
    }

    fn commit(&mut self, rows: &[(usize, u64)]) {
        self.note("rows are committed", rows.len(), 0);
        for (_, id) in rows {
            *self.store.rows.entry(*id).or_default() += 1;
        }
    }
}
