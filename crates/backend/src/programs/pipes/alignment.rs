//! Whether the replies of a program that answers in order are aligned with its requests.
//!
//! A frame without an id is taken for the reply to the oldest request. If a program writes one frame too many, every
//! later reply is shifted by one, and the reply to one client goes to another. Such a program can be detected by output
//! while nothing is in flight. Therefore, before the program is given to another client, its output is watched for a
//! short time: the *check*.
//!
//! ```text
//!            sent             replied, no check due
//!   idle ───────────► busy ───────────────────────────► idle, for any client
//!    ▲                │  ▲
//!    │   replied, due │  │ sent, by the client that it is reserved for
//!    │                ▼  │
//!    │              checking: reserved for the client of the last reply
//!    │                │  │
//!    └── silent ──────┘  └── output ──► detected: killed; replies since the last passed check
//!        long enough             are suspect
//! ```
//!
//! A check is due after each reply while a program is on *probation*: until it has passed a check at or after its 16th
//! reply. Afterwards a check is due per [`SAMPLE`] of busy time, but not before the busy time is [`SHARE`] times the
//! length of a check. This limits the cost. In strict mode a check is due after each reply.
//!
//! Reasons for the figures: the first check of a pool takes 100 ms, because no latency is known yet. Probation ends
//! with a passed check and not with the 16th reply, because one client alone may have had all 16. The latency of the
//! first reply counts only for its own check, because it includes the start of the program. A check of 10 ms per 100 ms
//! of busy time would take 9 % of a saturated program's time, so a check is due after 33 times its own length.
//!
//! What it depends on: times, ids, clients. What it must never depend on: a stream, a pool.

use std::time::{Duration, Instant};

use exchange::mutant::{Mutant, active};
use settings::Alignment as Mode;

use super::latency::Latency;
use flow::request_meta::RequestSource;

/// The number of replies until the end of probation.
const PROBATION: u32 = 16;
/// The busy time after which a program is checked again.
const SAMPLE: Duration = Duration::from_millis(100);
/// The minimum busy time between two checks, as a multiple of the silence of a check: checks take at most 1/34 of a
/// busy program's time.
const SHARE: u32 = 33;
/// The maximum number of suspect replies whose requests are remembered; the latest are kept.
const SUSPECTS_MAX: usize = 1024;

/// The client that a program is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::programs) enum ReservedFor {
    /// This client.
    Client(u64),
    /// No client: several clients have requests in flight.
    Nobody,
}

impl ReservedFor {
    /// Returns the client, if there is one.
    pub(super) const fn client(self) -> Option<u64> {
        match self {
            Self::Client(client) => Some(client),
            Self::Nobody => None,
        }
    }
}

/// Replies that may belong to other requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::programs) struct Suspects {
    /// The number of suspect replies.
    pub(in crate::programs) count: u64,
    /// The ids of their requests; only the latest [`SUSPECTS_MAX`].
    pub(in crate::programs) requests: Vec<u64>,
}

/// The maximum number of ids of suspect requests in one log line.
const SHOWN_MAX: usize = 32;

impl Suspects {
    /// Writes the suspects to the log. `is_new`: no other program of the pool was detected before.
    pub(in crate::programs) fn report(&self, worker: &str, is_new: bool) {
        let from = self.requests.len().saturating_sub(SHOWN_MAX);
        let ids: Vec<_> = self.requests[from..].iter().map(u64::to_string).collect();
        let ids = ids.join(" ");
        if self.count > 0 {
            tracing::warn!(
                worker,
                suspect = self.count,
                requests = ids,
                "printed more than it was asked: its replies since its last passed check may have \
                 gone to other clients than those that asked"
            );
        }
        if is_new {
            tracing::warn!(
                worker,
                "programs of this pool are checked after every reply until the next reload; to find \
                 what they print, run `roadstead doctor -- PROGRAM`; to be safe from it, set `match`, \
                 or use a framing with ids (`jsonrpc`, `content-length`)"
            );
        }
    }
}

