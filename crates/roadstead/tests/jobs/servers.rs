//! The main job on each kind of database, by changing one line: reads, replies and stored rows.

use std::path::Path;
use std::process::Command;

use crate::daemon::{BINARY, Daemon, folder, main_job, one_pool, read_log, until, worker_program};
use crate::server::{Kind, Server};

const KINDS: [Kind; 2] = [Kind::Postgres, Kind::Mariadb];

/// The same configuration with another database.
fn on(configuration: &str, target: &str) -> String {
    let lines = configuration.lines().map(|line| match line.strip_prefix("database = ") {
        Some(_) => format!("database = \"{target}\""),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let out = Command::new(BINARY).args(arguments).current_dir(folder).output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn the_main_job_runs_on_each_database_by_changing_one_line() {
    let folder = folder();
    let job = main_job(folder.path(), &worker_program(&[]), "");
    let run = |configuration: &str, stored: &dyn Fn() -> Vec<String>| {
        let others = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| !line.starts_with("database = "))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(others(configuration), others(&job), "all other lines are the same");
        let daemon = Daemon::serve(folder.path(), configuration);
        let mut client = daemon.connect();
        client.send("1 17 /a 200\n2 18 /b 404\nnonsense\n");
        client.finish();
        let replies = client.rest();
        assert_eq!(replies[..2], ["ok 1", "ok 2"], "{configuration}");
        assert!(replies[2].starts_with("!record "), "{replies:?}");
        assert_eq!(stored(), ["1|17|/a|200", "2|18|/b|404"], "{configuration}");
        assert!(daemon.stop().success());
    };
    const SQL: &str = "select id, at, path, status from hits order by id";
    run(&job, &|| {
        let said = Command::new("sqlite3").arg(folder.path().join("hits.db")).arg(SQL).output();
        let said = said.expect("this test needs sqlite3: apt-get install sqlite3");
        String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
    });
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        run(&on(&job, &target), &|| server.run("hits", SQL));
    }
}

#[test]
fn rows_are_read_over_the_lines_protocol() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint, path varchar(20))");
        server.run("hits", "insert into hits values (1, '/a'), (2, '/b'), (3, '/c')");
        let pool = format!(
            "database = \"{target}\"\nquery = \"select id, path from hits where id > :least order by id\"\n"
        );
        for (rows, replies) in [
            ("json", vec![r#"[{"id":2,"path":"/b"},{"id":3,"path":"/c"}]"#, "[]"]),
            // One line per row, and one after the last.
            ("tsv", vec!["2\t/b", "3\t/c", "\\.", "\\."]),
        ] {
            let folder = folder();
            let pool = format!("{pool}output_format = \"{rows}\"\nworkers = 2\n");
            let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
            let mut client = daemon.connect();
            client.send("{\"least\":1}\n{\"least\":3}\n{}\n");
            client.finish();
            let said = client.rest();
            let (last, others) = said.split_last().unwrap();
            assert_eq!(others, replies, "{kind:?} {rows}");
            assert_eq!(last, "!row the record has no `least`");
        }
    }
}

#[test]
fn check_names_what_is_missing_in_the_database_at_its_place_in_the_file() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint, path varchar(20))");
        let folder = folder();
        let with = |insert: &str| {
            let pool = format!("database = \"{target}\"\n{insert}\n");
            std::fs::write(folder.path().join("x.toml"), one_pool("", &pool)).unwrap();
            run(folder.path(), &["check", "--connect", "x.toml"])
        };
        let (fine, _) = with("insert = { table = \"hits\", columns = [\"id\", \"path\"] }");
        assert!(fine);
        let (fine, said) = with("insert = { table = \"hits\", columns = [\"id\", \"pfad\"] }");
        assert!(
            !fine && said.contains("no column `pfad`") && said.contains("x.toml:10:"),
            "{said}"
        );
        let (fine, said) = with("statement = \"insert into hit values (:id)\"");
        assert!(!fine && said.contains("hit") && said.contains("x.toml:10:"), "{said}");
        // The SQL for a missing key; a daemon reports it with its place, too.
        let keyed = "insert = { table = \"hits\", columns = [\"id\"], on_conflict = \"nothing\", key = [\"id\"] }";
        let (_, checked) = with(keyed);
        let mut serve = Command::new(BINARY);
        serve.args(["serve", "x.toml"]).current_dir(folder.path());
        let served = Daemon::start(&mut serve, folder.path()).err().expect("it does not start");
        for said in [checked, served] {
            let (before, add) = said.split_once("add it in the database: ").expect("the SQL");
            assert!(before.contains("no unique key of exactly the columns (id)"), "{said}");
            assert!(add.contains("x.toml:10:"), "{said}");
            let add = add.lines().next().unwrap();
            assert!(add.starts_with("alter table ") && add.contains(" add unique ("), "{add}");
        }
    }
}

