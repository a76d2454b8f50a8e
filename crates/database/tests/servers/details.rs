//! What clients get of an error, and what only the operator gets.

use database::{DatabaseError, Job};

use crate::place::{Place, hit, insert, serve};

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
        // The function of a type that reads the client's own value may cite it.
        let text = r#"{"id":"mine","path":"/","status":0}"#;
        let answers = serve(&mut place.handler(insert()), [text]);
        let own = r#"!row invalid input syntax for type bigint: "mine" (22P02)"#;
        assert_eq!(answers, [own]);
    }
}

/// A table with a column that the client does not send, the value of which is `hush`.
fn with_secrets(place: &Place) {
    let engine = if place.is_mariadb() { "engine = InnoDB" } else { "" };
    place.run(&format!(
        "create table owners (id integer not null primary key) {engine}; \
         create table hits (id bigint primary key, path varchar(20) not null, status integer, \
         secret varchar(20) default 'hush' unique, owner integer default 4711, \
         check (status < 999), foreign key (owner) references owners (id)) {engine}"
    ));
    if place.is_sqlite() {
        // Off by default there.
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
