//! Names in `having`.

use super::{BEGINS, Reader};
use crate::tokens::Token;

impl Reader<'_> {
    /// Whether `having` has a name that the query gives to one of its columns, instead of that of a column.
    pub(super) fn is_other_name(&self, name: &str, at: usize) -> bool {
        let scope = &self.scopes[at];
        // The parentheses around it may be those of a function or a condition.
        let clause = (0..at).rev().filter(|at| scope.starts_with(&self.scopes[*at]));
        let mut clause = clause.filter_map(|at| self.token(at));
        let is_having = clause
            .find(|it| it.is_any(&["where", "having", "on", "select"]))
            .is_some_and(|it| it.is("having"));
        let is_name = |at: usize| {
            let is_same = match self.token(at) {
                Some(Token::Word(it) | Token::Quoted(it)) => it.eq_ignore_ascii_case(name),
                _ => false,
            };
            // An operand precedes it: `a name` or `a as name`, and not `a, name` or `t.name`.
            let follows = match self.before(at) {
                Some(Token::Mark(mark)) => *mark == ")" || *mark == "]",
                Some(token @ Token::Word(_)) => !token.is_any(&BEGINS) && !token.is("from"),
                Some(_) => true,
                None => false,
            };
            let ends = self.token(at + 1).is_some_and(|it| it.is_mark(&[","]) || it.is("from"));
            // A name in single quotes is not read.
            let is_string = matches!(self.token(at), Some(Token::Value | Token::Ambiguous(_)));
            (is_same || is_string) && follows && ends
        };
        is_having && (1..at).any(is_name)
    }
}