#[test]
fn a_server_whose_commits_do_not_wait_for_its_disk_is_named_by_check_and_in_the_log() {
    for (kind, setting, doubt) in [
        (Kind::Postgres, "fsync=off", "the server has `fsync = off`"),
        (
            Kind::Mariadb,
            "innodb_flush_log_at_trx_commit=2",
            "the server has `innodb_flush_log_at_trx_commit = 2`",
        ),
    ] {
        let server = Server::start(kind, &[setting]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint)");
        let folder = folder();
        let with = |sync: &str| {
            let insert = "insert = { table = \"hits\", columns = [\"id\"] }";
            one_pool("", &format!("database = \"{target}\"\n{insert}\n{sync}"))
        };
        let check = |sync: &str| {
            std::fs::write(folder.path().join("x.toml"), with(sync)).unwrap();
            run(folder.path(), &["check", "--connect", "x.toml"])
        };
        let (fine, said) = check("");
        assert!(fine && said.contains(&format!("warning: x.toml:9: {doubt}: ")), "{said}");
        let (fine, said) = check("durability = \"normal\"");
        assert!(fine && !said.contains("warning"), "{said}");
        let daemon = Daemon::serve(folder.path(), &with(""));
        until("the log has it", || read_log(folder.path()).contains(doubt));
        assert!(daemon.stop().success());
    }
}

