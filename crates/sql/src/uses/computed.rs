//! Parameters that a statement calculates with.

use super::{ColumnName, Goes, Reader, Use};
use crate::tokens::Token;

/// Functions that calculate with their arguments.
const CALCULATING: [&str; 10] =
    ["abs", "avg", "ceil", "ceiling", "floor", "mod", "round", "sign", "sum", "truncate"];

/// Functions whose second argument is a number of days.
const DAYS: [&str; 2] = ["adddate", "subdate"];

/// Functions that return one of their arguments, which they compare.
const EXTREMES: [&str; 2] = ["greatest", "least"];

/// The words that begin a part of a statement.
const CLAUSES: [&str; 7] = ["select", "where", "having", "on", "by", "limit", "returning"];

impl Reader<'_> {
    /// Returns the use of a parameter that is calculated with, or compared by `greatest` or `least`.
    pub(super) fn computed_at(&self, index: usize) -> Option<Use> {
        let (left, right) = self.without_parentheses(index);
        let function = self.function_of(left, right);
        let is_argument = |words| function.is_some_and(|at| self.is_word(at, words));
        let is_days = is_argument(&DAYS) && self.before(left)?.is_mark(&[","]);
        if is_days || self.is_interval(left, right) {
            return Some(Use::Interval);
        }
        if self.is_limit(left) {
            return Some(Use::Limit);
        }
        if self.is_operand(left, right) || is_argument(&CALCULATING) {
            return Some(Use::Number(self.goes(index)));
        }
        let function = function.filter(|at| self.is_word(*at, &EXTREMES))?;
        Some(match self.goes(index) {
            Goes::Stored(_) if !self.is_whole_value(function) => Use::Extreme(Goes::Stored(None)),
            goes => Use::Extreme(goes),
        })
    }

    fn is_word(&self, at: usize, words: &[&str]) -> bool {
        self.token(at).is_some_and(|it| it.is_any(words))
    }

    fn is_operator(&self, at: usize) -> bool {
        self.token(at)
            .is_some_and(|it| it.is_mark(&["+", "<<", ">>"]) || it.is_any(&["div", "mod"]))
    }

    /// Whether an operator with numbers is beside it. Beside an `interval` it is a time.
    fn is_operand(&self, left: usize, right: usize) -> bool {
        let interval = |at: Option<usize>| at.is_some_and(|at| self.is_word(at, &["interval"]));
        left > 0 && self.is_operator(left - 1) && !interval(left.checked_sub(4))
            || self.is_operator(right) && !interval(Some(right + 1))
    }

    /// Whether it is the number of an interval such as `interval :x day`. The value of a unit like `day_hour` is a text.
    fn is_interval(&self, mut left: usize, mut right: usize) -> bool {
        while self.before(left).is_some_and(|it| it.is_mark(&["("]))
            && self.token(right).is_some_and(|it| it.is_mark(&[")"]))
        {
            (left, right) = (left - 1, right + 1);
        }
        let is_plain = |unit: &Token| matches!(unit, Token::Word(unit) if !unit.contains('_'));
        left > 0 && self.is_word(left - 1, &["interval"]) && self.token(right).is_some_and(is_plain)
    }

    /// Returns the function of which it is an argument.
    fn function_of(&self, left: usize, right: usize) -> Option<usize> {
        let open = *self.scopes[left].last()?;
        let begins = self.before(left)?.is_mark(&["(", ","]) || self.before(left)?.is("distinct");
        let ends = self.token(right)?.is_mark(&[")", ","]);
        open.checked_sub(1).filter(|_| begins && ends)
    }

    /// Whether the function at `begin` is the whole value of a column.
    fn is_whole_value(&self, begin: usize) -> bool {
        let scope = &self.scopes[begin];
        let marks: &[&'static str] = match scope[..] {
            [] => &["="],
            [open] if self.is_row(open) => &["(", ","],
            _ => return false,
        };
        let is_close = |at: &usize| {
            self.scopes[*at] == *scope && self.token(*at).is_some_and(|it| it.is_mark(&[")"]))
        };
        let close = (begin + 2..self.tokens.len()).find(is_close);
        self.before(begin).is_some_and(|it| it.is_mark(marks))
            && close.is_some_and(|close| self.ends_before(close + 1))
    }

    /// Returns where the result of the expression with this token goes.
    fn goes(&self, index: usize) -> Goes {
        let stores = self.verb().is_some_and(|it| it.is_any(&["insert", "replace", "update"]));
        if !stores {
            return Goes::Read;
        }
        let mut at = index;
        loop {
            if self.values[at] && !self.is_in_query(at) {
                return Goes::Stored(self.column_of_value(at));
            }
            let Some(clause) = self.clause_before(at) else { return Goes::Stored(None) };
            match self.scopes[clause].last() {
                _ if !self.is_word(clause, &["select"]) => return Goes::Read,
                // What the query returns may be stored.
                Some(open) => at = *open,
                None => return Goes::Stored(None),
            }
        }
    }

    /// Returns the word before this token that begins its clause.
    fn clause_before(&self, index: usize) -> Option<usize> {
        let scope = &self.scopes[index];
        (0..index)
            .rev()
            .find(|at| scope.starts_with(&self.scopes[*at]) && self.is_word(*at, &CLAUSES))
    }

    /// Returns the column of whose value this token is a part.
    fn column_of_value(&self, index: usize) -> Option<ColumnName> {
        let root = self.scopes[index].first().copied().unwrap_or(index);
        let begin = match self.is_row(root) {
            true => self.listed(self.commas(root, index))?,
            false => {
                let starts = |at: &usize| {
                    self.scopes[*at].is_empty()
                        && self
                            .token(*at)
                            .is_some_and(|it| it.is_mark(&[","]) || it.is_any(&["set", "update"]))
                };
                (0..root).rev().find(starts)? + 1
            }
        };
        let mut names = Vec::new();
        let mut at = begin;
        while let Token::Word(name) | Token::Quoted(name) = self.token(at)? {
            names.push(name.clone());
            if !self.token(at + 1)?.is_mark(&["."]) {
                let ends = self.token(at + 1)?.is_mark(&["=", ",", ")"]);
                let column = names.pop().filter(|_| ends)?;
                return Some(ColumnName { table: names, column, scope: Vec::new() });
            }
            at += 2;
        }
        None
    }

    /// Whether the values of a row of an insert begin with this parenthesis.
    fn is_row(&self, open: usize) -> bool {
        let is_mark = |at: Option<usize>, mark| {
            at.and_then(|at| self.token(at)).is_some_and(|it| it.is_mark(&[mark]))
        };
        let is_assignment = || self.tokens[..open].iter().any(|(_, it)| it.is_any(&["set", "key"]));
        is_mark(Some(open), "(")
            && (open.checked_sub(1).is_some_and(|at| self.is_word(at, &["values", "value"]))
                || is_mark(open.checked_sub(1), ",")
                    && is_mark(open.checked_sub(2), ")")
                    && !is_assignment())
    }

    /// Whether all arguments of the function with this parenthesis but this one are numbers.
    pub(super) fn is_beside_numbers(&self, open: usize, index: usize) -> bool {
        let arguments = self.tokens.iter().map(|(_, token)| token).enumerate().skip(open + 1);
        let mut arguments = arguments.take_while(|(_, it)| !it.is_mark(&[")"]));
        arguments.all(|(at, it)| at == index || *it == Token::Number || it.is_mark(&[","]))
    }

    /// The number of commas between the parenthesis at `open` and this token, outside of others.
    fn commas(&self, open: usize, index: usize) -> usize {
        let is_comma = |at: &usize| {
            self.scopes[*at].len() == 1 && self.token(*at).is_some_and(|it| it.is_mark(&[","]))
        };
        (open..index).filter(is_comma).count()
    }

    /// Returns where the name with this number begins in the list of the columns of an insert.
    fn listed(&self, number: usize) -> Option<usize> {
        let values = (0..self.tokens.len()).find(|at| self.values[*at])?;
        let is_open = |at: &usize| {
            self.scopes[*at].is_empty() && self.token(*at).is_some_and(|it| it.is_mark(&["("]))
        };
        let open = (0..values).rev().find(is_open)?;
        let begins = |at: &usize| {
            self.scopes[*at] == [open] && self.before(*at).is_some_and(|it| it.is_mark(&["(", ","]))
        };
        (open..values).filter(begins).nth(number)
    }
}