#[derive(Debug)]
pub(in crate::programs) struct Alignment {
    mode: Mode,
    /// Whether a check is due after each reply, whatever the mode is, because another program of the pool was detected.
    is_strict: bool,
    /// The number of replies, counted up to the end of probation.
    replies: u32,
    on_probation: bool,
    latency: Latency,
    /// The busy time since the last passed check, up to `busy_since`.
    busy: Duration,
    /// The time since which a request is in flight.
    busy_since: Option<Instant>,
    /// The time of its last reply.
    replied_at: Option<Instant>,
    kept: Option<ReservedFor>,
    /// Whether the check was passed. The suspects before it are discarded when the next request is sent.
    is_passed: bool,
    count: u64,
    requests: Vec<u64>,
    /// The index of the next suspect, once [`SUSPECTS_MAX`] are remembered.
    oldest: usize,
}

impl Alignment {
    /// Creates the state of a new program. `is_first`: no program of its pool has passed a check.
    pub(super) fn new(mode: Mode, is_strict: bool, is_first: bool) -> Self {
        Self {
            mode,
            is_strict,
            replies: 0,
            on_probation: true,
            latency: Latency::new(is_first),
            busy: Duration::ZERO,
            busy_since: None,
            replied_at: None,
            kept: None,
            is_passed: false,
            count: 0,
            requests: Vec::new(),
            oldest: 0,
        }
    }

    /// Sets the mode. `is_strict`: another program of the pool was detected. A running check continues.
    pub(super) const fn handle_mode(&mut self, mode: Mode, is_strict: bool) {
        self.mode = mode;
        self.is_strict = is_strict;
    }

    /// Records that a request is sent. `settled`: the time until which all output was read. `first`: nothing else is in
    /// flight.
    pub(super) fn handle_sent(&mut self, (now, settled): (Instant, Instant), first: bool) {
        if !first {
            return;
        }
        let silence = self.latency.silence();
        // The program happened to be idle for long enough.
        if self.kept.is_none() && self.replied_at.is_some_and(|at| at + silence <= settled) {
            self.pass();
        }
        if std::mem::take(&mut self.is_passed) {
            (self.count, self.oldest) = (0, 0);
            self.requests.clear();
        }
        self.busy_since = Some(now);
    }

    /// Records a reply that took `took`. `others` returns the client for which the program would be reserved, given the
    /// other requests in flight; `None`: nothing else is in flight. Returns the new reservation, if it has changed.
    pub(super) fn handle_reply(
        &mut self,
        now: Instant,
        asker: RequestSource,
        took: Duration,
        others: Option<impl FnOnce(u64) -> ReservedFor>,
    ) -> Option<ReservedFor> {
        self.latency.handle_reply(took);
        self.replies = (self.replies + 1).min(PROBATION);
        self.replied_at = Some(now);
        self.suspect(asker.request);
        if let Some(since) = self.busy_since {
            self.busy += now.saturating_duration_since(since);
            self.busy_since = others.is_some().then_some(now);
        }
        if self.kept.is_none() && !self.is_due() {
            return None;
        }
        let keep = match others {
            Some(others) => others(asker.client),
            None => ReservedFor::Client(asker.client),
        };
        let before = self.kept.replace(keep);
        (before != Some(keep)).then_some(keep)
    }

    fn is_due(&self) -> bool {
        match self.mode {
            _ if active(Mutant::Unchecked) => false,
            Mode::Off => false,
            Mode::Strict => true,
            Mode::Auto => {
                let sample = SAMPLE.max(self.latency.silence() * SHARE);
                self.is_strict || self.on_probation || self.busy >= sample
            }
        }
    }

    fn suspect(&mut self, request: u64) {
        if self.mode == Mode::Off {
            return;
        }
        self.count += 1;
        if self.requests.len() < SUSPECTS_MAX {
            if self.requests.capacity() == 0 {
                // Allocates all of it here, so that no later request allocates.
                self.requests.reserve_exact(SUSPECTS_MAX);
            }
            return self.requests.push(request);
        }
        self.requests[self.oldest] = request;
        self.oldest = (self.oldest + 1) % SUSPECTS_MAX;
    }

    /// Returns when its check is passed, if nothing is in flight.
    pub(super) fn until(&self) -> Option<Instant> {
        self.kept?;
        self.replied_at.map(|at| at + self.latency.silence())
    }

