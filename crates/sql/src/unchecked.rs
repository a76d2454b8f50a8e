//! Warnings of values that are not checked.

use crate::uses::{Goes, Use, Uses};
use crate::{Dialect, PlainWrite, check_verb};

const UNCHECKED: &str = "`statement`: its values are not compared with the types of the columns, which may round or cut \
    them; write it as `insert into t (a, b) values (:a, :b)` or `update t set a = :a`";

/// Returns what to say of values of this statement that are not compared with the types of columns. The server does not
/// report which column a parameter is for.
#[must_use]
pub fn unchecked(
    sql: &str,
    dialect: Dialect,
    is_reserved: impl Fn(&str) -> bool,
) -> Option<String> {
    let uses = Uses::of(sql, dialect);
    let Some(write) = PlainWrite::of(sql, dialect) else {
        let writes = match dialect {
            Dialect::Question => check_verb(sql, &["delete"]).is_err(),
            // A function or a procedure has no columns.
            Dialect::Dollar => check_verb(sql, &["insert", "update", "merge", "with"]).is_ok(),
        };
        return (!uses.parameters.is_empty() && writes).then(|| UNCHECKED.to_owned());
    };
    let is_alone = |place: usize| write.given.iter().any(|given| given.at == place);
    let mut within: Vec<String> = Vec::new();
    for (place, name, of) in &uses.parameters {
        let shown = format!("`:{name}`");
        let is_part =
            matches!(of, Use::Value | Use::Number(Goes::Stored(_)) | Use::Extreme(Goes::Stored(_)));
        if is_part && !is_alone(*place) && !is_reserved(name) && !within.contains(&shown) {
            within.push(shown);
        }
    }
    (!within.is_empty()).then(|| {
        format!(
            "`statement`: the value of {} within an expression is not compared with the type of a column, which may \
             round or cut it; write the parameter alone as the value of a column",
            within.join(", ")
        )
    })
}

/// Returns what to say of parameters that MySQL and MariaDB compare with something else than a column.
#[must_use]
pub fn uncompared(names: &[String]) -> Option<String> {
    let names: Vec<_> = names.iter().map(|name| format!("`:{name}`")).collect();
    (!names.is_empty()).then(|| {
        format!(
            "cannot check {}: it is not compared with a column alone, so the server may convert the value or the column, \
             and find other rows; compare it with a column, or convert it (`cast(:x as …)`)",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_alone_and_in_an_expression_is_reported() {
        let within = |sql, dialect| {
            let text = unchecked(sql, dialect, |name| name.starts_with('_'))?;
            let (_, text) = text.split_once("the value of ")?;
            text.split_once(" within").map(|(names, _)| names.to_owned())
        };
        for sql in [
            "insert into t (id, n) values (:id, :n) on duplicate key update m = m + :n",
            "insert into t (id, n) values (:id, :n) on conflict (id) do update set m = t.m + :n",
            "insert into t (id, n) values (:id, coalesce(:n, :_at))",
            "insert into t (id, n) values (:id, :n::numeric)",
            "update t set a = :a, m = coalesce(:n, 0) where id = :id",
            "update t set m = m + :n where id = f(:id)",
        ] {
            for dialect in [Dialect::Dollar, Dialect::Question] {
                assert_eq!(within(sql, dialect).as_deref(), Some("`:n`"), "{sql}");
            }
        }
        for sql in [
            "insert into t (id, n) values (:id, :n) on duplicate key update t.m = :n",
            "insert into t (id, n) values (:id, :doc::text::jsonb) on conflict (id) do update set m = :m where t.n < :n + 1",
            "update t set m = (select a from u where b = :b), n = :n where id = f(:id)",
        ] {
            assert_eq!(within(sql, Dialect::Question), None, "{sql}");
        }
    }

    #[test]
    fn a_statement_of_another_form_is_reported() {
        let reported = |sql, dialect| unchecked(sql, dialect, |_| false).is_some();
        for sql in ["insert into t select :a", "update t set (a, b) = (:a, :b)"] {
            assert!(reported(sql, Dialect::Dollar) && reported(sql, Dialect::Question), "{sql}");
        }
        assert!(!reported("select f(:a)", Dialect::Dollar));
        assert!(!reported("delete from t where a = :a", Dialect::Question));
    }
}
