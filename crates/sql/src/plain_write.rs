//! The parameter for each column, in simple statements.
//!
//! Simple statements are `insert into t (a, b) values (:x, now())` and `update t set a = :x, b = now() where c = :y`.
//! Nothing is reported about other statements; the database checks their values when it receives them.

use crate::{Dialect, quoted, without_comments};

/// A statement of this form.
#[derive(Debug, PartialEq, Eq)]
pub struct PlainWrite {
    /// The schema of the table, if it is named.
    pub schema: Option<Name>,
    /// The table.
    pub table: Name,
    /// The columns whose value is a parameter alone.
    pub given: Vec<ColumnParameter>,
}

/// A name as a statement has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name without quotes.
    pub text: String,
    /// Whether the statement has it in quotes. PostgreSQL changes other names to lower case.
    pub is_quoted: bool,
}

impl Name {
    /// Returns the name as it is in the statement, with these quotes if it has any.
    #[must_use]
    pub fn sql(&self, quote: char) -> String {
        if self.is_quoted { quoted(&self.text, quote) } else { self.text.clone() }
    }
}

/// A parameter and its column.
#[derive(Debug, PartialEq, Eq)]
pub struct ColumnParameter {
    /// The column.
    pub column: Name,
    /// The parameter, without its colon.
    pub name: String,
    /// The byte position of the colon in the statement.
    pub at: usize,
}

impl PlainWrite {
    /// Reads a statement. Returns `None` if it does not have this form.
    #[must_use]
    pub fn of(sql: &str, dialect: Dialect) -> Option<Self> {
        let mut reader = Reader { sql: &without_comments(sql, dialect), at: 0, dialect };
        match reader.word()?.as_str() {
            "insert" | "replace" => Self::insert(reader),
            "update" => Self::update(reader),
            _ => None,
        }
    }

    fn insert(mut reader: Reader<'_>) -> Option<Self> {
        while reader.word()? != "into" {}
        let (schema, table) = reader.table()?;
        let columns = reader.columns()?;
        let values = reader.word()?;
        if !["values", "value"].contains(&values.as_str()) {
            return None;
        }
        let values = reader.values()?;
        // The parameters of further rows may be the same, for other columns.
        if values.len() != columns.len() || reader.mark(',') {
            return None;
        }
        let given = columns.into_iter().zip(values);
        let given =
            given.filter_map(|(column, (at, value))| ColumnParameter::of(column, at, value));
        let mut given: Vec<_> = given.collect();
        if reader.skip_to("update") {
            // SQLite and PostgreSQL: `do update set`; MySQL and MariaDB: `on duplicate key update`.
            let at = reader.at;
            if reader.word().as_deref() != Some("set") {
                reader.at = at;
            }
            // What cannot be read is left to the database.
            let (assigned, _) = reader.assignments(&table);
            given.extend(assigned);
        }
        Some(Self { schema, table, given })
    }

    fn update(mut reader: Reader<'_>) -> Option<Self> {
        let (schema, table) = reader.table()?;
        // A table with an alias is left to the database.
        if reader.word()? != "set" {
            return None;
        }
        let (given, is_complete) = reader.assignments(&table);
        is_complete.then_some(Self { schema, table, given })
    }
}

impl ColumnParameter {
    /// Returns the column if this value is a parameter and nothing else.
    fn of(column: Name, at: usize, value: &str) -> Option<Self> {
        let name = value.strip_prefix(':').filter(|name| name.chars().all(is_name))?;
        Some(Self { column, name: name.to_owned(), at })
    }
}

/// The words that may follow the last value of an `update`.
const AFTER_SET: [&str; 5] = ["from", "limit", "order", "returning", "where"];

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether the next word is one that may follow the last value.
fn ends_values(rest: &str) -> bool {
    let word = &rest[..rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())];
    AFTER_SET.iter().any(|end| word.eq_ignore_ascii_case(end))
}

struct Reader<'s> {
    sql: &'s str,
    at: usize,
    dialect: Dialect,
}

