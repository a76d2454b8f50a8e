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
            if token.is_any(&["where", "set", "group", "order", "having", "limit", "values", "on"])
            {
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
        while let Token::Word(name) | Token::Quoted(name) = self.token(at)? {
            names.push(name.clone());
            at += 1;
            if !self.token(at).is_some_and(|it| it.is_mark(&["."])) {
                break;
            }
            at += 1;
        }
        let Some(table) = names.pop() else {
            let (schema, table, alias) = (None, String::new(), None);
            return Some(TableName { schema, table, alias, scope, is_derived: true });
        };
        at += usize::from(self.token(at).is_some_and(|it| it.is("as")));
        let alias = match self.token(at) {
            Some(token @ Token::Word(name)) if !token.is_any(&AFTER_TABLE) => Some(name.clone()),
            Some(Token::Quoted(name)) => Some(name.clone()),
            _ => None,
        };
        Some(TableName { schema: names.pop(), table, alias, scope, is_derived: false })
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
            if let (true, Some(Token::Word(name) | Token::Quoted(name))) = (is_query, name) {
                let same = |table: &&mut TableName| {
                    table.schema.is_none() && table.table.eq_ignore_ascii_case(name)
                };
                tables.iter_mut().filter(same).for_each(|table| table.is_derived = true);
            }
        }
    }
}
