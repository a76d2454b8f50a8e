//! The tables that a statement names.

use super::{Reader, TableName};
use crate::tokens::Token;

/// The words that follow a table, and are no other name of it.
const AFTER_TABLE: [&str; 32] = [
    "where",
    "set",
    "on",
    "using",
    "join",
    "inner",
    "left",
    "right",
    "cross",
    "natural",
    "full",
    "straight_join",
    "order",
    "group",
    "having",
    "limit",
    "values",
    "value",
    "select",
    "union",
    "for",
    "lock",
    "use",
    "force",
    "ignore",
    "partition",
    "returning",
    "window",
    "default",
    "except",
    "intersect",
    "with",
];

/// The words that end the list of the tables.
const ENDS_TABLES: [&str; 11] = [
    "where",
    "set",
    "group",
    "order",
    "having",
    "limit",
    "values",
    "select",
    "union",
    "returning",
    "window",
];

/// Functions whose arguments have a `from`.
const FROM_WITHIN: [&str; 6] = ["extract", "trim", "substring", "substr", "overlay", "position"];

impl Reader<'_> {
    /// Returns the tables that the statement names.
    pub(super) fn tables(&self) -> Vec<TableName> {
        let mut found = Vec::new();
        let mut list = None;
        for index in 0..self.tokens.len() {
            let Some(token) = self.token(index) else { break };
            let before = |words: &[&str]| self.before(index).is_some_and(|it| it.is_any(words));
            let scope = &self.scopes[index];
            let function = scope.last().and_then(|open| self.before(*open));
            let begins = match token {
                _ if token.is("from") => {
                    !before(&["distinct"]) && !function.is_some_and(|it| it.is_any(&FROM_WITHIN))
                }
                _ if token.is("update") => !before(&["key", "for", "do", "on"]),
                _ if token.is_any(&["join", "into", "straight_join"]) => true,
                _ if token.is("using") => {
                    !self.token(index + 1).is_some_and(|it| it.is_mark(&["("]))
                }
                Token::Mark(",") => list.as_ref() == Some(scope),
                _ => false,
            };
            let is_on = token.is("on")
                && self.token(index + 1).is_some_and(|it| it.is_any(&["duplicate", "conflict"]));
            if is_on || token.is_any(&ENDS_TABLES) {
                list = None;
            }
            if begins {
                list = Some(scope.clone());
                found.extend(self.table(index + 1));
            }
        }
        self.mark_common(&mut found);
        found
    }

    /// Reads a table with its other name.
    fn table(&self, mut at: usize) -> Option<TableName> {
        while self.token(at)?.is_any(&["low_priority", "ignore", "only", "lateral"]) {
            at += 1;
        }
        let scope = self.scopes[at].clone();
        let mut names = Vec::new();
        while let Token::Word(name) | Token::Quoted(name) | Token::Ambiguous(name) =
            self.token(at)?
        {
            names.push(name.clone());
            at += 1;
            if !self.token(at).is_some_and(|it| it.is_mark(&["."])) {
                break;
            }
            at += 1;
        }
        let is_open = |at: usize| self.token(at).is_some_and(|it| it.is_mark(&["("]));
        if self.token(at).is_some_and(|it| it.is("partition")) && is_open(at + 1) {
            at = self.close(at + 1) + 1;
        }
        // A query, tables in parentheses, a function, or a table as it was: another name follows the time.
        let is_past = self.token(at).is_some_and(|it| it.is("for"))
            && self.token(at + 1).is_some_and(|it| it.is("system_time"));
        if is_past {
            names.clear();
        }
        let is_derived = names.is_empty() || is_open(at) && !self.is_written(at);
        let is_query = is_derived && self.is_query(at);
        if is_derived && !is_past {
            at = self.close(at) + 1;
        }
        at += usize::from(self.token(at).is_some_and(|it| it.is("as")));
        let alias = match self.token(at) {
            Some(token @ Token::Word(name)) if !token.is_any(&AFTER_TABLE) => Some(name.clone()),
            Some(Token::Quoted(name) | Token::Ambiguous(name)) => Some(name.clone()),
            _ => None,
        };
        if is_derived {
            let alias = alias.filter(|_| is_query || !names.is_empty());
            let (schema, table) = (None, String::new());
            return Some(TableName { schema, table, alias, scope, is_derived });
        }
        let table = names.pop()?;
        Some(TableName { schema: names.pop(), table, alias, scope, is_derived })
    }

    /// Whether this parenthesis follows the table of an insert.
    fn is_written(&self, open: usize) -> bool {
        (0..open)
            .rev()
            .find_map(|at| self.token(at).filter(|it| it.is_any(&["into", "from", "join"])))
            .is_some_and(|it| it.is("into"))
    }

    /// Whether a query in any number of parentheses begins here.
    fn is_query(&self, mut at: usize) -> bool {
        while self.token(at).is_some_and(|it| it.is_mark(&["("])) {
            at += 1;
        }
        self.token(at).is_some_and(|it| it.is_any(&["select", "with", "values", "table"]))
    }

    /// Returns the parenthesis that closes the one at `open`.
    fn close(&self, open: usize) -> usize {
        let is_close = |at: &usize| {
            self.token(*at).is_some_and(|it| it.is_mark(&[")"]))
                && self.scopes[*at] == self.scopes[open]
        };
        (open + 1..self.tokens.len()).find(is_close).unwrap_or(self.tokens.len())
    }

    /// Notes which names are those of queries that begin the statement: `with x as (select …)`.
    fn mark_common(&self, tables: &mut [TableName]) {
        for index in 1..self.tokens.len() {
            let is_query = self.token(index).is_some_and(|it| it.is("as"))
                && self.token(index + 1).is_some_and(|it| it.is_mark(&["("]));
            // `with x as (…)` or `with x (a, b) as (…)`.
            let at = match self.before(index) {
                Some(token) if token.is_mark(&[")"]) => {
                    let scope = &self.scopes[index];
                    let open = (0..index - 1).rev().find(|at| {
                        self.scopes[*at] == *scope
                            && self.token(*at).is_some_and(|it| it.is_mark(&["("]))
                    });
                    open.and_then(|open| open.checked_sub(1))
                }
                _ => Some(index - 1),
            };
            let name = at.and_then(|at| self.token(at));
            if let (true, Some(Token::Word(name) | Token::Quoted(name) | Token::Ambiguous(name))) =
                (is_query, name)
            {
                let same = |table: &&mut TableName| {
                    table.schema.is_none() && table.table.eq_ignore_ascii_case(name)
                };
                tables.iter_mut().filter(same).for_each(|table| table.is_derived = true);
            }
        }
    }
}
