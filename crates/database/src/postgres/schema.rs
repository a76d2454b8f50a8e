//! Reads the definition of a table from the server, and finds values that would not fit.

use sql::{Array, ColumnParameter, Name, PlainWrite, listed, quoted};
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use super::driver::StatementText;
use super::fault::{refused, unless_for_now};
use super::wire::Text;
use crate::resend::{KeyColumn, KeyType};
use crate::source::Source;
use crate::{Action, DatabaseError, OnConflict};
use sql::column::{Takes, of_parameter};

/// A statement that stores any number of rows.
#[derive(Debug)]
pub(super) struct Insert {
    pub(super) sql: String,
    /// A query with the same parameters that counts the rows whose key is not in the table. It counts one more if the
    /// unique indexes are no longer those of this statement.
    pub(super) absent: Option<String>,
    /// The types of the columns, in their order.
    pub(super) types: Vec<String>,
    /// What the columns accept.
    pub(super) takes: Vec<Takes>,
    /// The key, if it guarantees that no row is stored twice and that an existing one is kept.
    pub(super) key: Option<Vec<KeyColumn>>,
    /// A rule, also one on another server, may rewrite the insert: one row may be stored several times, and another not
    /// at all, so each must be counted separately.
    pub(super) has_rules: bool,
}

impl Insert {
    /// Returns a text of everything that depends on the columns of the table.
    pub(super) fn text(&self) -> String {
        let Self { sql, absent, takes, has_rules, .. } = self;
        let rules = if *has_rules { "; rules" } else { "" };
        format!("{sql}; {}; {takes:?}{rules}", absent.as_deref().unwrap_or_default())
    }
}

/// Returns the SQL name of a table. A name with a dot contains the schema.
pub(super) fn table_sql(table: &str) -> String {
    table.split('.').map(|part| quoted(part, '"')).collect::<Vec<_>>().join(".")
}

/// Returns these names as the server reads them: without quotes in lower case, and cut to the maximum length.
const RESOLVED: &str = "\
    select ((parse_ident(n))::name[])[1]::text from unnest($1::text[]) with ordinality u(n, i) order by i";

