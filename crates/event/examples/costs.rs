//! The costs of single calls; run by `xtask bench loop`, which also counts their instructions.
//!
//! ```text
//!   costs WHAT ARMED COUNT     runs WHAT COUNT times beside ARMED timers, and prints nanoseconds per run
//!                              (for `fire` including the milliseconds that it waits)
//! ```

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use event::{
    Context, DeadlineName, Direction, Epoll, Event, EventHandler, Loop, LoopSettings, StreamId,
    StreamLimits,
};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

const USAGE: &str = "costs nothing|set|extend|deadline|earlier|cancel|fire|turn|idle|idle_one|idle_all|epoll_modify|epoll_add ARMED COUNT";

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
    let (Some(what), Some(armed), Some(count)) = (words.first(), number(1), number(2)) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let took = match what.as_str() {
        "epoll_modify" => epoll_control(count, true)?,
        "epoll_add" => epoll_control(count, false)?,
        what => Timers::new(armed)?.run(what, count)?,
    };
    println!("{:.2}", took.as_nanos() as f64 / f64::from(count));
    Ok(())
}

/// Changes a registration, or adds and removes one, `count` times.
fn epoll_control(count: u32, modify: bool) -> std::io::Result<Duration> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let (near, _far) = UnixStream::pair()?;
    let data = EventData::new_u64(1);
    if modify {
        epoll::add(&poll, &near, data, EventFlags::IN)?;
    }
    let begun = Instant::now();
    for round in 0..count {
        if modify {
            let more = if round % 2 == 0 { EventFlags::OUT } else { EventFlags::empty() };
            epoll::modify(&poll, &near, data, EventFlags::IN | more)?;
        } else {
            epoll::add(&poll, &near, data, EventFlags::IN)?;
            epoll::delete(&poll, &near)?;
        }
    }
    Ok(begun.elapsed())
}

/// Sets every timer again that fires.
struct Again {
    rang: u32,
}

/// The number of timers that fire in the same turn.
const RINGING: u32 = 1000;

impl EventHandler for Again {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        if let Event::Timer { timer, .. } = event {
            self.rang += 1;
            io.set_timer(timer, io.now());
        }
    }
}

struct Timers {
    events: Loop<Epoll, ()>,
    stream: StreamId,
    /// The other ends of the streams.
    far: Vec<UnixStream>,
}

/// The number of streams without traffic.
const IDLE: usize = 1000;

impl Timers {
    /// Creates a loop with `armed` timers between one and two hours from now, and one stream.
    fn new(armed: u32) -> std::io::Result<Self> {
        let mut events = Loop::new(Epoll::new()?, LoopSettings::default())?;
        let (near, far) = UnixStream::pair()?;
        let near = OwnedFd::from(near);
        let mut io = events.context();
        let stream = io.adopt(near, Direction::Both, StreamLimits::default());
        let hour = io.now() + Duration::from_secs(3600);
        for number in 0..armed {
            io.timer(hour + Duration::from_millis(u64::from(number % 3_600_000)));
        }
        Ok(Self { events, stream, far: vec![far] })
    }

    /// Adds idle streams; `deadlines` of them have a deadline.
    fn idle(&mut self, deadlines: usize) -> std::io::Result<()> {
        let mut io = self.events.context();
        for number in 0..IDLE {
            let (near, far) = UnixStream::pair()?;
            self.far.push(far);
            let near = OwnedFd::from(near);
            let stream = io.adopt(near, Direction::Both, StreamLimits::default());
            if number < deadlines {
                io.deadline_in(stream, DeadlineName(0), Duration::from_secs(3600));
            }
        }
        self.events.turn(&mut Again { rang: 0 }, Some(Duration::ZERO))?;
        self.events.turn(&mut Again { rang: 0 }, Some(Duration::ZERO)).map(drop)
    }

    fn run(&mut self, what: &str, count: u32) -> std::io::Result<Duration> {
        match what {
            "idle" => self.idle(0)?,
            "idle_one" => self.idle(1)?,
            "idle_all" => self.idle(IDLE)?,
            _ => {}
        }
        let stream = self.stream;
        let mut owner = Again { rang: 0 };
        let mut io = self.events.context();
        let now = io.now();
        let later = |ms: u32| now + Duration::from_millis(u64::from(ms));
        let timer = io.timer(later(60_000));
        let begun = Instant::now();
        match what {
            "nothing" => {
                for number in 0..count {
                    std::hint::black_box(number);
                }
            }
            "set" => {
                for number in 0..count {
                    io.timer(later(60_000 + number % 60_000));
                }
            }
            "extend" => {
                for number in 0..count {
                    io.set_timer(timer, later(60_000 + number));
                }
            }
            "deadline" => {
                for _ in 0..count {
                    io.deadline_in(stream, DeadlineName(0), Duration::from_secs(60));
                }
            }
            "earlier" => {
                for number in 0..count {
                    io.set_timer(timer, later(2_000_000_000 - number));
                }
            }
            "cancel" => {
                for number in 0..count {
                    let timer = io.timer(later(60_000 + number % 60_000));
                    io.cancel_timer(timer);
                }
            }
            "fire" => {
                for _ in 0..RINGING {
                    io.timer(now);
                }
                while owner.rang < count {
                    self.events.turn(&mut owner, None)?;
                }
            }
            "turn" | "idle" | "idle_one" | "idle_all" => {
                for _ in 0..count {
                    self.events.turn(&mut owner, Some(Duration::ZERO))?;
                }
            }
            _ => {
                eprintln!("{USAGE}");
                std::process::exit(2);
            }
        }
        Ok(begun.elapsed())
    }
}
