//! A chat: each line of one client is sent to all others.
//!
//! `cargo run -p roadstead-event --example chat`, then `nc 127.0.0.1 PORT` in several windows.

use std::collections::HashSet;
use std::time::Duration;

use event::{
    Address, BindSettings, Context, DeadlineName, Epoll, Event, EventHandler, Loop, LoopSettings,
    StreamId,
};

/// A client that sends nothing for this time is disconnected.
const IDLE: (DeadlineName, Duration) = (DeadlineName(0), Duration::from_secs(600));
/// A client that sends a longer line is disconnected.
const LINE_MAX: usize = 4096;

#[derive(Default)]
struct Chat {
    clients: HashSet<StreamId>,
}

impl EventHandler for Chat {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        match event {
            Event::Accepted { stream, .. } => {
                self.clients.insert(stream);
                io.send_bytes(stream, b"welcome\n");
                io.deadline(stream, IDLE.0, Some(io.now() + IDLE.1));
            }
            Event::Data { stream, mut data, .. } => {
                io.deadline(stream, IDLE.0, Some(io.now() + IDLE.1));
                loop {
                    let line = match data.take_line(LINE_MAX) {
                        Ok(Some(line)) => line,
                        Ok(None) => return,
                        Err(_) => return io.finish(stream, None),
                    };
                    for &other in self.clients.iter().filter(|other| **other != stream) {
                        io.send_kept(other, &line);
                        io.send_bytes(other, b"\n");
                    }
                }
            }
            Event::Eof { stream, .. } | Event::Deadline { stream, .. } => {
                io.finish(stream, None);
            }
            Event::Closed { stream, .. } => {
                self.clients.remove(&stream);
            }
            _ => {}
        }
    }
}

fn main() -> std::io::Result<()> {
    let any = Address::Internet(([127, 0, 0, 1], 0).into());
    let (listener, bound) = event::bind(&any, &BindSettings::default())?;
    println!("listening on {bound}");
    let mut events = Loop::new(Epoll::new()?, LoopSettings::default())?;
    events.context().accept_from(listener);
    events.run(&mut Chat::default())
}
