//! The instructions of a server per request, counted by callgrind as the difference of two runs. They do not depend on
//! the load of the machine. Instructions of the kernel are not included.

use super::echo::{Clients, Peer};
use super::page::TEXT;
use super::part::Part;
use crate::bench::callgrind::Profile;
use crate::bench::ground::Ground;
use crate::shell::Failure;
use std::fs;
use std::process::Command;

/// The numbers of connections, and of active ones among them.
const SHAPES: [(usize, usize); 5] = [(10, 10), (1000, 1000), (9500, 9500), (100, 100), (9100, 100)];
/// Additional requests of the second of two runs.
const MORE: usize = 19_000;
/// The source file whose share is the lookup of a stream by its id.
const LOOK_UP: &str = "slab.rs";

/// Runs a server under callgrind with this number of requests.
fn served(
    ground: &Ground,
    peer: &Peer,
    (connections, active): (usize, usize),
    rounds: usize,
) -> Result<Profile, Failure> {
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
    // callgrind writes its counts when the server is stopped. The connections are still open then.
    server.stop()?;
    Profile::read(&file, LOOK_UP)
}

pub(super) fn measure(ground: &Ground, peers: &[Peer]) -> Result<Part, Failure> {
    let (mut part, mut rows) = (Part::default(), String::new());
    for peer in peers {
        rows += &format!("| {} |", peer.name);
        for shape @ (connections, active) in SHAPES {
            eprintln!("instructions: {}, {active} of {connections}", peer.name);
            let (few, many) = (1, 1 + MORE.div_ceil(active));
            let less = served(ground, peer, shape, few)?;
            let more = served(ground, peer, shape, many)?;
            let one = less.of_one_more(more, ((many - few) * active) as f64);
            let (all, look_up) = (one.instructions, one.of_file);
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
