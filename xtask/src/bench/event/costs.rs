//! What single calls cost: timers, and changes of what epoll watches. Times are noisy and
//! instructions are not, so both are given; instructions are what so many more calls add to a run.

use super::bench::Bench;
use super::part::Part;
use crate::bench::callgrind::whole_run;
use crate::bench::statistics::Quartiles;
use crate::shell::{self, Failure};
use std::process::Command;

/// Timers that are armed beside.
const ARMED: [u32; 2] = [0, 100_000];
/// Calls of a run in which time is taken.
const TIMED: u32 = 1_000_000;
/// Calls that the second of two counted runs makes more.
const COUNTED: u32 = 200_000;
/// Turns are dearer than calls, and fewer do.
const TURNS: u32 = 20_000;

const CALLS: [(&str, &str); 6] = [
    ("deadline", "put a deadline of a stream off by `deadline_in`"),
    ("extend", "put a timer off, to an instant that the caller works out"),
    ("earlier", "move a timer to an earlier instant"),
    ("set", "make and arm a timer"),
    ("cancel", "make, arm and cancel a timer"),
    ("fire", "fire a timer and arm it again, 1000 in a turn"),
];

fn command(bench: &Bench, what: &str, armed: u32, count: u32) -> Command {
    let mut command = Command::new(bench.built("costs"));
    command.args([what, &armed.to_string(), &count.to_string()]);
    command
}

/// Nanoseconds of a call, in so many rounds.
fn timed(bench: &Bench, what: &str, armed: u32, count: u32) -> Result<Quartiles, Failure> {
    let mut samples = Vec::new();
    for _ in 0..bench.rounds {
        let said = shell::output(command(bench, what, armed, count))?;
        let ns: f64 = said
            .trim()
            .parse()
            .map_err(|_| Failure::new(format!("no time of `{what}`: {said}")))?;
        samples.push(ns);
    }
    Ok(Quartiles::of(&samples))
}

/// Instructions of a call, without those of the loop around it.
fn counted(bench: &Bench, what: &str, armed: u32) -> Result<f64, Failure> {
    let more = |what: &str| {
        let of = |count| whole_run(command(bench, what, armed, count));
        Ok::<_, Failure>((of(2 * COUNTED)? - of(COUNTED)?) / f64::from(COUNTED))
    };
    Ok(more(what)? - more("nothing")?)
}

pub(super) fn timers(bench: &Bench) -> Result<Part, Failure> {
    let mut part = Part::of(
        "## Timers\n\n| What | instructions, 0 armed | 100,000 armed | ns, 0 armed | 100,000 armed |\n|---|---|---|---|---|\n",
    );
    for (what, words) in CALLS {
        eprintln!("timers: {what}");
        let [few, many] = ARMED.map(|armed| counted(bench, what, armed));
        let (few, many) = (few?, many?);
        // It waits for each millisecond, which is no cost.
        let ns = if what == "fire" {
            ["–".to_owned(), "–".to_owned()]
        } else {
            let [few, many] = ARMED.map(|armed| timed(bench, what, armed, TIMED));
            [shown(few?), shown(many?)]
        };
        let [ns_few, ns_many] = ns;
        part.text.push_str(&format!("| {words} | {few:.0} | {many:.0} | {ns_few} | {ns_many} |\n"));
        let same = (few - many).abs() <= 5.0_f64.max(0.05 * few);
        part.goals.push((format!("{words}: the same with 0 and with 100,000 armed ({few:.0} and {many:.0} instructions)"), same));
        if what == "deadline" {
            let text = format!("{words}: at most 20 instructions ({few:.0})");
            part.goals.push((text, few.max(many) <= 20.5));
        }
    }
    turns(bench, &mut part)?;
    Ok(part)
}

/// The question of row A: what one timer costs among a thousand streams.
fn turns(bench: &Bench, part: &mut Part) -> Result<(), Failure> {
    part.text.push_str("\nA turn in which nothing happens, with one idle stream and with a thousand, of which none, one or all have a deadline armed:\n\n| Streams | deadlines armed | instructions a turn | ns |\n|---|---|---|---|\n");
    let mut shown_counts = Vec::new();
    for (what, streams, deadlines) in
        [("turn", 1, 0), ("idle", 1000, 0), ("idle_one", 1000, 1), ("idle_all", 1000, 1000)]
    {
        eprintln!("timers: {what}");
        let of = |count| whole_run(command(bench, what, 0, count));
        let count = (of(2 * TURNS)? - of(TURNS)?) / f64::from(TURNS);
        let ns = shown(timed(bench, what, 0, TURNS)?);
        part.text.push_str(&format!("| {streams} | {deadlines} | {count:.0} | {ns} |\n"));
        shown_counts.push(count);
    }
    let (few, many) = (shown_counts[0], shown_counts[3]);
    let text = format!(
        "a turn costs the same with 1 stream and no deadline and with 1000 and theirs ({few:.0} and {many:.0} instructions)"
    );
    part.goals.push((text, many <= few * 1.10));
    part.text.push('\n');
    Ok(())
}

pub(super) fn epoll_control(bench: &Bench) -> Result<Part, Failure> {
    let modify = timed(bench, "epoll_modify", 0, TIMED)?;
    let add = timed(bench, "epoll_add", 0, TIMED)?;
    let text = format!(
        "## What epoll_ctl costs\n\n\
         One `EPOLL_CTL_MOD` takes {} ns, one `EPOLL_CTL_ADD` with its `EPOLL_CTL_DEL` {} ns.\n\n\
         The original says of its own machine 14,420 clocks for an epoll_ctl, \"4.5 nsec\" at 3.2 GHz. \
         14,420 clocks at 3.2 GHz are 4.5 *micro*seconds, a thousand times as much; so its conclusion, that \
         registering anew costs next to nothing, does not follow from its own figure. What it costs in an echo is \
         the row `rearm` below.\n\n",
        shown(modify),
        shown(add)
    );
    Ok(Part { text, ..Part::default() })
}

fn shown(of: Quartiles) -> String {
    format!("{:.1} [{:.1}–{:.1}]", of.median, of.low, of.high)
}
