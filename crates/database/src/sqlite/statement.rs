//! The one statement that a handler runs.

use rusqlite::{Connection, Error, Statement};

use super::fault::text_of;
use crate::source::{Members, Source};
use crate::{Action, DatabaseError, OnConflict, name};

/// The verbs that a statement may begin with. Any other statement either does not write, or ends the transaction that
/// contains the rows of other clients.
const WRITING: [&str; 5] = ["insert", "replace", "update", "delete", "with"];

/// The verbs that a query may begin with.
const READING: [&str; 3] = ["select", "values", "with"];

/// Returns the statement for `action`, checked as far as possible without its database.
pub(super) fn sql_of(action: &Action) -> Result<String, DatabaseError> {
    match action {
        Action::Insert { table, columns, on_conflict } => insert(table, columns, on_conflict),
        Action::Statement(sql) => {
            sql::check_verb(sql, &WRITING)?;
            check_syntax(sql)?;
            Ok(sql.clone())
        }
        Action::Query(query) => {
            sql::check_verb(&query.sql, &READING)?;
            check_syntax(&query.sql)?;
            Ok(query.sql.clone())
        }
    }
}

fn insert(
    table: &str,
    columns: &[String],
    on_conflict: &OnConflict,
) -> Result<String, DatabaseError> {
    name::check_insert(table, columns)?;
    name::check_key(columns, on_conflict)?;
    let names = sql::listed(columns, '"');
    let marks = vec!["?"; columns.len()].join(", ");
    let conflict = match on_conflict {
        OnConflict::Refuse => String::new(),
        OnConflict::Nothing(key) => {
            format!(" on conflict ({}) do nothing", sql::listed(key, '"'))
        }
    };
    Ok(format!("insert into {} ({names}) values ({marks}){conflict}", quoted(table)))
}

/// Returns a quoted identifier. The name may contain any characters.
pub(super) fn quoted(name: &str) -> String {
    sql::quoted(name, '"')
}

/// Rejects a statement with a syntax error. Names are unknown here and are checked by the real database.
fn check_syntax(sql: &str) -> Result<(), DatabaseError> {
    let empty = Connection::open_in_memory().map_err(refuse)?;
    match empty.prepare(sql) {
        Err(error) if is_syntax(&error) => Err(refuse(error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn is_syntax(error: &Error) -> bool {
    let text = error.to_string();
    matches!(error, Error::MultipleStatement | Error::NulError(_))
        || ["syntax error", "incomplete input", "unrecognized token"]
            .iter()
            .any(|sign| text.contains(sign))
}

/// Returns the error for an operator whose statement cannot be prepared.
pub(super) fn refuse(error: Error) -> DatabaseError {
    let at = match error {
        Error::SqlInputError { offset, .. } => usize::try_from(offset).ok(),
        _ => None,
    };
    let text = match error {
        Error::MultipleStatement => "more than one statement; a row runs one".to_owned(),
        other => text_of(&other),
    };
    DatabaseError::statement(&text, at)
}

/// Returns the sources of the parameters of `statement`.
pub(super) fn parameters(
    action: &Action,
    statement: &Statement<'_>,
    members: &mut Members,
) -> Result<Vec<Source>, DatabaseError> {
    match action {
        Action::Insert { columns, .. } => {
            columns.iter().map(|column| members.source(column)).collect()
        }
        Action::Statement(_) | Action::Query(_) => (1..=statement.parameter_count())
            .map(|index| match statement.parameter_name(index) {
                Some(name) if name.len() > 1 && !name.starts_with('?') => {
                    members.source(&name[1..])
                }
                _ => {
                    let text = format!("parameter {index} has no name; write it as `:name`");
                    Err(DatabaseError::Statement(text.into()))
                }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        match sql_of(&Action::Statement(sql.to_owned())) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn one_statement_that_writes_is_accepted_before_its_table_is_known() {
        assert_eq!(shown("insert into hits values (:a, :b)"), "fine");
        assert_eq!(shown(" -- why\n/* and */ UPDATE hits set a = :a;  -- end\n"), "fine");
        assert_eq!(shown("with x as (select 1) insert into hits select * from x"), "fine");
    }

    #[test]
    fn what_would_end_or_leave_the_transaction_is_refused() {
        for sql in [
            "commit",
            "ROLLBACK",
            "begin",
            "savepoint x",
            "release x",
            "pragma x",
            "attach 'x' as y",
            "vacuum",
            "select 1",
            "explain insert into x values (1)",
            "",
            "-- nothing",
            "/* open",
            ";insert into x values (1)",
        ] {
            let text = shown(sql);
            assert!(text.starts_with("`statement`: begins with `"), "{sql}: {text}");
        }
    }

    #[test]
    fn syntax_is_checked_without_the_database() {
        assert_eq!(shown("insert inta hits"), "`statement`: near \"inta\": syntax error");
        assert_eq!(shown("insert into hits values ("), "`statement`: incomplete input");
        assert_eq!(shown("insert into hits values (#)"), "`statement`: unrecognized token: \"#\"");
    }

    #[test]
    fn identifiers_are_quoted() {
        let action = Action::Insert {
            table: "a\"b; drop table x".to_owned(),
            columns: vec!["order".to_owned(), "é".to_owned()],
            on_conflict: OnConflict::Nothing(vec!["é".to_owned()]),
        };
        assert_eq!(
            sql_of(&action).unwrap(),
            r#"insert into "a""b; drop table x" ("order", "é") values (?, ?) on conflict ("é") do nothing"#
        );
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        let error = |table: &str, columns: &[&str]| {
            let columns = columns.iter().map(|&column| column.to_owned()).collect();
            let table = table.to_owned();
            let action = Action::Insert { table, columns, on_conflict: OnConflict::Refuse };
            sql_of(&action).unwrap_err().to_string()
        };
        assert_eq!(error("", &["a"]), "`insert`: this cannot be a name: ``");
        assert_eq!(error("t", &["a\0"]), "`insert`: this cannot be a name: `a\\0`");
        assert_eq!(error("t", &[]), "`insert`: no columns for table `t`");
        assert_eq!(error("t", &["a", "b", "A"]), "`insert`: named twice: column `A`");
    }
}
