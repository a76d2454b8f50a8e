//! What the parameters of a statement are used for: compared with a column, or within the value of a column.
//!
//! It reads marks and words, not the whole grammar: what it cannot read is an expression.

mod computed;
mod harmless;
mod having;
mod named;
#[cfg(test)]
mod tests;

use crate::Dialect;
use crate::tokens::{Token, tokens};

/// The use of a parameter at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is compared with a column.
    Column(ColumnName),
    /// It is the pattern of `like` or of a regular expression.
    Pattern,
    /// It is compared with an expression.
    Expression,
    /// It is compared with another parameter.
    Parameter,
    /// It is calculated with.
    Number(Goes),
    /// It is the number of an interval: `interval :x day`.
    Interval,
    /// It is a number of rows: `limit :x`.
    Limit,
    /// It is an argument of `greatest` or `least`.
    Extreme(Goes),
    /// It is a part of the value that a column is set to.
    Value,
    /// JSON in the value that a column is set to: `:x::jsonb` or `:x::text::jsonb`.
    Json,
    /// Anything else.
    Other,
}

/// Where the result of a calculation goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// Into a row, and into this column if it is known.
    Stored(Option<ColumnName>),
    /// Into a condition, an order or a reply.
    Read,
}

/// A column as a statement names it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName {
    /// The schema and the table, as far as they are named.
    pub(crate) table: Vec<String>,
    pub(crate) column: String,
    /// The open parentheses.
    scope: Vec<usize>,
}

/// A table that a statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema, if it is named.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The name in this statement.
    alias: Option<String>,
    scope: Vec<usize>,
    /// It is a query of the statement, or something else whose columns are not known.
    is_derived: bool,
}

/// The uses of the parameters, in their order, and the tables.
#[derive(Debug)]
pub(crate) struct Uses {
    /// The position of the colon, the name and the use.
    pub(crate) parameters: Vec<(usize, String, Use)>,
    pub(crate) tables: Vec<TableName>,
}

const COMPARES: [&str; 8] = ["=", "<=>", "<>", "!=", "<", ">", "<=", ">="];
const PATTERNS: [&str; 5] = ["like", "ilike", "rlike", "regexp", "similar"];

/// The words that say what a statement does.
const VERBS: [&str; 7] = ["select", "insert", "replace", "update", "delete", "merge", "call"];

/// The words behind which an operand begins.
const BEGINS: [&str; 18] = [
    "where", "and", "or", "xor", "not", "on", "having", "when", "then", "else", "case", "select",
    "if", "set", "update", "by", "distinct", "between",
];

/// The words that continue an operand.
const CONTINUES: [&str; 12] = [
    "div", "mod", "like", "ilike", "rlike", "regexp", "similar", "between", "in", "is", "not",
    "sounds",
];

/// Functions that compare their arguments.
const COMPARING: [&str; 5] = ["nullif", "field", "greatest", "least", "interval"];

/// The words that compare the operand before them with what follows.
const COMPARES_BEFORE: [&str; 4] = ["in", "between", "not", "is"];

/// The words that compare the operand after them with what precedes.
const COMPARES_AFTER: [&str; 3] = ["in", "between", "case"];

impl Uses {
    pub(crate) fn of(sql: &str, dialect: Dialect) -> Self {
        let tokens = tokens(sql, dialect);
        let mut reader = Reader { tokens: &tokens, scopes: Vec::new(), values: Vec::new() };
        reader.mark_places();
        let parameter = |(index, (at, token)): (usize, &(usize, Token))| match token {
            Token::Parameter(name) => Some((*at, name.clone(), reader.use_at(index))),
            _ => None,
        };
        let parameters = tokens.iter().enumerate().filter_map(parameter).collect();
        Self { parameters, tables: reader.tables() }
    }