#[test]
fn dead_letters_are_listed_tried_again_and_dropped() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint primary key, path varchar(5) not null)");
        let folder = folder();
        let pool = format!(
            "database = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\", \"path\"] }}\n\
             dead_letter_table = \"dead\"\nack = \"ok {{id}}\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        assert_eq!(client.ask(r#"{"id":1,"path":"/a"}"#), "ok 1");
        assert!(client.ask(r#"{"id":1,"path":"/b"}"#).starts_with("!row "));
        assert!(client.ask(r#"{"id":2,"path":"/much too long"}"#).starts_with("!row "));
        let dead = |words: &[&str]| {
            let words: Vec<&str> = ["ctl", "dead"].iter().chain(words).copied().collect();
            run(folder.path(), &words)
        };
        let (_, listed) = dead(&["list", "roadstead.toml"]);
        assert_eq!(listed.lines().count(), 2, "{listed}");
        assert!(listed.contains("much too long"), "{listed}");
        server.run("hits", "delete from hits");
        let (all, said) = dead(&["retry", "roadstead.toml"]);
        assert!(!all && said.contains(" stored\n") && said.contains(" rejected: "), "{said}");
        assert_eq!(server.run("hits", "select id, path from hits"), ["1|/b"]);
        assert!(!dead(&["drop", "roadstead.toml"]).0, "it wants to hear which");
        for what in ["list", "retry", "drop"] {
            let (done, said) = dead(&[what, "--number", "99", "roadstead.toml"]);
            assert!(!done && said.contains("no dead letter with the number 99"), "{what}: {said}");
        }
        assert!(dead(&["drop", "--all", "roadstead.toml"]).0);
        assert_eq!(dead(&["list", "roadstead.toml"]).1, "");
        // Requests that are not rows are stored as dead letters, too.
        assert!(client.ask("no json").starts_with("!record "));
        let (_, listed) = dead(&["list", "roadstead.toml"]);
        assert!(listed.contains("no json") && listed.contains("\"record\""), "{listed}");
        // A dead letter that is lost with its table is an error in the log.
        server.run("hits", "drop table dead");
        assert!(client.ask("no json").starts_with("!record "));
        assert_eq!(client.ask(r#"{"id":3,"path":"/c"}"#), "ok 3");
        let log = read_log(folder.path());
        assert!(log.contains("dead letters are not kept"), "{log}");
        // The next connection creates the table again.
        assert!(client.ask("no json").starts_with("!record "));
        assert_eq!(server.run("hits", "select count(*) from dead"), ["1"]);
        // A table that cannot be used is reported before the daemon serves.
        server.run("hits", "drop table dead");
        server.run("hits", "create table dead (a integer)");
        let (fits, said) = run(folder.path(), &["check", "--connect", "roadstead.toml"]);
        assert!(!fits && said.contains("the dead-letter table `dead`"), "{said}");
        drop(daemon);
        let mut serve = Command::new(BINARY);
        serve.args(["serve", "roadstead.toml"]).current_dir(folder.path());
        let said = Daemon::start(&mut serve, folder.path()).err().expect("it does not start");
        assert!(said.contains("the dead-letter table `dead`"), "{said}");
        assert!(said.contains("--> roadstead.toml:"), "{said}");
    }
}

#[test]
fn a_retry_of_dead_letters_says_how_many_are_stored_rejected_and_left() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint primary key, v integer check (v < 0))");
        let folder = folder();
        let pool = format!(
            "database = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\", \"v\"] }}\n\
             dead_letter_table = \"dead\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        for (id, v) in [1, 2, 3, 4, 2, 5].into_iter().enumerate() {
            let reply = client.ask(&format!("{{\"id\":{id},\"v\":{v}}}"));
            assert!(reply.starts_with("!row "), "{reply}");
        }
        server.run("hits", "drop table hits");
        server.run(
            "hits",
            "create table hits (id bigint primary key, v integer, constraint c check (v <> 3))",
        );
        // A row that fails by itself, and one that closes its connection.
        server.run(
            "hits",
            match kind {
                Kind::Postgres => {
                    "create function f() returns trigger language plpgsql as $$ begin \
                     if new.v = 2 then raise exception 'unlucky' using errcode = '40001'; end if; \
                     if new.v = 4 then perform pg_terminate_backend(pg_backend_pid()); end if; \
                     return new; end $$; \
                     create trigger t before insert on hits for each row execute function f()"
                }
                Kind::Mariadb => {
                    "create trigger t before insert on hits for each row begin if new.v = 2 then \
                     signal sqlstate '45000' set mysql_errno = 1213, message_text = 'unlucky'; \
                     end if; if new.v = 4 then kill connection_id(); end if; end"
                }
            },
        );
        let retry = || run(folder.path(), &["ctl", "dead", "retry", "roadstead.toml"]);
        let (all, said) = retry();
        assert!(!all, "{said}");
        assert!(said.ends_with("roadstead: 1 stored, 1 rejected, 4 left\n"), "{said}");
        for expected in ["1 stored\n", "2 failed: unlucky", "3 rejected: ", "stopped at 4: "] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
        server.run(
            "hits",
            if kind == Kind::Postgres { "drop trigger t on hits" } else { "drop trigger t" },
        );
        let (all, said) = retry();
        assert!(!all && said.ends_with("roadstead: 4 stored, 1 rejected, 0 left\n"), "{said}");
        server.run("hits", "alter table hits drop constraint c");
        let (all, said) = retry();
        assert!(all && said.ends_with("roadstead: 1 stored, 0 rejected, 0 left\n"), "{said}");
        assert_eq!(server.run("hits", "select count(*) from hits"), ["6"], "{kind:?}");
    }
}

#[test]
fn a_server_that_is_not_there_at_start_is_waited_for() {
    for kind in KINDS {
        let mut server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint)");
        server.kill();
        let folder = folder();
        let pool = format!(
            "database = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\"] }}\n\
             ack = \"ok {{id}}\"\nqueue = {{ timeout = \"100ms\" }}\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        let refused = client.ask("{\"id\":1}");
        assert!(refused.starts_with("!waited "), "{refused}");
        server.restart();
        let mut id = 1;
        until("rows are stored", || {
            id += 1;
            client.ask(&format!("{{\"id\":{id}}}")) == format!("ok {id}")
        });
        assert_eq!(server.run("hits", "select id from hits"), [id.to_string()], "{kind:?}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn a_row_waits_in_the_queue_for_a_server_that_is_not_there_at_start() {
    for kind in KINDS {
        let mut server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint)");
        server.kill();
        let folder = folder();
        let pool = format!(
            "database = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\"] }}\n\
             ack = \"ok {{id}}\"\nqueue = {{ timeout = \"1m\" }}\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        client.send("{\"id\":1}\n");
        // More than five handlers in a row fail to open, and the row still waits.
        let failed = || daemon.metric("roadstead_worker_start_failures_total", &[]);
        until("handlers fail", || failed() > 7);
        assert_eq!(daemon.status()["pools"][0]["queued"], 1, "{kind:?}");
        assert_eq!(daemon.status()["pools"][0]["down"], false, "{kind:?}");
        server.restart();
        client.finish();
        assert_eq!(client.rest(), ["ok 1"], "{kind:?}");
        let log = read_log(folder.path());
        assert!(
            log.matches("cannot be opened").count() < 5,
            "the same reason is logged once: {log}"
        );
        assert!(log.contains("opened, after earlier attempts failed"), "{log}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn check_names_table_column_and_type_at_their_own_line_of_a_statement() {
    const TABLE: &str = "create table hits (id bigint, path varchar(20), at date)";
    let folder = folder();
    // The reported line of the file, counted from 1. The statement begins after line 9.
    let told = |target: &str, statement: &str| {
        let pool = format!("database = \"{target}\"\nstatement = \"\"\"\n{statement}\n\"\"\"\n");
        std::fs::write(folder.path().join("x.toml"), one_pool("", &pool)).unwrap();
        let (fine, said) = run(folder.path(), &["check", "--connect", "x.toml"]);
        let place = said.split("x.toml:").nth(1).unwrap_or_default();
        let line = place.split(':').next().unwrap_or_default().parse::<usize>().ok();
        (fine, line, said)
    };
    let file = folder.path().join("hits.db");
    let strict = rusqlite::Connection::open(&file).unwrap();
    strict.execute_batch("create table hits (id integer, path text, at blob) strict").unwrap();
    let servers = KINDS.map(|kind| Server::start(kind, &[]));
    let mut targets = vec![format!("sqlite:{}", file.display())];
    for server in &servers {
        targets.push(server.database("hits"));
        server.run("hits", TABLE);
    }
    for target in &targets {
        let (fine, _, said) =
            told(target, "insert into hits\n  (id, path)\nvalues\n  (:_id,\n   :_client)");
        assert!(fine, "{target}: {said}");
        for (statement, line, word) in [
            ("insert into\n  hit (id)\nvalues (:id)", 12, "hit"),
            ("insert into hits\n  (id,\n   pfad)\nvalues (:id, :a)", 13, "pfad"),
            ("insert into hits\n  (id, at)\nvalues (:id,\n  :_at)", 14, "_at"),
            ("update hits set path = :a\nwhere id = ) 1", 12, ")"),
        ] {
            let (fine, named, said) = told(target, statement);
            assert!(!fine && said.contains(word), "{target}: {said}");
            // SQLite does not report the position of a missing table or column.
            let silent = target.starts_with("sqlite") && ["hit", "pfad"].contains(&word);
            assert!(named == Some(line) || silent, "{target}: line {line} in\n{said}");
        }
    }
}
