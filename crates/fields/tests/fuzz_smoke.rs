//! Runs the fuzz targets with bytes from a fixed seed: slightly damaged samples of each format, combinations of
//! samples, and further damaged versions of input that a format accepted.

use block::Slice;
use fields::{Fields, cgi, fastcgi, http1, json, logfmt, netstring};

#[path = "../../../fuzz/entries/fields.rs"]
mod entries;
#[path = "../../../fuzz/entries/random.rs"]
mod random;

use random::Random;

const ROUNDS: u64 = 30_000;
/// The maximum number of accepted inputs that are kept for further damage.
const KEPT_MAX: usize = 400;

/// Samples of the formats.
const SAMPLES: [&[u8]; 20] = [
    b"Host: example.org\r\nUser-Agent:  x \t\r\naccept:*/*\r\nX-Empty:\r\nhost: b\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"a:b\r\na: b\r\nA:\tc \r\nx-a-long-name-of-34-bytes-and-again: y\r\n",
    b"Cookie: a=1; b=\"2\"\r\nVia: 1.1 x\r\nVia: 1.0 y\r\nDate: now\r\nTE: z\r\nE:\r\n",
    b"4:path,1:/,2:at,0:,",
    b"0:,0:,10:0123456789,3:a,b,",
    b"21:SCGI\x001\x00CONTENT_LENGTH\x00,",
    b"24:CONTENT_LENGTH\x002\x00SCGI\x001\x00,hi",
    b"PATH=/bin\0HOME=\0A=b=c\0",
    b"\x06\x03METHODGET\x04\x80\x00\x00\x05NAMEvalue",
    b"\x00\x00\x01\x00a\x80\x00\x00\x01\x01bc",
    b"at=17 path=\"/a \\\" \\\\ b\" user empty= n=\"\\t\\n\\r\"",
    b"at=18 q=\"plain text\" at=19 \t user=",
    b"{\"a\":1,\"b\":null,\"c\":\"x\\u0000\\n\",\"d\":[1,{\"e\":2}],\"f\":true}",
    b"{ \"\\u0061\" : -1.5e+3 , \"b\\\\\":\"\\ud83d\\ude00\",\"\":\"\",\"t\":false}",
    b"{\"a\":\"plain\",\"a\":2}",
    b"1\t\\N\t\\\\a\\tb",
    b"a\t\tb",
    b"a",
    b"",
];

const LIKELY: &[u8] = b"\r\n\t :,=\"\\0123\0{}[]aN\x7f\x80\xff";

/// One known sample, or a combination of two, damaged in up to four places.
fn input(random: &mut Random, known: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = known[random.below(known.len())].clone();
    if random.below(4) == 0 {
        let other = &known[random.below(known.len())];
        bytes.truncate(random.below(bytes.len() + 1));
        bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
    }
    for _ in 0..random.below(5) {
        let place = random.below(bytes.len() + 1);
        let byte = random.byte(LIKELY);
        match random.below(6) {
            0 => bytes.insert(place, byte),
            1 if place < bytes.len() => bytes[place] = byte,
            2 if place < bytes.len() => drop(bytes.remove(place)),
            3 => bytes.truncate(place),
            // Repeats a part, so that names occur twice and lengths are wrong.
            4 => {
                let end = place + random.below(bytes.len() - place + 1).min(20);
                let part = bytes[place..end].to_vec();
                bytes.splice(place..place, part);
            }
            // Inserts a long run, so that blocks are replaced and limits are exceeded.
            5 if random.below(20) == 0 => {
                let run = vec![byte; random.below(3000)];
                bytes.splice(place..place, run);
            }
            _ => {}
        }
    }
    bytes
}

/// Runs `entry` with damaged samples. Inputs that `accepts` returns true for replace older samples and are damaged
/// further. Thus the inputs move away from the original samples.
fn smoke(seed: u64, entry: fn(&[u8]), accepts: fn(&[u8]) -> bool) {
    let mut random = Random(seed);
    let mut known: Vec<Vec<u8>> = SAMPLES.iter().map(|sample| sample.to_vec()).collect();
    let mut accepted = 0;
    for round in 0..ROUNDS {
        let input = input(&mut random, &known);
        let run = || {
            entry(&input);
            accepts(&input)
        };
        match std::panic::catch_unwind(run) {
            Err(fault) => {
                eprintln!("seed {seed}, round {round}: {}", input.escape_ascii());
                std::panic::resume_unwind(fault);
            }
            Ok(false) => {}
            Ok(true) => {
                accepted += 1;
                if known.len() < KEPT_MAX {
                    known.push(input);
                } else {
                    let place = SAMPLES.len() + random.below(KEPT_MAX - SAMPLES.len());
                    known[place] = input;
                }
            }
        }
    }
    SAMPLES.iter().for_each(|sample| entry(sample));
    // With fewer accepted inputs, the test would mostly cover rejections.
    assert!(accepted > ROUNDS / 10, "{accepted} of {ROUNDS} were accepted");
}

#[test]
fn heads() {
    let accepts = |bytes: &[u8]| {
        let mut set = Fields::headers();
        http1::adopt(&mut set, Slice::copy_of(bytes)).is_ok() && !set.is_empty()
    };
    smoke(1, entries::head, accepts);
}

#[test]
fn formats() {
    let accepts = |bytes: &[u8]| {
        let mut set = Fields::new();
        let read = netstring::decode(&mut set, bytes).is_ok()
            || netstring::decode_scgi(&mut set, bytes).is_ok()
            || cgi::decode(&mut set, bytes).is_ok()
            || fastcgi::decode(&mut set, bytes).is_ok()
            || logfmt::decode(&mut set, bytes).is_ok()
            || json::decode(&mut set, bytes).is_ok();
        read && !set.is_empty()
    };
    smoke(2, entries::formats, accepts);
}
