//! The same as `handler.rs`, over UDP: each datagram is a request, and its reply is N bytes in one datagram.
//!
//! ```text
//! cargo run --release --example handler_udp -- --clients 10 --size 512
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use roadstead::embed::{
    Configuration, Embed, ListenerBuilder, OptionValue, PoolBuilder, Running, Slice,
};

#[path = "support/arguments.rs"]
mod arguments;

use arguments::Arguments;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::read()?;
    if arguments.only_clients() {
        return clients(SocketAddr::from(([127, 0, 0, 1], arguments.port)), &arguments);
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
    if !server.drain().is_clean() {
        return Err("something was cut off".into());
    }
    Ok(())
}

fn serve(arguments: &Arguments) -> Result<Running, Box<dyn std::error::Error>> {
    let Arguments { port, size, threads, schedule, .. } = arguments;
    let listener = ListenerBuilder::datagrams(&format!("127.0.0.1:{port}"));
    let pool = PoolBuilder::handler("bytes").set("balance", schedule.as_str());
    let configuration = Configuration::builder()
        .listener("main", listener.pool("answers"))
        .pool("answers", pool.set("workers", OptionValue::of_syntax(threads)))
        .build()?;
    let reply = Slice::from(&vec![b'x'; *size][..]);
    let server = Embed::new(configuration)
        .answering("bytes", move || {
            let reply = reply.clone();
            Ok(move |_request: &_| reply.clone().into())
        })
        .start()?;
    Ok(server)
}

/// Each client sends a request, waits for its reply, and repeats this.
fn clients(to: SocketAddr, arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let (begun, window) = (Instant::now(), Duration::from_millis(arguments.milliseconds));
    let count = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..arguments.clients)
            .map(|_| {
                scope.spawn(|| -> std::io::Result<u64> {
                    let socket = UdpSocket::bind("127.0.0.1:0")?;
                    socket.connect(to)?;
                    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
                    let (mut bytes, mut replies) = (vec![0; 65_536], 0);
                    while begun.elapsed() < window {
                        socket.send(b"?")?;
                        let count = socket.recv(&mut bytes)?;
                        if count != arguments.size {
                            return Err(std::io::Error::other(format!("{count} bytes came")));
                        }
                        replies += 1;
                    }
                    Ok(replies)
                })
            })
            .collect();
        clients.into_iter().try_fold(0, |sum, client| match client.join() {
            Ok(replies) => replies.map(|replies| sum + replies),
            Err(_) => Err(std::io::Error::other("a client panicked")),
        })
    })?;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    println!("{count} replies of {} bytes, {rate:.0}/s", arguments.size);
    Ok(())
}
