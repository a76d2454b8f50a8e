//! What the parameters of a statement of MySQL and MariaDB accept. The server does not report their types.

use crate::column::{Compared, Takes, of_parameter};
use crate::uses::{Goes, TableName, Use, Uses};
use crate::{Dialect, MysqlColumn, PlainWrite};

/// A table that a statement names, with its columns. A table that does not exist has none.
pub type MysqlTable = (TableName, Vec<MysqlColumn>);

/// Returns what the value of each parameter must be, in their order, and the names of those that are compared with
/// something else than a column.
#[must_use]
pub fn mysql_parameters(sql: &str, tables: &[MysqlTable]) -> (Vec<Takes>, Vec<String>) {
    let uses = Uses::of(sql, Dialect::Question);
    let write = PlainWrite::of(sql, Dialect::Question);
    let columns = |wanted: &TableName| {
        let found = tables
            .iter()
            .find(|(table, _)| table.schema == wanted.schema && table.table == wanted.table);
        found.map(|(_, columns)| &**columns).filter(|columns| !columns.is_empty())
    };
    let compared = |table: &TableName, name: &str| {
        let column = columns(table)?.iter().find(|it| it.name.eq_ignore_ascii_case(name));
        Some(column.map(MysqlColumn::compared))
    };
    // The table that is written to is named first.
    let written_columns = |table: &str| {
        let found = tables.iter().find(|(named, _)| named.table == table);
        found.map(|(_, columns)| columns).filter(|columns| !columns.is_empty())
    };
    let written = |name: &str| {
        let columns = written_columns(&write.as_ref()?.table.text)?;
        columns.iter().find(|it| it.name.eq_ignore_ascii_case(name)).map(MysqlColumn::takes)
    };
    let stored = |goes: &Goes| match goes {
        Goes::Stored(column) => uses.resolve(column.as_ref()?, |table: &TableName, name: &str| {
            let column = columns(table)?.iter().find(|it| it.name.eq_ignore_ascii_case(name));
            Some(column.map(MysqlColumn::takes))
        }),
        Goes::Read => None,
    };
    let mut unknown = Vec::new();
    let takes = uses.parameters.iter().map(|(_, name, of)| match of {
        Use::Pattern => Takes::Compared(Compared::Text),
        Use::Column(column) => uses.resolve(column, compared).unwrap_or_else(|| {
            unknown.push(name.clone());
            Takes::Compared(Compared::Expression)
        }),
        Use::Expression => {
            unknown.push(name.clone());
            Takes::Compared(Compared::Expression)
        }
        Use::Parameter => Takes::Compared(Compared::Parameter),
        Use::Interval => Takes::Operand { doubles: true },
        // The servers take -1 for the largest number.
        Use::Limit => Takes::Unsigned(u64::MAX),
        Use::Number(goes) | Use::Extreme(goes) => {
            let is_number = matches!(of, Use::Number(_));
            if *goes == Goes::Read {
                unknown.push(name.clone());
            }
            match (stored(goes), goes) {
                (_, Goes::Read) if is_number => Takes::Operand { doubles: true },
                (Some(of), _) if of.is_double() => Takes::Operand { doubles: true },
                (Some(of), _) if of.is_number() => Takes::Operand { doubles: false },
                _ if is_number => Takes::Operand { doubles: false },
                _ => Takes::Extreme { numbers: *goes != Goes::Read },
            }
        }
        Use::Value | Use::Json | Use::Other => {
            // Its types are not known.
            if *of != Use::Other
                && write.as_ref().is_some_and(|it| written_columns(&it.table.text).is_none())
            {
                unknown.push(name.clone());
            }
            of_parameter(write.as_ref(), name, |it| written(&it.text)).unwrap_or_default()
        }
    });
    let takes = takes.collect();
    unknown.dedup();
    (takes, unknown)
}
