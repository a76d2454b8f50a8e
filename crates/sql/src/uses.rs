//! What the parameters of a statement are used for: compared with a column, or within the value of a column.
//!
//! It reads marks and words, not the whole grammar: what it cannot read is an expression.

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
    /// It is a part of the value that a column is set to.
    Value,
    /// JSON in the value that a column is set to: `:x::jsonb` or `:x::text::jsonb`.
    Json,
    /// Anything else.
    Other,
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
    /// It is a query of the statement.
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

/// Functions that compare their arguments.
const COMPARING: [&str; 5] = ["nullif", "field", "greatest", "least", "interval"];

/// The words that compare the operand before them with what follows.
const COMPARES_BEFORE: [&str; 4] = ["in", "between", "not", "is"];

/// The words that compare the operand after them with what precedes.
const COMPARES_AFTER: [&str; 3] = ["in", "between", "case"];

/// The words behind which an operand is true or false.
const BEGINS_TRUTH: [&str; 7] = ["where", "and", "or", "xor", "not", "on", "having"];

/// The words that begin a part of a query.
const CLAUSES: [&str; 10] =
    ["select", "from", "where", "having", "on", "set", "limit", "offset", "by", "values"];

/// Words before a parenthesis that are no functions.
const NO_FUNCTIONS: [&str; 14] = [
    "any", "all", "some", "exists", "row", "values", "value", "as", "over", "in", "from", "into",
    "join", "using",
];

