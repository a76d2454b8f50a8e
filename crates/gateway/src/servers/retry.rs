//! Whether a request that a server did not answer may be given to a server again. Pure: a table.

use settings::Retries;

use crate::form::Form;

/// How far a request had come when its link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// Nothing of it left us: no connection was made, or the kernel took no byte.
    Nobody,
    /// The kernel took bytes of it, and nothing of a reply went on: none came, or what came was none.
    Server,
    /// A head of the reply went on.
    Reply,
}

/// What remains to be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It goes back to its queue.
    Again,
    /// It ends.
    End,
}

/// The rule. `passed`: parts of its body went on, which are gone from here; `tries`: times that it may be given
/// to a server.
pub(super) fn then(reached: Reached, passed: bool, form: Form, tries: u8, budget: bool) -> Then {
    let safe = match reached {
        // How long it goes on asking is for its queue to say.
        Reached::Nobody => true,
        Reached::Server => form.repeatable && budget && form.tries.saturating_add(1) < tries,
        Reached::Reply => false,
    };
    if safe && !passed { Then::Again } else { Then::End }
}

/// What retries may cost: a share of the requests, and a few in hand.
///
/// ```text
///   0 ≤ hundredths ≤ 100 × reserve;  a request adds the share, a retry takes a hundred
/// ```
#[derive(Debug)]
pub(super) struct Budget {
    hundredths: u32,
}

impl Budget {
    pub(super) const fn new(retries: Retries) -> Self {
        Self { hundredths: retries.reserve.saturating_mul(100) }
    }

    pub(super) fn earn(&mut self, retries: Retries) {
        let most = retries.reserve.saturating_mul(100);
        self.hundredths = self.hundredths.saturating_add(retries.share).min(most);
    }

    /// Takes one retry, if there is one.
    pub(super) fn spend(&mut self) -> bool {
        let left = self.hundredths.checked_sub(100);
        self.hundredths = left.unwrap_or(self.hundredths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table() {
        let Retries { tries, .. } = Retries::default();
        let mut table = String::new();
        for reached in [Reached::Nobody, Reached::Server, Reached::Reply] {
            for (repeatable, passed, before, budget) in [
                (true, false, 0, true),
                (false, false, 0, true),
                (true, true, 0, true),
                (true, false, tries - 1, true),
                (true, false, 0, false),
            ] {
                let form = Form { repeatable, tries: before, ..Form::default() };
                table += if then(reached, passed, form, tries, budget) == Then::Again {
                    "again "
                } else {
                    "end "
                };
            }
            table += "\n";
        }
        let expected =
            "again again end again again \nagain end end end end \nend end end end end \n";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_request_that_may_be_tried_once_is_never_tried_again() {
        let form = Form { repeatable: true, ..Form::default() };
        assert_eq!(then(Reached::Server, false, form, 1, true), Then::End);
        assert_eq!(then(Reached::Nobody, false, form, 1, true), Then::Again);
        let last = Form { tries: 254, ..form };
        assert_eq!(then(Reached::Server, false, last, 255, true), Then::End);
    }

    #[test]
    fn retries_are_their_share_of_the_requests_in_the_long_run() {
        for (share, expected) in [(10, 100), (0, 0), (25, 250)] {
            let retries = Retries { share, ..Retries::default() };
            let mut budget = Budget::new(retries);
            let mut made = 0;
            for _ in 0..1000 {
                made += u32::from(budget.spend());
                budget.earn(retries);
            }
            assert!((expected..=expected + retries.reserve).contains(&made), "{share}: {made}");
        }
        // Where every request may be repeated, one always can.
        let all = Retries { share: 100, reserve: 1, ..Retries::default() };
        let mut budget = Budget::new(all);
        for _ in 0..1000 {
            assert!(budget.spend());
            budget.earn(all);
        }
    }
}
