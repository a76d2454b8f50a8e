//! Events of workers, applied to their pool and to the exchanges.

use exchange::{Outcome, PoolId, Slice};

use super::Engine;
use crate::session_affinity::Slot;
use crate::shard_message::ShardMessage;
use flow::backend_event::BackendEvent;
use flow::client::Client;
use flow::reply_event::ReplyEvent;
use flow::request_meta::RequestMeta;

impl Engine {
    /// Handles an event of a worker of this pool.
    pub fn handle_event(&mut self, pool: PoolId, report: BackendEvent) {
        let now = self.now;
        let served = &mut self.pools[pool];
        served.dirty = true;
        match report {
            BackendEvent::Answered { id, outcome } => self.complete(pool, id, outcome),
            BackendEvent::AllAnswered { answers } => self.complete_all(pool, answers),
            // It does not become a request to the next pool either.
            BackendEvent::Unanswered { id } => self.end(id, Outcome::Reply(Slice::default())),
            BackendEvent::Head { id, head } => self.head(pool, id, head),
            BackendEvent::Linked { id } => {
                if let Some(log_entry) =
                    self.exchanges.get_mut(id).and_then(|it| it.log_entry.as_mut())
                {
                    log_entry.connected = Some(now);
                }
            }
            BackendEvent::RejectedStatus { id, status } => {
                let is_bad = served.balance.is_bad_status(status);
                if let Some(exchange) = self.exchanges.get_mut(id) {
                    (exchange.attempt.status, exchange.attempt.is_bad) = (status, is_bad);
                }
            }
            BackendEvent::Broken { refusal } => self.rejects.count_reply(refusal as usize),
            BackendEvent::Unrequested => served.counts.unrequested += 1,
            BackendEvent::BodyWanted { id, wanted } => self.flow(id, wanted),
            BackendEvent::ReplyEnd { id } => self.said_all(id),
            BackendEvent::Part { id, part } => self.part(pool, id, part),
            BackendEvent::SpliceOffer { id, from } => self.long(id, from),
            BackendEvent::Spliced { id, count, done } => self.relayed(id, count, done),
            BackendEvent::Announced { frame } => {
                self.shard_link.tell_all(|| ShardMessage::Announced(pool, frame.clone()));
                self.announce(pool, frame);
            }
            BackendEvent::Finished { worker } => {
                let session = served.client_of_ended(worker);
                let told = session.map(|session| (Client::unasked(session), ReplyEvent::Finished));
                self.finished.extend(told);
            }
            BackendEvent::Unsolicited { worker, frame } => self.said(pool, worker, frame),
            BackendEvent::Discarded => served.counts.discarded += 1,
            BackendEvent::Released { worker } => match served.slot(worker) {
                Slot::Kept => {}
                Slot::Free => served.pool.handle_released(now, worker),
                Slot::Return => self.give_up(pool, worker),
                Slot::Replace => self.effects.to_replace.push_back((pool, worker)),
            },
            BackendEvent::Proven { worker, proof } => served.pool.handle_proven(now, worker, proof),
            BackendEvent::Kept { worker, client } => {
                served.pool.handle_reserved(now, worker, client);
            }
            BackendEvent::SpokeAfterReset => served.spoke_after_reset(),
            BackendEvent::Open { worker } => served.pool.handle_open(now, worker),
            BackendEvent::Suspect { count, mut requests } => {
                served.counts.suspect += count;
                requests.sort_unstable();
                served.pool.note_suspect(&requests);
            }
            BackendEvent::Returned { id, payload } => {
                self.effects.returned.push((pool, id, payload, RequestMeta::default()));
            }
            BackendEvent::Retry { id, payload, meta, failed } => {
                self.note_failed(pool, id, failed);
                self.effects.returned.push((pool, id, payload, meta));
            }
            BackendEvent::Started { worker } => {
                // A worker that several shards use is counted once.
                served.counts.started += u64::from(served.member_shard.is_none());
                served.pool.handle_started(now, worker);
                served.trouble = None;
                // A worker without a name starts with new counters.
                if served.pool.name_at(worker.into()).is_none() {
                    served.tallies.forget(worker.into());
                }
                served.greet(worker);
            }
            BackendEvent::StartFailed { worker } => {
                served.counts.start_failed += 1;
                served.pool.handle_start_failed(now, worker);
            }
            BackendEvent::Retired { worker } => {
                served.lose(worker);
                served.pool.handle_retired(now, worker);
            }
            BackendEvent::Ended { worker, expected, reached } => {
                served.lose(worker);
                // A server that is down is retried repeatedly, but has died only once.
                served.counts.died += u64::from(!expected && reached);
                served.counts.start_failed += u64::from(!expected && !reached);
                served.pool.handle_ended(now, worker, expected);
            }
            BackendEvent::Checked { worker, good, text } => self.checked(pool, worker, good, text),
            BackendEvent::Trouble { trouble } => served.trouble = Some(trouble),
            BackendEvent::Short { worker } => {
                self.shard_link.tell_all(|| ShardMessage::Spare(pool, worker.into()));
            }
            BackendEvent::Unreached { worker } => self.unreached(pool, worker),
            BackendEvent::Memory { worker, bytes } => served.pool.handle_memory(now, worker, bytes),
            BackendEvent::Stray => served.counts.strays += 1,
            BackendEvent::StderrDropped => served.counts.stderr_dropped += 1,
        }
    }
}
