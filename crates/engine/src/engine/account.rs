//! Records a finished request: metrics, a log line if it failed, and a line in the access log.

use exchange::{Outcome, PoolId, RequestId, Stamps};

use super::tallies::count_at_listener;
use super::{Accounting, Engine};
use crate::exchanges::{Exchange, State};
use flow::client::Source;
use observe::access_log::{AccessEntry, Line};

impl Accounting<'_> {
    pub(super) fn account(self, id: RequestId, exchange: &mut Exchange, outcome: &Outcome) {
        let served = &mut self.pools[exchange.pool];
        served.dirty = true;
        served.counts.count(outcome.end());
        count_at_listener(self.listener_ends, exchange.source.listener, outcome.end(), 1);
        served.counts.request_time.record(self.now.duration_since(exchange.stamps.received));
        if let Outcome::Ended(end, _) = outcome {
            let (text, _) = outcome.text();
            served.error_log.end(&served.name, id, exchange.source.peer, *end, text, self.now);
        }
        if let Some(log_entry) = exchange.log_entry.take() {
            self.log(id, exchange, log_entry, outcome);
        }
    }

    /// Writes the access log line of a request.
    fn log(
        self,
        id: RequestId,
        exchange: &Exchange,
        mut log_entry: Box<AccessEntry>,
        outcome: &Outcome,
    ) {
        log_entry.end(outcome);
        let served = &self.pools[exchange.pool];
        if let State::Working(id) = exchange.state {
            served.write_name(id, &mut log_entry.worker);
        }
        let mut stamps = exchange.stamps;
        stamps.done.get_or_insert(self.now);
        self.access_log.write(&Line {
            id: Some(id),
            at_us: exchange.at_us,
            peer: exchange.source.peer,
            pool: &served.name,
            worker: &log_entry.worker,
            stamps,
            end: outcome.end(),
            log_entry: &log_entry,
        });
        self.access_log.recycle(log_entry);
    }
}

impl Engine {
    pub(super) fn account(&mut self, id: RequestId, exchange: &mut Exchange, outcome: &Outcome) {
        let Self { pools, listener_ends, access_log, now, .. } = self;
        Accounting { pools, listener_ends, access_log, now: *now }.account(id, exchange, outcome);
    }

    /// Counts a request that was rejected or answered before it became an exchange. It gets an id, under which it is
    /// found in the log and by `why`.
    pub fn refused_at_receipt(
        &mut self,
        pool: PoolId,
        Source { peer, listener }: Source,
        outcome: &Outcome,
        entry: Option<Box<AccessEntry>>,
    ) {
        let id = self.exchanges.id_of_rejected();
        count_at_listener(&mut self.listener_ends, listener, outcome.end(), 1);
        if let Some(served) = self.pools.get_mut(pool) {
            served.dirty = true;
            served.counts.requests += 1;
            served.counts.count(outcome.end());
            if let Outcome::Ended(end, _) = outcome {
                let (text, _) = outcome.text();
                served.error_log.end(&served.name, id, peer, *end, text, self.now);
                served.pool.note_rejected(self.now, id.as_u64(), end.cause);
            }
        }
        if let Some(mut log_entry) = entry {
            log_entry.end(outcome);
            let at_us = self.at_us();
            self.access_log.write(&Line {
                id: Some(id),
                at_us,
                peer,
                pool: self.pools.get(pool).map_or("", |served| &served.name),
                worker: "",
                stamps: Stamps::received(self.now),
                end: outcome.end(),
                log_entry: &log_entry,
            });
            self.access_log.recycle(log_entry);
        }
    }

    /// Logs the numbers of omitted log lines at the stop of the daemon.
    pub fn end_error_logs(&mut self) {
        self.pools.values_mut().for_each(|served| served.error_log.end_all(&served.name));
    }
}