/// Returns the SQL name of the table that a statement writes to, and its columns that get values of records, as the
/// server reads them. `None` if it does not read them.
async fn resolved(
    client: &Client,
    write: &PlainWrite,
) -> Result<Option<(String, Vec<String>)>, Error> {
    let columns = write.given.iter().map(|given| &given.column);
    let names = write.schema.iter().chain([&write.table]).chain(columns);
    let names: Vec<String> = names.map(|name| name.sql('"')).collect();
    let names = Array::of(names.iter().map(String::as_str));
    let rows = match client.query(RESOLVED, &[&Text(Some(&names))]).await {
        Ok(rows) => rows,
        // The statement itself reports the error.
        Err(error) if error.as_db_error().is_some_and(|it| it.code().code() == "22023") => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut names = rows.iter().map(|row| row.get::<_, String>(0));
    let parts = names.by_ref().take(1 + usize::from(write.schema.is_some()));
    let table = parts.map(|part| quoted(&part, '"')).collect::<Vec<_>>().join(".");
    Ok(Some((table, names.collect())))
}

/// Returns the SQL name of the table that an action writes to, and its columns that get values of records. `None` if
/// they are unknown.
pub(super) async fn target(
    client: &Client,
    action: &Action,
) -> Result<Option<(String, Vec<String>)>, Error> {
    let target = match action {
        Action::Insert { table, columns, .. } => Some((table_sql(table), columns.clone())),
        Action::Statement(sql) => match PlainWrite::of(sql, sql::Dialect::Dollar) {
            Some(write) => resolved(client, &write).await?,
            None => None,
        },
        Action::Query(_) => None,
    };
    Ok(target.filter(|(_, columns)| !columns.is_empty()))
}

struct Column {
    name: String,
    /// The type without its length, which the column itself enforces.
    of: String,
    /// The type with its length, to which a value is converted when it is stored.
    stored: String,
    takes: Takes,
    /// The numbers of the type and of the base type of a domain.
    types: [u32; 2],
    /// The type of an array of these values, if there is one.
    array: Option<String>,
    must_be_given: bool,
    is_generated: bool,
}

impl Column {
    /// Returns how the column treats the values of a key.
    fn key_type(&self) -> KeyType {
        match &*self.of {
            "smallint" | "integer" | "bigint" | "numeric" | "text" | "character varying"
            | "character" | "uuid" | "bytea" | "boolean" => KeyType::Plain,
            // A time, or a type that may contain one, such as a range or a domain.
            _ => KeyType::Time,
        }
    }
}

/// Reads the columns of a table. There are no arrays of arrays; `unnest` would spread arrays of composite types over
/// several columns; and arrays of `box` have semicolons between their elements. The last value is the base type of a
/// domain, also of a domain of domains and of an array of them; of a range, it is the type of its bounds.
const COLUMNS: &str = "\
    with recursive base(number, oid, modifier, dimensions, ranges, depth) as ( \
      select a.attnum, a.atttypid, a.atttypmod, 0, 0, 0 from pg_attribute a \
        where a.attrelid = to_regclass($1::text) and a.attnum > 0 and not a.attisdropped \
      union all \
      select b.number, coalesce(nullif(t.typbasetype, 0), e.oid, r.rngsubtype), \
             case t.typtype when 'd' then t.typtypmod else b.modifier end, \
             b.dimensions + (e.oid is not null)::int, b.ranges + (r.rngsubtype is not null)::int, \
             b.depth + 1 \
        from base b join pg_type t on t.oid = b.oid \
        left join pg_type e on e.oid = t.typelem and e.typarray = t.oid \
        left join pg_range r on r.rngtypid = t.oid \
          or (to_jsonb(r) ->> 'rngmultitypid')::oid = t.oid \
        where t.typtype = 'd' or e.oid is not null or r.rngsubtype is not null) \
    select a.attname::text, format_type(a.atttypid, -1), \
           case when t.typarray <> 0 and t.typdelim = ',' and not exists (select from base b \
               join pg_type p on p.oid = b.oid \
               where b.number = a.attnum and b.dimensions + b.ranges = 0 and p.typtype = 'c') \
             then format_type(t.typarray, -1) end, \
           a.attnotnull and not a.atthasdef and a.attidentity = '', \
           a.attidentity = 'a' or a.attgenerated <> '', \
           format_type(a.atttypid, a.atttypmod), \
           (select repeat('range of ', b.ranges) || format_type(b.oid, b.modifier) \
              || repeat('[]', b.dimensions) from base b where b.number = a.attnum order by b.depth desc limit 1), \
           a.atttypid, (select b.oid from base b where b.number = a.attnum \
              and b.dimensions + b.ranges = 0 order by b.depth desc limit 1) \
    from pg_attribute a join pg_type t on t.oid = a.atttypid \
    where a.attrelid = to_regclass($1::text) and a.attnum > 0 and not a.attisdropped \
    order by a.attnum";

const TABLES: &str = "\
    select c.relname::text from pg_class c \
    where c.relkind in ('r', 'p', 'v', 'f') and pg_table_is_visible(c.oid) \
      and c.relnamespace <> 'pg_catalog'::regnamespace order by 1 limit 50";

/// Whether a unique index has only columns of $2, and none that may be NULL, and no trigger can give a row another key
/// or act before the key is checked. A partition may have its own triggers. (Types of triggers: 1 for each row, 2
/// before, 4 insert.) If the database has servers of foreign tables, no trigger at all is allowed: rows that it writes
/// there have no such key, and may be committed even if this row is not.
const HAS_KEY: &str = "\
    select not exists (select from pg_trigger g where g.tgenabled <> 'D' and (g.tgtype & 7 = 7 \
        or not g.tgisinternal and exists (select from pg_foreign_server)) \
      and g.tgrelid in (with recursive tree(oid) as (select to_regclass($1::text)::oid \
        union all select h.inhrelid from pg_inherits h join tree on h.inhparent = tree.oid) \
        select oid from tree)) \
    and exists (select from pg_index i \
      where i.indrelid = to_regclass($1::text) and i.indisunique and i.indisvalid \
        and i.indimmediate and i.indpred is null and i.indexprs is null \
        and not exists (select from unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k \
          join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k \
          where not a.attnotnull or a.attname::text <> all ($2::text[])))";

/// Whether a rule may rewrite an insert into a table, or into what is behind it: its partitions, and the tables of a
/// view. The server of a foreign table may do so too; it receives several rows together because of `batch_size`. (Types
/// of events: 3 insert.)
pub(super) const HAS_RULES: &str = "\
    with recursive tree(oid) as (select to_regclass($1::text)::oid \
      union select behind.oid from tree, lateral ( \
        select d.refobjid from pg_rewrite r \
          join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid \
            and d.refclassid = 'pg_class'::regclass where r.ev_class = tree.oid \
        union all select h.inhrelid from pg_inherits h where h.inhparent = tree.oid) behind(oid)) \
    select exists (select from pg_rewrite r join tree on tree.oid = r.ev_class \
      where r.ev_type = '3' and r.ev_enabled <> 'D') \
    or exists (select from pg_class c join tree on tree.oid = c.oid where c.relkind = 'f')";

/// Reads for each column of each unique index of exactly the columns in $2: the name, the collation and the operator
/// with which the index compares the column (strategy 3: equal), and whether NULLs are equal (since PostgreSQL 15). The
/// operator may be in a schema outside the search path, as that of `citext`, where `=` would be another operator.
const COLLATIONS: &str = "\
    select i.indexrelid::int8, a.attname::text, \
           (select quote_ident(n.nspname) || '.' || quote_ident(c.collname) from pg_collation c \
              join pg_namespace n on n.oid = c.collnamespace where c.oid = k.coll), \
           (select 'operator(' || quote_ident(n.nspname) || '.' || o.oprname || ')' from pg_opclass c \
              join pg_amop m on m.amopfamily = c.opcfamily and m.amopstrategy = 3 \
                and m.amoplefttype = c.opcintype and m.amoprighttype = c.opcintype \
              join pg_operator o on o.oid = m.amopopr \
              join pg_namespace n on n.oid = o.oprnamespace where c.oid = k.class), \
           coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) \
    from pg_index i \
    join lateral unnest((i.indkey::int2[])[0:i.indnkeyatts - 1], \
      (i.indcollation::oid[])[0:i.indnkeyatts - 1], \
      (i.indclass::oid[])[0:i.indnkeyatts - 1]) k (number, coll, class) on true \
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number \
    where i.indrelid = to_regclass($1::text) and i.indisunique and i.indisvalid \
      and i.indimmediate and i.indpred is null and i.indexprs is null \
      and i.indnkeyatts = cardinality($2::text[]) \
      and not exists (select from unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) o \
        join pg_attribute b on b.attrelid = i.indrelid and b.attnum = o \
        where b.attname::text <> all ($2::text[])) \
    order by 1, 2";

/// Returns one text for all unique indexes of $1 that can decide a conflict: their columns, and how they compare them.
const INDEXES: &str = "\
    select coalesce(string_agg(it, ', ' order by it), '') from (select concat_ws(' ', indkey, indcollation, \
        indclass, to_jsonb(i) ->> 'indnullsnotdistinct') it from pg_index i \
      where indrelid = to_regclass($1::text) and indisunique and indisvalid and indimmediate \
        and indpred is null and indexprs is null) i";

/// Returns the condition that the row `t` has the key of the row of `columns`, by any index of the key. The stored
/// values are rounded or truncated as the column requires.
async fn same_key(
    client: &Client,
    columns: &[&Column],
    parameters: &[Text<'_>; 2],
) -> Result<String, Error> {
    let rows = client.query(COLLATIONS, &[&parameters[0], &parameters[1]]).await?;
    type Part = (i64, String, Option<String>, Option<String>, bool);
    let part = |row: &Row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
    let parts: Vec<Part> = rows.iter().map(part).collect();
    let same = |(_, name, collation, operator, equal_nulls): &Part| {
        let index = columns.iter().position(|column| column.name == *name)?;
        let value = format!("c{}::{}", index + 1, columns[index].stored);
        let name = format!("t.{}", quoted(name, '"'));
        let collate = collation.as_ref().map_or_else(String::new, |it| format!(" collate {it}"));
        let same = format!("{name} {} {value}{collate}", operator.as_deref().unwrap_or("="));
        Some(match *equal_nulls {
            true => format!("({same} or {name} is null and {value} is null)"),
            false => same,
        })
    };
    let mut indexes: Vec<String> = Vec::new();
    for index in parts.chunk_by(|one, other| one.0 == other.0) {
        let condition = index.iter().filter_map(same).collect::<Vec<_>>().join(" and ");
        if !indexes.contains(&condition) {
            indexes.push(condition);
        }
    }
    Ok(format!("({})", indexes.join(" or ")))
}

/// Makes the statement for these columns of a table.
pub(super) async fn insert(
    client: &Client,
    server: &str,
    table: &str,
    columns: &[String],
    on_conflict: &OnConflict,
) -> Result<Insert, DatabaseError> {
    let told = |error: Error| refused(server, &error);
    let named = table_sql(table);
    let known = columns_of(client, &named).await.map_err(told)?;
    if known.is_empty() {
        let tables = client.query(TABLES, &[]).await.map_err(told)?;
        let tables = tables.iter().map(|row| row.get(0)).collect();
        return Err(DatabaseError::NoTable { table: table.to_owned(), tables });
    }
    let mut chosen = Vec::new();
    for name in columns {
        let Some(column) = known.iter().find(|column| column.name == *name) else {
            let columns = known.into_iter().map(|column| column.name).collect();
            let (column, table) = (name.clone(), table.to_owned());
            return Err(DatabaseError::NoColumn { column, table, columns });
        };
        if column.is_generated {
            let (column, of) = (column.name.clone(), column.of.clone());
            let given = "values: it is generated".to_owned();
            return Err(DatabaseError::Type { column, of, given });
        }
        chosen.push(column);
    }
    let unset = |column: &&Column| column.must_be_given && !columns.contains(&column.name);
    if let Some(column) = known.iter().find(unset) {
        let (column, table) = (column.name.clone(), table.to_owned());
        return Err(DatabaseError::Unset { column, table });
    }
    let conflict = match on_conflict {
        OnConflict::Refuse => String::new(),
        OnConflict::Nothing(key) => format!(" on conflict ({}) do nothing", listed(key, '"')),
    };
    let (select, arrays) = arrays(&chosen);
    let sql = format!(
        "insert into {named} ({}) select {select} from unnest({arrays}) as u ({}){conflict}",
        listed(columns, '"'),
        numbered(columns.len(), "c").join(", "),
    );
    let (mut resend_key, mut absent) = (None, None);
    if let OnConflict::Nothing(key) = on_conflict {
        let given = Array::of(key.iter().map(String::as_str));
        check_key(client, server, table, &named, key).await?;
        let parameters = [Text(Some(named.as_bytes())), Text(Some(&given))];
        let same = same_key(client, &chosen, &parameters).await.map_err(told)?;
        let rows = client.query(INDEXES, &[&parameters[0]]).await.map_err(told)?;
        let indexes: String = rows.first().map_or_else(String::new, |row| row.get(0));
        // With other indexes, a row counts as absent, and the statement is compared with its columns.
        let now = INDEXES.replace("$1", &format!("$q${named}$q$"));
        absent = Some(format!(
            "select count(*) + (({now}) <> '{indexes}')::int from unnest({arrays}) as u ({}) \
             where not exists (select from {named} as t where {same})",
            numbered(columns.len(), "c").join(", "),
        ));
        let rows = client.query(HAS_KEY, &[&parameters[0], &parameters[1]]).await.map_err(told)?;
        if rows.first().is_some_and(|row| row.get(0)) {
            let parts = chosen.iter().enumerate().filter(|(_, column)| key.contains(&column.name));
            let parts =
                parts.map(|(parameter, column)| KeyColumn { parameter, of: column.key_type() });
            resend_key = Some(parts.collect());
        }
    }
    let types = chosen.iter().map(|column| column.of.clone()).collect();
    let takes = chosen.iter().map(|column| column.takes.clone()).collect();
    let rows = client.query(HAS_RULES, &[&Text(Some(named.as_bytes()))]).await.map_err(told)?;
    let has_rules = rows.first().is_some_and(|row| row.get(0));
    Ok(Insert { sql, absent, types, takes, key: resend_key, has_rules })
}

/// Reads the columns of each unique key that can decide a conflict.
const KEYS: &str = "\
    select array_to_string(array(select a.attname::text from pg_attribute a \
             where a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[]) \
             order by a.attname), ', ') \
    from pg_index i where i.indrelid = to_regclass($1::text) and i.indisunique and i.indisvalid \
      and i.indimmediate and i.indpred is null and i.indexprs is null \
      and i.indnatts = i.indnkeyatts order by 1";

async fn check_key(
    client: &Client,
    server: &str,
    table: &str,
    named: &str,
    key: &[String],
) -> Result<(), DatabaseError> {
    let told = |error: Error| refused(server, &error);
    let rows = client.query(KEYS, &[&Text(Some(named.as_bytes()))]).await.map_err(told)?;
    let keys: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut sorted = key.to_vec();
    sorted.sort();
    if keys.contains(&sorted.join(", ")) {
        return Ok(());
    }
    let add = format!("alter table {named} add unique ({})", listed(key, '"'));
    Err(DatabaseError::NoKey { key: key.join(", "), table: table.to_owned(), keys, add })
}

fn numbered(count: usize, letter: &str) -> Vec<String> {
    (1..=count).map(|number| format!("{letter}{number}")).collect()
}

/// Returns the selected expressions, and the arrays that they come from.
fn arrays(columns: &[&Column]) -> (String, String) {
    let (mut select, mut arrays) = (Vec::new(), Vec::new());
    for (index, column) in columns.iter().enumerate() {
        let number = index + 1;
        match &column.array {
            Some(array) => {
                select.push(format!("c{number}"));
                arrays.push(format!("${number}::{array}"));
            }
            None => {
                select.push(format!("c{number}::{}", column.of));
                arrays.push(format!("${number}::text[]"));
            }
        }
    }
    (select.join(", "), arrays.join(", "))
}

async fn columns_of(client: &Client, named: &str) -> Result<Vec<Column>, Error> {
    let rows = client.query(COLUMNS, &[&Text(Some(named.as_bytes()))]).await?;
    let column = |row: &Row| Column {
        name: row.get(0),
        of: row.get(1),
        array: row.get(2),
        must_be_given: row.get(3),
        is_generated: row.get(4),
        stored: row.get(5),
        takes: sql::postgres_takes(row.get(6)),
        types: [row.get(7), row.get(8)],
    };
    Ok(rows.iter().map(column).collect())
}

/// Returns what the parameters of a prepared statement accept: as the columns that they are written to, if the
/// statement shows them plainly, otherwise as their types. A query compares JSON as text. Also returns the error if the
/// server has read a parameter as another type than that of its column, which may change the value.
pub(super) async fn takes_of_statement(
    client: &Client,
    action: &Action,
    names: &[String],
    statement: &Statement,
) -> Result<(Vec<Takes>, Option<DatabaseError>), Error> {
    let (write, reads) = match action {
        Action::Statement(sql) => (PlainWrite::of(sql, sql::Dialect::Dollar), false),
        _ => (None, true),
    };
    let target = match &write {
        Some(write) => resolved(client, write).await?,
        None => None,
    };
    let (table, columns) = target.unwrap_or_default();
    let known = match &*table {
        "" => Vec::new(),
        table => columns_of(client, table).await?,
    };
    let given: &[ColumnParameter] = write.as_ref().map_or(&[], |write| &write.given);
    let column = |name: &Name| {
        let (_, name) = given.iter().zip(&columns).find(|(given, _)| given.column == *name)?;
        let found = known.iter().find(|column| column.name == *name)?;
        Some(found.takes.clone())
    };
    let takes = names.iter().zip(statement.params()).map(|(name, of)| {
        match of_parameter(write.as_ref(), name, column).unwrap_or_else(|| takes_of_type(of)) {
            Takes::Json if reads => Takes::Text,
            takes => takes,
        }
    });
    let unlike = |(given, column): (&ColumnParameter, &String)| {
        let column = known.iter().find(|known| known.name == *column)?;
        let (_, of) =
            names.iter().zip(statement.params()).find(|(name, _)| **name == given.name)?;
        read_otherwise(given, column, of)
    };
    let error = given.iter().zip(&columns).find_map(unlike);
    Ok((takes.collect(), error))
}

/// Returns the error of a parameter that the server reads as another type than its column stores.
fn read_otherwise(given: &ColumnParameter, column: &Column, of: &Type) -> Option<DatabaseError> {
    let base = match of.kind() {
        Kind::Domain(base) => base,
        _ => of,
    };
    let [own, stored] = column.types;
    if of.oid() == own || sql::postgres_keeps(base.oid(), stored) {
        return None;
    }
    let (name, wanted) = (&given.name, &column.of);
    let text = format!(
        "parameter `:{name}` goes into column `{}` of type {wanted}, but the server reads it as {}, because of another \
         place of the statement; write `:{name}::{wanted}` at its other places, or use another parameter there",
        column.name,
        type_name(of)
    );
    Some(DatabaseError::statement(&text, Some(given.at)))
}

/// Returns what a parameter of this type accepts.
fn takes_of_type(of: &Type) -> Takes {
    match of.kind() {
        Kind::Array(of) => Takes::Array(Box::new(takes_of_type(of))),
        Kind::Domain(of) => takes_of_type(of),
        Kind::Range(of) | Kind::Multirange(of) => sql::range_takes(takes_of_type(of)),
        _ => match *of {
            Type::INT2 | Type::INT4 => Takes::Integer,
            Type::FLOAT4 => Takes::Single,
            Type::BOOL => Takes::Bool,
            Type::TIMESTAMP => Takes::Utc(6),
            Type::TIMESTAMPTZ => Takes::Instant(6),
            Type::TIMETZ => Takes::ZonedTime(6),
            _ => sql::postgres_takes(&type_name(of)),
        },
    }
}

/// Rejects columns that would get a value of the request itself and do not accept it.
pub(super) fn check_reserved(
    columns: &[String],
    sources: &[Source],
    types: &[String],
) -> Result<(), DatabaseError> {
    for ((column, source), of) in columns.iter().zip(sources).zip(types) {
        if let Some(given) = source.misfit(of) {
            let (column, of) = (column.clone(), of.clone());
            return Err(DatabaseError::Type { column, of, given: given.to_owned() });
        }
    }
    Ok(())
}

/// Rejects parameters that would get a value of the request itself and do not accept it.
pub(super) fn check_parameters(
    statement_text: &StatementText,
    sources: &[Source],
    statement: &Statement,
) -> Result<(), DatabaseError> {
    for ((name, source), of) in statement_text.names.iter().zip(sources).zip(statement.params()) {
        let of = type_name(of);
        if let Some(given) = source.misfit(&of) {
            let advice = match source {
                Source::At => "; `to_timestamp(:_at::bigint / 1e6)` makes a time of it",
                _ => "",
            };
            let text =
                format!("parameter `:{name}` is of type {of}, which does not take {given}{advice}");
            return Err(DatabaseError::statement(&text, statement_text.parameter(name)));
        }
    }
    Ok(())
}

fn type_name(of: &Type) -> String {
    match *of {
        Type::INT8 => "bigint".to_owned(),
        Type::VARCHAR => "character varying".to_owned(),
        Type::FLOAT8 => "double precision".to_owned(),
        _ => of.name().to_owned(),
    }
}

/// Returns the error of a dead-letter table.
pub(super) fn dead(server: &str, table: &str, error: &Error) -> DatabaseError {
    unless_for_now(server, error, |text| DatabaseError::Dead(table.to_owned(), text.into()))
}
