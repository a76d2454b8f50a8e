//! Rows in a database: from programs with `then`, and directly from a listener.

use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use crate::daemon::{BINARY, Daemon, folder, main_job, one_pool, until, worker_program};
use crate::tmpfs::Tmpfs;
use crate::untested::untested_without_root;

fn rows(folder: &Path) -> Vec<(i64, String)> {
    let database = Connection::open(folder.join("hits.db")).unwrap();
    let mut statement = database.prepare("select id, path from hits order by id").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns a listener whose lines go directly into a table.
fn direct(folder: &Path, table: &str, pool: &str) -> String {
    let database = serde_json::Value::from(format!("sqlite:{}", folder.join("hits.db").display()));
    one_pool(
        "",
        &format!(
            "database = {database}\ncreate = \"create table if not exists hits ({table})\"\n\
             insert = {{ table = \"hits\", columns = [\"id\", \"path\"] }}\ninput_format = \"json\"\n\
             ack = \"ok {{id}}\"\n{pool}"
        ),
    )
}

#[test]
fn a_line_becomes_a_record_becomes_a_row_and_only_then_an_acknowledgement() {
    let folder = folder();
    let parse = format!("{}workers = 3\n", worker_program(&[]));
    let daemon = Daemon::serve(folder.path(), &main_job(folder.path(), &parse, ""));
    let mut client = daemon.connect();
    for id in 1..=50 {
        assert_eq!(client.ask(&format!("{id} 1700000000000000 /a/{id} 200")), format!("ok {id}"));
        let there = rows(folder.path());
        assert_eq!(there.last(), Some(&(id, format!("/a/{id}"))), "it is there when acknowledged");
    }
}

#[test]
fn what_the_program_refuses_is_passed_on_and_is_no_row() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &main_job(folder.path(), &worker_program(&[]), ""));
    let mut client = daemon.connect();
    let reply = client.ask("this is no line of work");
    assert!(reply.starts_with("!record "), "{reply}");
    assert_eq!(client.ask("7 1 /a 200"), "ok 7");
    assert_eq!(rows(folder.path()).len(), 1);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["cause=\"worker\""]), 1);
}

#[test]
fn a_bad_row_is_refused_with_its_own_error_and_the_others_of_its_batch_are_stored() {
    let folder = folder();
    let pool = "batch = { rows = 100, timeout = \"100ms\" }\n";
    let table = "id integer not null, path text not null check (length(path) < 10)";
    let daemon = Daemon::serve(folder.path(), &direct(folder.path(), table, pool));
    let mut client = daemon.connect();
    client.send(
        "{\"id\":1,\"path\":\"/a\"}\n{\"id\":2,\"path\":\"/much too long\"}\n{\"id\":3}\n\
         not json\n{\"id\":5,\"path\":null}\n{\"id\":6,\"path\":\"/b'; drop table hits; --\"}\n\
         {\"id\":7,\"path\":\"/c\"}\n",
    );
    client.finish();
    let replies = client.rest();
    assert_eq!(replies[0], "ok 1");
    assert!(replies[1].starts_with("!row ") && replies[1].contains("CHECK"), "{replies:?}");
    assert!(replies[2].starts_with("!row ") && replies[2].contains("path"), "{replies:?}");
    assert!(replies[3].starts_with("!record "), "{replies:?}");
    assert!(replies[4].starts_with("!row ") && replies[4].contains("NOT NULL"), "{replies:?}");
    assert!(replies[5].starts_with("!row "), "{replies:?}");
    assert_eq!(replies[6], "ok 7");
    assert_eq!(rows(folder.path()), [(1, "/a".to_owned()), (7, "/c".to_owned())]);
    assert_eq!(daemon.metric("roadstead_batches_total", &[]), 1, "they were one batch");
}

#[test]
fn high_load_makes_large_batches_by_itself() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &direct(folder.path(), "id integer, path text", ""));
    let mut clients: Vec<_> = (0..10).map(|_| daemon.connect()).collect();
    for (who, client) in clients.iter_mut().enumerate() {
        let lines: String =
            (0..200).map(|it| format!("{{\"id\":{},\"path\":\"/x\"}}\n", who * 200 + it)).collect();
        client.send(lines);
    }
    for (who, client) in clients.iter_mut().enumerate() {
        for it in 0..200 {
            assert_eq!(client.line(), format!("ok {}", who * 200 + it));
        }
    }
    assert_eq!(rows(folder.path()).len(), 2000);
    let batches = daemon.metric("roadstead_batches_total", &[]);
    assert!(batches <= 500, "{batches} batches for 2000 rows");
}

