//! Whether a request that a server did not answer may be given to a server again. Pure: a table.

use crate::form::Form;

/// Times that a request is given to a server at most.
const TRIES_MAX: u8 = 3;

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

/// The rule. `passed`: parts of its body went on, which are gone from here.
pub(super) fn then(reached: Reached, passed: bool, form: Form, budget: bool) -> Then {
    let safe = match reached {
        // How long it goes on asking is for its queue to say.
        Reached::Nobody => true,
        Reached::Server => form.repeatable && budget && form.tries + 1 < TRIES_MAX,
        Reached::Reply => false,
    };
    if safe && !passed { Then::Again } else { Then::End }
}

/// What retries may cost: a tenth of the requests, and a few in hand.
///
/// ```text
///   0 ≤ tenths ≤ 10 × IN_HAND;  a request adds one, a retry takes ten
/// ```
#[derive(Debug)]
pub(super) struct Budget {
    tenths: u32,
}

/// Retries that are in hand at most.
const IN_HAND: u32 = 20;

impl Budget {
    pub(super) const fn new() -> Self {
        Self { tenths: 10 * IN_HAND }
    }

    pub(super) fn earn(&mut self) {
        self.tenths = (self.tenths + 1).min(10 * IN_HAND);
    }

    /// Takes one retry, if there is one.
    pub(super) fn spend(&mut self) -> bool {
        let left = self.tenths.checked_sub(10);
        self.tenths = left.unwrap_or(self.tenths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table() {
        let mut table = String::new();
        for reached in [Reached::Nobody, Reached::Server, Reached::Reply] {
            for (repeatable, passed, tries, budget) in [
                (true, false, 0, true),
                (false, false, 0, true),
                (true, true, 0, true),
                (true, false, TRIES_MAX - 1, true),
                (true, false, 0, false),
            ] {
                let form = Form { repeatable, tries, ..Form::default() };
                table += if then(reached, passed, form, budget) == Then::Again {
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
    fn retries_are_a_tenth_of_the_requests_in_the_long_run() {
        let mut budget = Budget::new();
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn();
            retries += u32::from(budget.spend());
        }
        assert_eq!(retries, 100 + IN_HAND - 1);
    }
}
