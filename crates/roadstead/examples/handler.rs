//! A TCP server whose handler answers with N bytes: an example of a program that embeds Roadstead.
//!
//! ```text
//! cargo run --release --example handler                            # serves its own clients, once
//! cargo run --release --example handler -- --server --port 8000    # only serves, until it is stopped
//! cargo run --release --example handler -- --clients 100 --size 1024 --port 8000
//! ```

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use roadstead::embed::{
    Configuration, Embed, ListenerBuilder, OptionValue, Peer, PoolBuilder, Running, Slice,
};

#[path = "support/arguments.rs"]
mod arguments;

use arguments::Arguments;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::read()?;
    if arguments.only_clients() {
        let to = SocketAddr::from(([127, 0, 0, 1], arguments.port));
        return clients(to, &arguments);
    }
    let server = serve(&arguments)?;
    let address = server.address("main").ok_or("there is a listener")?.to_owned();
    println!("ready {{\"listeners\":{{\"main\":\"{address}\"}}}}");
    if arguments.server {
        loop {
            std::thread::park();
        }
    }
    clients(address.parse()?, &arguments)?;
    let status = server.status().ok_or("it serves")?;
    println!(
        "{} connections, {} workers",
        status.listeners[0].accepted,
        status.pools[0].workers.len()
    );
    if !server.drain().is_clean() {
        return Err("something was cut off".into());
    }
    Ok(())
}

fn serve(arguments: &Arguments) -> Result<Running, Box<dyn std::error::Error>> {
    let Arguments { port, size, threads, schedule, .. } = arguments;
    let listener = ListenerBuilder::connect(&format!("127.0.0.1:{port}"));
    let pool = PoolBuilder::handler("bytes").set("balance", schedule.as_str());
    let configuration = Configuration::builder()
        .listener("main", listener.set("backlog", 4096).pool("answers"))
        .pool("answers", pool.set("workers", OptionValue::of_syntax(threads)))
        .build()?;
    let reply = Slice::from(&vec![b'x'; *size][..]);
    let server = Embed::new(configuration)
        // This is called before a connection is processed. Here it admits only clients of this machine.
        .admit(|_listener, peer| match peer {
            Peer::Internet(address) => address.ip().is_loopback(),
            Peer::Local | Peer::Inside => true,
        })
        .answering("bytes", move || {
            let reply = reply.clone();
            Ok(move |_request: &_| reply.clone().into())
        })
        .start()?;
    Ok(server)
}

/// Runs the requested number of clients: each connects, reads until the end, and connects again.
fn clients(to: SocketAddr, arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let replies = AtomicU64::new(0);
    let (begun, window) = (Instant::now(), Duration::from_millis(arguments.milliseconds));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..arguments.clients)
            .map(|_| {
                scope.spawn(|| -> std::io::Result<()> {
                    let mut bytes = Vec::new();
                    while begun.elapsed() < window {
                        bytes.clear();
                        TcpStream::connect(to)?.read_to_end(&mut bytes)?;
                        if bytes.len() != arguments.size {
                            let text = format!("{} bytes came", bytes.len());
                            return Err(std::io::Error::other(text));
                        }
                        replies.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| match client.join() {
            Ok(result) => result,
            Err(_) => Err(std::io::Error::other("a client panicked")),
        })
    })?;
    let count = replies.into_inner();
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    println!("{count} replies of {} bytes, {rate:.0}/s", arguments.size);
    Ok(())
}
