//! Instructions that a server needs for a request, counted by callgrind: what so many more requests
//! add to a run. They do not depend on the machine's mood. The kernel's are not among them.

use super::echo::{Clients, Peer};
use super::page::TEXT;
use super::part::Part;
use crate::bench::ground::Ground;
use crate::shell::{self, Failure};
use std::fs;
use std::process::Command;

/// Connections of which this many are active.
const SHAPES: [(usize, usize); 5] = [(10, 10), (1000, 1000), (9500, 9500), (100, 100), (9100, 100)];
/// Requests that the second of two runs makes more.
const MORE: usize = 19_000;
/// Functions whose share is that of finding the stream of an id.
const LOOK_UP: [&str; 1] = ["slab.rs"];

/// Instructions of a run, and those among them that come from the source file of the look-up.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: f64,
    look_up: f64,
}

/// A server under callgrind that is asked so many times.
fn served(
    ground: &Ground,
    peer: &Peer,
    (connections, active): (usize, usize),
    rounds: usize,
) -> Result<Count, Failure> {
    let file = ground.folder.join("callgrind.out");
    let _ = fs::remove_file(&file);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--dump-line=yes"]);
    command.arg(format!("--callgrind-out-file={}", file.display()));
    command.args(&peer.command);
    let server = ground.start(command, "callgrind")?;
    let failed = Failure::at(format!("{} under callgrind", peer.name));
    let mut clients = Clients::connect(&server.address, connections).map_err(&failed)?;
    clients.active = active;
    for _ in 0..rounds {
        clients.exchange().map_err(&failed)?;
    }
    // It writes its counts when it is told to end; the connections are still open then.
    server.stop()?;
    Ok(count(&shell::read(&file)?))
}

/// Reads callgrind's own format: positions, counts, and calls, whose costs are counted elsewhere.
fn count(said: &str) -> Count {
    let mut names: Vec<Option<bool>> = Vec::new();
    let (mut of_look_up, mut of_call, mut count) = (false, false, Count::default());
    let mut is_look_up = |text: &str| -> bool {
        // `(12) name` names a number once; `(12)` alone refers to it.
        let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            return false;
        };
        let Ok(number) = number.parse::<usize>() else { return false };
        if number >= names.len() {
            names.resize(number + 1, None);
        }
        if !name.trim().is_empty() {
            names[number] = Some(LOOK_UP.iter().any(|end| name.trim().ends_with(end)));
        }
        names[number].unwrap_or(false)
    };
    for line in said.lines() {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "fl" | "fi" | "fe" => of_look_up = is_look_up(value),
                "cfi" | "cfl" => {
                    is_look_up(value);
                }
                "calls" => of_call = true,
                _ => {}
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let position = words.next().unwrap_or_default();
        let is_position = position.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c));
        let Some(cost) = words.next().and_then(|word| word.parse::<f64>().ok()) else { continue };
        if !is_position {
            continue;
        }
        if std::mem::take(&mut of_call) {
            continue;
        }
        count.all += cost;
        if of_look_up {
            count.look_up += cost;
        }
    }
    count
}

pub(super) fn measure(ground: &Ground, peers: &[Peer]) -> Result<Part, Failure> {
    let (mut part, mut rows) = (Part::default(), String::new());
    for peer in peers {
        rows += &format!("| {} |", peer.name);
        for shape @ (connections, active) in SHAPES {
            eprintln!("instructions: {}, {active} of {connections}", peer.name);
            let (few, many) = (1, 1 + MORE.div_ceil(active));
            let (less, more) =
                (served(ground, peer, shape, few)?, served(ground, peer, shape, many)?);
            let requests = ((many - few) * active) as f64;
            let all = (more.all - less.all) / requests;
            let look_up = (more.look_up - less.look_up) / requests;
            if peer.is_ours() {
                rows += &format!(" {all:.0} ({:.1} %) |", 100.0 * look_up / all);
            } else {
                rows += &format!(" {all:.0} |");
            }
            part.numbers.insert(format!("{} {active} of {connections}", peer.name), all);
        }
        rows.push('\n');
    }
    part.text = TEXT.fill("instructions", &[("rows", &rows)]);
    let of = |shape: &str| part.numbers.get(&format!("event, epoll {shape}")).copied();
    if let (Some(none), Some(idle)) = (of("100 of 100"), of("100 of 9100")) {
        let text = format!(
            "instructions a request with 0 and with 9000 idle connections ({none:.0} and {idle:.0})"
        );
        part.goals.push((text, (none - idle).abs() <= 0.02 * none));
    }
    if let (Some(ten), Some(all)) = (of("10 of 10"), of("9500 of 9500")) {
        let text = format!(
            "no more instructions a request on 9500 connections than on 10 ({all:.0} and {ten:.0})"
        );
        part.goals.push((text, all <= ten * 1.02));
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_own_format_is_read() {
        let said = "events: Ir\nfl=(1) /a/src/turn.rs\nfn=(1) turn\n12 10\n+1 5\nfi=(2) /a/src/slab.rs\n7 3\nfe=(1)\n+2 2\ncfi=(3) /b/other.rs\ncfn=(2) other\ncalls=4 9\n* 1000\n* 1\nfl=(3)\nfn=(2)\n1 900\n";
        let count = count(said);
        assert_eq!((count.all, count.look_up), (921.0, 3.0));
    }
}
