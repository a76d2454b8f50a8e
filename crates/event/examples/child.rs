//! Runs a program and prints its output and its status: a pipe and a process in one loop.
//!
//! `cargo run -p roadstead-event --example child -- ls -l`

use std::io::{Error, ErrorKind};
use std::process::{Child, Command, Stdio};

use event::{
    Context, Direction, Epoll, Event, EventHandler, Fd, Loop, LoopSettings, StreamId, StreamLimits,
};

struct Run {
    child: Child,
    process: StreamId,
    /// The output may end after the process, if the program has started another one.
    left: usize,
}

impl EventHandler for Run {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        match event {
            Event::Data { mut data, .. } => {
                while let Ok(Some(line)) = data.take_line(4096) {
                    println!("| {}", String::from_utf8_lossy(&line));
                }
            }
            Event::Closed { stream, .. } => {
                if stream == self.process {
                    println!("ended: {:?}", self.child.try_wait());
                }
                self.left -= 1;
                if self.left == 0 {
                    io.stop();
                }
            }
            _ => {}
        }
    }
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or_else(|| Error::from(ErrorKind::BrokenPipe))?;
    let mut events = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let mut io = events.context();
    io.adopt(output, Direction::In, StreamLimits::default());
    let process = io.watch_process(Fd::of_child(&child)?);
    events.run(&mut Run { child, process, left: 2 })
}
