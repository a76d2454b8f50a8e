//! Runs the fuzz targets with the inputs in `fuzz/corpus`, and with bytes from a fixed seed: valid messages and inputs
//! of the corpus, with few or many errors. `cargo xtask fuzz` continues from there.

#[path = "../../../fuzz/entries/http1.rs"]
mod entries;
#[path = "../../../fuzz/entries/random.rs"]
mod random;

use random::Random;

const ROUNDS: u64 = 20_000;

/// Samples of messages, which are then damaged.
const SAMPLES: [&[u8]; 11] = [
    b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nAccept:*/*\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabcde\r\n0\r\nA: b\r\n\r\n",
    b"GET http://a:80/ HTTP/1.0\r\nConnection: keep-alive, x\r\nx: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: [::1]\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nServer-Timing: a\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    b"{\"status\":200,\"headers\":{\"A\":\"b\",\"c\":[1,\"x\"]},\"body\":\"aGk=\",\"base64\":true}",
    b"{\"status\":404,\"body\":\"a\\n\\u00e9\"}",
    b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
];

const LIKELY: &[u8] = b"\r\n\t :,;=/?#*0159afg\0[]HTPx\x7f\x80\xff";

/// The corpus of a target. Each input violates a rule in a different way, or barely satisfies it.
#[expect(clippy::disallowed_methods, reason = "what is kept is in files")]
fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(&folder).expect("the corpus is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "{folder} has {} inputs", paths.len());
    paths.iter().map(|path| std::fs::read(path).expect("it can be read")).collect()
}

fn input(random: &mut Random, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(3) {
        bytes.extend_from_slice(match random.below(2) {
            0 => SAMPLES[random.below(SAMPLES.len())],
            _ => &kept[random.below(kept.len())],
        });
    }
    for _ in 0..random.below(4) {
        let place = random.below(bytes.len() + 1);
        let byte = random.byte(LIKELY);
        match random.below(4) {
            0 => bytes.insert(place, byte),
            1 if place < bytes.len() => bytes[place] = byte,
            2 if place < bytes.len() => drop(bytes.remove(place)),
            3 => bytes.truncate(place),
            _ => {}
        }
    }
    bytes
}

fn smoke(seed: u64, target: &str, entry: fn(&[u8])) {
    let (mut random, kept) = (Random(seed), kept(target));
    kept.iter().for_each(|input| entry(input));
    for round in 0..ROUNDS {
        let input = input(&mut random, &kept);
        let run = || entry(&input);
        if let Err(fault) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}, round {round}: {}", input.escape_ascii());
            std::panic::resume_unwind(fault);
        }
    }
    SAMPLES.iter().for_each(|sample| entry(sample));
}

#[test]
fn requests() {
    smoke(1, "http1_requests", entries::requests);
}

#[test]
fn objects() {
    smoke(3, "http1_objects", entries::objects);
    // Answers are not concatenated. Most inputs of the loop above are not answers.
    let mut random = Random(4);
    for sample in SAMPLES.iter().filter(|sample| sample.starts_with(b"{")) {
        for _ in 0..ROUNDS {
            let mut bytes = sample.to_vec();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len());
                bytes[place] = random.byte(LIKELY);
            }
            entries::objects(&bytes);
        }
    }
}

#[test]
fn replies() {
    smoke(2, "http1_replies", entries::replies);
}
