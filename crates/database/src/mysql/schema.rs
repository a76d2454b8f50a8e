//! Reads the definition of a table from the server, and makes the statements that store rows in it.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Statement};
use sql::{MysqlColumn, PlainWrite, listed, quoted};

use super::fault::refused;
use super::lookup::Lookup;
use crate::resend::{KeyColumn, KeyType};
use crate::source::{self, Source};
use crate::{Action, DatabaseError, OnConflict};
use sql::column::{Compared, Takes};

/// The numbers of rows that a statement may have, the largest first. Any batch is divided into few of them.
const SIZES: [usize; 10] = [1000, 500, 250, 100, 50, 25, 10, 5, 2, 1];

/// The maximum number of parameters of one statement. The protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = 65_535;

/// Returns the maximum size of the values in a request, in bytes, for a server with this maximum packet size. The rest
/// is for other parts of the statement.
pub(super) fn request_max(packet_max: usize) -> usize {
    packet_max - packet_max / 64
}

/// The number of rows of the largest statement.
pub(super) const ROWS_MAX: usize = SIZES[0];

/// The statements that store rows.
#[derive(Debug)]
pub(super) struct Values {
    head: String,
    tail: String,
    columns: usize,
    /// Looks up existing rows, if rows that already exist may be kept.
    pub(super) lookup: Option<Lookup>,
}

impl Values {
    pub(super) fn new(table: &str, columns: &[String], on_conflict: &OnConflict) -> Self {
        let head = format!("insert into {} ({}) values ", table_sql(table), listed(columns, '`'));
        let (tail, lookup) = match on_conflict {
            OnConflict::Refuse => (String::new(), None),
            // MySQL cannot name the key of a conflict. So the existing row must have the same values in the key, or the
            // update fails with an error that has no other cause (1242). NULL is not a value of a key: such a row is in
            // conflict on another key. Both branches are the column, so that its value is not converted: a text form of
            // a float would change it.
            OnConflict::Nothing(key) => {
                let lookup = Lookup::new(&table_sql(table), columns, key);
                let key: Vec<String> = key.iter().map(|name| quoted(name, '`')).collect();
                let same = key.iter().map(|name| format!("{name} = values({name})"));
                let same = same.collect::<Vec<_>>().join(" and ");
                let column = key.first().map_or("", String::as_str);
                let tail = format!(
                    " on duplicate key update {column} = if({same}, {column}, \
                     (select {column} union all select {column}))"
                );
                (tail, Some(lookup))
            }
        };
        Self { head, tail, columns: columns.len(), lookup }
    }

    /// Returns how many of `rows` the next statement stores. Its text is at most `bytes_max` bytes long.
    pub(super) fn size(&self, rows: usize, bytes_max: usize) -> usize {
        let text = |size: usize| self.head.len() + self.tail.len() + size * (2 * self.columns + 2);
        let fits = |size: &&usize| {
            **size <= rows && **size * self.columns <= PARAMETERS_MAX && text(**size) <= bytes_max
        };
        SIZES.iter().find(fits).copied().unwrap_or(1)
    }

    /// Returns the statement for this number of rows.
    pub(super) fn sql(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.columns].join(","));
        let rows = vec![row.as_str(); rows].join(",");
        format!("{}{rows}{}", self.head, self.tail)
    }
}

/// Returns the SQL name of a table. A name with a dot contains the schema.
pub(super) fn table_sql(table: &str) -> String {
    table.split('.').map(|part| quoted(part, '`')).collect::<Vec<_>>().join(".")
}

/// Returns the SQL name of the table that an action writes to, and its columns that get values of records. `None` if
/// they are unknown.
pub(super) fn target(action: &Action) -> Option<(String, Vec<String>)> {
    let (table, columns) = match action {
        Action::Insert { table, columns, .. } => (table_sql(table), columns.clone()),
        Action::Statement(sql) => {
            let PlainWrite { schema, table, given } = PlainWrite::of(sql, sql::Dialect::Question)?;
            let parts = schema.iter().chain([&table]).map(|name| quoted(&name.text, '`'));
            let columns = given.into_iter().map(|given| given.column.text).collect();
            (parts.collect::<Vec<_>>().join("."), columns)
        }
        Action::Query(_) => return None,
    };
    (!columns.is_empty()).then_some((table, columns))
}

struct Column {
    name: String,
    of: String,
    must_be_given: bool,
    is_generated: bool,
}

