//! Loops fall asleep and are called.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use event::{Completeness, Mailbox, ReadyEvent};
use gateway::ShardMail;

use crate::chance::Actor;
use crate::ids::DescriptorId;
use crate::loops::{Stage, WakeFlag};
use crate::plants::Mutant;
use crate::scheduled_event::ScheduledEvent;
use crate::world::World;

/// The number of iterations of a loop without a pause that counts as spinning.
const SPINS_MAX: u32 = 100_000;

impl World {
    /// Adds the mailbox of a loop.
    pub(crate) fn add_mailbox(&mut self, shard: usize, mailbox: Mailbox<ShardMail>) {
        self.loops[shard].mailbox = Some(mailbox);
    }

    /// Ends all loops, as when the daemon ends: mail is not read any more.
    pub(crate) fn end_loops(&mut self) {
        for shard in 0..self.loops.len() {
            self.loop_is_gone(shard);
        }
    }

    /// Returns the descriptors that the gateway has opened and not closed.
    pub(crate) fn open_at_gateway(&self) -> Vec<DescriptorId> {
        (0..self.loops.len()).flat_map(|shard| self.net.open_at(shard)).collect()
    }

    /// Ends a loop: its mail is not read any more.
    pub(crate) fn loop_is_gone(&mut self, shard: usize) {
        self.loops[shard].mailbox = None;
        self.loops[shard].stage = Stage::Gone;
    }

    pub(crate) fn wake_flag(&self, shard: usize) -> Arc<WakeFlag> {
        Arc::clone(&self.loops[shard].wake_flag)
    }

    /// Sends mail to a shard, in place of a thread that the world simulates.
    pub(crate) fn post(&self, shard: usize, mail: ShardMail) {
        if let Some(mailbox) = &self.loops[shard].mailbox {
            mailbox.post(mail);
        }
    }

    /// Implements the `wait` of a loop: returns reports if it was called; otherwise the loop falls asleep (`None`).
    pub(crate) fn wait(
        &mut self,
        shard: usize,
        timeout: Option<Duration>,
        events_max: usize,
        ready_events: &mut Vec<ReadyEvent>,
    ) -> Option<Completeness> {
        if self.loops[shard].stage == Stage::Called {
            self.loops[shard].stage = Stage::Turning;
            self.loops[shard].wake_flag.take();
            let (reports, completeness) = self.reports(shard, events_max);
            let reports = reports.into_iter();
            ready_events.extend(reports.map(|(token, readiness)| ReadyEvent { token, readiness }));
            return Some(completeness);
        }
        // The work of the loop since its last call took some time.
        let busy = self.chance.time(Duration::from_nanos(200), Duration::from_micros(40));
        let idle = timeout != Some(Duration::ZERO);
        if idle
            && self.planted.mutant == Some(Mutant::LostWake)
            && self.planted.strikes(Mutant::LostWake)
        {
            self.note("PLANT: the next wake-up is lost", shard, 0);
            self.loops[shard].wake_flag.deaf.store(true, Ordering::SeqCst);
        }
        let late = match timeout {
            Some(timeout) if !timeout.is_zero() && self.chance.in_1000(100) => {
                self.chance.time(Duration::from_micros(1), Duration::from_millis(3))
            }
            _ => Duration::ZERO,
        };
        let busy_until = self.time.now + busy;
        let until = timeout.map(|timeout| busy_until + timeout + late);
        let sleeper = &mut self.loops[shard];
        sleeper.busy_until = busy_until;
        sleeper.stage = Stage::Asleep { until, idle };
        sleeper.runs_at = None;
        sleeper.spins = if idle { 0 } else { sleeper.spins + 1 };
        if sleeper.spins == SPINS_MAX {
            self.violation("a loop turns without end and never sleeps".to_owned());
            self.progress.at_rest = true;
        }
        if let Some(until) = until {
            self.at(until, ScheduledEvent::Turn(shard));
        }
        None
    }

    /// Calls every loop that has a reason to wake, each after its own delay.
    pub(crate) fn call_loops(&mut self) {
        for shard in 0..self.loops.len() {
            let sleeper = &self.loops[shard];
            let Stage::Asleep { idle, .. } = sleeper.stage else { continue };
            let rung = sleeper.wake_flag.is_rung();
            if idle && !rung && sleeper.mail_waiting() > 0 {
                self.violation("a loop sleeps though mail waits for it".to_owned());
                self.progress.at_rest = true;
                return;
            }
            let (busy_until, runs_at) = (sleeper.busy_until, sleeper.runs_at.is_some());
            if runs_at || !(rung || self.has_reports(shard)) {
                continue;
            }
            self.act(Actor("call", shard));
            // A loop that returns late finds several events.
            let slow = match self.chance.below(10) {
                0 if self.loops.len() > 1 => {
                    self.chance.time(Duration::from_micros(10), Duration::from_millis(20))
                }
                0..=3 => self.chance.time(Duration::from_micros(1), Duration::from_micros(800)),
                _ => Duration::ZERO,
            };
            let at = self.time.now.max(busy_until) + slow;
            self.loops[shard].runs_at = Some(at);
            self.at(at, ScheduledEvent::Turn(shard));
        }
    }

    /// Whether a called loop has to run now.
    pub(crate) fn has_turn(&mut self, shard: usize) -> bool {
        let now = self.time.now;
        let sleeper = &mut self.loops[shard];
        let Stage::Asleep { until, .. } = sleeper.stage else { return false };
        let due = [until, sleeper.runs_at].into_iter().flatten().any(|at| at <= now);
        if due {
            sleeper.runs_at = None;
            sleeper.stage = Stage::Called;
        }
        due
    }
}
