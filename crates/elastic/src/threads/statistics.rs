//! What a pool of threads has done and is doing.

use std::fmt;
use std::time::{Duration, SystemTime};

/// What a pool has done since a time, and what it is doing now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Since when it is counted.
    pub since: SystemTime,
    /// How long that is.
    pub elapsed: Duration,
    /// Jobs that were served.
    pub served: u64,
    /// Jobs that panicked; they do not count as served.
    pub panicked: u64,
    /// Jobs that were refused.
    pub refused: u64,
    /// Threads that were started.
    pub started: u64,
    /// Times that a thread could not be started or opened.
    pub open_failed: u64,
    /// The most threads that there were at once.
    pub threads_max: u32,
    /// Time of all jobs that have come to an end, from their begin.
    pub working: Duration,
    /// Time that all jobs that were begun had waited.
    pub waited: Duration,
    /// Jobs that wait now.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// Threads that have a job now.
    pub busy: u32,
    /// Threads that have none.
    pub idle: u32,
    /// Threads that are not ready yet.
    pub starting: u32,
}

impl Statistics {
    /// Mean time of a job; zero when there was none.
    #[must_use]
    pub fn average(&self) -> Duration {
        mean(self.working, self.served + self.panicked)
    }

    /// Mean time that a job waited; zero when there was none.
    #[must_use]
    pub fn average_wait(&self) -> Duration {
        mean(self.waited, self.served + self.panicked + u64::from(self.busy))
    }

    /// Jobs served a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.served as f64 / seconds } else { 0.0 }
    }

    /// Adds them as metrics in Prometheus' text format; `pool` is the label's value.
    ///
    /// ```
    /// # let pool = elastic::ThreadPool::of_tasks(elastic::ThreadPoolSettings::new("a", elastic::Sizing::on_demand(1))).unwrap();
    /// let mut page = String::new();
    /// pool.statistics().metrics("a", &mut page);
    /// assert!(page.contains("thread_pool_served_total{pool=\"a\"} 0\n"));
    /// ```
    pub fn metrics(&self, pool: &str, page: &mut String) {
        let pool: String = pool.chars().flat_map(escaped).collect();
        let mut metric = |name: &str, kind: &str, help: &str, value: String| {
            page.push_str(&format!(
                "# HELP thread_pool_{name} {help}\n# TYPE thread_pool_{name} {kind}\n\
                 thread_pool_{name}{{pool=\"{pool}\"}} {value}\n"
            ));
        };
        let counter = "counter";
        metric("served_total", counter, "Jobs served.", self.served.to_string());
        metric("panicked_total", counter, "Jobs that panicked.", self.panicked.to_string());
        metric("refused_total", counter, "Jobs refused.", self.refused.to_string());
        metric("started_total", counter, "Threads started.", self.started.to_string());
        let failed = self.open_failed.to_string();
        metric("open_failed_total", counter, "Threads that could not be opened.", failed);
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        metric("working_seconds_total", counter, "Time of all jobs.", seconds(self.working));
        metric("waited_seconds_total", counter, "Time that jobs waited.", seconds(self.waited));
        let gauge = "gauge";
        metric("waiting", gauge, "Jobs that wait.", self.waiting.to_string());
        metric("oldest_seconds", gauge, "Time the oldest has waited.", seconds(self.oldest));
        metric("busy", gauge, "Threads with a job.", self.busy.to_string());
        metric("idle", gauge, "Threads without one.", self.idle.to_string());
        metric("starting", gauge, "Threads that are not ready yet.", self.starting.to_string());
        metric("threads_max", gauge, "Most threads at once.", self.threads_max.to_string());
    }
}

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
        some().metrics("a\"}\\\n", &mut page);
        assert!(page.contains("thread_pool_served_total{pool=\"a\\\"}\\\\\\n\"} 8\n"), "{page}");
        assert_eq!(page.lines().count(), 13 * 3);
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
