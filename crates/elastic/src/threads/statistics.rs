//! Statistics of a thread pool.

use std::fmt;
use std::time::{Duration, SystemTime};

/// What a pool has done since a time, and what it is doing now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// When counting began.
    pub since: SystemTime,
    /// The time since counting began.
    pub elapsed: Duration,
    /// Jobs that were served.
    pub served: u64,
    /// Jobs that panicked; they do not count as served.
    pub panicked: u64,
    /// Jobs that were refused.
    pub refused: u64,
    /// Threads that were started.
    pub started: u64,
    /// The number of times that a thread could not be started or opened.
    pub open_failed: u64,
    /// The maximum number of threads at the same time.
    pub threads_max: u32,
    /// The total run time of all finished jobs.
    pub working: Duration,
    /// The total time that all begun jobs had waited.
    pub waited: Duration,
    /// Jobs that are waiting now.
    pub waiting: usize,
    /// How long the oldest waiting job has waited.
    pub oldest: Duration,
    /// Threads that have a job now.
    pub busy: u32,
    /// Threads that have no job now.
    pub idle: u32,
    /// Threads that are not ready yet.
    pub starting: u32,
}

impl Statistics {
    /// The mean run time of a job; zero if there was none.
    #[must_use]
    pub fn average(&self) -> Duration {
        mean(self.working, self.served + self.panicked)
    }

    /// The mean time that a job waited; zero if there was none.
    #[must_use]
    pub fn average_wait(&self) -> Duration {
        mean(self.waited, self.served + self.panicked + u64::from(self.busy))
    }

    /// Served jobs per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.served as f64 / seconds } else { 0.0 }
    }
}

/// Adds the statistics of pools, each with its name, to a page in the Prometheus text format. Pass all pools of a page
/// in one call, because the format describes each metric once, followed by all its values.
///
/// ```
/// # use elastic::{Sizing, ThreadPool, ThreadPoolSettings, write_metrics};
/// # let pool = || ThreadPool::of_tasks(ThreadPoolSettings::new("a", Sizing::on_demand(1))).unwrap();
/// # let (reads, writes) = (pool(), pool());
/// let mut page = String::new();
/// write_metrics(&[("reads", reads.statistics()), ("writes", writes.statistics())], &mut page);
/// assert!(page.contains("thread_pool_served_total{pool=\"reads\"} 0\n"));
/// assert_eq!(page.matches("# TYPE thread_pool_served_total counter\n").count(), 1);
/// ```
pub fn write_metrics(pools: &[(&str, Statistics)], page: &mut String) {
    let names: Vec<String> =
        pools.iter().map(|(name, _)| name.chars().flat_map(escaped).collect()).collect();
    for Metric { name, kind, help, value } in METRICS {
        page.push_str(&format!(
            "# HELP thread_pool_{name} {help}\n# TYPE thread_pool_{name} {kind}\n"
        ));
        for (pool, (_, statistics)) in names.iter().zip(pools) {
            let value = value(statistics);
            page.push_str(&format!("thread_pool_{name}{{pool=\"{pool}\"}} {value}\n"));
        }
    }
}

struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Statistics) -> String,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&Statistics) -> String,
) -> Metric {
    Metric { name, kind: "counter", help, value }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Statistics) -> String) -> Metric {
    Metric { name, kind: "gauge", help, value }
}

const METRICS: &[Metric] = &[
    counter("served_total", "Jobs served.", |it| it.served.to_string()),
    counter("panicked_total", "Jobs that panicked.", |it| it.panicked.to_string()),
    counter("refused_total", "Jobs refused.", |it| it.refused.to_string()),
    counter("started_total", "Threads started.", |it| it.started.to_string()),
    counter("open_failed_total", "Threads that could not be opened.", |it| {
        it.open_failed.to_string()
    }),
    counter("working_seconds_total", "Time of all jobs.", |it| {
        it.working.as_secs_f64().to_string()
    }),
    counter("waited_seconds_total", "Time that jobs waited.", |it| {
        it.waited.as_secs_f64().to_string()
    }),
    gauge("waiting", "Jobs that wait.", |it| it.waiting.to_string()),
    gauge("oldest_seconds", "Time the oldest has waited.", |it| {
        it.oldest.as_secs_f64().to_string()
    }),
    gauge("busy", "Threads with a job.", |it| it.busy.to_string()),
    gauge("idle", "Threads without one.", |it| it.idle.to_string()),
    gauge("starting", "Threads that are not ready yet.", |it| it.starting.to_string()),
    gauge("threads_max", "Most threads at once.", |it| it.threads_max.to_string()),
];

fn mean(time: Duration, count: u64) -> Duration {
    time.checked_div(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or_default()
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = match character {
        '\\' => ['\\', '\\'],
        '"' => ['\\', '"'],
        '\n' => ['\\', 'n'],
        plain => [plain, '\0'],
    };
    escape.into_iter().filter(|it| *it != '\0')
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { served, panicked, refused, waiting, busy, idle, starting, .. } = self;
        write!(
            f,
            "{served} served in {:.1} s ({:.1}/s), {:?} each; {waiting} waiting, {busy} busy, {idle} idle, \
             {starting} starting; {panicked} panicked, {refused} refused",
            self.elapsed.as_secs_f64(),
            self.rate(),
            self.average(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Statistics {
        Statistics {
            since: SystemTime::UNIX_EPOCH,
            elapsed: Duration::from_secs(4),
            served: 8,
            panicked: 2,
            refused: 1,
            started: 3,
            open_failed: 0,
            threads_max: 3,
            working: Duration::from_millis(100),
            waited: Duration::from_millis(22),
            waiting: 5,
            oldest: Duration::from_millis(7),
            busy: 1,
            idle: 2,
            starting: 0,
        }
    }

    #[test]
    fn averages_and_rates_are_of_what_was_served() {
        assert_eq!(some().average(), Duration::from_millis(10));
        assert_eq!(some().average_wait(), Duration::from_millis(2));
        assert_eq!(some().rate(), 2.0);
        let none =
            Statistics { served: 0, panicked: 0, busy: 0, elapsed: Duration::ZERO, ..some() };
        assert_eq!((none.average(), none.average_wait()), (Duration::ZERO, Duration::ZERO));
        assert_eq!(none.rate(), 0.0);
    }

    #[test]
    fn metrics_are_text_with_a_label_that_cannot_break_out() {
        let mut page = String::new();
        write_metrics(&[("a\"}\\\n", some())], &mut page);
        assert!(page.contains("thread_pool_served_total{pool=\"a\\\"}\\\\\\n\"} 8\n"), "{page}");
        assert_eq!(page.lines().count(), 13 * 3);
    }

    #[test]
    fn several_pools_on_a_page_are_described_once() {
        let mut page = String::new();
        write_metrics(&[("a", some()), ("b", Statistics { served: 9, ..some() })], &mut page);
        assert_eq!(page.lines().count(), 13 * 4);
        let mut described: Vec<_> =
            page.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = described.len();
        described.sort_unstable();
        described.dedup();
        assert_eq!((all, described.len()), (13, 13));
        let served =
            "thread_pool_served_total{pool=\"a\"} 8\nthread_pool_served_total{pool=\"b\"} 9\n";
        assert!(page.contains(served), "the values of a metric stand together: {page}");
    }

    #[test]
    fn a_line_for_people_has_the_numbers_of_the_original() {
        let line = some().to_string();
        assert!(
            line.starts_with("8 served in 4.0 s (2.0/s), 10ms each; 5 waiting, 1 busy"),
            "{line}"
        );
    }
}
