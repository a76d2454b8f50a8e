//! Compares the transcripts of a thousand worlds with those in `transcripts.txt`.
//!
//! Internal changes of the gateway must leave them unchanged. If a change is meant to be visible to clients, programs
//! or servers, `SIMULATE_TRANSCRIPTS=write` writes the file again, and the commit message states which worlds have
//! changed and why. To see what differs in one world, replay its seed before and after the change, and compare the
//! lines that begin with `sent to`.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;

use simulate::{Job, Options, Report, replay};

use super::{SHOWN_MAX, run_all};

/// The worlds, with the name of their kind in the file.
const WORLDS: [(&str, Job, usize, Range<u64>); 6] = [
    ("programs", Job::Gateway, 1, 0..300),
    ("programs on two shards", Job::Gateway, 2, 0..200),
    ("servers", Job::Http, 1, 0..200),
    ("servers on two shards", Job::Http, 2, 0..100),
    ("spawned servers", Job::Hosts, 1, 0..100),
    ("echo", Job::Echo, 1, 0..100),
];

fn file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "worlds", "transcripts.txt"].iter().collect()
}

#[test]
fn everybody_is_sent_the_same_bytes_as_before() {
    let mut text = String::from("# world: streams, bytes sent, digest (see transcripts.rs)\n");
    let mut replays = Vec::new();
    for (name, job, shards, seeds) in WORLDS {
        let mut reports = run_all(seeds, shards, None, false, job);
        reports.sort_by_key(|report| report.seed);
        for Report { seed, transcript, .. } in reports {
            let (streams, bytes, digest) =
                (transcript.streams, transcript.bytes, transcript.digest);
            writeln!(text, "{name} {seed}: {streams} {bytes} {digest:016x}").unwrap();
            replays.push(replay(Options { seed, shards, mutant: None, trace: true }, job));
        }
    }
    if std::env::var("SIMULATE_TRANSCRIPTS").is_ok_and(|it| it == "write") {
        std::fs::write(file(), text).unwrap();
        return;
    }
    let before = std::fs::read_to_string(file()).unwrap();
    assert_eq!(before.lines().count(), text.lines().count(), "the file has other worlds");
    let pairs = before.lines().zip(text.lines()).skip(1).zip(replays);
    let changed: Vec<_> = pairs.filter(|((before, now), _)| before != now).collect();
    for ((before, now), replay) in changed.iter().take(SHOWN_MAX) {
        println!("before {before}\nnow    {now}\n       {replay}");
    }
    let count = changed.len();
    assert!(changed.is_empty(), "in {count} worlds somebody is sent something else than before");
}
