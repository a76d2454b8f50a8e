//! Places at which a parameter is compared with nothing.

use super::{BEGINS, COMPARING, CONTINUES, Reader};
use crate::tokens::Token;

/// The words behind which an operand is true or false.
const BEGINS_TRUTH: [&str; 7] = ["where", "and", "or", "xor", "not", "on", "having"];

/// The words that begin a part of a query.
const CLAUSES: [&str; 8] = ["select", "from", "where", "having", "on", "set", "by", "values"];

/// Words before a parenthesis that are no functions.
const NO_FUNCTIONS: [&str; 14] = [
    "any", "all", "some", "exists", "row", "values", "value", "as", "over", "in", "from", "into",
    "join", "using",
];

impl Reader<'_> {
    /// Whether a value at this place is not compared with a column: an interval, an argument of a function, a
    /// column of the result, or a condition of its own.
    pub(super) fn is_harmless(&self, left: usize, right: usize) -> bool {
        let clause = (0..left).rev().filter(|at| self.scopes[*at] == self.scopes[left]);
        let clause = clause.filter_map(|at| self.token(at)).find(|it| it.is_any(&CLAUSES));
        let before = self.before(left);
        if before.is_some_and(|it| it.is("interval")) {
            return true;
        }
        let is_end = |it: &Token| it.is_any(&["from", "as"]) || it.is_mark(&[","]);
        let is_selected = self.scopes[left].is_empty()
            && clause.is_some_and(|it| it.is("select"))
            && before.is_some_and(|it| it.is_any(&["select", "distinct"]) || it.is_mark(&[","]))
            && self.token(right).is_none_or(is_end);
        is_selected || self.is_argument(left, right) || self.is_condition(left, right)
    }

    /// Whether it is a number of rows: `limit :x, :y`, `limit :x offset :y`. A column may have the name `offset`.
    pub(super) fn is_limit(&self, left: usize) -> bool {
        let Some(before) = self.before(left) else { return false };
        before.is_any(&["limit", "offset", "examined"])
            || before.is_mark(&[","])
                && left >= 3
                && self.token(left - 3).is_some_and(|it| it.is("limit"))
            || before.is_any(&["first", "next"])
                && left >= 2
                && self.token(left - 2).is_some_and(|it| it.is("fetch"))
    }

    /// Whether it is an argument of a function that does not compare its arguments.
    fn is_argument(&self, left: usize, right: usize) -> bool {
        let Some(&open) = self.scopes[left].last() else { return false };
        let Some(function) = self.before(open) else { return false };
        if function.is("against") {
            return true;
        }
        let is_function = matches!(function, Token::Word(_))
            && (function.is("if") || !function.is_any(&BEGINS))
            && !function.is_any(&CONTINUES)
            && !function.is_any(&COMPARING)
            && !function.is_any(&NO_FUNCTIONS);
        let behind = self.token(right);
        is_function
            && self.before(left).is_some_and(|it| it.is_mark(&["(", ","]))
            && behind.is_some_and(|it| {
                it.is_mark(&[")", ","]) || it.is_any(&["as", "using", "from", "for"])
            })
    }

    /// Whether it is true or false by itself: `where :x`, `not :x or …`, `:x is null`, `case when :x then`.
    pub(super) fn is_condition(&self, left: usize, right: usize) -> bool {
        let begins = match self.before(left) {
            None => true,
            Some(token) if token.is_mark(&["("]) => {
                let before = (left - 1).checked_sub(1).and_then(|at| self.token(at));
                before.is_none_or(|it| it.is_any(&BEGINS_TRUTH) || it.is_mark(&["("]))
            }
            Some(token) if token.is("when") => !self.has_case_operand(left),
            Some(token) => {
                token.is_any(&BEGINS_TRUTH)
                    && !(token.is("and") && self.between(left - 1).is_some())
                    || token.is_mark(&["&&", "||"])
            }
        };
        let ends = |at: usize| {
            self.token(at).is_none_or(|it| {
                it.is_mark(&[")", "&&", "||", ";"])
                    || matches!(it, Token::Word(_)) && !it.is_any(&CONTINUES)
            })
        };
        let test = right + 1 + usize::from(self.token(right + 1).is_some_and(|it| it.is("not")));
        let is_test = self.token(right).is_some_and(|it| it.is("is"))
            && self.token(test).is_some_and(|it| it.is_any(&["null", "unknown", "true", "false"]))
            && ends(test + 1);
        begins && (ends(right) || is_test)
    }

    /// Whether the `case` of the `when` before this token has an operand. It does if none is found: a column may have
    /// the name `end`.
    pub(super) fn has_case_operand(&self, index: usize) -> bool {
        let mut ended = 0_usize;
        let case =
            (0..index).rev().filter(|at| self.scopes[*at] == self.scopes[index]).find(|at| {
                let Some(token) = self.token(*at) else { return false };
                let is_case = token.is("case");
                let is_found = is_case && ended == 0;
                ended = ended.saturating_sub(usize::from(is_case)) + usize::from(token.is("end"));
                is_found
            });
        !case.is_some_and(|case| self.token(case + 1).is_some_and(|it| it.is("when")))
    }
}