/// Rejects a statement that assigns a value of the request itself to a column that does not accept it. The server does
/// not report types of parameters.
pub(super) async fn check_statement(
    connection: &mut Conn,
    server: &str,
    sql: &str,
) -> Result<(), DatabaseError> {
    let of_request = |write: &PlainWrite| {
        write.given.iter().any(|given| source::reserved(&given.name).is_some())
    };
    let Some(write) = PlainWrite::of(sql, sql::Dialect::Question).filter(of_request) else {
        return Ok(());
    };
    let (schema, name) = named(&write);
    let known = columns_of(connection, schema, name).await;
    let known = known.map_err(|error| refused(server, &error))?;
    for given in &write.given {
        let Some(source) = source::reserved(&given.name) else { continue };
        let column = known.iter().find(|it| it.name.eq_ignore_ascii_case(&given.column.text));
        let Some(column) = column else { continue };
        let Some(what) = source.misfit(&column.of) else { continue };
        let advice = match source {
            Source::At => "; `from_unixtime(:_at / 1e6)` makes a time of it",
            _ => "",
        };
        return Err(source::unfit(given, &column.of, what, advice));
    }
    Ok(())
}

/// Returns what the columns of the parameters accept, and the names of the parameters that are compared with something
/// else than a column. The server does not report this for a statement.
pub(super) async fn takes(
    connection: &mut Conn,
    action: &Action,
    names: &[String],
) -> Result<(Vec<Takes>, Vec<String>), Error> {
    let sql = match action {
        Action::Insert { table, .. } => {
            let (schema, table) = apart(table);
            let columns = described(connection, schema, table).await?;
            let column = |name: &String| {
                let found = columns.iter().find(|it| it.name.eq_ignore_ascii_case(name));
                found.map(MysqlColumn::takes).unwrap_or_default()
            };
            return Ok((names.iter().map(column).collect(), Vec::new()));
        }
        Action::Statement(sql) => sql,
        Action::Query(query) => &query.sql,
    };
    let mut tables = Vec::new();
    for named in sql::tables(sql, sql::Dialect::Question) {
        let columns = described(connection, named.schema.as_deref(), &named.table).await?;
        tables.push((named, columns));
    }
    let (takes, unknown) = sql::mysql_parameters(sql, &tables);
    // A parameter in a comment that the server executes (`/*! … */`).
    if takes.len() != names.len() {
        return Ok((vec![Takes::Compared(Compared::Expression); names.len()], names.to_vec()));
    }
    Ok((takes, unknown))
}

/// Reads the columns of a table.
async fn described(
    connection: &mut Conn,
    schema: Option<&str>,
    table: &str,
) -> Result<Vec<MysqlColumn>, Error> {
    let sql = "select column_name, data_type, \
               cast(case when data_type in ('char', 'varchar') then character_maximum_length \
               when data_type in ('tinytext', 'text') then character_octet_length \
               when data_type = 'bit' then numeric_precision \
               else coalesce(numeric_scale, datetime_precision) end as signed), \
               cast(numeric_precision as signed), \
               case when data_type in ('enum', 'set') then column_type end \
               from information_schema.columns \
               where table_schema = coalesce(?, database()) and table_name = ?";
    type Described = (String, String, Option<u32>, Option<u32>, Option<String>);
    let rows: Vec<Described> = connection.exec(sql, (schema, table)).await?;
    let json = json_checks(connection, schema, table).await;
    let column = |(name, of, size, precision, words): Described| {
        let is_json = is_json(&json, &name);
        MysqlColumn { name, of, size, precision, words, is_json }
    };
    Ok(rows.into_iter().map(column).collect())
}

/// Whether one of these checks marks a column as JSON, which is text in MariaDB. The server shows names in other quotes
/// with the mode `ANSI_QUOTES`, and without quotes with `sql_quote_show_create = off`.
fn is_json(checks: &[String], column: &str) -> bool {
    let names = [quoted(column, '`'), quoted(column, '"'), column.to_owned()];
    names.iter().any(|name| checks.contains(&format!("json_valid({name})")))
}

/// Returns the JSON checks of a table, also those that are combined with other checks. There are none in MySQL, where
/// JSON is a type.
async fn json_checks(connection: &mut Conn, schema: Option<&str>, table: &str) -> Vec<String> {
    let sql = "select check_clause from information_schema.check_constraints \
               where constraint_schema = coalesce(?, database()) and table_name = ? \
               and check_clause like '%json_valid(%' and check_clause not like '% or %'";
    let clauses: Vec<String> = connection.exec(sql, (schema, table)).await.unwrap_or_default();
    let parts = clauses.iter().flat_map(|clause| clause.split(" and "));
    parts.map(str::to_owned).collect()
}

