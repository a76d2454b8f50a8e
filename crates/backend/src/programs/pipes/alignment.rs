//! Whether a program that answers in order is in step with its requests.
//!
//! A frame without an id is taken for the reply to the oldest request. A program that prints one
//! frame more than it was asked shifts every later reply by one, and a reply of one client goes to
//! another. What gives it away is output while nothing is in flight, so before it is given to
//! another client, it is watched for a moment: the *check*.
//!
//! ```text
//!            sent             replied, no check due
//!   idle ───────────► busy ───────────────────────────► idle, for any client
//!    ▲                │  ▲
//!    │   replied, due │  │ sent, by the client that it is kept for
//!    │                ▼  │
//!    │              checking: kept for the client of the last reply
//!    │                │  │
//!    └── silent ──────┘  └── output ──► found out: killed; replies since the last passed check
//!        long enough             are suspect
//! ```
//!
//! A check is due after each reply while a program is on *probation*: until it has passed a check at
//! or after its 16th reply. Afterwards one is due per [`SAMPLE`] of busy time, and at most every
//! [`SHARE`] times as long as a check takes, which bounds its cost. In strict mode one is due after
//! each reply.
//!
//! Reasons for the figures: the first check of a pool takes 100 ms, because no latency is known yet. Probation ends
//! with a passed check and not with the 16th reply, because one client alone may have had all 16. The latency of the
//! first reply counts for its own check only, because it includes the start of the program. A check of 10 ms per
//! 100 ms of busy time would take 9 % of a saturated program's time, so one is due after 33 times its own length.
//!
//! What it depends on: times, ids, clients. What it must never depend on: a stream, a pool.

use std::time::{Duration, Instant};

use exchange::mutant::{Mutant, active};
use settings::Alignment as Mode;

use super::latency::Latency;
use flow::request_meta::RequestSource;

/// Replies until the end of probation.
const PROBATION: u32 = 16;
/// Busy time after which a program is checked again.
const SAMPLE: Duration = Duration::from_millis(100);
/// Busy time between two checks, in silences of one: a check costs 1/34 of a busy program's time.
const SHARE: u32 = 33;
/// Suspect replies whose requests are remembered, the latest.
const SUSPECTS_MAX: usize = 1024;

/// For whom a program is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::programs) enum ReservedFor {
    /// For this client.
    Client(u64),
    /// For nobody: several clients have requests in flight.
    Nobody,
}

impl ReservedFor {
    /// The client, if there is one.
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
    /// How many.
    pub(in crate::programs) count: u64,
    /// Their requests, the latest [`SUSPECTS_MAX`].
    pub(in crate::programs) requests: Vec<u64>,
}

/// Ids of suspect requests in one line of the log.
const SHOWN_MAX: usize = 32;

impl Suspects {
    /// Writes it into the log; `is_new`: no other program of its pool was found out before.
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
    /// A check is due after each reply, whatever the mode says: another of its pool was found out.
    is_strict: bool,
    /// Replies, up to the end of probation.
    replies: u32,
    on_probation: bool,
    latency: Latency,
    /// Busy time since the last passed check, up to `busy_since`.
    busy: Duration,
    /// Since when something is in flight.
    busy_since: Option<Instant>,
    /// When its last reply came.
    replied_at: Option<Instant>,
    kept: Option<ReservedFor>,
    /// The check was passed, and what is remembered of before is forgotten with the next request.
    is_passed: bool,
    count: u64,
    requests: Vec<u64>,
    /// Where the next suspect goes, once so many are remembered.
    oldest: usize,
}

impl Alignment {
    /// `is_first`: no program of its pool has passed a check.
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

    /// Another mode from now on; `is_strict`: another of its pool was found out. A check that is
    /// under way goes on.
    pub(super) const fn handle_mode(&mut self, mode: Mode, is_strict: bool) {
        self.mode = mode;
        self.is_strict = is_strict;
    }

    /// It is given a request; `first`: nothing else is in flight.
    pub(super) fn handle_sent(&mut self, now: Instant, first: bool) {
        if !first {
            return;
        }
        let silence = self.latency.silence();
        // It was idle for so long by itself.
        if self.kept.is_none() && self.replied_at.is_some_and(|at| at + silence <= now) {
            self.pass();
        }
        if std::mem::take(&mut self.is_passed) {
            (self.count, self.oldest) = (0, 0);
            self.requests.clear();
        }
        self.busy_since = Some(now);
    }

    /// It has answered a request that it had for so long. `others` tells for whom it would be kept
    /// by what else is in flight; none: nothing is. Gives for whom it is kept from now on, where
    /// that has changed.
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
                // All at once, so that no later request allocates.
                self.requests.reserve_exact(SUSPECTS_MAX);
            }
            return self.requests.push(request);
        }
        self.requests[self.oldest] = request;
        self.oldest = (self.oldest + 1) % SUSPECTS_MAX;
    }

    /// When its check is passed, if nothing is in flight.
    pub(super) fn until(&self) -> Option<Instant> {
        self.kept?;
        self.replied_at.map(|at| at + self.latency.silence())
    }

    /// Time has passed while nothing is in flight. True when its check is passed: it is for any
    /// client again.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        let passed = self.until().is_some_and(|until| until <= now);
        if passed {
            self.kept = None;
            self.pass();
        }
        passed
    }

    /// It was silent for long enough.
    fn pass(&mut self) {
        self.busy = Duration::ZERO;
        self.latency.handle_passed();
        self.on_probation &= self.replies < PROBATION;
        self.is_passed = true;
    }

    /// Whether it is watched at all.
    pub(super) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// It printed something while nothing was in flight: the replies since its last passed check.
    pub(super) fn found_out(&mut self) -> Suspects {
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

    /// One program, one request at a time.
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

        /// A request of this client is answered after so long; for whom it is kept now.
        fn answer(&mut self, client: u64, took: Duration) -> Option<ReservedFor> {
            self.alignment.handle_sent(self.now, true);
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
        assert_eq!(scene.alignment.found_out().count, 1, "only the last is not checked");
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
        assert_eq!(off.alignment.found_out(), Suspects::default());
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
        let suspects = scene.alignment.found_out();
        assert_eq!((suspects.count, suspects.requests), (3, vec![2, 3, 4]));
    }

    #[test]
    fn what_comes_right_after_a_passed_check_makes_what_that_had_passed_suspect() {
        let mut scene = Scene::new(Mode::Strict, false);
        scene.answer(1, ms(1));
        assert!(scene.silent(ms(10)));
        assert_eq!(scene.alignment.found_out().requests, [1]);
    }

    #[test]
    fn only_the_latest_suspects_are_remembered_and_all_are_counted() {
        let mut scene = Scene::new(Mode::Strict, false);
        let many = SUSPECTS_MAX as u64 + 10;
        (0..many).for_each(|_| _ = scene.answer(1, ms(0)));
        let mut suspects = scene.alignment.found_out();
        assert_eq!(suspects.count, many);
        suspects.requests.sort_unstable();
        assert!(suspects.requests.iter().copied().eq(11..=many));
    }

    #[test]
    fn with_others_in_flight_it_is_kept_for_whom_they_are() {
        let mut alignment = Alignment::new(Mode::Strict, false, false);
        let now = Instant::now();
        let asker = |client| RequestSource { client, request: client };
        alignment.handle_sent(now, true);
        alignment.handle_sent(now, false);
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