/// Functions whose arguments have a `from`.
const FROM_WITHIN: [&str; 6] = ["extract", "trim", "substring", "substr", "overlay", "position"];

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
        for (index, (_, token)) in self.tokens.iter().enumerate() {
            if token.is_mark(&[")", "]"]) {
                open.pop();
            }
            let is_conflict = |it: &Token| it.is_any(&["key", "do"]);
            if token.is_any(&["set", "values", "value"]) && open.is_empty()
                || token.is("update") && self.before(index).is_some_and(is_conflict)
            {
                values = true;
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
            [(_, Token::Number | Token::Parameter(_))] => return Use::Other,
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

    /// Whether `having` has a name that the query gives to one of its columns, instead of that of a column.
    fn is_other_name(&self, name: &str, at: usize) -> bool {
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
            let is_string = matches!(self.token(at), Some(Token::Value));
            (is_same || is_string) && follows && ends
        };
        is_having && (1..at).any(is_name)
    }

    fn use_at(&self, index: usize) -> Use {
        let (left, right) = self.without_parentheses(index);
        let compared = match self.compared_at(index) {
            Some(compared) => compared,
            None if self.values[index] || self.is_harmless(left, right) => Use::Other,
            // What is not read may compare it.
            None => Use::Expression,
        };
        let is_value = self.values[index] && !self.is_in_query(index);
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
            && !matches!(self.token(left - 2), Some(Token::Quoted(_)))
            && !matches!(self.token(left - 2), Some(it @ Token::Word(_)) if !it.is_any(&BEGINS))
        {
            (left, right) = (left - 1, right + 1);
        }
        (left, right)
    }

    /// Whether a value at this place is not compared with a column: a limit, an interval, an argument of a function, a
    /// column of the result, or a condition of its own.
    fn is_harmless(&self, left: usize, right: usize) -> bool {
        let clause = (0..left).rev().filter(|at| self.scopes[*at] == self.scopes[left]);
        let clause = clause.filter_map(|at| self.token(at)).find(|it| it.is_any(&CLAUSES));
        if clause.is_some_and(|it| it.is_any(&["limit", "offset"])) {
            return true;
        }
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
    fn is_condition(&self, left: usize, right: usize) -> bool {
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

    /// Whether the `case` of the `when` before this token has an operand.
    fn has_case_operand(&self, index: usize) -> bool {
        let case = (0..index).rev().find(|at| {
            self.scopes[*at] == self.scopes[index]
                && self.token(*at).is_some_and(|it| it.is("case"))
        });
        case.is_some_and(|case| !self.token(case + 1).is_some_and(|it| it.is("when")))
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
        self.token(open + 1).is_some_and(|it| it.is("select"))
    }

    /// Whether the parameter is an argument of a function that compares its arguments.
    fn is_in_comparing(&self, index: usize) -> bool {
        let function = self.scopes[index].last().and_then(|open| self.before(*open));
        function.is_some_and(|it| it.is_any(&COMPARING))
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

    /// Returns the tables that the statement names.
    fn tables(&self) -> Vec<TableName> {
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

/// Returns the tables that a statement names.
#[must_use]
pub fn tables(sql: &str, dialect: Dialect) -> Vec<TableName> {
    Uses::of(sql, dialect).tables.into_iter().filter(|table| !table.is_derived).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        let uses = Uses::of(sql, Dialect::Question);
        let columns = |table: &TableName, column: &str| {
            let known: &[&str] = match &*table.table {
                "t" => &["id", "token", "n"],
                "u" => &["id", "name"],
                _ => return None,
            };
            Some(known.contains(&column).then(|| format!("{}.{column}", table.table)))
        };
        let shown = uses.parameters.iter().map(|(at, name, of)| {
            assert!(sql[at + 1..].starts_with(name), "{sql}");
            match of {
                Use::Column(column) => {
                    uses.resolve(column, columns).unwrap_or_else(|| "?".to_owned())
                }
                other => format!("{other:?}").to_lowercase(),
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_parameter_that_is_compared_has_the_column() {
        for (sql, expected) in [
            ("select 1 from t where token = :x", "t.token"),
            ("delete from t where (token = (:x)) and n<>:y or :z <= t.id", "t.token t.n t.id"),
            (
                "select 1 from t where token in ('a', :x, :y) and n not in (:z)",
                "t.token t.token t.n",
            ),
            ("select 1 from t where n not between :x and :y and token = :z", "t.n t.n t.token"),
            ("select 1 from t where n between 1 + 1 and :y", "t.n"),
            ("select 1 from t where n like :x or token not like concat(:y, '%')", "pattern other"),
            (
                "select 1 from s.t as a join u b on a.id = b.id and b.name = :x where `a`.`n` > :y",
                "u.name t.n",
            ),
            ("select 1 from t, u where name = :x and s.t.n = :y", "u.name t.n"),
            (
                "select 1 from t where exists (select 1 from u where u.id = t.id and id = :x and n = :y)",
                "u.id t.n",
            ),
            (
                "update t set n = :n, token = concat(:t, n = :m) where id = :id",
                "value value t.n t.id",
            ),
            ("update t set n = (:n), t.token = ((:t)) where id = (:id)", "value value t.id"),
            ("update t join u on t.id = u.id set t.n = :n where u.name = :x", "value u.name"),
            ("update t set n = (select 1 from u where name = :x limit 1)", "u.name"),
            (
                "insert into t (id) values (:a, f(:b)) on duplicate key update n = :c",
                "value value value",
            ),
            ("select :a, if(n = :x, 1, 2) from t having token = :y", "other t.n t.token"),
            ("select case when n = :x then 1 end from t limit :l", "t.n other"),
            ("select extract(year from n) from t where id = :x", "t.id"),
            ("select 1 from t where :x is null or :all = 1 or id = :x", "other other t.id"),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_parameter_that_is_compared_with_nothing_keeps_its_type() {
        for sql in [
            "select 1 from t where :x is not true",
            "select 1 from t where (:x is null or n = 1) and not :x",
            "select 1 from t where :x = 1 or true = :x",
            "select token, :x from t order by id limit :x, :x",
            "select token from t limit :x offset :x",
            "select case when :x then token else '' end from t",
            "select substr(token, :x, 3), if(:x, 1, 2) from t where n > now() - interval :x day",
            "select 1 from t where n = cast(:x as decimal(65,30))",
            "select 1 from t where match (token) against (:x in boolean mode)",
            "select 1 from t where n > date_sub(now(), interval :x hour)",
        ] {
            let shown = shown(sql);
            assert!(shown.split(' ').all(|it| it == "other"), "{sql}: {shown}");
        }
    }

    #[test]
    fn a_comparison_whose_column_is_not_known_is_one_with_an_expression() {
        for (sql, expected) in [
            ("select 1 from t where lower(token) = :x", "expression"),
            ("select 1 from t where n + id = :x and binary token = :y", "expression expression"),
            ("select 1 from t where (token, n) = (:x, :y)", "expression expression"),
            (
                "select 1 from t where (token, n) in ((:x, :y), (1, :z))",
                "expression expression expression",
            ),
            ("select 1 from t where token = :x + 1", "expression"),
            ("select 1 from t where :x in (token, name)", "expression"),
            ("select 1 from t where :x not in (select token from t)", "expression"),
            (
                "select 1 from t where :x between n and id and :y not between n and id",
                "expression expression",
            ),
            ("select 1 from t where token in (select :x)", "expression"),
            ("select 1 from t where token = (select concat(:x, '') from u)", "expression"),
            ("select 1 from t where token in ((:x), ('a'), (('b')), ((:y)))", "t.token t.token"),
            ("select 1 from t where token in ('a', :x + 0)", "expression"),
            (
                "select 1 from t where token = :x = true and token = :y is true",
                "expression expression",
            ),
            ("select case token when :x then 1 end from t", "expression"),
            ("select case :x when token then 1 end from t", "expression"),
            ("select nullif(token, :x) from t", "expression"),
            ("select 1 from t where (:o, :t) = (n, token)", "expression expression"),
            ("delete from t where (:x, 'a') in (select token, 'a' from t)", "expression"),
            ("select 1 from t where row(n, token) = row(:x, :y)", "expression expression"),
            ("select 1 from t where (n, token) = ((:x), (:y))", "expression expression"),
            ("select 1 from t where (:k = '' or token = :k)", "expression t.token"),
            (
                "select 1 from t where token = -:x or token = !:y or token = 0 + :z",
                "expression expression expression",
            ),
            ("select 1 from t where token between :x + 0 and 'z'", "expression"),
            ("select n as token, id from t having (token = :x or :x is null)", "expression other"),
            ("select n as 'token' from t having if(token = :x, 1, 0)", "expression"),
            ("select 1 from t where 2fa_code = :x", "?"),
            ("select n as token from t having token = :x", "expression"),
            ("select n token, id from t having token = :x and id = :y", "expression t.id"),
            ("select token, n from t having token = :x", "t.token"),
            ("with t as (select 1) select 1 from t where id = :x", "?"),
            ("with `t` as (select 1) select 1 from t where id = :x", "?"),
            ("with t (a, id) as (select 1, 2) select 1 from t where id = :x", "?"),
            ("with q as (select :x as id) select 1 from q", "expression"),
            ("select 1 from t join u where id = :x", "?"),
            ("select 1 from t, (select 1 as z) q where token = :x", "?"),
            ("with u as (select 1) select 1 from u where id = :x", "?"),
            ("select 1 from v where id = :x", "?"),
            ("select 1 from t where x.id = :x", "?"),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }
}
