//! Warnings of values that are not checked in MySQL and MariaDB.

use crate::{Dialect, PlainWrite, check_verb};

const UNCHECKED: &str = "`statement`: its values are not compared with the types of the columns, which may round or cut \
    them; write it as `insert into t (a, b) values (:a, :b)` or `update t set a = :a`";

/// Returns what to say of values of this statement that are not compared with the types of columns. The server does not
/// report which column a parameter is for.
#[must_use]
pub fn unchecked(
    sql: &str,
    names: &[String],
    is_reserved: impl Fn(&str) -> bool,
) -> Option<String> {
    let Some(write) = PlainWrite::of(sql, Dialect::Question) else {
        let is_delete = check_verb(sql, &["delete"]).is_ok();
        return (!names.is_empty() && !is_delete).then(|| UNCHECKED.to_owned());
    };
    if check_verb(sql, &["insert", "replace"]).is_err() {
        // The other parameters of an `update` are usually in its `where`.
        return None;
    }
    let is_alone = |name: &&String| write.given.iter().any(|given| given.name == **name);
    let within: Vec<_> = names
        .iter()
        .filter(|name| !is_alone(name) && !is_reserved(name))
        .map(|name| format!("`:{name}`"))
        .collect();
    (!within.is_empty()).then(|| {
        format!(
            "`statement`: the value of {} is not compared with the type of a column, which may round or cut it; \
             write the parameter alone as the value of a column",
            within.join(", ")
        )
    })
}
