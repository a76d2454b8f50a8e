//! The metrics in the Prometheus text format, version 0.0.4.

use std::fmt::Write;

use exchange::{Cause, End, Phase, Table, TableId};

use super::Metrics;
use super::declared::{Family, LISTENER, POOL, SHARD};
use super::ends::end_place;
use super::histogram::{BOUNDS_US, PublishedHistogram};
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
        page.0
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

/// A page in the text format. Writing to a `String` cannot fail.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn families<I: TableId, T>(
        &mut self,
        families: &[Family<T>],
        label: &str,
        of: &Table<I, (String, T)>,
    ) {
        for family in families {
            self.head(family.name, family.kind, family.help);
            for (name, metrics) in of.values() {
                let labels = format!("{{{label}=\"{name}\"}}");
                self.line(family.name, &labels, (family.of)(metrics).load());
            }
        }
    }

    fn histogram(&mut self, name: &str, pool: &str, histogram: &PublishedHistogram) {
        let mut below = 0;
        for (place, bucket) in histogram.buckets.iter().enumerate() {
            below += bucket.load();
            let bound = BOUNDS_US.get(place).map_or_else(|| "+Inf".to_owned(), |&us| seconds(us));
            let _ = writeln!(self.0, "{name}_bucket{{pool=\"{pool}\",le=\"{bound}\"}} {below}");
        }
        let sum = seconds(histogram.sum_us.load());
        let _ = writeln!(self.0, "{name}_sum{{pool=\"{pool}\"}} {sum}");
        let _ = writeln!(self.0, "{name}_count{{pool=\"{pool}\"}} {below}");
    }
}

/// Returns microseconds as exact seconds.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Histogram;
    use std::time::Duration;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(250), "0.00025");
        assert_eq!(seconds(30_000_000), "30");
        assert_eq!(seconds(0), "0");
    }

    #[test]
    fn buckets_count_everything_below_their_bound() {
        let mut histogram = Histogram::default();
        for us in [100, 250, 251, 40_000_000] {
            histogram.record(Duration::from_micros(us));
        }
        let published = PublishedHistogram::default();
        published.set(&mut histogram);
        let mut page = Page::default();
        page.histogram("h", "p", &published);
        assert!(page.0.contains("le=\"0.00025\"} 2\n"));
        assert!(page.0.contains("le=\"30\"} 3\n"));
        assert!(page.0.contains("le=\"+Inf\"} 4\n"));
        assert!(page.0.contains("h_count{pool=\"p\"} 4\n"));
    }
}