/// Returns for each column of a query whether it is a JSON column of a table.
pub(super) async fn json_columns(connection: &mut Conn, query: &Statement) -> Vec<bool> {
    let mut known: Vec<((String, String), Vec<String>)> = Vec::new();
    let mut found = Vec::new();
    for column in query.columns().iter() {
        let place = (column.schema_str().into_owned(), column.org_table_str().into_owned());
        if place.1.is_empty() {
            found.push(false);
            continue;
        }
        let at = match known.iter().position(|(known, _)| *known == place) {
            Some(at) => at,
            None => {
                let checks = json_checks(connection, Some(&place.0), &place.1).await;
                known.push((place, checks));
                known.len() - 1
            }
        };
        found.push(is_json(&known[at].1, &column.org_name_str()));
    }
    found
}

/// Returns the schema of a table, if it is named, and the table's name.
pub(super) fn apart(table: &str) -> (Option<&str>, &str) {
    table.split_once('.').map_or((None, table), |(schema, name)| (Some(schema), name))
}

/// Returns the schema of the table of a statement, if it is named, and the table's name.
pub(super) fn named(write: &PlainWrite) -> (Option<&str>, &str) {
    (write.schema.as_ref().map(|name| &*name.text), &write.table.text)
}

/// Rejects a table or columns in which the rows cannot be stored.
pub(super) async fn check(
    connection: &mut Conn,
    server: &str,
    table: &str,
    columns: &[String],
    sources: &[Source],
) -> Result<(), DatabaseError> {
    let told = |error: Error| refused(server, &error);
    let (schema, name) = apart(table);
    let known = columns_of(connection, schema, name).await.map_err(told)?;
    if known.is_empty() {
        let sql = "select table_name from information_schema.tables \
                   where table_schema = database() order by 1 limit 50";
        let tables = connection.query(sql).await.map_err(told)?;
        return Err(DatabaseError::NoTable { table: table.to_owned(), tables });
    }
    for (name, source) in columns.iter().zip(sources) {
        let Some(column) = known.iter().find(|it| it.name.eq_ignore_ascii_case(name)) else {
            let columns = known.into_iter().map(|column| column.name).collect();
            let (column, table) = (name.clone(), table.to_owned());
            return Err(DatabaseError::NoColumn { column, table, columns });
        };
        let given = match column.is_generated {
            true => Some("values: it is generated"),
            false if sql::MYSQL_SHAPES.contains(&&*column.of) => {
                Some("texts and numbers; a `statement` can make a shape of them")
            }
            false => source.misfit(&column.of),
        };
        if let Some(given) = given {
            let (column, of) = (column.name.clone(), column.of.clone());
            return Err(DatabaseError::Type { column, of, given: given.to_owned() });
        }
    }
    let unset = |column: &&Column| {
        column.must_be_given && !columns.iter().any(|it| it.eq_ignore_ascii_case(&column.name))
    };
    if let Some(column) = known.iter().find(unset) {
        let (column, table) = (column.name.clone(), table.to_owned());
        return Err(DatabaseError::Unset { column, table });
    }
    Ok(())
}

async fn columns_of(
    connection: &mut Conn,
    schema: Option<&str>,
    table: &str,
) -> Result<Vec<Column>, Error> {
    let sql = "select column_name, data_type, \
               is_nullable = 'NO' and column_default is null and extra not like '%auto_increment%', \
               extra like '%GENERATED%' \
               from information_schema.columns \
               where table_schema = coalesce(?, database()) and table_name = ? \
               order by ordinal_position";
    let rows: Vec<(String, String, bool, bool)> = connection.exec(sql, (schema, table)).await?;
    let column = |(name, of, must_be_given, is_generated): (_, _, bool, bool)| Column {
        name,
        of,
        must_be_given: must_be_given && !is_generated,
        is_generated,
    };
    Ok(rows.into_iter().map(column).collect())
}

/// A key of a table.
#[derive(Debug, Default)]
pub(super) struct Key {
    /// The name of its index.
    pub(super) index: Option<String>,
    /// The columns of the key, if none of them may be NULL, and no visible trigger can give a row another key or change
    /// an existing row. Then a row that is sent again with the same key changes nothing.
    pub(super) columns: Option<Vec<KeyColumn>>,
    /// One sentence for each further effect on existing rows.
    pub(super) doubts: Vec<String>,
}

