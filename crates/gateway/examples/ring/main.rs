//! A ring of `cat`s: a token goes from program to program and decreases by one at each, until it is 0.
//!
//! `ring MODE PROGRAMS HOPS RINGS`. MODE is `bare` (only an epoll loop), `event` (the loop and the spawner), `gateway`
//! (the complete gateway and its pools, with requests from within the process) or `unkept` (like `gateway` without a
//! supervisor, for valgrind). Prints a line for each ring that is set up, and one at the end. `cargo xtask bench ring`
//! runs it; the peer is `xtask/peers/ring.erl`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

mod bare;
mod looped;
mod through;
mod unkept;

/// The parameters of a run.
#[derive(Clone, Copy)]
struct Plan {
    programs: usize,
    hops: u64,
    rings: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let kept = words.first().is_none_or(|mode| mode != "unkept");
    if kept && let Err(error) = spawn::init() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(programs), Some(hops), Some(rings)) = (number(1), number(2), number(3)) else {
        eprintln!("usage: ring bare|event|gateway|unkept PROGRAMS HOPS RINGS");
        return ExitCode::from(2);
    };
    let size = |number: u64| usize::try_from(number).expect("a few programs");
    let config = Plan { programs: size(programs), hops, rings: size(rings) };
    let took = match words[0].as_str() {
        "bare" => bare::run(config),
        "event" => looped::run(config),
        _ => through::run(config, kept),
    };
    match took {
        Ok(took) => {
            closing(config, took);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints that one ring is set up.
fn set_up(ring: usize, config: Plan, since: Instant) {
    let (number, took) = (ring + 1, since.elapsed().as_secs_f64() * 1e3);
    println!("ring {number}: {} programs in {took:.1} ms", config.programs);
}

fn closing(config: Plan, took: Duration) {
    let messages = config.hops as f64 * config.rings as f64;
    let (programs, seconds) = (config.programs * config.rings, took.as_secs_f64());
    println!(
        "{messages:.0} messages over {programs} programs in {seconds:.3} s: {:.0} messages/s, \
         {:.2} µs each",
        messages / seconds,
        seconds * 1e6 / messages
    );
}

/// Returns the number on a line without its line end.
fn token(line: &[u8]) -> u64 {
    line.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// Returns a token as a line.
fn line(token: u64) -> Vec<u8> {
    format!("{token}\n").into_bytes()
}
