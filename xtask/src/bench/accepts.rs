//! Connections that come and go: each connects, sends one line to the programs, receives the answer and
//! closes. How many a second, and what CPU time each costs the server, ours against IO::Multiplex.

use super::ground::{Ground, pairs_of};
use super::lines::{self, Side};
use super::page::{self, Row};
use super::process;
use super::statistics::Pairs;
use crate::shell::Failure;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// Clients at once, each with one connection.
const CLIENTS: usize = 4;
/// Short, so that the ports of connections that are over do not run out.
const WINDOW: Duration = Duration::from_secs(1);
const WARM: Duration = Duration::from_millis(250);
const LINE: &[u8; 32] = b"a line of work for one program.\n";

/// All rounds: the connections a second, and the CPU time of each.
pub(super) fn measure(ground: &Ground) -> Result<[Row; 2], Failure> {
    let name = "connect, one line to 20 programs, its answer, close";
    let both =
        pairs_of(ground, name, || sample(ground, Side::Ours), || sample(ground, Side::Peer))?;
    let of = |what: fn(&Sample) -> f64| {
        let mut pairs = Pairs::default();
        both.iter().for_each(|(ours, theirs)| pairs.push(what(ours), what(theirs)));
        pairs
    };
    let (many, cpu) = (of(|sample| sample.connections_s), of(|sample| sample.cpu_us));
    let row = |unit, pairs: &Pairs, ratio, ratio_means| Row {
        name: format!("{CLIENTS} clients: {name}"),
        unit,
        peer: "IO::Multiplex",
        ours: pairs.ours(),
        theirs: pairs.theirs(),
        ratio,
        ratio_means,
        goal: None,
        calls: None,
    };
    Ok([
        row("connections a second", &many, many.ours_by_theirs(), "times the connections"),
        row("CPU µs a connection", &cpu, cpu.theirs_by_ours(), "times less CPU"),
    ])
}

/// The section of the page.
pub(super) fn section(rows: &[Row]) -> String {
    format!("## Connections that come and go\n\n{METHOD}\n{}", page::rows(rows))
}

const METHOD: &str = "\
The servers and programs of *Lines to programs*, one line in flight each. Each of a few clients connects, sends one line,
receives it back, closes, and begins anew, for one second after a warm-up; they run on the same cores as the server. CPU
time is that of the server alone, over all connections of that second.
";

#[derive(Clone, Copy, Debug)]
struct Sample {
    connections_s: f64,
    cpu_us: f64,
}

fn sample(ground: &Ground, side: Side<'_>) -> Result<Sample, Failure> {
    let (server, workers) = lines::start(ground, side)?;
    let failed = |error: io::Error| Failure::new(format!("a client: {error}\n{}", server.said()));
    let own = server.own(&workers);
    let cpu = || own.iter().map(|one| process::cpu_ns(*one)).sum::<io::Result<u64>>();
    ask(&server.address, WARM).map_err(failed)?;
    let (before, begun) = (cpu().map_err(failed)?, Instant::now());
    let done = ask(&server.address, WINDOW).map_err(failed)? as f64;
    let took = begun.elapsed().as_secs_f64();
    let cpu_ns = cpu().map_err(failed)? - before;
    server.stop()?;
    Ok(Sample { connections_s: done / took, cpu_us: cpu_ns as f64 / 1e3 / done })
}

/// All clients at once, for that long: how many connections were answered and closed.
fn ask(address: &str, window: Duration) -> io::Result<u64> {
    let until = Instant::now() + window;
    let client = || -> io::Result<u64> {
        let mut done = 0;
        while Instant::now() < until {
            once(address)?;
            done += 1;
        }
        Ok(done)
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        clients.into_iter().try_fold(0, |all, client| {
            Ok(all + client.join().map_err(|_| io::Error::other("a client panicked"))??)
        })
    })
}

fn once(address: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(LINE)?;
    let mut answer = [0; LINE.len()];
    stream.read_exact(&mut answer)?;
    if answer == *LINE { Ok(()) } else { Err(io::Error::other("the answer to another line")) }
}