/// Rejects a key that the table does not have.
pub(super) async fn check_key(
    connection: &mut Conn,
    server: &str,
    table: &str,
    columns: &[String],
    key: &[String],
) -> Result<Key, DatabaseError> {
    let (schema, name) = apart(table);
    let sql = "select index_name, column_name, coalesce(nullable, '') = 'YES' \
               from information_schema.statistics where non_unique = 0 \
               and table_schema = coalesce(?, database()) and table_name = ? \
               order by index_name, seq_in_index";
    // An index of an expression has no column name.
    let rows: Vec<(String, Option<String>, bool)> =
        connection.exec(sql, (schema, name)).await.map_err(|error| refused(server, &error))?;
    let mut keys = Vec::new();
    for index in rows.chunk_by(|one, other| one.0 == other.0) {
        let parts = index.iter().map(|(_, column, _)| column.clone());
        let Some(parts) = parts.collect::<Option<Vec<String>>>() else { continue };
        let holds = |name: &String| parts.iter().any(|it| it.eq_ignore_ascii_case(name));
        if parts.len() == key.len() && key.iter().all(holds) {
            let may_be_null = index.iter().any(|(_, _, may_be_null)| *may_be_null);
            let triggers = triggers(connection, server, table).await?;
            let doubts = triggers.iter().filter(|it| it.1).map(|(name, _)| doubt(table, name));
            let mut found = Key { index: Some(index[0].0.clone()), ..Key::default() };
            found.doubts = doubts.collect();
            if !may_be_null && triggers.is_empty() {
                let columns = key_columns(connection, server, table, columns, key).await?;
                found.columns = Some(columns);
            }
            return Ok(found);
        }
        keys.push(parts.join(", "));
    }
    let add = format!("alter table {} add unique ({})", table_sql(table), listed(key, '`'));
    Err(DatabaseError::NoKey { key: key.join(", "), table: table.to_owned(), keys, add })
}

/// Returns the columns of a key, and which of them are counters.
async fn key_columns(
    connection: &mut Conn,
    server: &str,
    table: &str,
    columns: &[String],
    key: &[String],
) -> Result<Vec<KeyColumn>, DatabaseError> {
    let (schema, name) = apart(table);
    let sql = "select column_name from information_schema.columns \
               where table_schema = coalesce(?, database()) and table_name = ? \
               and extra like '%auto_increment%'";
    let counters: Result<Vec<String>, Error> = connection.exec(sql, (schema, name)).await;
    let counters = counters.map_err(|error| refused(server, &error))?;
    let column = |name: &String| {
        let parameter = columns.iter().position(|it| it.eq_ignore_ascii_case(name))?;
        let is_counter = counters.iter().any(|it| it.eq_ignore_ascii_case(name));
        let of = if is_counter { KeyType::Counter } else { KeyType::Plain };
        Some(KeyColumn { parameter, of })
    };
    Ok(key.iter().filter_map(column).collect())
}

/// Returns the triggers that may run for a row that already exists, and whether each runs on UPDATE.
async fn triggers(
    connection: &mut Conn,
    server: &str,
    table: &str,
) -> Result<Vec<(String, bool)>, DatabaseError> {
    let (schema, name) = apart(table);
    let sql = "select trigger_name, event_manipulation = 'UPDATE' from information_schema.triggers \
               where event_object_schema = coalesce(?, database()) and event_object_table = ? \
               and (event_manipulation = 'UPDATE' \
               or event_manipulation = 'INSERT' and action_timing = 'BEFORE')";
    connection.exec(sql, (schema, name)).await.map_err(|error| refused(server, &error))
}

fn doubt(table: &str, trigger: &str) -> String {
    format!(
        "the trigger `{trigger}` of the table `{table}` also runs for a row that exists already: \
         `on_conflict` updates it with its own values"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_rows_is_made_of_few_sizes() {
        let columns = ["a".to_owned(), "b`".to_owned()];
        let key = OnConflict::Nothing(vec!["b`".to_owned()]);
        let values = Values::new("s.t", &columns, &key);
        assert_eq!(
            values.sql(2),
            "insert into `s`.`t` (`a`, `b```) values (?,?),(?,?) on duplicate key update `b``` = \
             if(`b``` = values(`b```), `b```, (select `b``` union all select `b```))"
        );
        for rows in [1, 2, 3, 7, 99, 777, 1000, 1001, 5000] {
            let (mut left, mut statements) = (rows, 0);
            while left > 0 {
                left -= values.size(left, usize::MAX);
                statements += 1;
            }
            assert!(statements <= 9 + rows / 1000, "{rows}: {statements}");
        }
        let wide: Vec<String> = (0..200).map(|it| format!("c{it}")).collect();
        let wide = Values::new("t", &wide, &OnConflict::Refuse);
        assert_eq!(wide.size(1000, usize::MAX), 250);
        assert_eq!(wide.size(1000, 64 * 1024), 100);
    }
}
