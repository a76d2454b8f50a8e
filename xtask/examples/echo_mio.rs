//! A peer of `xtask bench loop`: an echo server with mio. As mio's documentation requires, it receives until no more
//! data is available.

use std::io::{ErrorKind, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX - 1);

fn main() -> std::io::Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
    rustix::net::listen(&listener, 4096)?;
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", listener.local_addr()?);
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut free = Vec::new();
    let mut room = vec![0; 64 << 10];
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            result => result?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let place = free.pop().unwrap_or(connections.len());
                    poll.registry().register(&mut stream, Token(place), Interest::READABLE)?;
                    if place == connections.len() {
                        connections.push(None);
                    }
                    connections[place] = Some(stream);
                }
                continue;
            }
            let Token(place) = event.token();
            let Some(stream) = &mut connections[place] else { continue };
            let open = loop {
                match stream.read(&mut room) {
                    Ok(0) => break false,
                    Ok(count) => {
                        let _ = stream.write(&room[..count]);
                    }
                    Err(error) => break error.kind() == ErrorKind::WouldBlock,
                }
            };
            if !open {
                connections[place] = None;
                free.push(place);
            }
        }
    }
}
