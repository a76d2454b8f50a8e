//! Passes lines from clients to a few programs with only an epoll loop: without limits, timers or a queue other than
//! the order of arrival. It is the lower limit of cost with which a pool of programs is compared.
//!
//! `pool_bare PROGRAMS IN-FLIGHT PROGRAM [ARGUMENT…]`; prints `ready {"listeners": …}` like the daemon.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::epoll;

/// Tokens below this are programs. This token is the listener, and those above are clients.
const LISTENER: u64 = 1 << 16;

struct Program {
    _child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// The clients whose lines it has in flight, oldest first.
    clients: VecDeque<usize>,
    received: Vec<u8>,
    /// Lines for it that are written together at the end of the turn.
    to_write: Vec<u8>,
}

struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    to_write: Vec<u8>,
}

struct Server {
    poll: rustix::fd::OwnedFd,
    listener: TcpListener,
    programs: Vec<Program>,
    clients: Vec<Option<Client>>,
    in_flight: usize,
    waiting: VecDeque<(usize, Vec<u8>)>,
    next: usize,
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [programs, in_flight, program, arguments @ ..] = words.as_slice() else {
        return Err(io::Error::other("usage: pool_bare PROGRAMS IN-FLIGHT PROGRAM [ARGUMENT…]"));
    };
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    add(&poll, &listener, LISTENER)?;
    let mut server = Server {
        poll,
        listener,
        programs: Vec::new(),
        clients: Vec::new(),
        in_flight: in_flight.parse().map_err(io::Error::other)?,
        waiting: VecDeque::new(),
        next: 0,
    };
    for at in 0..programs.parse::<u64>().map_err(io::Error::other)? {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { continue };
        add(&server.poll, &output, at)?;
        let empty = (VecDeque::new(), Vec::new(), Vec::new());
        let (clients, received, to_write) = empty;
        server.programs.push(Program { _child: child, input, output, clients, received, to_write });
    }
    println!("ready {{\"listeners\":{{\"main\":\"{}\"}}}}", server.listener.local_addr()?);
    server.run()
}

fn add(poll: impl AsFd, fd: impl AsFd, token: u64) -> io::Result<()> {
    Ok(epoll::add(poll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
}

/// Removes and returns the complete lines at the front.
fn lines(received: &mut Vec<u8>) -> Vec<u8> {
    let end = received.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    received.drain(..end).collect()
}

impl Server {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(1024);
        let mut buffer = vec![0; 64 << 10];
        loop {
            epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), None)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    token if token < LISTENER => {
                        self.handle_stream_event(place(token), &mut buffer)?;
                    }
                    token => self.ask(place(token - LISTENER - 1), &mut buffer)?,
                }
            }
            self.give();
            self.write()?;
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            add(&self.poll, &stream, LISTENER + 1 + self.clients.len() as u64)?;
            self.clients.push(Some(Client { stream, received: Vec::new(), to_write: Vec::new() }));
        }
        Ok(())
    }

    fn ask(&mut self, at: usize, buffer: &mut [u8]) -> io::Result<()> {
        let Some(client) = &mut self.clients[at] else { return Ok(()) };
        match client.stream.read(buffer) {
            Ok(0) => self.clients[at] = None,
            Ok(count) => {
                client.received.extend_from_slice(&buffer[..count]);
                for line in lines(&mut client.received).split_inclusive(|byte| *byte == b'\n') {
                    self.waiting.push_back((at, line.to_vec()));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.clients[at] = None,
        }
        Ok(())
    }

    fn handle_stream_event(&mut self, at: usize, buffer: &mut [u8]) -> io::Result<()> {
        let program = &mut self.programs[at];
        let count = program.output.read(buffer)?;
        program.received.extend_from_slice(&buffer[..count]);
        for line in lines(&mut program.received).split_inclusive(|byte| *byte == b'\n') {
            let client = program.clients.pop_front().and_then(|at| self.clients[at].as_mut());
            client.into_iter().for_each(|client| client.to_write.extend_from_slice(line));
        }
        Ok(())
    }

    /// Sends waiting lines to programs with free slots, in turn.
    fn give(&mut self) {
        let mut full = 0;
        while full < self.programs.len() && !self.waiting.is_empty() {
            let at = self.next;
            self.next = (at + 1) % self.programs.len();
            let program = &mut self.programs[at];
            if program.clients.len() >= self.in_flight {
                full += 1;
                continue;
            }
            full = 0;
            if let Some((client, line)) = self.waiting.pop_front() {
                program.clients.push_back(client);
                program.to_write.extend_from_slice(&line);
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        for program in self.programs.iter_mut().filter(|program| !program.to_write.is_empty()) {
            program.input.write_all(&program.to_write)?;
            program.to_write.clear();
        }
        for place in &mut self.clients {
            let Some(client) = place else { continue };
            if !client.to_write.is_empty() {
                // The lines of this measurement fit into the socket's buffer.
                let gone = client.stream.write_all(&client.to_write).is_err();
                client.to_write.clear();
                if gone {
                    *place = None;
                }
            }
        }
        Ok(())
    }
}

fn place(token: u64) -> usize {
    usize::try_from(token).expect("as it was given")
}
