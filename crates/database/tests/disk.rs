//! The syncs of the disk, and the answers when the disk fails, observed from outside.
//!
//! The test runs itself under strace, which counts the syncs and makes selected calls fail. It needs strace (the Debian
//! package of that name) and the right to trace its child, and fails without them.

#![expect(clippy::unwrap_used, reason = "a test, which clippy cannot see")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use database::sqlite::{SqliteOptions, factory};
use database::{Action, Job, Sync};
use exchange::{
    Batch, Factory, HandlerError, Outbox, Outcome, Peer, Request, RequestId, Slice, Stop,
};
use rusqlite::Connection;

const BATCHES: usize = 8;
const ROWS_OF_BATCH: usize = 3;
const AS_CHILD: &str = "--as-traced-child";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [role, path, sync] = words.as_slice()
        && role == AS_CHILD
    {
        return serve(Path::new(path), sync);
    }
    let checks = [
        ("each_batch_is_synced_once_before_its_answers", synced_once as fn()),
        ("without_full_sync_no_batch_is_synced", not_synced),
        ("a_sync_that_fails_at_commit_is_unknown", sync_fails),
        ("a_disk_without_room_at_commit_stores_nothing", disk_is_full),
    ];
    let whole = std::time::Instant::now();
    for (name, check) in checks {
        // A panic ends the program and counts as the failure.
        check();
        println!("test {name} ... ok");
    }
    let took = whole.elapsed().as_secs_f64();
    let passed = checks.len();
    println!("\ntest result: ok. {passed} passed; 0 failed; 0 ignored; finished in {took:.2}s");
}

/// The child: serves the batches and writes each answer when it gets it.
fn serve(path: &Path, sync: &str) {
    let factory = factory(SqliteOptions {
        path: path.to_owned(),
        job: Job {
            create: Some("create table if not exists hits (batch integer, row integer)".to_owned()),
            ack: "ok {batch}".to_owned(),
            sync: if sync == "full" { Sync::Full } else { Sync::Normal },
            lock_timeout: Duration::ZERO,
            ..Job::new(Action::insert("hits", ["batch", "row"]))
        },
    });
    let mut handler = factory.unwrap().open().unwrap();
    for batch in 0..BATCHES {
        handler.serve(&batch_of(batch), &mut Printed(batch), &Stop::default());
    }
}

fn batch_of(batch: usize) -> Batch {
    let request = |row: usize| Request {
        id: RequestId::NONE,
        peer: Peer::Inside,
        body: Slice::from(&*format!(r#"{{"batch":{batch},"row":{row}}}"#)),
        at_us: 0,
        head: None,
    };
    Batch { requests: (0..ROWS_OF_BATCH).map(request).collect() }
}

struct Printed(usize);

impl Outbox for Printed {
    fn part(&mut self, _: usize, _: Slice) -> Result<(), HandlerError> {
        Ok(())
    }

    fn answer(&mut self, _: usize, outcome: Outcome) {
        println!("answer {} {}", self.0, outcome.end().cause.as_str());
    }

    fn flush(&mut self) {}
}

/// The record of a traced child.
struct Traced {
    folder: tempfile::TempDir,
    /// The words of the causes with which the requests of each batch ended.
    answers: BTreeMap<usize, Vec<String>>,
    /// The number of syncs of the write-ahead log before the first answer to each batch, since the last answer to the
    /// previous batch.
    syncs: BTreeMap<usize, usize>,
}

fn trace(sync: &str, fault: Option<&str>) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let (database, log) = (database_in(&folder), folder.path().join("trace"));
    let mut strace = Command::new("strace");
    strace.args(["-y", "-s", "64", "-e", "trace=fsync,fdatasync,pwrite64,write", "-o"]).arg(&log);
    if let Some(fault) = fault {
        let wal = folder.path().join("hits.db-wal");
        strace.arg("-P").arg(wal).arg("-e").arg(format!("inject={fault}"));
    }
    strace.arg(std::env::current_exe().unwrap()).arg(AS_CHILD).arg(&database).arg(sync);
    let output = strace.output().expect("strace runs: this test needs the package `strace`");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));

    let mut answers = BTreeMap::<_, Vec<_>>::new();
    for line in said.lines() {
        let (batch, word) = answer_in(line).expect("the child writes nothing but answers");
        answers.entry(batch).or_default().push(word.to_owned());
    }
    for words in answers.values() {
        assert_eq!(words.len(), ROWS_OF_BATCH, "each request is answered once");
    }
    assert_eq!(answers.len(), BATCHES);
    let syncs = syncs_in(&std::fs::read_to_string(log).unwrap());
    Traced { folder, answers, syncs }
}

