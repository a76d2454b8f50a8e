//! Decides whether a failed request may be retried. It has no side effects and no state besides the budget.

use settings::{Idempotent, Retries, RetryFault, RetryOn};

use super::config::UpstreamConfig;
use super::fault::Fault;
use flow::request_meta::{Effect, RequestMeta, ResponseKind};

/// How far a request had come when its connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// Nothing was sent: the connection was not established, or the kernel accepted no byte.
    Unsent,
    /// The kernel accepted bytes of the request, and no part of a reply was forwarded.
    Server,
    /// A head of the reply was forwarded.
    Reply,
}

/// The decision about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// It is retried.
    Retry,
    /// It ends.
    End,
}

/// The retry settings of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetryRules {
    pub(super) idempotent: Idempotent,
    /// The maximum number of attempts.
    pub(super) tries: u8,
    /// The failures after which a request is retried.
    pub(super) on: RetryOn,
}

impl RetryRules {
    pub(super) const fn of(config: &UpstreamConfig) -> Self {
        Self { idempotent: config.idempotent, tries: config.retries.tries, on: config.retries.on }
    }

    /// Whether a request with these properties may be retried after a response with this status.
    pub(super) fn allows_after(self, status: u16, meta: RequestMeta) -> bool {
        self.on.is_on_status(status) && self.allows(meta)
    }

    /// Whether a request with these properties may be retried. An upgrade may never be retried, because both sides may
    /// have sent bytes.
    const fn allows(self, meta: RequestMeta) -> bool {
        let declared = match self.idempotent {
            Idempotent::Off => false,
            Idempotent::Safe => matches!(meta.effect, Effect::None),
            Idempotent::Methods => matches!(meta.effect, Effect::None | Effect::Once),
            Idempotent::All => true,
        };
        let left = meta.tries.saturating_add(1) < self.tries;
        declared && left && !matches!(meta.expects, ResponseKind::Switch(_))
    }
}

/// Whether the pool retries after this fault. If a connection had ended before anything was sent, this is not a failure
/// of its server.
pub(super) const fn is_retried(fault: &Fault, reached: Reached, on: RetryOn) -> bool {
    match fault {
        Fault::Connect(_) | Fault::ConnectLate | Fault::Taken => on.is_on(RetryFault::Connect),
        Fault::Ended => matches!(reached, Reached::Unsent) || on.is_on(RetryFault::Reset),
        Fault::Late => on.is_on(RetryFault::Timeout),
        Fault::Broken(_) => on.is_on(RetryFault::Invalid),
        Fault::NoDescriptor | Fault::Moved | Fault::Overtime(_) => true,
    }
}

/// Returns the decision. `passed`: parts of the body were forwarded and are not available any more.
pub(super) fn decide(
    reached: Reached,
    passed: bool,
    meta: RequestMeta,
    declared: RetryRules,
    budget: bool,
) -> RetryDecision {
    let safe = match reached {
        // The queue timeout limits these attempts.
        Reached::Unsent => true,
        Reached::Server => declared.allows(meta) && budget,
        Reached::Reply => false,
    };
    if safe && !passed { RetryDecision::Retry } else { RetryDecision::End }
}

/// The retry budget: a share of the requests, and a reserve.
///
/// ```text
///   0 ≤ hundredths ≤ 100 × reserve;  a request adds the share, a retry takes 100
/// ```
#[derive(Debug)]
pub(super) struct Budget {
    hundredths: u32,
}

impl Budget {
    pub(super) const fn new(retries: Retries) -> Self {
        Self { hundredths: retries.min_retries.saturating_mul(100) }
    }

    pub(super) fn earn(&mut self, retries: Retries) {
        let most = retries.min_retries.saturating_mul(100);
        self.hundredths = self.hundredths.saturating_add(retries.budget).min(most);
    }

    /// Whether the budget allows a retry.
    pub(super) const fn is_left(&self) -> bool {
        self.hundredths >= 100
    }

