//! A page in the Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write};

use exchange::{Table, TableId};

use super::declared::Family;
use super::histogram::{BOUNDS_US, PublishedHistogram};

/// A page in the text format. Writing to a `String` cannot fail.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    pub(super) fn into_text(self) -> String {
        self.0
    }

    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    pub(super) fn families<I: TableId, T>(
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

    pub(super) fn histogram(&mut self, name: &str, pool: &str, histogram: &PublishedHistogram) {
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
