//! Counters of each worker of a pool, for `/status`.

use std::time::Instant;

use exchange::{ByWorker, Cause, End, ListenerId, Outcome, Table, Verdict, WorkerId, WorkerIndex};

use observe::metrics::ListenerEnds;
use observe::status::WorkerTally;

/// The counters of one worker.
#[derive(Clone, Debug, Default)]
struct Tally {
    requests: u64,
    /// Replies by status class, 1xx to 5xx.
    responses: [u64; 5],
    failures: u64,
    retries: u64,
    ejections: u64,
    last_failure: Option<(Cause, Instant)>,
    /// The result of its last health check.
    last_check: Option<(String, Instant)>,
}

/// The counters of all workers of a pool.
#[derive(Debug, Default)]
pub(super) struct Tallies(ByWorker<Tally>);

impl Tallies {
    /// Resets the counters of an index that another worker gets.
    pub(super) fn forget(&mut self, worker: WorkerIndex) {
        if let Some(tally) = self.0.get_mut(worker) {
            *tally = Tally::default();
        }
    }

    pub(super) fn count_request(&mut self, worker: WorkerId) {
        self.0.at(worker).requests += 1;
    }

    /// Counts a request that ended on this worker. `status`: of its reply; 0: none.
    pub(super) fn count_end(
        &mut self,
        worker: WorkerId,
        status: u16,
        outcome: &Outcome,
        now: Instant,
    ) {
        let cause = outcome.end().cause;
        let tally = self.0.at(worker);
        if matches!(cause.verdict(), Verdict::Failed | Verdict::Unknown) {
            tally.failures += 1;
            tally.last_failure = Some((cause, now));
        } else {
            tally.count_status(status);
        }
    }

    /// Counts a failed request that is retried on another worker. `status`: of the rejected response; 0: none.
    pub(super) fn count_retry(&mut self, worker: WorkerId, status: u16, why: Cause, now: Instant) {
        let tally = self.0.at(worker);
        tally.retries += 1;
        if !tally.count_status(status) {
            tally.failures += 1;
            tally.last_failure = Some((why, now));
        }
    }

    pub(super) fn count_ejection(&mut self, worker: WorkerIndex) {
        self.0.at(worker).ejections += 1;
    }

    pub(super) fn note_check(&mut self, worker: WorkerId, text: String, now: Instant) {
        self.0.at(worker).last_check = Some((text, now));
    }

    /// The result of the last health check of a worker, and how long ago it was.
    pub(super) fn last_check(&self, worker: WorkerId, now: Instant) -> Option<String> {
        let (text, at) = self.0.get(worker)?.last_check.as_ref()?;
        let ago = now.saturating_duration_since(*at).as_secs_f64();
        Some(format!("{text}, {ago:.1}s ago"))
    }

    pub(super) fn shown(&self, worker: WorkerIndex, now: Instant) -> WorkerTally {
        let Some(tally) = self.0.get(worker) else { return WorkerTally::default() };
        let &Tally { requests, responses, failures, retries, ejections, last_failure, .. } = tally;
        let ago =
            |(cause, at): (Cause, Instant)| (cause.as_str(), now.saturating_duration_since(at));
        let last_failure = last_failure.map(ago);
        WorkerTally { requests, responses, failures, retries, ejections, last_failure }
    }
}

impl Tally {
    /// Counts a status. `false`: there is none.
    fn count_status(&mut self, status: u16) -> bool {
        let class = usize::from(status / 100).checked_sub(1);
        let found = class.and_then(|class| self.responses.get_mut(class));
        let is_status = found.is_some();
        found.into_iter().for_each(|count| *count += 1);
        is_status
    }
}

/// Counts requests of one listener that ended alike.
pub(super) fn count_at_listener(
    listeners: &mut Table<ListenerId, ListenerEnds>,
    listener: Option<ListenerId>,
    end: End,
    count: u64,
) {
    let found = listener.and_then(|id| listeners.get_mut(id));
    if let Some(ends) = found {
        ends.count(end, count);
    }
}