    /// Uses one retry. Returns `false` if none is left.
    pub(super) fn spend(&mut self) -> bool {
        let left = self.hundredths.checked_sub(100);
        self.hundredths = left.unwrap_or(self.hundredths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(
        reached: Reached,
        passed: bool,
        meta: RequestMeta,
        declared: RetryRules,
        budget: bool,
    ) -> &'static str {
        if decide(reached, passed, meta, declared, budget) == RetryDecision::Retry {
            "again "
        } else {
            "end "
        }
    }

    #[test]
    fn the_whole_table() {
        let Retries { tries, .. } = Retries::default();
        let declared =
            RetryRules { idempotent: Idempotent::Methods, tries, on: RetryOn::default() };
        let mut table = String::new();
        for reached in [Reached::Unsent, Reached::Server, Reached::Reply] {
            for (effect, passed, before, budget) in [
                (Effect::Once, false, 0, true),
                (Effect::Unknown, false, 0, true),
                (Effect::Once, true, 0, true),
                (Effect::Once, false, tries - 1, true),
                (Effect::Once, false, 0, false),
            ] {
                let meta = RequestMeta { effect, tries: before, ..RequestMeta::default() };
                table += word(reached, passed, meta, declared, budget);
            }
            table += "\n";
        }
        let expected =
            "again again end again again \nagain end end end end \nend end end end end \n";
        assert_eq!(table, expected);
    }

    #[test]
    fn what_a_pool_declares_is_what_is_made_again() {
        let mut table = String::new();
        for idempotent in [Idempotent::Off, Idempotent::Safe, Idempotent::Methods, Idempotent::All]
        {
            for (effect, expects) in [
                (Effect::None, ResponseKind::Reply),
                (Effect::None, ResponseKind::HeadOnly),
                (Effect::Once, ResponseKind::Reply),
                (Effect::Unknown, ResponseKind::Reply),
                (Effect::None, ResponseKind::Switch(wire::Upgrades::default())),
            ] {
                let meta = RequestMeta { effect, expects, ..RequestMeta::default() };
                let declared = RetryRules { idempotent, tries: 3, on: RetryOn::default() };
                table += word(Reached::Server, false, meta, declared, true);
                // A request that reached no server may always be sent again.
                assert_eq!(word(Reached::Unsent, false, meta, declared, true), "again ");
            }
            table += "\n";
        }
        let expected = "end end end end end \nagain again end end end \n\
                        again again again end end \nagain again again again end \n";
        assert_eq!(table, expected);
    }

    #[test]
    fn only_what_is_named_is_retried() {
        let words = |entries: &[&str]| {
            let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
            RetryOn::read(&entries).unwrap()
        };
        let refused = || Fault::Connect(std::io::ErrorKind::ConnectionRefused);
        for (on, expected) in [
            (words(&["connect"]), [true, true, false, false, false]),
            (words(&["reset"]), [false, false, true, false, false]),
            (words(&["timeout", "invalid"]), [false, false, false, true, true]),
            (words(&["503"]), [false; 5]),
            (RetryOn::default(), [true, true, true, false, true]),
        ] {
            let broken = Fault::Broken(wire::http1::Refusal::Truncated);
            let faults = [refused(), Fault::ConnectLate, Fault::Ended, Fault::Late, broken];
            let made = faults.map(|fault| is_retried(&fault, Reached::Server, on));
            assert_eq!(made, expected, "{on:?}");
            assert!(is_retried(&Fault::Ended, Reached::Unsent, on), "an idle connection had ended");
        }
        let meta = RequestMeta { effect: Effect::Once, ..RequestMeta::default() };
        let of = |idempotent| RetryRules { idempotent, tries: 2, on: words(&["503"]) };
        assert!(of(Idempotent::Methods).allows_after(503, meta));
        assert!(!of(Idempotent::Methods).allows_after(502, meta));
        assert!(!of(Idempotent::Safe).allows_after(503, meta));
        assert!(!of(Idempotent::Methods).allows_after(503, RequestMeta { tries: 1, ..meta }));
        let unknown = RequestMeta { effect: Effect::Unknown, ..meta };
        assert!(!of(Idempotent::Methods).allows_after(503, unknown));
        assert!(of(Idempotent::All).allows_after(503, unknown));
    }

    #[test]
    fn a_request_that_may_be_tried_once_is_never_tried_again() {
        let meta = RequestMeta::default();
        let on = RetryOn::default();
        let declared = |tries| RetryRules { idempotent: Idempotent::All, tries, on };
        assert_eq!(decide(Reached::Server, false, meta, declared(1), true), RetryDecision::End);
        assert_eq!(decide(Reached::Unsent, false, meta, declared(1), true), RetryDecision::Retry);
        let last = RequestMeta { tries: 254, ..meta };
        assert_eq!(decide(Reached::Server, false, last, declared(255), true), RetryDecision::End);
    }

    #[test]
    fn retries_are_their_share_of_the_requests_in_the_long_run() {
        for (share, expected) in [(10, 100), (0, 0), (25, 250)] {
            let retries = Retries { budget: share, ..Retries::default() };
            let mut budget = Budget::new(retries);
            let mut made = 0;
            for _ in 0..1000 {
                made += u32::from(budget.spend());
                budget.earn(retries);
            }
            assert!((expected..=expected + retries.min_retries).contains(&made), "{share}: {made}");
        }
        // If the budget is 100 %, a retry is always available.
        let all = Retries { budget: 100, min_retries: 1, ..Retries::default() };
        let mut budget = Budget::new(all);
        for _ in 0..1000 {
            assert!(budget.spend());
            budget.earn(all);
        }
    }
}
