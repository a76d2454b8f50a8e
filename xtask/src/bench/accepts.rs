//! Short connections: each connects, sends one line to the programs, receives the answer and closes. Measures
//! connections per second and the server's CPU time per connection, ours against IO::Multiplex.

use super::clients::{connect, on_threads};
use super::comparison::{Better, Comparison, TEXT};
use super::driver::Part;
use super::ground::Ground;
use super::lines::{self, PEER, SIDES, Side};
use super::process;
use crate::shell::Failure;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// The number of concurrent clients, each with one connection.
const CLIENTS: usize = 4;
/// Short, because closed connections occupy ports.
const WINDOW: Duration = Duration::from_secs(1);
const WARM: Duration = Duration::from_millis(250);
const LINE: &[u8; 32] = b"a line of work for one program.\n";

/// Measures all rounds: connections per second, and CPU time per connection.
pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let name = format!("{CLIENTS} clients: connect, one line to 20 programs, its answer, close");
    let trial =
        ground.rounds(&name, &SIDES, |_, at| sample(ground, [Side::Ours, Side::Peer][at]))?;
    let row = |unit, value, better| {
        Comparison { name: &name, unit, value, better, peer: PEER, goal: None }.row(&trial)
    };
    let rows = [
        row("connections a second", "connections_s", Better::More("times the connections")),
        row("CPU µs a connection", "cpu_us", Better::Less("times less CPU")),
    ];
    Ok(Part::text(TEXT.fill("accepts", &[("rows", &rows.concat())])))
}

fn sample(ground: &Ground, side: Side) -> Result<Value, Failure> {
    let (server, workers) = lines::start(ground, side)?;
    let own = server.own(&workers);
    ask(&server.address, WARM)?;
    let begun = Instant::now();
    let (cpu_us, done) = process::cpu_us(&own, || ask(&server.address, WINDOW))?;
    let took = begun.elapsed().as_secs_f64();
    server.stop()?;
    let done = f64::from(done);
    Ok(json!({ "connections_s": done / took, "cpu_us": cpu_us / done }))
}

/// Runs all clients for this time. Returns the number of connections that were answered and closed.
fn ask(address: &str, window: Duration) -> Result<u32, Failure> {
    let until = Instant::now() + window;
    let each = on_threads(CLIENTS, |_| {
        let mut done = 0;
        while Instant::now() < until {
            once(address)?;
            done += 1;
        }
        Ok(done)
    })?;
    Ok(each.iter().sum())
}

fn once(address: &str) -> io::Result<()> {
    let mut stream = connect(address)?;
    stream.write_all(LINE)?;
    let mut answer = [0; LINE.len()];
    stream.read_exact(&mut answer)?;
    if answer == *LINE { Ok(()) } else { Err(io::Error::other("the answer to another line")) }
}
