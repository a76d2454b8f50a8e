//! The page of all metrics.

use exchange::{Cause, End, Phase};

use super::Metrics;
use super::declared::{LISTENER, POOL, SHARD};
use super::ends::end_place;
use super::page::Page;
use crate::closings::Closings;
use crate::rejections::Rejections;

impl Metrics {
    /// Returns all metrics in the Prometheus text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page::default();
        page.families(LISTENER, "listener", &self.listeners);
        page.families(POOL, "pool", &self.pools);
        self.render_turned(&mut page);
        self.render_closings(&mut page);
        self.render_workers(&mut page);
        self.render_ends(&mut page);
        self.render_listener_ends(&mut page);
        self.render_rejects(&mut page);
        page.head(
            "roadstead_request_duration_seconds",
            "histogram",
            "Time from receipt to end of a request.",
        );
        for (pool, metrics) in self.pools.values() {
            page.histogram("roadstead_request_duration_seconds", pool, &metrics.request_time);
        }
        page.head("roadstead_queue_wait_seconds", "histogram", "Time from admission to dispatch.");
        for (pool, metrics) in self.pools.values() {
            page.histogram("roadstead_queue_wait_seconds", pool, &metrics.queue_time);
        }
        for family in SHARD {
            page.head(family.name, family.kind, family.help);
            page.line(family.name, "", (family.of)(&self.shard).load());
        }
        page.into_text()
    }

    fn render_rejects(&self, page: &mut Page) {
        let name = "roadstead_http_messages_rejected_total";
        page.head(name, "counter", "HTTP messages that broke a rule, by reason.");
        for (side, reason, count) in self.rejects.entries() {
            page.line(name, &format!("{{side=\"{side}\",reason=\"{reason}\"}}"), count);
        }
    }

    fn render_turned(&self, page: &mut Page) {
        let name = "roadstead_connections_rejected_total";
        page.head(name, "counter", "Rejected connections and datagrams, by reason.");
        for (listener, metrics) in self.listeners.values() {
            for (reason, count) in Rejections::WORDS.iter().zip(&metrics.rejections) {
                let labels = format!("{{listener=\"{listener}\",reason=\"{reason}\"}}");
                page.line(name, &labels, count.load());
            }
        }
    }

    fn render_closings(&self, page: &mut Page) {
        let name = "roadstead_connections_closed_total";
        let help = "Client connections closed by the daemon, by reason; \
                    for datagrams, replies that their senders did not read.";
        page.head(name, "counter", help);
        for (listener, metrics) in self.listeners.values() {
            for (reason, count) in Closings::WORDS.iter().zip(&metrics.closings) {
                let labels = format!("{{listener=\"{listener}\",reason=\"{reason}\"}}");
                page.line(name, &labels, count.load());
            }
        }
    }

    fn render_workers(&self, page: &mut Page) {
        let name = "roadstead_workers";
        page.head(name, "gauge", "Workers by state.");
        for (pool, metrics) in self.pools.values() {
            let states = [
                ("starting", &metrics.starting),
                ("idle", &metrics.idle),
                ("busy", &metrics.busy),
                ("ending", &metrics.ending),
            ];
            for (state, value) in states {
                let labels = format!("{{pool=\"{pool}\",state=\"{state}\"}}");
                page.line(name, &labels, value.load());
            }
        }
    }

    /// Writes only ends with a count above 0, so that the page stays short.
    fn render_ends(&self, page: &mut Page) {
        page.head("roadstead_requests_finished_total", "counter", "Finished requests by cause.");
        for (pool, metrics) in self.pools.values() {
            for &cause in Cause::ALL {
                for &phase in Phase::ALL {
                    let count = metrics.ends[end_place(End::new(cause, phase))].load();
                    if count > 0 {
                        let labels = format!(
                            "{{pool=\"{pool}\",verdict=\"{}\",cause=\"{}\",phase=\"{}\"}}",
                            cause.verdict().as_str(),
                            cause.as_str(),
                            phase.as_str()
                        );
                        page.line("roadstead_requests_finished_total", &labels, count);
                    }
                }
            }
        }
    }

    /// Writes only causes with a count above 0.
    fn render_listener_ends(&self, page: &mut Page) {
        let name = "roadstead_listener_requests_finished_total";
        page.head(name, "counter", "Finished requests of a listener by cause.");
        for (listener, metrics) in self.listeners.values() {
            for (cause, count) in Cause::ALL.iter().zip(&metrics.ends) {
                if count.load() > 0 {
                    let labels = format!(
                        "{{listener=\"{listener}\",verdict=\"{}\",cause=\"{}\"}}",
                        cause.verdict().as_str(),
                        cause.as_str(),
                    );
                    page.line(name, &labels, count.load());
                }
            }
        }
    }
}
