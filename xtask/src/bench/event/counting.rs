//! The instructions of a server per request, counted by callgrind as the difference of two runs. They do not depend on
//! the load of the machine. Instructions of the kernel are not included.

use super::echo::{Clients, Peer};
use super::page::TEXT;
use crate::bench::callgrind::Profile;
use crate::bench::driver::Part;
use crate::bench::ground::Ground;
use crate::shell::{Failure, command};
use std::collections::BTreeMap;
use std::fs;

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
    let mut command = command("valgrind", ["--tool=callgrind", "--dump-line=yes"]);
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
    Profile::read(&file)
}

pub(super) fn measure(ground: &Ground, peers: &[Peer]) -> Result<Part, Failure> {
    let (mut rows, mut ours, mut goals) = (String::new(), BTreeMap::new(), Vec::new());
    for peer in peers {
        rows += &format!("| {} |", peer.name);
        for shape @ (connections, active) in SHAPES {
            eprintln!("instructions: {}, {active} of {connections}", peer.name);
            let (few, many) = (1, 1 + MORE.div_ceil(active));
            let less = served(ground, peer, shape, few)?;
            let more = served(ground, peer, shape, many)?;
            let one = less.of_one_more(more, ((many - few) * active) as f64);
            let all = one.instructions();
            if peer.is_ours() {
                let look_up = one.files.iter().filter(|(file, _)| file.ends_with(LOOK_UP));
                let look_up: f64 = look_up.map(|(_, cost)| cost).sum();
                rows += &format!(" {all:.0} ({:.1} %) |", 100.0 * look_up / all);
                ours.insert((connections, active), all);
            } else {
                rows += &format!(" {all:.0} |");
            }
        }
        rows.push('\n');
    }
    let of = |shape| ours.get(&shape).copied();
    if let (Some(none), Some(idle)) = (of((100, 100)), of((9100, 100))) {
        let text = "instructions a request with 0 and with 9000 idle connections".to_owned();
        let met = (none - idle).abs() <= 0.02 * none;
        goals.push((text, format!("{none:.0} and {idle:.0}"), met));
    }
    if let (Some(ten), Some(all)) = (of((10, 10)), of((9500, 9500))) {
        let text = "no more instructions a request on 9500 connections than on 10".to_owned();
        goals.push((text, format!("{all:.0} and {ten:.0}"), all <= ten * 1.02));
    }
    Ok(Part { goals, ..Part::text(TEXT.fill("instructions", &[("rows", &rows)])) })
}
