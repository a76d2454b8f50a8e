//! The loops of a world: how each of them waits, and which one has the next turn.
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
use std::time::Duration;

use event::{Happened, Loop, Mailbox, Owner, Wake};
use gateway::Mail;

use crate::chance::Actor;
use crate::kernel::Simulated;
use crate::net::DescriptorId;
use crate::plants::Plant;
use crate::threads;
use crate::world::{Happening, Moment, Shared, World};

/// Turns of a loop without any pause after which it is said to spin.
const SPINS_MAX: u32 = 100_000;

/// What a wake-up from another thread sets.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    deaf: AtomicBool,
    /// A ring was lost: no other comes for what is in the mailbox.
    lost: AtomicBool,
}

impl Bell {
    fn take(&self) {
        self.rung.store(false, Ordering::SeqCst);
    }

    fn is_rung(&self) -> bool {
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
enum Stage {
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
    mailbox: Option<Mailbox<Mail>>,
    bell: Arc<Bell>,
    stage: Stage,
    /// Its thread is busy until then with what it found last.
    busy_until: Moment,
    /// There is something for it, and then it will look.
    summoned: Option<Moment>,
    spins: u32,
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

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The turn of this loop.
    Turn(usize),
    /// The moment that was waited for has come.
    Time,
    /// Nothing, for ever.
    Rest,
}

/// Lets the world go on until a loop has its turn, or until a moment.
pub(crate) fn next(shared: &Shared, until: Option<Moment>) -> Next {
    loop {
        threads::settle(shared);
        let mut world = shared.lock();
        world.call_loops();
        if world.at_rest {
            return Next::Rest;
        }
        match world.next(until) {
            Some(Happening::Turn(shard)) => {
                if world.has_turn(shard) {
                    return Next::Turn(shard);
                }
            }
            Some(Happening::Thread(thread)) => {
                world.act(Happening::Thread(thread).actor());
                drop(world);
                threads::go_on(shared, thread);
            }
            Some(happening) => world.happen(happening),
            None => match until {
                Some(until) => {
                    world.now = world.now.max(until);
                    return Next::Time;
                }
                None => {
                    world.at_rest = true;
                    return Next::Rest;
                }
            },
        }
    }
}

/// Gives a loop the turn that it was called for; then it waits again. False once it was stopped.
pub(crate) fn turn<O: Owner<Mail = Mail>>(
    shared: &Shared,
    shard: usize,
    turning: &mut Loop<Simulated, Mail>,
    owner: &mut O,
) -> Result<bool, String> {
    if !turning.turn(owner, None).map_err(|error| error.to_string())? {
        shared.lock().loop_is_gone(shard);
        return Ok(false);
    }
    fall_asleep(turning, owner)?;
    Ok(true)
}

/// Lets a loop wait that was not called.
pub(crate) fn fall_asleep<O: Owner<Mail = Mail>>(
    turning: &mut Loop<Simulated, Mail>,
    owner: &mut O,
) -> Result<(), String> {
    match turning.turn(owner, None) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("a loop turns though nobody called it".to_owned()),
    }
}

impl World {
    /// A loop is there, and this is its mailbox.
    pub(crate) fn add_mailbox(&mut self, shard: usize, mailbox: Mailbox<Mail>) {
        self.loops[shard].mailbox = Some(mailbox);
    }

    /// The daemon is no more: nobody reads mail.
    pub(crate) fn end_loops(&mut self) {
        for shard in 0..self.loops.len() {
            self.loop_is_gone(shard);
        }
    }

    /// What the gateway has opened and not closed.
    pub(crate) fn open_at_gateway(&self) -> Vec<DescriptorId> {
        (0..self.loops.len()).flat_map(|shard| self.net.open_at(shard)).collect()
    }

    /// A loop has ended: nobody reads its mail.
    fn loop_is_gone(&mut self, shard: usize) {
        self.loops[shard].mailbox = None;
        self.loops[shard].stage = Stage::Gone;
    }

