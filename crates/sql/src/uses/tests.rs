use super::*;

fn known(table: &TableName, column: &str) -> Option<Option<String>> {
    let known: &[&str] = match &*table.table {
        "t" => &["id", "token", "n"],
        "u" => &["id", "name"],
        _ => return None,
    };
    Some(known.contains(&column).then(|| format!("{}.{column}", table.table)))
}

fn into(goes: &Goes, uses: &Uses) -> String {
    match goes {
        Goes::Read => String::new(),
        Goes::Stored(Some(column)) => {
            format!(">{}", uses.resolve(column, known).unwrap_or_else(|| "?".to_owned()))
        }
        Goes::Stored(None) => ">".to_owned(),
    }
}

fn shown(sql: &str) -> String {
    let uses = Uses::of(sql, Dialect::Question);
    let shown = uses.parameters.iter().map(|(at, name, of)| {
        assert!(sql[at + 1..].starts_with(name), "{sql}");
        match of {
            Use::Column(column) => uses.resolve(column, known).unwrap_or_else(|| "?".to_owned()),
            Use::Number(goes) => format!("number{}", into(goes, &uses)),
            Use::Extreme(goes) => format!("extreme{}", into(goes, &uses)),
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
        ("select 1 from t where token in ('a', :x, :y) and n not in (:z)", "t.token t.token t.n"),
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
        ("update t set n = :n, token = concat(:t, n = :m) where id = :id", "value value t.n t.id"),
        ("update t set n = (:n), t.token = ((:t)) where id = (:id)", "value value t.id"),
        ("update t join u on t.id = u.id set t.n = :n where u.name = :x", "value u.name"),
        ("update t set n = (select 1 from u where name = :x limit 1)", "u.name"),
        (
            "insert into t (id) values (:a, f(:b)) on duplicate key update n = :c",
            "value value value",
        ),
        ("select :a, if(n = :x, 1, 2) from t having token = :y", "other t.n t.token"),
        ("select case when n = :x then 1 end from t limit :l", "t.n limit"),
        ("select extract(year from n) from t where id = :x", "t.id"),
        ("select 1 from t where :x is null or :all = 1 or id = :x", "other other t.id"),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
    }
}

#[test]
fn a_column_with_the_name_of_a_clause_changes_no_use() {
    for (sql, expected) in [
        ("select id, value, token = :x as ok from t", "t.token"),
        ("select t.value, token in (:x) from t", "t.token"),
        ("select id from t where value <> 'q' and token = case when 1 then :x end", "expression"),
        ("delete from t where value = 'a' and token = case when 1 then :x end", "expression"),
        ("select id from t where offset = 1 and token = case when 1 then :x end", "expression"),
        ("select id from t order by value, token = :x", "t.token"),
        ("update t set n = :n where value = 'a' order by value, token = :x", "value t.token"),
        (
            "insert into t (value) select :v from t where value = 'a' and token = :x",
            "other t.token",
        ),
        (
            "insert into t (id, value) values (:i, :v) returning value, token = :x",
            "value value t.token",
        ),
        ("insert into t (id) value (:i) on duplicate key update value = 1, n = :n", "value value"),
        ("insert into value (id) select id from t where n = case when 1 then :x end", "expression"),
        (
            "update t set n = (select 1 from u where name = case when 1 then :x end), id = :y",
            "expression value",
        ),
        ("with q as (select 1) update t set n = :n where token = :x", "value t.token"),
        ("select id from t limit rows examined :x", "limit"),
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
        "select token, :x from t order by id",
        "select case when :x then token else '' end from t",
        "select substr(token, :x, 3), if(:x, 1, 2) from t",
        "select 1 from t where n = cast(:x as decimal(65,30))",
        "select 1 from t where match (token) against (:x in boolean mode)",
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
        ("select 1 from t where token = :x + 1", "number"),
        ("select 1 from t where :x in (token, name)", "expression"),
        ("select 1 from t where :x not in (select token from t)", "expression"),
        (
            "select 1 from t where :x between n and id and :y not between n and id",
            "expression expression",
        ),
        ("select 1 from t where token in (select :x)", "expression"),
        ("select 1 from t where token = (select concat(:x, '') from u)", "expression"),
        ("select 1 from t where token in ((:x), ('a'), (('b')), ((:y)))", "t.token t.token"),
        ("select 1 from t where token in ('a', :x + 0)", "number"),
        ("select 1 from t where token = :x = true and token = :y is true", "expression expression"),
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
            "number expression number",
        ),
        ("select 1 from t where token between :x + 0 and 'z'", "number"),
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

#[test]
fn a_name_is_read_where_it_is_one() {
    for (sql, expected) in [
        // A string, but for the mode `ANSI_QUOTES`.
        ("select 1 from t where (:x = \"n\" or token = :x)", "expression t.token"),
        ("select 1 from t where \"n\" = :x or \"t\".n = :y", "expression expression"),
        ("select 1 from `t` where `t`.`n` = :x", "t.n"),
        ("select 1 from \"t\" where n = :x", "t.n"),
        ("select n as \"token\" from t having token = :x", "expression"),
        // The outer name is hidden.
        (
            "select 1 from u c where exists (select 1 from u a join u b on a.id = b.id, t c where c.n = :x)",
            "t.n",
        ),
        ("select 1 from u t where exists (select 1 from (u a, t) where t.n = :x)", "?"),
        (
            "select 1 from u c where exists (select 1 from t partition (p, q) c where c.n = :x)",
            "t.n",
        ),
        (
            "select 1 from u c where exists (select 1 from json_table('[]', '$' columns (n int path '$')) c where c.n = :x)",
            "?",
        ),
        ("select 1 from u c where exists (select 1 from (select 1 as n) c where c.name = :x)", "?"),
        ("select 1 from t join (select 1 as id) q on q.id = t.id where t.n = :x", "t.n"),
        ("select 1 from t join (select 1 as id) q on q.id = t.id where q.id = :x or n = :y", "? ?"),
        (
            "insert into t (id) select id from u where name = :x on duplicate key update id = 1, n = :y",
            "u.name value",
        ),
        ("insert into t(id) select id from u where name = :x", "u.name"),
        (
            "select 1 from u c where exists (select 1 from t for system_time all c where c.name = :x)",
            "?",
        ),
        // The `case` of a `when`.
        (
            "select 1 from t where case token when 'q' then case when n = 5 then 1 end when :x then 3 end",
            "expression",
        ),
        (
            "select 1 from t where case when n = 1 then case token when 'q' then 1 end when :x then 3 end",
            "other",
        ),
        ("select case token when end then 1 when :x then 2 end from t", "expression"),
        ("select 1 from t where token = (with q as (select :x v) select v from q)", "expression"),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
    }
}

#[test]
fn a_number_that_is_calculated_with_knows_where_it_goes() {
    for (sql, expected) in [
        ("select 1 from t where id between :x - 1 and (:x) + 1", "number number"),
        ("select 1 from t where id = -:x or id - :x = 0 or :x % 2 = id", "number number number"),
        ("select 1 from t where id & :x and id << :x and id div :x", "number number number"),
        ("select n * :x, :x + :y, abs(:z) from t", "number number number number"),
        ("select sum(distinct :x), n mod (:y), mod(n, :z) from t", "number number number"),
        ("update t set n = n + :x where id = :y * 2", "number>t.n number"),
        ("update t set token = 'a', t.n = (n - :x), id = -:y", "number>t.n number>t.id"),
        ("update t join u on t.id = u.id + :y set u.name = u.id - :x", "number number>u.name"),
        ("insert into t (id, n) values (:i, n * :x), (:j + 1, 2)", "value number>t.n number>t.id"),
        ("insert into t (id, n) values (:i + 1, f(1, 2, 3 * :x))", "number>t.id number>t.n"),
        ("insert into t values (:x + 1)", "number>"),
        (
            "insert into t (id) values (1), (2) on duplicate key update id = 1, n = n + :x",
            "number>t.n",
        ),
        ("insert into t (id, n) select :i, n * :x from t where n > :y - 1", "other number> number"),
        ("insert into t (id, n) values (1, (select max(n) + :x from u))", "number>t.n"),
        ("update t set n = (select max(id) + :x from u where id = 2 * :y)", "number>t.n number"),
        ("update t set n = 1 where id = (select max(id) + :x from u)", "number"),
        ("insert into t (id) with q as (select :x + 1) select * from q", "number>"),
        (
            "update t set n = greatest(n, :x), token = least(:a, :b)",
            "extreme>t.n extreme>t.token extreme>t.token",
        ),
        ("insert into t (id, n) values (1, least(:a, :b))", "extreme>t.n extreme>t.n"),
        ("update t set n = if(greatest(:x, 'a') = 'b', 1, 2)", "extreme>"),
        ("insert into t (n) values (if(greatest(:x, 'a') = 'b', 1, 2))", "extreme>"),
        ("update t set n = greatest(n, :x) + 1", "extreme>"),
        ("select greatest(:x, n) from t where n > least(:y, 1)", "extreme extreme"),
        ("insert into t (n) select greatest(:x, n) from t", "extreme>"),
        ("update t set n = if(:a > :b, 1, 2)", "parameter parameter"),
        ("update t set n = nullif(:x, 0), id = nullif(:y, '')", "value expression"),
        ("update t set n = 1 where token = nullif(:x, 0)", "expression"),
        // Times.
        ("update t set n = :x + interval 1 day", "value"),
        ("update t set n = interval 1 day + :x", "value"),
        ("update t set n = n + interval :x day", "interval"),
        ("select 1 from t where n < now() - interval :x day", "interval"),
        ("select 1 from t where n > date_sub(now(), interval (:x) hour)", "interval"),
        ("select 1 from t where n > subdate(now(), :x)", "interval"),
        ("select 1 from t where n > now() - interval :x day_hour", "other"),
        ("select token from t order by id limit :x, :y", "limit limit"),
        ("select token from t limit :x offset :y", "limit limit"),
        ("delete from t order by id limit :x", "limit"),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
    }
}
