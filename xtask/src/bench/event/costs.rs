//! The cost of single calls: timers, and changes of the set that epoll watches. Times vary and instructions do not, so
//! both are given. Instructions are the difference of two runs with different numbers of calls.

use super::page::TEXT;
use crate::bench::driver::Part;
use crate::bench::ground::Ground;
use crate::bench::page::row;
use crate::bench::statistics::Quartiles;
use crate::bench::{callgrind, numbers};
use crate::shell::{Failure, command};
use std::process::Command;

/// The number of other timers that are armed.
const ARMED: [u32; 2] = [0, 100_000];
/// Calls of a run whose time is measured.
const TIMED: u32 = 1_000_000;
/// Additional calls of the second of two counted runs.
const COUNTED: u32 = 200_000;
/// Turns cost more than calls, so fewer are sufficient.
const TURNS: u32 = 20_000;

const CALLS: [(&str, &str); 6] = [
    ("deadline", "put a deadline of a stream off by `deadline_in`"),
    ("extend", "put a timer off, to an instant that the caller works out"),
    ("earlier", "move a timer to an earlier instant"),
    ("set", "make and arm a timer"),
    ("cancel", "make, arm and cancel a timer"),
    ("fire", "fire a timer and arm it again, 1000 in a turn"),
];

fn costs(ground: &Ground, what: &str, armed: u32, count: u32) -> Command {
    command(ground.example("costs"), [what, &armed.to_string(), &count.to_string()])
}

/// Returns the nanoseconds per call over the rounds.
fn timed(ground: &Ground, what: &str, armed: u32, count: u32) -> Result<String, Failure> {
    let one = |_| numbers::last(costs(ground, what, armed, count));
    let samples = (0..ground.rounds).map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(Quartiles::of(&samples).digits(1))
}

/// Returns the instructions per call, without those of the surrounding loop.
fn counted(ground: &Ground, what: &str, armed: u32) -> Result<f64, Failure> {
    let more = |what: &str| {
        callgrind::of_one([COUNTED, 2 * COUNTED], |count| costs(ground, what, armed, count))
    };
    Ok(more(what)? - more("nothing")?)
}

pub(super) fn timers(ground: &Ground) -> Result<Part, Failure> {
    let (mut rows, mut goals) = (String::new(), Vec::new());
    for (what, words) in CALLS {
        eprintln!("timers: {what}");
        let [few, many] = ARMED.map(|armed| counted(ground, what, armed));
        let (few, many) = (few?, many?);
        let ns = |armed| match what {
            // This call waits for each millisecond, so its time is not a cost.
            "fire" => Ok("–".to_owned()),
            _ => timed(ground, what, armed, TIMED),
        };
        let [ns_few, ns_many] = ARMED.map(ns);
        rows += &row(&[
            &words,
            &format_args!("{few:.0}"),
            &format_args!("{many:.0}"),
            &ns_few?,
            &ns_many?,
        ]);
        let same = (few - many).abs() <= 5.0_f64.max(0.05 * few);
        let goal = format!("{words}: the same with 0 and with 100,000 armed");
        goals.push((goal, format!("{few:.0} and {many:.0} instructions"), same));
        if what == "deadline" {
            let goal = format!("{words}: at most 20 instructions");
            goals.push((goal, format!("{few:.0}"), few.max(many) <= 20.5));
        }
    }
    // The question of row A: the cost of one timer among a thousand streams.
    let (mut turns, mut counts) = (String::new(), Vec::new());
    for (what, streams, deadlines) in
        [("turn", 1, 0), ("idle", 1000, 0), ("idle_one", 1000, 1), ("idle_all", 1000, 1000)]
    {
        eprintln!("timers: {what}");
        let run = |count| costs(ground, what, 0, count);
        let count = callgrind::of_one([TURNS, 2 * TURNS], run)?;
        let ns = timed(ground, what, 0, TURNS)?;
        turns += &row(&[&streams, &deadlines, &format_args!("{count:.0}"), &ns]);
        counts.push(count);
    }
    let (few, many) = (counts[0], counts[3]);
    let goal = "a turn costs the same with 1 stream and no deadline and with 1000 and theirs";
    let measured = format!("{few:.0} and {many:.0} instructions");
    goals.push((goal.to_owned(), measured, many <= few * 1.10));
    let text = TEXT.fill("timers", &[("rows", &rows), ("turns", &turns)]);
    Ok(Part { goals, ..Part::text(text) })
}

pub(super) fn epoll_control(ground: &Ground) -> Result<Part, Failure> {
    let modify = timed(ground, "epoll_modify", 0, TIMED)?;
    let add = timed(ground, "epoll_add", 0, TIMED)?;
    Ok(Part::text(TEXT.fill("epoll_ctl", &[("modify", &modify), ("add", &add)])))
}