fn database_in(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("hits.db")
}

/// Parses `answer 3 ok`.
fn answer_in(text: &str) -> Option<(usize, &str)> {
    let (batch, word) = text.split_once("answer ")?.1.split_once(' ')?;
    Some((batch.parse().ok()?, word))
}

fn syncs_in(trace: &str) -> BTreeMap<usize, usize> {
    let mut syncs = BTreeMap::new();
    let mut since = 0;
    for line in trace.lines() {
        if line.starts_with("write(1") {
            let (batch, _) = answer_in(line).expect("the child writes nothing but answers");
            syncs.entry(batch).or_insert(since);
            since = 0;
        } else if line.contains("sync(") && line.contains("hits.db-wal>") {
            since += 1;
        }
    }
    syncs
}

impl Traced {
    /// Returns how many rows of `batch` a fresh connection finds.
    fn rows(&self, batch: usize) -> usize {
        let connection = Connection::open(database_in(&self.folder)).unwrap();
        let sql = "select count(*) from hits where batch = ?";
        let batch = i64::try_from(batch).unwrap();
        let count: i64 = connection.query_row(sql, [batch], |row| row.get(0)).unwrap();
        usize::try_from(count).unwrap()
    }

    /// Returns the only batch that ended with `word`. All others must be answered and stored.
    fn the_only_batch(&self, word: &str) -> usize {
        let mut found = None;
        for (batch, words) in &self.answers {
            if words.iter().all(|other| other == word) {
                assert_eq!(found.replace(*batch), None, "more than one batch is {word}");
            } else {
                assert_eq!(*words, ["ok"; ROWS_OF_BATCH], "batch {batch}");
                assert_eq!(self.rows(*batch), ROWS_OF_BATCH, "batch {batch} is acknowledged");
            }
        }
        found.expect("one batch met the fault")
    }
}

fn synced_once() {
    let traced = trace("full", None);
    for (batch, words) in &traced.answers {
        assert_eq!(*words, ["ok"; ROWS_OF_BATCH]);
        assert_eq!(traced.rows(*batch), ROWS_OF_BATCH);
    }
    // Before the first batch the file is also opened.
    assert_eq!(traced.syncs.len(), BATCHES);
    assert!(traced.syncs[&0] >= 1, "{:?}", traced.syncs);
    assert!(traced.syncs.range(1..).all(|(_, &count)| count == 1), "{:?}", traced.syncs);
}

fn not_synced() {
    let traced = trace("normal", None);
    assert_eq!(traced.syncs.len(), BATCHES);
    assert!(traced.syncs.range(1..).all(|(_, &count)| count == 0), "{:?}", traced.syncs);
}

fn sync_fails() {
    for when in [4, 6] {
        let traced = trace("full", Some(&format!("fsync,fdatasync:error=EIO:when={when}")));
        let batch = traced.the_only_batch("commit");
        let rows = traced.rows(batch);
        assert!(
            rows == 0 || rows == ROWS_OF_BATCH,
            "a batch is stored whole or not at all: {rows}"
        );
    }
}

fn disk_is_full() {
    // The header of the log, then a header and a page for each frame.
    for when in [8, 9, 12] {
        let traced = trace("full", Some(&format!("pwrite64:error=ENOSPC:when={when}")));
        let batch = traced.the_only_batch("database");
        assert_eq!(traced.rows(batch), 0, "what failed is not there");
    }
}
