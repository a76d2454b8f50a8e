//! The loops of a world, and how each of them waits.
//!
//! ```text
//!   Turning ──it would wait──▶ Asleep(until) ──mail, a report, or its time──▶ Called ──▶ Turning
//!      └──it was stopped──▶ Gone
//! ```
//!
//! All loops of a gateway run on one thread, one whole iteration at a time. The seed decides which loop runs next, and
//! how long after its reason. A loop falls asleep by an error of its `wait`, after it has marked its mailbox as
//! sleeping. When it is called again, it finds its events. Therefore mail from one loop to another triggers a wake-up
//! as between threads, and any number of events may occur before the other loop receives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event::{Mailbox, Wake};
use gateway::ShardMail;

use crate::scheduled_event::Moment;

/// The flags that a wake-up from another thread sets.
#[derive(Debug, Default)]
pub(crate) struct WakeFlag {
    pub(crate) rung: AtomicBool,
    pub(crate) deaf: AtomicBool,
    /// A wake-up was lost: there is no other one for the contents of the mailbox.
    pub(crate) lost: AtomicBool,
}

impl WakeFlag {
    pub(crate) fn take(&self) {
        self.rung.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// Whether the delivery of the last message is complete: the sender wakes the loop after it has added the message.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_rung() || self.lost.load(Ordering::SeqCst)
    }
}

impl Wake for WakeFlag {
    fn wake(&self) {
        if self.deaf.swap(false, Ordering::SeqCst) {
            self.lost.store(true, Ordering::SeqCst);
        } else {
            self.rung.store(true, Ordering::SeqCst);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Turning,
    /// It has nothing to do before `until`, unless it is woken. `idle`: it has marked its mailbox as sleeping.
    Asleep {
        until: Option<Moment>,
        idle: bool,
    },
    Called,
    Gone,
}

/// One loop, from the side of its world.
#[derive(Debug)]
pub(crate) struct SimulatedLoop {
    pub(crate) mailbox: Option<Mailbox<ShardMail>>,
    pub(crate) wake_flag: Arc<WakeFlag>,
    pub(crate) stage: Stage,
    /// Its thread is busy with its last events until this time.
    pub(crate) busy_until: Moment,
    /// When it will run, if it has a reason.
    pub(crate) runs_at: Option<Moment>,
    pub(crate) spins: u32,
}

impl SimulatedLoop {
    pub(crate) fn new() -> Self {
        Self {
            mailbox: None,
            wake_flag: Arc::default(),
            stage: Stage::Turning,
            busy_until: Moment::ZERO,
            runs_at: None,
            spins: 0,
        }
    }

    /// Returns the number of unread messages.
    pub(crate) fn mail_waiting(&self) -> usize {
        self.mailbox.as_ref().map_or(0, Mailbox::waiting)
    }

    /// Returns the bell that the next message rings, if it rings one.
    pub(crate) fn wake_flag_of_next(&self) -> Option<Arc<WakeFlag>> {
        let rings = matches!(self.stage, Stage::Asleep { idle: true, .. });
        (rings && self.mail_waiting() == 0).then(|| Arc::clone(&self.wake_flag))
    }

    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone)
    }
}