#[test]
fn a_locked_database_fails_the_batch_and_serves_again_when_it_is_free() {
    let folder = folder();
    let pool = "lock_timeout = \"200ms\"\n";
    let daemon =
        Daemon::serve(folder.path(), &direct(folder.path(), "id integer, path text", pool));
    let mut client = daemon.connect();
    assert_eq!(client.ask("{\"id\":1,\"path\":\"/a\"}"), "ok 1");
    let locker = Connection::open(folder.path().join("hits.db")).unwrap();
    locker.execute_batch("begin exclusive").unwrap();
    let reply = client.ask("{\"id\":2,\"path\":\"/b\"}");
    assert!(reply.starts_with("!failed database "), "{reply}");
    locker.execute_batch("commit").unwrap();
    assert_eq!(client.ask("{\"id\":3,\"path\":\"/c\"}"), "ok 3");
    assert_eq!(rows(folder.path()).len(), 2);
}

#[test]
fn a_deadline_that_passed_does_not_stop_the_batches_after_it() {
    let folder = folder();
    let pool = "lock_timeout = \"10s\"\nresponse_timeout = \"300ms\"\n";
    let daemon =
        Daemon::serve(folder.path(), &direct(folder.path(), "id integer, path text", pool));
    let mut client = daemon.connect();
    assert_eq!(client.ask("{\"id\":1,\"path\":\"/a\"}"), "ok 1");
    let locker = Connection::open(folder.path().join("hits.db")).unwrap();
    locker.execute_batch("begin exclusive").unwrap();
    let reply = client.ask("{\"id\":2,\"path\":\"/b\"}");
    assert!(reply.starts_with("!unknown deadline "), "{reply}");
    locker.execute_batch("commit").unwrap();
    assert_eq!(client.ask("{\"id\":3,\"path\":\"/c\"}"), "ok 3");
}

#[test]
fn a_full_disk_fails_the_batch_with_its_reason_and_nothing_acknowledged_is_missing() {
    let folder = folder();
    let disk = match Tmpfs::mount(1) {
        Ok(disk) => disk,
        Err(why) => return untested_without_root("SQLite on a full disk", &why),
    };
    let disk = disk.folder();
    let daemon = Daemon::serve(folder.path(), &direct(disk, "id integer, path text", ""));
    let mut client = daemon.connect();
    let mut acknowledged = Vec::new();
    let mut refused = None;
    for id in 0..5000 {
        let reply = client.ask(&format!("{{\"id\":{id},\"path\":\"{}\"}}", "x".repeat(2000)));
        if reply.starts_with("ok ") {
            acknowledged.push(id);
        } else {
            assert!(reply.starts_with("!failed database "), "{reply}");
            refused = Some(reply);
            break;
        }
    }
    assert!(refused.is_some_and(|reply| reply.contains("full")), "the disk is full in words");
    let there: Vec<i64> = rows(disk).into_iter().map(|(id, _)| id).collect();
    assert_eq!(there, acknowledged);
}

#[test]
fn a_read_only_database_is_an_error_at_the_start_that_says_so() {
    let folder = folder();
    let (real, shown) = (folder.path().join("real"), folder.path().join("shown"));
    std::fs::create_dir(&real).unwrap();
    std::fs::create_dir(&shown).unwrap();
    let database = Connection::open(real.join("hits.db")).unwrap();
    database.execute_batch("create table hits (id integer, path text)").unwrap();
    drop(database);
    let mount = |arguments: &[&str]| {
        let out = Command::new("mount").args(arguments).arg(&shown).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        if out.status.success() { Ok(()) } else { Err(said) }
    };
    if let Err(why) = mount(&["--bind", real.to_str().unwrap()]) {
        return untested_without_root("an SQLite file that is mounted for reading", &why);
    }
    mount(&["-o", "remount,bind,ro"]).unwrap();
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, direct(&shown, "id integer, path text", "")).unwrap();
    let out = Command::new(BINARY).arg("serve").arg(&file).stdin(Stdio::null()).output();
    let _ = Command::new("umount").arg("--lazy").arg(&shown).status();
    let out = out.unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success(), "{told}");
    assert!(told.contains("hits.db") && told.contains("cannot be written"), "{told}");
}

