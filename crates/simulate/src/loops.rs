//! The loops of a world, and how each of them waits.
//!
//! ```text
//!   Turning ──it would wait──▶ Asleep(until) ──mail, a report, or its time──▶ Called ──▶ Turning
//!      └──it was stopped──▶ Gone
//! ```
//!
//! All loops of a gateway turn on one thread, a whole turn at a time; whose comes next, and how late
//! after its reason, the seed decides. A loop falls asleep by the error that its `wait` gets, having said
//! to its mailbox that it sleeps; called again it finds what there is. So mail that a loop sends to
//! another rings as it would between threads, and what becomes of the other before it has heard that is
//! any number of things.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event::{Mailbox, Wake};
use gateway::ShardMail;

use crate::happening::Moment;

/// What a wake-up from another thread sets.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    pub(crate) rung: AtomicBool,
    pub(crate) deaf: AtomicBool,
    /// A ring was lost: no other comes for what is in the mailbox.
    pub(crate) lost: AtomicBool,
}

impl Bell {
    pub(crate) fn take(&self) {
        self.rung.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// Whether nothing of the last message is still under way: who sends one rings behind it.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_rung() || self.lost.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
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
    /// It has nothing to do before that moment, if nobody wakes it. `idle`: it has said so to its
    /// mailbox.
    Asleep {
        until: Option<Moment>,
        idle: bool,
    },
    Called,
    Gone,
}

/// One loop, as its world sees it.
#[derive(Debug)]
pub(crate) struct Sleeper {
    pub(crate) mailbox: Option<Mailbox<ShardMail>>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) stage: Stage,
    /// Its thread is busy until then with what it found last.
    pub(crate) busy_until: Moment,
    /// There is something for it, and then it will look.
    pub(crate) summoned: Option<Moment>,
    pub(crate) spins: u32,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        Self {
            mailbox: None,
            bell: Arc::default(),
            stage: Stage::Turning,
            busy_until: Moment::ZERO,
            summoned: None,
            spins: 0,
        }
    }

    /// Mail that nobody has read.
    pub(crate) fn mail_waiting(&self) -> usize {
        self.mailbox.as_ref().map_or(0, Mailbox::waiting)
    }

    /// The bell that the next message rings, if one does.
    pub(crate) fn bell_of_next(&self) -> Option<Arc<Bell>> {
        let rings = matches!(self.stage, Stage::Asleep { idle: true, .. });
        (rings && self.mail_waiting() == 0).then(|| Arc::clone(&self.bell))
    }

    pub(crate) const fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone)
    }
}
