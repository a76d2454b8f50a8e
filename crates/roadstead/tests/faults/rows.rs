//! Database servers whose tables are altered, and that reject single rows, under load.

use crate::ground::Ground;
use crate::server::{Kind, Server};
use crate::times;

/// One row in this number is bad: about one in each batch.
const BAD_EACH: u64 = 401;

/// Returns the trigger that raises this code for bad rows.
fn poison(kind: Kind, code: &str) -> String {
    match kind {
        Kind::Postgres => format!(
            "create or replace function f() returns trigger language plpgsql as $$ begin \
             if new.id % {BAD_EACH} = 13 then raise exception 'unlucky' using errcode = '{code}'; \
             end if; return new; end $$; \
             create or replace trigger t before insert on hits for each row execute function f()"
        ),
        Kind::Mariadb => format!(
            "create or replace trigger t before insert on hits for each row \
             if new.id % {BAD_EACH} = 13 then \
             signal sqlstate '45000' set mysql_errno = {code}, message_text = 'unlucky'; end if"
        ),
    }
}

/// Rows fail with the codes of server faults, a different one in each round. All other rows are stored.
fn poisoned(kind: Kind) {
    let codes: &[&str] = match kind {
        Kind::Postgres => &["XX000", "40001", "40P01", "53200", "25006", "57P01"],
        Kind::Mariadb => &["1105", "1205", "1213", "1037", "1290", "1053"],
    };
    let server = Server::start(kind, &[]);
    let way = server.port;
    let count = times(60);
    let ground = Ground::start(server, "retry_timeout = \"20ms\"\n", way);
    ground.server.run("hits", &poison(kind, codes[0]));
    let verdict = ground.under("rows poisoned", count, |ground, round| {
        ground.server.run("hits", &poison(kind, codes[round as usize % codes.len()]));
        let before = ground.failed();
        crate::daemon::until("a bad row fails", || ground.failed() > before);
    });
    let bad = verdict.sent / BAD_EACH;
    assert!((bad..=bad + 1).contains(&verdict.failed), "only bad rows fail: {verdict}");
    assert_eq!((verdict.refused, verdict.unknown), (0, 0), "{verdict}");
}

#[test]
fn a_poisoned_row_in_each_batch_of_postgres_fails_alone() {
    poisoned(Kind::Postgres);
}

#[test]
fn a_poisoned_row_in_each_batch_of_mariadb_fails_alone() {
    poisoned(Kind::Mariadb);
}

/// A column changes its type and back, and another is added and dropped. No row fails.
fn migrated(kind: Kind) {
    let alter: [&str; 4] = match kind {
        Kind::Postgres => [
            // Neither type takes parameters of the other.
            "alter table hits alter column status type jsonb using to_jsonb(status)",
            "alter table hits add column extra integer not null default 7",
            "alter table hits alter column status type integer \
             using (status #>> '{}')::integer",
            "alter table hits drop column extra",
        ],
        Kind::Mariadb => [
            "alter table hits modify column status varchar(20)",
            "alter table hits add column extra integer not null default 7",
            "alter table hits modify column status integer",
            "alter table hits drop column extra",
        ],
    };
    let server = Server::start(kind, &[]);
    let way = server.port;
    let count = times(80);
    let ground = Ground::start(server, "", way);
    let verdict = ground.under("migrated", count, |ground, round| {
        ground.server.run("hits", alter[round as usize % alter.len()]);
    });
    assert_eq!((verdict.failed, verdict.refused, verdict.unknown), (0, 0, 0), "{verdict}");
}

#[test]
fn a_postgres_that_is_migrated_fails_no_row() {
    migrated(Kind::Postgres);
}

#[test]
fn a_mariadb_that_is_migrated_fails_no_row() {
    migrated(Kind::Mariadb);
}