/// Its log would stay where it is mounted to: the file has other rows where it is mounted from.
#[test]
fn a_database_file_that_is_mounted_alone_is_an_error_that_says_so() {
    let folder = folder();
    let (real, shown) = (folder.path().join("real"), folder.path().join("shown"));
    std::fs::create_dir(&real).unwrap();
    std::fs::create_dir(&shown).unwrap();
    let (from, to) = (real.join("hits.db"), shown.join("hits.db"));
    let database = Connection::open(&from).unwrap();
    database.execute_batch("create table hits (id integer, path text)").unwrap();
    drop(database);
    std::fs::write(&to, "").unwrap();
    let out = Command::new("mount").arg("--bind").args([&from, &to]).output().unwrap();
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        return untested_without_root("an SQLite file that is mounted alone", &why);
    }
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, direct(&shown, "id integer, path text", "")).unwrap();
    let check = || Command::new(BINARY).arg("check").arg("--connect").arg(&file).output().unwrap();
    let mounted = check();
    let _ = Command::new("umount").arg("--lazy").arg(&to).status();
    let told = String::from_utf8_lossy(&mounted.stderr);
    assert!(!mounted.status.success(), "{told}");
    assert!(told.contains("mounted alone") && told.contains("mount its directory"), "{told}");
    std::fs::write(&file, direct(&real, "id integer, path text", "")).unwrap();
    let real = check();
    assert!(real.status.success(), "{}", String::from_utf8_lossy(&real.stderr));
}

#[test]
fn a_missing_table_is_an_error_at_the_start_that_names_it() {
    let folder = folder();
    let configuration = direct(folder.path(), "id integer", "")
        .lines()
        .filter(|line| !line.starts_with("create"))
        .collect::<Vec<_>>()
        .join("\n");
    let file = folder.path().join("roadstead.toml");
    std::fs::write(&file, configuration).unwrap();
    let out = Command::new(BINARY).arg("serve").arg(&file).stdin(Stdio::null()).output().unwrap();
    assert!(!out.status.success());
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(told.contains("hits") && told.contains("main"), "{told}");
}

#[test]
fn full_sync_is_one_fdatasync_a_commit_at_least() {
    let strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
    assert!(strace.is_ok(), "this test needs strace: apt-get install strace");
    let folder = folder();
    let mut daemon =
        Daemon::serve(folder.path(), &direct(folder.path(), "id integer, path text", ""));
    let trace = folder.path().join("trace");
    let mut tracer = Command::new("strace")
        .args(["-f", "-e", "trace=fdatasync,fsync", "-o"])
        .arg(&trace)
        .args(["-p", &daemon.pid().to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // strace prints "attached" for each thread; the last may come after the first.
    let mut attached = std::io::BufReader::new(tracer.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut attached, &mut line).unwrap();
    assert!(line.contains("attached"), "{line}");
    let drained = std::thread::spawn(move || std::io::copy(&mut attached, &mut std::io::sink()));
    let mut client = daemon.connect();
    let commits = 20;
    for id in 0..commits {
        assert_eq!(client.ask(&format!("{{\"id\":{id},\"path\":\"/a\"}}")), format!("ok {id}"));
    }
    daemon.kill();
    tracer.wait().unwrap();
    let _ = drained.join();
    let synced = std::fs::read_to_string(&trace).unwrap().matches("sync(").count();
    assert!(synced >= commits, "{synced} syncs for {commits} commits");
}

#[test]
fn a_client_that_left_is_forgotten_but_its_neighbours_rows_are_stored() {
    let folder = folder();
    let parse = format!("{}workers = 2\n", worker_program(&["--misbehave", "slow=20"]));
    let daemon = Daemon::serve(folder.path(), &main_job(folder.path(), &parse, ""));
    let mut stays = daemon.connect();
    let mut leaves = daemon.connect();
    leaves.send("1 1 /left 200\n2 1 /left 200\n3 1 /left 200\n");
    stays.send("10 1 /stays 200\n");
    drop(leaves);
    assert_eq!(stays.line(), "ok 10");
    until("nothing is on its way", || daemon.metric("roadstead_requests_in_flight", &[]) == 0);
    assert!(rows(folder.path()).contains(&(10, "/stays".to_owned())));
}

#[test]
fn records_may_be_lines_of_tsv_or_logfmt() {
    for (record, line) in [("tsv", "1\t/a"), ("logfmt", "path=/a id=1")] {
        let folder = folder();
        let json = direct(folder.path(), "id integer, path text", "");
        let configuration = json.replace("\"json\"", &format!("\"{record}\""));
        let daemon = Daemon::serve(folder.path(), &configuration);
        let mut client = daemon.connect();
        assert_eq!(client.ask(line), "ok 1", "{record}");
        let refusal = client.ask("=");
        assert!(
            refusal.starts_with(&format!("!record not a {record} record").replace("tsv", "TSV"))
        );
        assert_eq!(rows(folder.path()), [(1, "/a".to_owned())], "{record}");
    }
}