impl<'s> Reader<'s> {
    /// Skips white space, and returns the rest. Comments were replaced by blanks.
    fn rest(&mut self) -> &'s str {
        let rest = &self.sql[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.sql[self.at..]
    }

    /// Reads a word without quotes. Returns it in lower case.
    fn word(&mut self) -> Option<String> {
        let rest = self.rest();
        let length = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| rest[..length].to_ascii_lowercase())
    }

    /// Reads this character, if it is next. Returns whether it was.
    fn mark(&mut self, mark: char) -> bool {
        let there = self.rest().starts_with(mark);
        self.at += if there { mark.len_utf8() } else { 0 };
        there
    }

    /// Reads the name of a database object, with or without quotes.
    fn name(&mut self) -> Option<Name> {
        let rest = self.rest();
        let quote = rest.chars().next()?;
        if !"\"`".contains(quote) {
            let length = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            self.at += length;
            let name = || Name { text: rest[..length].to_owned(), is_quoted: false };
            return (length > 0).then(name);
        }
        let length = rest[1..].find(quote)?;
        self.at += length + 2;
        // A name that contains a quote is left to the database.
        let plain = length > 0 && !self.sql[self.at..].starts_with(quote);
        plain.then(|| Name { text: rest[1..=length].to_owned(), is_quoted: true })
    }

    /// Reads the name of a table. Returns its schema, if there is one, and its name.
    fn table(&mut self) -> Option<(Option<Name>, Name)> {
        let name = self.name()?;
        if self.mark('.') { Some((Some(name), self.name()?)) } else { Some((None, name)) }
    }

    /// Reads the value that a column is set to, up to the next comma or the end of the values. Returns its position and
    /// its text.
    fn set_value(&mut self) -> (usize, &'s str) {
        let rest = self.rest();
        let begin = self.at;
        let (mut depth, mut quote, mut before) = (0_usize, None, ' ');
        let end = rest.char_indices().find(|&(at, letter)| {
            let word_begins = !is_name(before) && !":@.".contains(before);
            before = letter;
            match (quote, letter) {
                (Some(open), _) => quote = Some(open).filter(|open| *open != letter),
                (None, '\'' | '"' | '`') => quote = Some(letter),
                (None, '(' | '[') => depth += 1,
                (None, ')' | ']') => depth = depth.saturating_sub(1),
                (None, ',' | ';') => return depth == 0,
                (None, _) if depth == 0 && word_begins => return ends_values(&rest[at..]),
                (None, _) => {}
            }
            false
        });
        let length = end.map_or(rest.len(), |(at, _)| at);
        self.at += length;
        (begin, rest[..length].trim_end())
    }

    /// Reads `a = :x, b = now()`, up to the end of the values. Returns what it read, and whether that is all.
    fn assignments(&mut self, table: &Name) -> (Vec<ColumnParameter>, bool) {
        let (mut given, mut is_complete) = (Vec::new(), true);
        loop {
            let column = self.column(table).filter(|_| self.mark('='));
            let (at, value) = self.set_value();
            match column {
                Some(column) => given.extend(ColumnParameter::of(column, at, value)),
                None => is_complete = false,
            }
            if !self.mark(',') {
                return (given, is_complete);
            }
        }
    }

    /// Reads the name of a column. In MySQL and MariaDB the name of the table may be before it; PostgreSQL would assign
    /// to a field of a column.
    fn column(&mut self, table: &Name) -> Option<Name> {
        let name = self.name()?;
        if self.dialect == Dialect::Dollar || !self.mark('.') {
            return Some(name);
        }
        let is_table = name.text.eq_ignore_ascii_case(&table.text);
        self.name().filter(|_| is_table)
    }

    /// Skips everything up to the end of this word, outside of quotes, comments and parentheses. Returns whether it
    /// was there.
    fn skip_to(&mut self, word: &str) -> bool {
        let mut depth = 0_usize;
        loop {
            let rest = self.rest();
            let Some(letter) = rest.chars().next() else { return false };
            if is_name(letter) {
                let found = self.word();
                if depth == 0 && found.as_deref() == Some(word) {
                    return true;
                }
                continue;
            }
            self.at += letter.len_utf8();
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                '\'' | '"' | '`' => {
                    let Some(end) = rest[1..].find(letter) else { return false };
                    self.at += end + 1;
                }
                // A parameter with the name of the word.
                ':' => drop(self.word()),
                _ => {}
            }
        }
    }

    fn columns(&mut self) -> Option<Vec<Name>> {
        let mut columns = Vec::new();
        if !self.mark('(') {
            return None;
        }
        loop {
            columns.push(self.name()?);
            if self.mark(')') {
                return Some(columns);
            }
            if !self.mark(',') {
                return None;
            }
        }
    }

    /// Reads all values. Returns the position and the text of each.
    fn values(&mut self) -> Option<Vec<(usize, &'s str)>> {
        if !self.mark('(') {
            return None;
        }
        let mut values = Vec::new();
        let (mut depth, mut quote) = (0_usize, None);
        self.rest();
        let mut begin = self.at;
        for (at, letter) in self.sql[begin..].char_indices() {
            let at = self.at + at;
            match (quote, letter) {
                (Some(open), _) => quote = Some(open).filter(|open| *open != letter),
                (None, '\'' | '"' | '`') => quote = Some(letter),
                (None, '(' | '[') => depth += 1,
                (None, ')' | ']') if depth > 0 => depth -= 1,
                (None, ',' | ')') if depth == 0 => {
                    let value = &self.sql[begin..at];
                    let blanks = value.len() - value.trim_start().len();
                    values.push((begin + blanks, value.trim()));
                    begin = at + 1;
                    if letter == ')' {
                        self.at = begin;
                        return Some(values);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        shown_in(sql, Dialect::Dollar)
    }

    fn shown_in(sql: &str, dialect: Dialect) -> String {
        let Some(PlainWrite { schema, table, given }) = PlainWrite::of(sql, dialect) else {
            return "none".to_owned();
        };
        let given = given.into_iter().map(|ColumnParameter { column, name, at }| {
            assert_eq!(sql[at..].strip_prefix(':').map(|it| it.starts_with(&name)), Some(true));
            format!("{}={name}", column.sql('"'))
        });
        let schema = schema.map_or_else(String::new, |it| format!("{}.", it.sql('"')));
        format!("{schema}{}: {}", table.sql('"'), given.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn comments_and_strings_hide_no_parameter() {
        for (sql, expected) in [
            ("update t set n = :n -- it's in EUR\n, m = :m where id = :id", "t: n=n m=m"),
            ("update t set n = :n /* in EUR, */ where id = :id", "t: n=n"),
            ("insert into t (a, b) values (:a /* it's */, :b -- last\n)", "t: a=a b=b"),
            ("insert into t (a, b) values ('--', :b)", "t: b=b"),
        ] {
            for dialect in [Dialect::Dollar, Dialect::Question] {
                assert_eq!(shown_in(sql, dialect), expected, "{sql}");
            }
        }
        let mysql = |sql| shown_in(sql, Dialect::Question);
        assert_eq!(mysql("update t set v = 'it\\'s', n = :n where id = :id"), "t: n=n");
        assert_eq!(mysql("update t set v = 'a' # it's\n, n = :n"), "t: n=n");
        assert_eq!(mysql("update t set v = \"it\\\"s, \", n = :n"), "t: n=n");
        assert_eq!(mysql("update t set \"v\" = \"it's\", n = :n"), "t: n=n");
        assert_eq!(mysql("update t set T.m = :m, u.v = :v, n = :n"), "none");
        assert_eq!(mysql("update t set T.m = :m, n = :n"), "t: m=m n=n");
        assert_eq!(
            mysql("insert into t (a) values (:a) on duplicate key update u.v = :v, t.m = :m"),
            "t: a=a m=m"
        );
        assert_eq!(mysql("update t set v = --1, n = :n"), "t: n=n");
        assert_eq!(mysql("update t set v = 1--1, n = :n"), "t: n=n");
        assert_eq!(mysql("update t set m = :m, n = :n /*!50000 + 1 */"), "t: m=m");
        assert_eq!(mysql("update t set v = @from, w = t.limit, n = :n"), "t: n=n");
        assert_eq!(shown("update t set v = a[1:f(2, 3)], w = array[1, 2], n = :n"), "t: n=n");
        assert_eq!(shown("insert into t (v, n) values (array[1, 2], :n)"), "t: n=n");
        assert_eq!(shown("update t set v = E'it\\'s', n = :n"), "t: n=n");
        assert_eq!(shown("update t set v = $x$it's$x$, n = :n"), "t: n=n");
    }

    #[test]
    fn a_plain_update_says_which_column_gets_which_parameter() {
        for (sql, expected) in [
            ("update t set a = :a", "t: a=a"),
            (
                "UPDATE s.`t b` SET a=:x,b = now() , \"c\"\t=\n:_at WHERE d = :d, e = :e",
                "s.\"t b\": a=x \"c\"=_at",
            ),
            ("update t set a = f(:x, (1)), b = 'where, '':y', c = :c", "t: c=c"),
            ("update t set a = :where, b = :set where a = :a", "t: a=where b=set"),
            ("update t set a = :a + 1, b = - :b, c = :c::text", "t: "),
            ("update t set a = case when b then :a end, c = :c limit 1", "t: c=c"),
            ("update t set a = :_at returning a", "t: a=_at"),
            ("update t set a = :a;", "t: a=a"),
            ("update t set nowhere = :a, wherever = :b", "t: nowhere=a wherever=b"),
            ("update t set a = ), b = :b", "t: b=b"),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_plain_insert_says_which_column_gets_which_parameter() {
        for (sql, expected) in [
            ("insert into hits (id, at) values (:id, :_at)", "hits: id=id at=_at"),
            ("INSERT INTO a.hits(id,at) VALUES(:id,now())", "a.hits: id=id"),
            (
                "-- it is\ninsert or ignore into \"a b\" /* so */ (`x`, y)\nvalues (\n  'a,)' || f(:y, 1), :_at\n)",
                "\"a b\": y=_at",
            ),
            ("replace into t (a) value (:a) on duplicate key update a = 1", "t: a=a"),
            (
                "insert into t (a) values (:a) on duplicate key update b = :b, a = values(a)",
                "t: a=a b=b",
            ),
            (
                "insert into t (a) values (:a) on conflict (lower(update)) where b <> 'update' and c = :update \
                 do update set B = :b, c = excluded.c, d = :d where t.e = :e returning a",
                "t: a=a B=b d=d",
            ),
            ("insert into t (a) values (:a) on conflict do update set (a, b) = (:a, :b)", "t: a=a"),
            ("insert into t (a) values (:a) on conflict do nothing returning a", "t: a=a"),
            ("insert into t (ä) values (:ä)", "t: ä=ä"),
            ("insert into \"a.b\" (A) values (:a)", "\"a.b\": A=a"),
            ("insert into A.\"b.C\"(\"D\") values (:d)", "A.\"b.C\": \"D\"=d"),
            ("insert into t (a) values (:a::text)", "t: "),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn of_anything_else_nothing_is_said() {
        for sql in [
            "",
            "insert",
            "insert into",
            "insert into t",
            "insert into t (",
            "insert into t (a",
            "insert into t (a,) values (:a)",
            "insert into t values (:a)",
            "insert into t (a) select :a",
            "insert into t (a) values (:a",
            "insert into t (a) values ('a",
            "insert into t (a, b) values (:a)",
            "insert into t (a, b) values (:a, :b), (:b, :a)",
            "insert into a.b.c (a) values (:a)",
            "insert into t (\"a\"\"b\") values (:a)",
            "update",
            "update t",
            "update t as u set a = :a",
            "update t set",
            "update t set a",
            "update t set a = :a,",
            "update t set u.a = :a",
            "update t set (a, b) = (:a, :b)",
            "update t join u set a = :a",
            "/* insert into t (a) values (:a)",
            "-- insert",
        ] {
            assert_eq!(shown(sql), "none", "{sql}");
        }
    }
}