    pub(crate) fn bell(&self, shard: usize) -> Arc<Bell> {
        Arc::clone(&self.loops[shard].bell)
    }

    /// Mail to a shard, from a thread that the world stands in for.
    pub(crate) fn post(&self, shard: usize, mail: Mail) {
        if let Some(mailbox) = &self.loops[shard].mailbox {
            mailbox.post(mail);
        }
    }

    /// What a loop asks its kernel for: reports if it was called; else it falls asleep.
    pub(crate) fn wait(
        &mut self,
        shard: usize,
        timeout: Option<Duration>,
        events_max: usize,
        happened: &mut Vec<Happened>,
    ) -> bool {
        if self.loops[shard].stage == Stage::Called {
            self.loops[shard].stage = Stage::Turning;
            self.loops[shard].bell.take();
            let reports = self.reports(shard, events_max).into_iter();
            happened.extend(reports.map(|(token, readiness)| Happened { token, readiness }));
            return true;
        }
        // What the loop did since it last asked took some time.
        let busy = self.chance.time(Duration::from_nanos(200), Duration::from_micros(40));
        let idle = timeout != Some(Duration::ZERO);
        if idle
            && self.planted.plant == Some(Plant::LostWake)
            && self.planted.strikes(Plant::LostWake)
        {
            self.note("PLANT: the next wake-up is lost", shard, 0);
            self.loops[shard].bell.deaf.store(true, Ordering::SeqCst);
        }
        let late = match timeout {
            Some(timeout) if !timeout.is_zero() && self.chance.in_1000(100) => {
                self.chance.time(Duration::from_micros(1), Duration::from_millis(3))
            }
            _ => Duration::ZERO,
        };
        let busy_until = self.now + busy;
        let until = timeout.map(|timeout| busy_until + timeout + late);
        let sleeper = &mut self.loops[shard];
        sleeper.busy_until = busy_until;
        sleeper.stage = Stage::Asleep { until, idle };
        sleeper.summoned = None;
        sleeper.spins = if idle { 0 } else { sleeper.spins + 1 };
        if sleeper.spins == SPINS_MAX {
            self.violation("a loop turns without end and never sleeps".to_owned());
            self.at_rest = true;
        }
        if let Some(until) = until {
            self.at(until, Happening::Turn(shard));
        }
        false
    }

    /// Calls every loop that has a reason to wake, each after a while of its own.
    fn call_loops(&mut self) {
        for shard in 0..self.loops.len() {
            let sleeper = &self.loops[shard];
            let Stage::Asleep { idle, .. } = sleeper.stage else { continue };
            let rung = sleeper.bell.is_rung();
            if idle && !rung && sleeper.mail_waiting() > 0 {
                self.violation("a loop sleeps though mail waits for it".to_owned());
                self.at_rest = true;
                return;
            }
            let (busy_until, summoned) = (sleeper.busy_until, sleeper.summoned.is_some());
            if summoned || !(rung || self.has_reports(shard)) {
                continue;
            }
            self.act(Actor("call", shard));
            // One that is slow to come back finds more than one thing.
            let slow = match self.chance.below(10) {
                0 if self.loops.len() > 1 => {
                    self.chance.time(Duration::from_micros(10), Duration::from_millis(20))
                }
                0..=3 => self.chance.time(Duration::from_micros(1), Duration::from_micros(800)),
                _ => Duration::ZERO,
            };
            let at = self.now.max(busy_until) + slow;
            self.loops[shard].summoned = Some(at);
            self.at(at, Happening::Turn(shard));
        }
    }

    /// Whether a loop that somebody called has its turn now.
    fn has_turn(&mut self, shard: usize) -> bool {
        let now = self.now;
        let sleeper = &mut self.loops[shard];
        let Stage::Asleep { until, .. } = sleeper.stage else { return false };
        let due = [until, sleeper.summoned].into_iter().flatten().any(|at| at <= now);
        if due {
            sleeper.summoned = None;
            sleeper.stage = Stage::Called;
        }
        due
    }
}
