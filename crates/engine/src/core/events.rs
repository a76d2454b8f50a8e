//! What workers report: to their pool, and to the exchanges.

use exchange::{Outcome, PoolId, Slice};

use super::Core;
use crate::bindings::Slot;
use crate::crossing::Crossing;
use flow::client::Client;
use flow::delivery::Delivery;
use flow::form::Form;
use flow::upward::Upward;

impl Core {
    /// What a worker of this pool reports.
    pub fn handle_upward(&mut self, pool: PoolId, report: Upward) {
        let now = self.now;
        let served = &mut self.pools[pool];
        served.dirty = true;
        match report {
            Upward::Answered { id, outcome } => self.complete(pool, id, outcome),
            Upward::AllAnswered { answers } => self.complete_all(pool, answers),
            // Nor does it become a request of the next pool.
            Upward::Unanswered { id } => self.end(id, Outcome::Reply(Slice::default())),
            Upward::Head { id, head } => self.head(pool, id, head),
            Upward::Linked { id } => {
                if let Some(log_entry) =
                    self.exchanges.get_mut(id).and_then(|it| it.log_entry.as_mut())
                {
                    log_entry.connected = Some(now);
                }
            }
            Upward::Rejected { id, status } => {
                let is_bad = served.balance.is_bad_status(status);
                if let Some(exchange) = self.exchanges.get_mut(id) {
                    (exchange.status, exchange.is_bad) = (status, is_bad);
                }
            }
            Upward::Broken { refusal } => self.rejects.count_reply(refusal as usize),
            Upward::Unrequested => served.counts.unrequested += 1,
            Upward::Flow { id, wanted } => self.flow(id, wanted),
            Upward::SaidAll { id } => self.said_all(id),
            Upward::Part { id, part } => self.part(pool, id, part),
            Upward::Long { id, from } => self.long(id, from),
            Upward::Relayed { id, count, done } => self.relayed(id, count, done),
            Upward::Announced { frame } => {
                self.others.tell_all(|| Crossing::Announced(pool, frame.clone()));
                self.announce(pool, frame);
            }
            Upward::Finished { worker } => {
                let session = served.client_of_ended(worker);
                let told = session.map(|session| (Client::unasked(session), Delivery::Finished));
                self.finished.extend(told);
            }
            Upward::Said { worker, frame } => self.said(pool, worker, frame),
            Upward::Discarded => served.counts.discarded += 1,
            Upward::Released { worker } => match served.slot(worker) {
                Slot::Kept => {}
                Slot::Free => served.pool.handle_released(now, worker),
                Slot::Return => self.give_up(pool, worker),
                Slot::Replace => self.effects.to_replace.push_back((pool, worker)),
            },
            Upward::Proven { worker, proof } => served.pool.handle_proven(now, worker, proof),
            Upward::Kept { worker, client } => served.pool.handle_kept(now, worker, client),
            Upward::SpokeAfterReset => served.spoke_after_reset(),
            Upward::Open { worker } => served.pool.handle_open(now, worker),
            Upward::Suspect { count, mut requests } => {
                served.counts.suspect += count;
                requests.sort_unstable();
                served.pool.note_suspect(&requests);
            }
            Upward::Returned { id, payload } => {
                self.effects.returned.push((pool, id, payload, Form::default()));
            }
            Upward::Again { id, payload, form, failed } => {
                self.note_failed(pool, id, failed);
                self.effects.returned.push((pool, id, payload, form));
            }
            Upward::Started { worker } => {
                // A worker of several shards is one.
                served.counts.started += u64::from(served.branch.is_none());
                served.pool.handle_started(now, worker);
                served.trouble = None;
                // Of a worker without a name nothing is known before it begins.
                if served.pool.name_at(worker.into()).is_none() {
                    served.tallies.forget(worker.into());
                }
                served.greet(worker);
            }
            Upward::StartFailed { worker } => {
                served.counts.start_failed += 1;
                served.pool.handle_start_failed(now, worker);
            }
            Upward::Retired { worker } => {
                served.lose(worker);
                served.pool.handle_retired(now, worker);
            }
            Upward::Ended { worker, expected, reached } => {
                served.lose(worker);
                // A server that is down is tried again and again: it died once.
                served.counts.died += u64::from(!expected && reached);
                served.counts.start_failed += u64::from(!expected && !reached);
                served.pool.handle_ended(now, worker, expected);
            }
            Upward::Checked { worker, good, text } => self.checked(pool, worker, good, text),
            Upward::Trouble { trouble } => served.trouble = Some(trouble),
            Upward::Short { worker } => {
                self.others.tell_all(|| Crossing::Spare(pool, worker.into()));
            }
            Upward::Unreached { worker } => self.unreached(pool, worker),
            Upward::Memory { worker, bytes } => served.pool.handle_memory(now, worker, bytes),
            Upward::Stray => served.counts.strays += 1,
            Upward::StderrDropped => served.counts.stderr_dropped += 1,
        }
    }
}
