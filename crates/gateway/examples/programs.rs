//! Measures what a program on a pipe costs, one number per run. `cargo xtask bench programs` runs it.
//!
//! - `programs flights near|other|any pipe|socket IN-FLIGHT MESSAGES`: microseconds per message of 16 bytes through one
//!   `cat`, with this number of messages in flight;
//! - `programs open supervisor|posix DESCRIPTORS LIMIT STARTS`: microseconds from the request to start a `cat` to the
//!   report that it runs, with this number of open descriptors and this soft limit for them;
//! - `programs atime yes|no BYTES`: nanoseconds per one-byte write into a pipe that another thread reads byte by byte,
//!   with or without access times (`O_NOATIME`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use event::{
    Context, Direction, Epoll, Event, EventHandler, Loop, LoopSettings, StreamId, StreamLimits,
};
use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spawn::{Bounds, Io, Report, Spawn, Spawner, Wiring};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // Programs are started with the soft limit, so it is set before the supervisor starts.
    if let [mode, _, _, limit, _] = words.as_slice()
        && mode == "open"
    {
        let limit = limit.parse().ok();
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: limit, ..getrlimit(Resource::Nofile) });
    }
    if let Err(error) = spawn::init() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().unwrap_or(1);
    let result = match words.as_slice() {
        ["flights", cpu, io, in_flight, messages] => {
            flights(cpu, io, number(in_flight), number(messages))
        }
        ["open", "supervisor", held, _, starts] => open_by_supervisor(number(held), number(starts)),
        ["open", _, held, _, starts] => open_by_posix_spawn(number(held), number(starts)),
        ["atime", kept, bytes] => atime(*kept == "yes", number(bytes)),
        _ => Err(io::Error::other("see the top of this file for how to call it")),
    };
    match result {
        Ok(number) => {
            println!("{number:.4}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One line of 16 bytes.
const LINE: &[u8; 16] = b"fifteen letters\n";

struct Flights {
    input: Option<StreamId>,
    in_flight: usize,
    messages: usize,
    answered: usize,
    began: Instant,
    took: Duration,
}

impl Flights {
    fn say(&self, io: &mut Context<'_>, lines: usize) {
        if let Some(input) = self.input {
            (0..lines).for_each(|_| _ = io.send_bytes(input, LINE));
        }
    }
}

impl EventHandler for Flights {
    type Mail = Report;

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, Report>) {
        match event {
            Event::Mail(Report::Started { pipes, .. }) => {
                let limits = StreamLimits::default();
                self.input = Some(io.adopt(pipes.stdin, Direction::Out, limits));
                io.adopt(pipes.stdout, Direction::In, limits);
                self.began = Instant::now();
                self.say(io, self.in_flight);
            }
            Event::Data { mut data, .. } => {
                let lines = data.bytes().len() / LINE.len();
                data.consume(lines * LINE.len());
                self.answered += lines;
                if self.answered >= self.messages {
                    self.took = self.began.elapsed();
                    return io.stop();
                }
                self.say(io, lines);
            }
            _ => {}
        }
    }
}

fn flights(cpu: &str, io: &str, in_flight: usize, messages: usize) -> io::Result<f64> {
    let mut turning: Loop<Epoll, Report> = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let mailbox = turning.mailbox();
    let mut spawner =
        Spawner::new(Box::new(move |report| mailbox.post(report))).map_err(io::Error::other)?;
    let all = spawn::allowed_cpus();
    let cpus = match cpu {
        "any" => Vec::new(),
        cpu => {
            let here = spawn::pin_to_current_cpu();
            let is_near = cpu == "near";
            all.into_iter().filter(|cpu| (Some(*cpu) == here) == is_near).collect()
        }
    };
    let bounds = Bounds { cpus, ..Bounds::default() };
    let io = if io == "socket" { Io::Socket } else { Io::Pipe };
    let wiring = Wiring { io, ..Wiring::default() };
    spawner.start(1, spawn::Command { bounds, wiring, ..cat() });
    let began = Instant::now();
    let took = Duration::ZERO;
    let mut flights = Flights { input: None, in_flight, messages, answered: 0, began, took };
    turning.run(&mut flights)?;
    Ok(flights.took.as_secs_f64() * 1e6 / flights.answered as f64)
}

fn cat() -> spawn::Command {
    spawn::Command { program: "/bin/cat".into(), ..spawn::Command::default() }
}

/// Opens this number of additional descriptors.
fn hold(count: usize) -> io::Result<Vec<File>> {
    (0..count).map(|_| File::open("/dev/null")).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn open_by_supervisor(held: usize, starts: usize) -> io::Result<f64> {
    let _held = hold(held)?;
    let (send, reports) = channel();
    let mut spawner =
        Spawner::new(Box::new(move |report| drop(send.send(report)))).map_err(io::Error::other)?;
    let mut times = Vec::new();
    for token in 0..starts as u64 {
        let began = Instant::now();
        spawner.start(token, cat());
        // It ends when its input ends, because its pipes are dropped. The next start waits for that.
        loop {
            match reports.recv().map_err(io::Error::other)? {
                Report::Started { pipes, .. } => {
                    times.push(began.elapsed().as_secs_f64() * 1e6);
                    drop(pipes);
                }
                Report::Exited { .. } => break,
                other => return Err(io::Error::other(format!("{other:?}"))),
            }
        }
    }
    Ok(median(times))
}

fn open_by_posix_spawn(held: usize, starts: usize) -> io::Result<f64> {
    let _held = hold(held)?;
    let mut times = Vec::new();
    for _ in 0..starts {
        let began = Instant::now();
        let mut command = Command::new("/bin/cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
        drop(child.stdin.take());
        child.wait()?;
    }
    Ok(median(times))
}

fn atime(kept: bool, bytes: usize) -> io::Result<f64> {
    let (read, write) = rustix::pipe::pipe()?;
    if !kept {
        for end in [&read, &write] {
            let flags = rustix::fs::fcntl_getfl(end)?;
            rustix::fs::fcntl_setfl(end, flags | OFlags::NOATIME)?;
        }
    }
    let reader = std::thread::spawn(move || read_each(read, bytes));
    let mut write = File::from(write);
    let began = Instant::now();
    for _ in 0..bytes {
        write.write_all(b"x")?;
    }
    let took = began.elapsed();
    reader.join().map_err(|_| io::Error::other("the reader panicked"))??;
    Ok(took.as_secs_f64() * 1e9 / bytes as f64)
}

fn read_each(from: OwnedFd, bytes: usize) -> io::Result<()> {
    let mut from = File::from(from);
    let mut byte = [0];
    (0..bytes).try_for_each(|_| from.read_exact(&mut byte))
}