    /// Handles that time has passed while nothing is in flight. Returns true if the check is passed: any client may use
    /// the program again.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        let passed = self.until().is_some_and(|until| until <= now);
        if passed {
            self.kept = None;
            self.pass();
        }
        passed
    }

    /// Records that it was silent for long enough.
    fn pass(&mut self) {
        self.busy = Duration::ZERO;
        self.latency.handle_passed();
        self.on_probation &= self.replies < PROBATION;
        self.is_passed = true;
    }

    /// Whether its alignment is checked at all.
    pub(super) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// Handles output while nothing was in flight. Returns the replies since its last passed check.
    pub(super) fn take_suspects(&mut self) -> Suspects {
        self.oldest = 0;
        Suspects {
            count: std::mem::take(&mut self.count),
            requests: std::mem::take(&mut self.requests),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Option<fn(u64) -> ReservedFor> = None;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// One program with one request at a time.
    struct Scene {
        alignment: Alignment,
        now: Instant,
        request: u64,
    }

    impl Scene {
        fn new(mode: Mode, is_first: bool) -> Self {
            let alignment = Alignment::new(mode, false, is_first);
            Self { alignment, now: Instant::now(), request: 0 }
        }

        /// Answers a request of this client after `took`. Returns the new reservation, if it has changed.
        fn answer(&mut self, client: u64, took: Duration) -> Option<ReservedFor> {
            self.alignment.handle_sent((self.now, self.now), true);
            self.now += took;
            self.request += 1;
            let asker = RequestSource { client, request: self.request };
            self.alignment.handle_reply(self.now, asker, took, NOTHING);
            self.alignment.kept
        }

        fn silent(&mut self, so_long: Duration) -> bool {
            self.now += so_long;
            self.alignment.handle_time(self.now)
        }

        fn end_probation(&mut self) {
            for _ in 0..PROBATION {
                assert_eq!(self.answer(1, ms(1)), Some(ReservedFor::Client(1)));
                assert!(self.silent(ms(10)));
            }
        }
    }

    #[test]
    fn on_probation_it_is_kept_after_each_reply_until_it_was_silent() {
        let mut scene = Scene::new(Mode::Auto, false);
        for reply in 0..PROBATION {
            assert_eq!(scene.answer(7, ms(1)), Some(ReservedFor::Client(7)), "reply {reply}");
            assert!(!scene.silent(ms(9)));
            assert!(scene.silent(ms(1)));
            assert_eq!(scene.alignment.kept, None);
        }
        assert_eq!(scene.answer(7, ms(1)), None, "its probation is over");
    }

    #[test]
    fn the_same_client_does_not_end_probation_without_a_passed_check() {
        let mut scene = Scene::new(Mode::Auto, false);
        for _ in 0..1000 {
            assert_eq!(scene.answer(7, ms(1)), Some(ReservedFor::Client(7)));
        }
        assert!(scene.silent(ms(10)));
        assert_eq!(scene.answer(8, ms(1)), None);
    }

    #[test]
    fn the_silence_is_twice_the_longest_latency_within_limits() {
        for (took, silence) in [(ms(1), 10), (ms(5), 10), (ms(20), 40), (ms(700), 100)] {
            let mut scene = Scene::new(Mode::Auto, false);
            scene.answer(1, ms(0));
            scene.answer(1, took);
            assert!(scene.silent(ms(silence)));
            scene.answer(1, ms(0));
            assert!(!scene.silent(ms(silence - 1)), "{took:?}: the longest counts, not the last");
            assert!(scene.silent(ms(1)));
        }
    }

    #[test]
    fn the_start_of_a_program_counts_for_the_check_of_its_first_reply_alone() {
        let mut scene = Scene::new(Mode::Auto, false);
        scene.answer(1, ms(40));
        assert!(!scene.silent(ms(79)));
        assert!(scene.silent(ms(1)));
        scene.answer(1, ms(1));
        assert!(scene.silent(ms(10)));
    }

    #[test]
    fn while_no_latency_is_known_the_silence_is_the_longest() {
        let mut scene = Scene::new(Mode::Auto, true);
        scene.answer(1, ms(0));
        assert!(!scene.silent(ms(99)));
        assert!(scene.silent(ms(1)));
        scene.answer(1, ms(0));
        assert!(scene.silent(ms(10)));
    }

    #[test]
    fn afterwards_it_is_checked_once_per_share_of_its_busy_time() {
        let mut scene = Scene::new(Mode::Auto, false);
        scene.end_probation();
        for _ in 0..3 {
            let mut busy = ms(0);
            while scene.answer(1, ms(1)).is_none() {
                busy += ms(1);
            }
            assert_eq!(busy + ms(1), ms(330));
            assert!(scene.silent(ms(10)));
        }
    }

    #[test]
    fn natural_silence_counts_as_a_passed_check() {
        let mut scene = Scene::new(Mode::Auto, false);
        scene.end_probation();
        for _ in 0..1000 {
            assert_eq!(scene.answer(1, ms(5)), None);
            scene.now += ms(10);
        }
        assert_eq!(scene.alignment.take_suspects().count, 1, "only the last is not checked");
    }

    #[test]
    fn strict_checks_after_every_reply_and_off_never() {
        let mut strict = Scene::new(Mode::Strict, false);
        let mut off = Scene::new(Mode::Off, false);
        for _ in 0..100 {
            assert_eq!(strict.answer(1, ms(1)), Some(ReservedFor::Client(1)));
            assert!(strict.silent(ms(10)));
            assert_eq!(off.answer(1, ms(1)), None);
        }
        assert_eq!(off.alignment.take_suspects(), Suspects::default());
        let mut auto = Scene::new(Mode::Auto, false);
        auto.end_probation();
        auto.alignment.handle_mode(Mode::Auto, true);
        for _ in 0..10 {
            assert_eq!(
                auto.answer(1, ms(1)),
                Some(ReservedFor::Client(1)),
                "another was found out"
            );
            assert!(auto.silent(ms(10)));
        }
    }

    #[test]
    fn suspects_are_the_replies_since_the_last_passed_check() {
        let mut scene = Scene::new(Mode::Strict, false);
        scene.answer(1, ms(1));
        assert!(scene.silent(ms(10)));
        for _ in 0..3 {
            scene.answer(1, ms(1));
        }
        let suspects = scene.alignment.take_suspects();
        assert_eq!((suspects.count, suspects.requests), (3, vec![2, 3, 4]));
    }

    #[test]
    fn what_comes_right_after_a_passed_check_makes_what_that_had_passed_suspect() {
        let mut scene = Scene::new(Mode::Strict, false);
        scene.answer(1, ms(1));
        assert!(scene.silent(ms(10)));
        assert_eq!(scene.alignment.take_suspects().requests, [1]);
    }

    #[test]
    fn only_the_latest_suspects_are_remembered_and_all_are_counted() {
        let mut scene = Scene::new(Mode::Strict, false);
        let many = SUSPECTS_MAX as u64 + 10;
        (0..many).for_each(|_| _ = scene.answer(1, ms(0)));
        let mut suspects = scene.alignment.take_suspects();
        assert_eq!(suspects.count, many);
        suspects.requests.sort_unstable();
        assert!(suspects.requests.iter().copied().eq(11..=many));
    }

    #[test]
    fn with_others_in_flight_it_is_kept_for_whom_they_are() {
        let mut alignment = Alignment::new(Mode::Strict, false, false);
        let now = Instant::now();
        let asker = |client| RequestSource { client, request: client };
        alignment.handle_sent((now, now), true);
        alignment.handle_sent((now, now), false);
        let same = Some(|_| ReservedFor::Client(1));
        assert_eq!(
            alignment.handle_reply(now, asker(1), ms(1), same),
            Some(ReservedFor::Client(1))
        );
        let nobody = Some(|_| ReservedFor::Nobody);
        assert_eq!(alignment.handle_reply(now, asker(1), ms(1), nobody), Some(ReservedFor::Nobody));
        assert_eq!(
            alignment.handle_reply(now, asker(2), ms(1), NOTHING),
            Some(ReservedFor::Client(2))
        );
    }
}
