//! The parts of an error that clients receive, and those that only the operator receives.

use database::{Action, DatabaseError, Job, Server};
use exchange::Factory;

use crate::place::{Place, hit, insert, options_of, serve, statement};
use crate::server::Kind;

crate::suite!(clients_get_no_value_that_they_did_not_send);

mod on_postgres {
    use super::*;

    #[test]
    fn data_that_a_function_casts_is_not_cited() {
        let place = Place::postgres();
        place.with_hits().run(
            "create table secrets (word text); insert into secrets values ('hush'); \
             create function f() returns trigger language plpgsql as $$ begin \
             if new.status = 1 then perform word::integer from secrets; end if; \
             if new.status = 2 then raise exception using errcode = '22000', message = 'unlucky'; \
             end if; return new; end $$; \
             create trigger t before insert on hits for each row execute function f()",
        );
        let with = |status| format!(r#"{{"id":{status},"path":"/","status":{status}}}"#);
        let answers = serve(&mut place.handler(insert()), [with(1), with(2), with(3)]);
        let within = "!row invalid data within a function of the database (22P02)";
        assert_eq!(answers, [within, "!row unlucky (22000)", "ok 3"]);
        // The input function of a type that parses the client's own value may cite it.
        let text = r#"{"id":"mine","path":"/","status":0}"#;
        let answers = serve(&mut place.handler(insert()), [text]);
        let own = r#"!row invalid input syntax for type bigint: "mine" (22P02)"#;
        assert_eq!(answers, [own]);
    }
}

#[test]
fn names_that_are_made_of_values_are_not_cited() {
    let place = Place::postgres();
    place.with_hits().run(
        "create table secrets (word text); insert into secrets values ('hush'); \
         create function f() returns trigger language plpgsql as $$ begin \
         if new.status = 1 then execute 'select ' || (select word from secrets); end if; \
         if new.status = 2 then execute 'select 1 from ' || (select word from secrets); end if; \
         if new.status = 3 then execute (select word from secrets); end if; \
         if new.status = 4 then raise undefined_table using message = 'unlucky'; end if; \
         return new; end $$; \
         create trigger t before insert on hits for each row execute function f()",
    );
    let with = |status| format!(r#"{{"id":{status},"path":"/","status":{status}}}"#);
    for (status, code) in [(1, "42703"), (2, "42P01"), (3, "42601")] {
        let answers = serve(&mut place.handler(insert()), [with(status)]);
        let within = format!("an error within a function of the database ({code})");
        assert!(answers[0].ends_with(&within), "{answers:?}");
    }
    let answers = serve(&mut place.handler(insert()), [with(4), with(5)]);
    assert!(answers[0].ends_with(" unlucky (42P01)") && answers[1] == "ok 5", "{answers:?}");
    let sql = "update hits set path = (select word from secrets)::regclass::text where id = :id";
    let answers = serve(&mut place.handler(statement(sql)), [hit(5)]);
    assert!(answers[0].ends_with(" an error within the statement (42P01)"), "{answers:?}");
}

/// Values of other rows, which a statement reads or converts.
#[test]
fn clients_get_no_value_of_another_row_that_a_statement_cites() {
    let place = Place::postgres();
    place.with_hits().run("create table secrets (word text); insert into secrets values ('hush')");
    let insert_of = |value: &str| {
        statement(&format!("insert into hits (id, path, status) values (:id, '/', {value})"))
    };
    let secret = "(select word from secrets)";
    let job = insert_of(&format!("{secret}::integer"));
    let within = "!row invalid data within the statement (22P02)";
    assert_eq!(serve(&mut place.handler(job), [hit(1)]), [within]);
    // A message that cites no value, or the client's own value, is unchanged.
    let job = insert_of("1 / (:status - 200)");
    assert_eq!(serve(&mut place.handler(job), [hit(1)]), ["!row division by zero (22012)"]);
    let job = insert_of(":status");
    let text = r#"{"id":1,"path":"/","status":"mine"}"#;
    let own = r#"!row invalid input syntax for type integer: "mine" (22P02)"#;
    assert_eq!(serve(&mut place.handler(job), [text]), [own]);
    let query = database::Query::new("select word::integer from secrets where word <> :id");
    let answers = serve(&mut place.handler(Job::new(Action::Query(query))), [hit(1)]);
    assert!(
        !answers.concat().contains("hush") && answers.concat().contains("22P02"),
        "{answers:?}"
    );
    let place = Place::mariadb();
    place.run(
        "create table secrets (id integer, word varbinary(50), text varchar(50) \
         character set utf8mb4); insert into secrets values (1, concat('hush', unhex('ff')), '')",
    );
    let job = statement("update secrets set text = convert(word using utf8mb4) where id = :id");
    let answers = serve(&mut place.handler(job), [hit(1)]);
    assert_eq!(answers, ["!row Invalid utf8mb4 character string (1300)"]);
}

/// Values of another table, which rules, views and policies of the table convert.
#[test]
fn clients_get_no_value_that_a_rule_a_view_or_a_policy_cites() {
    let place = Place::postgres();
    place.with_hits().run("create table secrets (word text); insert into secrets values ('hush')");
    let secret = "(select word::integer from secrets)";
    let name = "(select word::regclass::oid from secrets)::bigint";
    let refused = |table: &str, login: &str| {
        let action = Action::insert(table, ["id", "path", "status"]);
        let way = Server { user: login.to_owned(), ..place.login() };
        let job = Job { action, ..insert() };
        let mut handler = options_of(Kind::Postgres, way, job).unwrap().open().unwrap();
        serve(&mut handler, [hit(1)]).concat()
    };
    let within = "!row invalid data within the statement (22P02)";
    place.run(&format!(
        "create rule r as on insert to hits do also \
         update hits set status = {secret} where hits.id = new.id"
    ));
    assert_eq!(refused("hits", "roadstead"), within);
    place.run(&format!(
        "create or replace rule r as on insert to hits do also \
         update hits set status = {name} where hits.id = new.id"
    ));
    let answer = refused("hits", "roadstead");
    assert!(answer.ends_with(" an error within the statement (42P01)"), "{answer}");
    place.run(&format!(
        "drop rule r on hits; create view checked as select id, path, status from hits \
         where status <> {secret} with check option; \
         create view stored as select id, path, status from hits; \
         create rule r as on insert to stored do instead \
         insert into hits select new.id, new.path, {secret}"
    ));
    assert_eq!(refused("checked", "roadstead"), within);
    assert_eq!(refused("stored", "roadstead"), within);
    place.run(&format!(
        "create role guest login; grant all on hits, secrets to guest; \
         alter table hits enable row level security; \
         create policy p on hits with check (status <> {secret})"
    ));
    assert_eq!(refused("hits", "guest"), within);
    place.run("drop owned by guest; drop role guest");
    assert_eq!(place.hits(), [""; 0]);
}

/// Values of another table, which a trigger of the table converts.
#[test]
fn clients_get_no_value_that_a_trigger_converts() {
    let place = Place::mariadb();
    place.with_hits().run(
        "create table secrets (word varchar(50), number decimal(60, 2)); \
         insert into secrets values ('hush', 7777777777777777777777777777.5)",
    );
    for value in [
        "cast((select number from secrets) as signed)",
        "period_add((select number from secrets), 1)",
        "cast((select word from secrets) as signed)",
        "cast((select word from secrets) as uuid)",
        "exp((select number from secrets))",
    ] {
        place.run(&format!(
            "create or replace trigger t before insert on hits for each row set new.status = {value}"
        ));
        let answer = serve(&mut place.handler(insert()), [hit(1)]).concat();
        assert!(answer.starts_with("!row "), "{value}: {answer}");
        assert!(!answer.contains("hush") && !answer.contains("777"), "{value}: {answer}");
    }
}

/// A table with a column that the client does not send. The value of the column is `hush`.
fn with_secrets(place: &Place) {
    let engine = if place.is_mariadb() { "engine = InnoDB" } else { "" };
    place.run(&format!(
        "create table owners (id integer not null primary key) {engine}; \
         create table hits (id bigint primary key, path varchar(20) not null, status integer, \
         secret varchar(20) default 'hush' unique, owner integer default 4711, \
         check (status < 999), foreign key (owner) references owners (id)) {engine}"
    ));
    if place.is_sqlite() {
        // Off by default in SQLite.
        place.run(
            "create trigger t before insert on hits when new.owner not in (select id from owners) \
                   begin select raise(abort, 'no owner'); end",
        );
    }
}

fn clients_get_no_value_that_they_did_not_send(place: &Place) {
    with_secrets(place);
    let job = Job { dead: Some("dead".to_owned()), ..insert() };
    let mut handler = place.handler(job.clone());
    let record = |path: &str, status| format!(r#"{{"id":7,"path":{path},"status":{status}}}"#);
    let orphan = serve(&mut handler, [hit(1)]);
    place.run("insert into owners values (4711)");
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    let bodies = [record("null", "200"), record("\"/\"", "1000"), hit(2), hit(1)];
    let answers = serve(&mut handler, bodies);
    let refused: Vec<&String> = orphan.iter().chain(&answers).collect();
    assert_eq!(refused.len(), 5);
    let codes = match place {
        it if it.is_sqlite() => ["(1811)", "(1299)", "(275)", "(2067)", "(1555)|(2067)"],
        it if it.is_postgres() => ["(23503)", "(23502)", "(23514)", "(23505)", "(23505)"],
        _ => ["(1452)", "(1048)", "(4025)", "(1062)", "(1062)"],
    };
    for (answer, code) in refused.iter().zip(codes) {
        assert!(
            answer.starts_with("!row ") && code.split('|').any(|code| answer.ends_with(code)),
            "{answer}: {code}"
        );
        for secret in ["hush", "4711", "owners", "/1", "'1'", "(1)"] {
            assert!(!answer.contains(secret), "{answer}: {secret}");
        }
    }
    let mut letters = place.options(job).unwrap().letters().unwrap();
    let mut messages = String::new();
    let each = letters.each(|_, letter| {
        messages.push_str(&letter.message);
        Ok::<(), DatabaseError>(())
    });
    each.unwrap();
    assert_eq!(messages.contains("hush"), !place.is_sqlite(), "the operator's: {messages}");
}