    /// Returns what `of` says of the column in the table that the statement means, if there is only one answer. `of`
    /// returns `None` for a table that is unknown, and `Some(None)` for a column that a table does not have.
    pub(crate) fn resolve<T: PartialEq>(
        &self,
        name: &ColumnName,
        of: impl Fn(&TableName, &str) -> Option<Option<T>>,
    ) -> Option<T> {
        let visible = self.tables.iter().filter(|table| name.scope.starts_with(&table.scope));
        let mut visible: Vec<&TableName> =
            visible.filter(|table| table.is_named(&name.table)).collect();
        visible.sort_by_key(|table| std::cmp::Reverse(table.scope.len()));
        for level in visible.chunk_by(|one, other| one.scope.len() == other.scope.len()) {
            let mut found = None;
            for table in level {
                let column = if table.is_derived { None } else { of(table, &name.column) };
                match (column?, &found) {
                    (None, _) => {}
                    (Some(one), Some(other)) if one != *other => return None,
                    (Some(one), _) => found = Some(one),
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

impl TableName {
    /// Whether these parts, the last of which is a table or its other name, mean it. No part means any table.
    fn is_named(&self, parts: &[String]) -> bool {
        let same = |one: &str, other: &String| one.eq_ignore_ascii_case(other);
        match (parts, &self.alias) {
            ([], _) => true,
            // Tables in parentheses.
            (_, None) if self.table.is_empty() => true,
            ([name], Some(alias)) => same(alias, name),
            ([name], None) => same(&self.table, name),
            ([schema, name, ..], None) => {
                same(&self.table, name) && self.schema.as_ref().is_none_or(|it| same(it, schema))
            }
            _ => false,
        }
    }
}

struct Reader<'t> {
    tokens: &'t [(usize, Token)],
    /// For each token, the open parentheses.
    scopes: Vec<Vec<usize>>,
    /// For each token, whether it is among the values that columns are set to, outside of a query.
    values: Vec<bool>,
}

impl<'t> Reader<'t> {
    fn token(&self, index: usize) -> Option<&'t Token> {
        self.tokens.get(index).map(|(_, token)| token)
    }

    fn before(&self, index: usize) -> Option<&'t Token> {
        self.token(index.checked_sub(1)?)
    }

    fn mark_places(&mut self) {
        let (mut open, mut values) = (Vec::new(), false);
        let verb = self.verb();
        let writes = verb.is_some_and(|it| it.is_any(&["insert", "replace", "update"]));
        let mut may_begin = writes;
        for (index, (_, token)) in self.tokens.iter().enumerate() {
            if token.is_mark(&[")", "]"]) {
                open.pop();
            }
            let is_conflict = |it: &Token| it.is_any(&["key", "do"]);
            if may_begin && open.is_empty() && self.begins_values(index)
                || token.is("update") && writes && self.before(index).is_some_and(is_conflict)
            {
                (values, may_begin) = (true, false);
            } else if open.is_empty()
                && token.is_any(&["where", "order", "limit", "returning", "from", "select"])
            {
                values = false;
            }
            self.scopes.push(open.clone());
            self.values.push(values);
            if token.is_mark(&["(", "["]) {
                open.push(index);
            }
        }
    }

    /// The word that says what the statement does.
    fn verb(&self) -> Option<&'t Token> {
        let mut depth = 0_usize;
        self.tokens.iter().map(|(_, token)| token).find(|token| {
            match token {
                Token::Mark("(") => depth += 1,
                Token::Mark(")") => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.is_any(&VERBS)
        })
    }

    /// Whether the values of a row begin at this word, which may also be the name of a column or a table.
    fn begins_values(&self, index: usize) -> bool {
        let is_list = self.token(index + 1).is_some_and(|it| it.is_mark(&["("]));
        let is_name = self.before(index).is_none_or(|it| {
            it.is_any(&["into", "insert", "replace", "ignore", "delayed"])
                || it.is_any(&["low_priority", "high_priority"])
                || it.is_mark(&["."])
        });
        self.token(index).is_some_and(|it| {
            it.is("set") || it.is_any(&["values", "value"]) && is_list && !is_name
        })
    }

    /// Whether an operand may end before this token.
    fn ends_before(&self, index: usize) -> bool {
        match self.token(index) {
            None => true,
            Some(Token::Mark(mark)) => [")", "]", ",", ";", "&&", "||"].contains(mark),
            Some(token @ Token::Word(_)) => !token.is_any(&CONTINUES),
            Some(_) => false,
        }
    }

    /// Whether an operand may begin at this token.
    fn begins_at(&self, index: usize) -> bool {
        match self.before(index) {
            None => true,
            Some(Token::Mark(mark)) => ["(", ",", "&&", "||", "!"].contains(mark),
            Some(token) => token.is_any(&BEGINS),
        }
    }

    /// Returns what the operand that ends before `end` is to a parameter that it is compared with.
    fn left_operand(&self, mut end: usize) -> Use {
        if self.before(end).is_some_and(|it| it.is("not")) {
            end -= 1;
        }
        let mut begin = end.saturating_sub(1);
        while begin >= 2
            && self.before(begin).is_some_and(|it| it.is_mark(&["."]))
            && matches!(self.token(begin - 2), Some(Token::Word(_) | Token::Quoted(_)))
        {
            begin -= 2;
        }
        if begin < end && self.begins_at(begin) {
            self.operand(begin, end)
        } else {
            Use::Expression
        }
    }

    /// Returns what the operand that begins here is to a parameter that it is compared with.
    fn right_operand(&self, begin: usize) -> Use {
        let mut end = begin + 1;
        while self.token(end).is_some_and(|it| it.is_mark(&["."])) {
            end += 2;
        }
        let is_end = end <= self.tokens.len() && self.ends_before(end);
        if is_end { self.operand(begin, end) } else { Use::Expression }
    }

    fn operand(&self, begin: usize, end: usize) -> Use {
        let tokens = &self.tokens[begin..end];
        match tokens {
            [(_, Token::Number)] => return Use::Other,
            [(_, Token::Parameter(_))] => return Use::Parameter,
            [(_, token)] if token.is_any(&["true", "false", "null"]) => return Use::Other,
            _ => {}
        }
        let mut names = Vec::new();
        for (at, (_, token)) in tokens.iter().enumerate() {
            match token {
                Token::Word(name) | Token::Quoted(name) if at % 2 == 0 => names.push(name.clone()),
                Token::Mark(".") if at % 2 == 1 => {}
                _ => return Use::Expression,
            }
        }
        match names.pop() {
            Some(column) if names.is_empty() && self.is_other_name(&column, begin) => {
                Use::Expression
            }
            Some(column) if names.len() <= 2 => {
                Use::Column(ColumnName { table: names, column, scope: self.scopes[begin].clone() })
            }
            _ => Use::Expression,
        }
    }

    fn use_at(&self, index: usize) -> Use {
        if let Some(computed) = self.computed_at(index) {
            return computed;
        }
        let (left, right) = self.without_parentheses(index);
        let is_value = self.values[index] && !self.is_in_query(index);
        let compared = match self.compared_at(index) {
            Some(compared) => compared,
            None if is_value || self.is_harmless(left, right) => Use::Other,
            // What is not read may compare it.
            None => Use::Expression,
        };
        match compared {
            // An assignment of the column itself.
            Use::Column(_) | Use::Expression if is_value && self.is_assigned(index) => Use::Value,
            Use::Other if is_value && self.is_json(index) => Use::Json,
            Use::Other if is_value => Use::Value,
            other => other,
        }
    }

    /// Whether this token is within a query in parentheses.
    fn is_in_query(&self, index: usize) -> bool {
        self.scopes[index].iter().any(|open| self.begins_query(*open))
    }

    /// Whether the parameter is the begin of the value of a column: `a = :x`, `t.a = (:x)`.
    fn is_assigned(&self, mut index: usize) -> bool {
        while self.before(index).is_some_and(|it| it.is_mark(&["("])) {
            index -= 1;
        }
        let mut begin = index.saturating_sub(2);
        while begin >= 2 && self.before(begin).is_some_and(|it| it.is_mark(&["."])) {
            begin -= 2;
        }
        self.scopes[index].is_empty()
            && self.before(index).is_some_and(|it| it.is_mark(&["="]))
            && self
                .before(begin)
                .is_some_and(|it| it.is_any(&["set", "update"]) || it.is_mark(&[","]))
    }

    fn is_json(&self, mut index: usize) -> bool {
        let mut is_json = false;
        while self.token(index + 1).is_some_and(|it| it.is_mark(&["::"])) {
            let Some(of) = self.token(index + 2) else { break };
            is_json = of.is_any(&["json", "jsonb"]);
            index += 2;
        }
        is_json && self.ends_before(index + 1)
    }

    /// Returns what a parameter is compared with; `None`: no comparison was read.
    fn compared_at(&self, index: usize) -> Option<Use> {
        if let Some(operand) = self.operand_of_list(index) {
            return Some(operand);
        }
        if self.is_in_row(index) || self.is_selected_within(index) || self.is_in_comparing(index) {
            return Some(Use::Expression);
        }
        let (left, right) = self.without_parentheses(index);
        let before = self.before(left)?;
        let behind = self.token(right);
        if before.is_any(&PATTERNS) || behind.is_some_and(|it| it.is_any(&PATTERNS)) {
            return Some(Use::Pattern);
        }
        if before.is_mark(&COMPARES) && self.ends_before(right) {
            return Some(self.left_operand(left - 1));
        }
        if before.is("between") && self.token(right).is_some_and(|it| it.is("and")) {
            return Some(self.left_operand(left - 1));
        }
        if before.is("and")
            && self.ends_before(right)
            && let Some(between) = self.between(left - 1)
        {
            return Some(self.left_operand(between));
        }
        if behind.is_some_and(|it| it.is_mark(&COMPARES)) && self.begins_at(left) {
            return Some(self.right_operand(right + 1));
        }
        self.is_beside_comparison(left, right).then_some(Use::Expression)
    }

    /// Returns where the parameter begins and ends with the parentheses around it, but not those of a function.
    fn without_parentheses(&self, index: usize) -> (usize, usize) {
        let (mut left, mut right) = (index, index + 1);
        while self.before(left).is_some_and(|it| it.is_mark(&["("]))
            && self.token(right).is_some_and(|it| it.is_mark(&[")"]))
            && left >= 2
            && !matches!(self.token(left - 2), Some(Token::Quoted(_) | Token::Ambiguous(_)))
            && !matches!(self.token(left - 2), Some(it @ Token::Word(_)) if !it.is_any(&BEGINS))
        {
            (left, right) = (left - 1, right + 1);
        }
        (left, right)
    }

    /// Whether a comparison that was not read is beside what is between these tokens.
    fn is_beside_comparison(&self, left: usize, right: usize) -> bool {
        let Some(before) = self.before(left) else { return false };
        let in_list = before.is_mark(&["(", ","]) && self.is_in_list(left);
        let is_when = before.is("when") && self.has_case_operand(left);
        if before.is_mark(&COMPARES) || before.is_any(&COMPARES_AFTER) || in_list || is_when {
            return true;
        }
        let Some(behind) = self.token(right) else { return false };
        let function = self.scopes[left].last().and_then(|open| self.before(*open));
        if function.is_some_and(|it| it.is("against")) {
            return false;
        }
        behind.is_mark(&COMPARES)
            || behind.is_any(&COMPARES_BEFORE) && !self.is_condition(left, right)
    }

    /// Whether this token is directly in the list of an `in`.
    fn is_in_list(&self, index: usize) -> bool {
        let open = self.scopes[index].last();
        open.and_then(|open| self.before(*open)).is_some_and(|it| it.is("in"))
    }

    /// Whether the parameter is among the columns of a query in parentheses, which the statement may compare.
    fn is_selected_within(&self, index: usize) -> bool {
        let Some(&open) = self.scopes[index].iter().rev().find(|open| self.begins_query(**open))
        else {
            return false;
        };
        let depth = self.scopes[index].iter().position(|it| *it == open).unwrap_or(0) + 1;
        let clause = (open..index).rev().filter(|at| self.scopes[*at].len() == depth);
        let clause = clause.filter_map(|at| self.token(at));
        let mut words =
            clause.filter(|it| it.is_any(&["select", "from", "where", "having", "limit", "on"]));
        words.next().is_some_and(|it| it.is("select"))
    }

    fn begins_query(&self, open: usize) -> bool {
        self.token(open + 1).is_some_and(|it| it.is_any(&["select", "with"]))
    }

    /// Whether the parameter is an argument of a function that compares its arguments. In the value of a column, numbers
    /// that it is compared with (`nullif(:x, 0)`) change nothing.
    fn is_in_comparing(&self, index: usize) -> bool {
        let Some(open) = self.scopes[index].last() else { return false };
        let is_value = self.values[index] && !self.is_in_query(index);
        self.before(*open).is_some_and(|it| it.is_any(&COMPARING))
            && !(is_value && self.is_beside_numbers(*open, index))
    }

    /// Returns the operand of `in` in whose list the parameter is: `a in (:x, :y)`.
    fn operand_of_list(&self, index: usize) -> Option<Use> {
        let (mut left, mut right) = (index, index + 1);
        // Parentheses around the parameter within the list.
        while self.before(left).is_some_and(|it| it.is_mark(&["("]))
            && self.token(right).is_some_and(|it| it.is_mark(&[")"]))
            && left >= 2
            && self.token(left - 2).is_some_and(|it| it.is_mark(&["(", ","]))
        {
            (left, right) = (left - 1, right + 1);
        }
        let open = *self.scopes[left].last()?;
        let begins = self.before(left)?.is_mark(&["(", ","]);
        let ends = self.token(right)?.is_mark(&[")", ","]);
        let is_list = self.before(open)?.is("in") && !self.token(open + 1)?.is("select");
        (begins && ends && is_list).then(|| self.left_operand(open - 1))
    }

    /// Whether the parameter is in a row that is compared: `(a, b) = (:x, :y)`, `(a, b) in ((:x, :y))`.
    fn is_in_row(&self, index: usize) -> bool {
        let row = |open: usize| {
            let is_list = self.scopes[open].last().and_then(|list| self.before(*list));
            self.before(open).is_some_and(|it| it.is_mark(&COMPARES))
                || self.before(open).is_some_and(|it| it.is_mark(&["(", ","]))
                    && is_list.is_some_and(|it| it.is("in"))
        };
        let is_part = self.before(index).is_some_and(|it| it.is_mark(&[","]))
            || self.token(index + 1).is_some_and(|it| it.is_mark(&[","]));
        is_part && self.scopes[index].last().is_some_and(|open| row(*open))
    }

    /// Returns the position of the `between` that this `and` belongs to.
    fn between(&self, and: usize) -> Option<usize> {
        let scope = &self.scopes[and];
        for index in (0..and).rev() {
            let token = self.token(index)?;
            if self.scopes[index] != *scope {
                continue;
            }
            if token.is("between") {
                return Some(index);
            }
            if token.is_any(&["and", "or", "xor", "where", "on", "having", "when", "select"]) {
                return None;
            }
        }
        None
    }
}

/// Returns the tables that a statement names.
#[must_use]
pub fn tables(sql: &str, dialect: Dialect) -> Vec<TableName> {
    Uses::of(sql, dialect).tables.into_iter().filter(|table| !table.is_derived).collect()
}
