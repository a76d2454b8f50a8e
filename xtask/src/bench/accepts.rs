//! Connections that come and go: each connects, sends one line to the programs, receives the answer and
//! closes. How many a second, and what CPU time each costs the server, ours against IO::Multiplex.

use super::ground::Ground;
use super::lines::{self, Side};
use super::page::{self, Better, Row};
use super::process;
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

/// All rounds: the connections a second, and the CPU time of each. The section of the page.
pub(super) fn measure(ground: &Ground) -> Result<String, Failure> {
    let name = "connect, one line to 20 programs, its answer, close";
    let of = |side| move || sample(ground, side);
    let both = ground.pairs(name, of(Side::Ours), of(Side::Peer))?;
    let row = |unit, better, number: fn(&Sample) -> f64| {
        let pairs = both.each_ref().map(|samples| samples.iter().map(number).collect());
        let name = format!("{CLIENTS} clients: {name}");
        Row::new(name, (unit, better), "IO::Multiplex", &pairs)
    };
    let rows = page::rows(&[
        row("connections a second", Better::More("times the connections"), |it| it.connections_s),
        row("CPU µs a connection", Better::Less("times less CPU"), |it| it.cpu_us),
    ]);
    Ok(page::TEXT.fill("accepts", &[("rows", &rows)]))
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    connections_s: f64,
    cpu_us: f64,
}

fn sample(ground: &Ground, side: Side<'_>) -> Result<Sample, Failure> {
    let (server, workers) = lines::start(ground, side)?;
    let failed = |error: io::Error| server.child.failed(&format!("a client: {error}"));
    let own = server.own(&workers);
    let cpu = || process::sum(&own, process::cpu_ns);
    ask(&server.address, WARM).map_err(failed)?;
    let (before, begun) = (cpu()?, Instant::now());
    let done = ask(&server.address, WINDOW).map_err(failed)? as f64;
    let took = begun.elapsed().as_secs_f64();
    let cpu_ns = cpu()? - before;
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
