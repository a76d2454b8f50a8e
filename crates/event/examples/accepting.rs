//! Two loops on two threads that serve the connections of one address; run by `xtask bench loop`. The argument selects
//! how connections are distributed:
//!
//! ```text
//!   port      each loop has its own socket on the port (SO_REUSEPORT); the kernel distributes by a hash
//!   shared    both loops wait for the same socket; the first one accepts
//!   handover  a thread accepts and passes the connections to the loops in turn
//! ```
//!
//! Each connection receives the number of its loop and is closed. If the client sends `keep`, the connection stays
//! open. If it sends `busy`, its loop is blocked for 5 ms.

use std::hint;
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use event::{
    Address, BindSettings, Context, Direction, Epoll, Event, EventHandler, Fd, Loop, LoopSettings,
    Mailbox, StreamLimits,
};

/// How long `busy` blocks a loop.
const BUSY: Duration = Duration::from_millis(5);

/// Answers each connection once. Its mail contains connections that another thread accepted.
struct Once {
    number: u8,
}

impl EventHandler for Once {
    type Mail = Fd;

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, Fd>) {
        match event {
            Event::Data { stream, mut data, .. } => {
                let keeps = data.bytes() == b"keep";
                if data.bytes() == b"busy" {
                    let begun = Instant::now();
                    while begun.elapsed() < BUSY {
                        hint::spin_loop();
                    }
                }
                data.consume(data.bytes().len());
                io.send_bytes(stream, &[self.number]);
                if !keeps {
                    io.finish(stream, None);
                }
            }
            Event::Mail(fd) => {
                io.adopt(fd, Direction::Both, StreamLimits::default());
            }
            Event::Eof { stream, .. } => io.close(stream),
            _ => {}
        }
    }
}

/// Starts a loop on a thread named `loop`.
fn serve(number: u8, listener: Option<Fd>) -> std::io::Result<Mailbox<Fd>> {
    let (tell, told) = mpsc::channel();
    let run = move || {
        let mut events = Loop::new(Epoll::new()?, LoopSettings::default())?;
        if let Some(listener) = listener {
            events.context().accept_from(listener);
        }
        // The caller waits for it.
        let _ = tell.send(events.mailbox());
        events.run(&mut Once { number })
    };
    thread::Builder::new().name("loop".to_owned()).spawn(run)?;
    told.recv().map_err(std::io::Error::other)
}

fn main() -> std::io::Result<()> {
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let way = std::env::args().nth(1).unwrap_or_default();
    if way == "port" {
        let settings = BindSettings { reuse_port: true, ..BindSettings::default() };
        let (one, bound) = event::bind(&any, &settings)?;
        let (other, _) = event::bind(&bound, &settings)?;
        let _loops = [serve(0, Some(one))?, serve(1, Some(other))?];
        return wait_with(&bound);
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    rustix::net::listen(&listener, 4096)?;
    rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
    let bound = Address::Internet(listener.local_addr()?);
    if way == "shared" {
        listener.set_nonblocking(true)?;
        let other = listener.try_clone()?;
        let _loops = [serve(0, Some(listener.into()))?, serve(1, Some(other.into()))?];
        return wait_with(&bound);
    }
    let loops = [serve(0, None)?, serve(1, None)?];
    thread::spawn(move || {
        for turn in 0.. {
            let Ok((stream, _)) = listener.accept() else { continue };
            loops[turn % loops.len()].post(stream.into());
        }
    });
    wait_with(&bound)
}

/// Prints the address and leaves the work to the threads until the process is killed.
fn wait_with(bound: &Address) -> std::io::Result<()> {
    println!("ready {{\"listeners\":{{\"main\":\"{bound}\"}}}}");
    loop {
        thread::park();
    }
}
