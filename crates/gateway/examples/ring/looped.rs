//! Runs the ring with the loop and the spawner, without protocols and pools.

use std::io;
use std::time::{Duration, Instant};

use event::{
    Context, Direction, Epoll, Event, EventHandler, Loop, LoopSettings, StreamId, StreamLimits,
};
use spawn::{Command, Report, Spawn, Spawner};

use crate::{Plan, line, set_up, token};

struct Ring {
    config: Plan,
    spawner: Option<Spawner>,
    inputs: Vec<Option<StreamId>>,
    /// The program of each output stream, by the index of the stream.
    outputs: Vec<usize>,
    running: usize,
    left: usize,
    ring_since: Instant,
    since: Instant,
    took: Duration,
}

pub(crate) fn run(config: Plan) -> io::Result<Duration> {
    let mut turning: Loop<Epoll, Report> = Loop::new(Epoll::new()?, LoopSettings::default())?;
    let mailbox = turning.mailbox();
    let spawner =
        Spawner::new(Box::new(move |report| mailbox.post(report))).map_err(io::Error::other)?;
    let now = Instant::now();
    let mut ring = Ring {
        config,
        spawner: Some(spawner),
        inputs: vec![None; config.programs * config.rings],
        outputs: Vec::new(),
        running: 0,
        left: config.rings,
        ring_since: now,
        since: now,
        took: Duration::ZERO,
    };
    ring.start_ring(0);
    turning.run(&mut ring)?;
    if let Some(spawner) = ring.spawner.take() {
        spawner.finish();
    }
    Ok(ring.took)
}

impl Ring {
    fn start_ring(&mut self, ring: usize) {
        self.ring_since = Instant::now();
        for at in ring * self.config.programs..(ring + 1) * self.config.programs {
            let command = Command { program: "cat".into(), ..Command::default() };
            if let Some(spawner) = &mut self.spawner {
                spawner.start(at as u64, command);
            }
        }
    }

    fn started(&mut self, io: &mut Context<'_>, at: usize, pipes: spawn::Pipes) {
        let limits = StreamLimits::default();
        self.inputs[at] = Some(io.adopt(pipes.stdin, Direction::Out, limits));
        let output = io.adopt(pipes.stdout, Direction::In, limits);
        let index = output.index();
        if self.outputs.len() <= index {
            self.outputs.resize(index + 1, usize::MAX);
        }
        self.outputs[index] = at;
        self.running += 1;
        let (programs, rings) = (self.config.programs, self.config.rings);
        if self.running.is_multiple_of(programs) {
            let ring = self.running / programs;
            set_up(ring - 1, self.config, self.ring_since);
            if ring < rings {
                return self.start_ring(ring);
            }
            self.since = Instant::now();
            (0..rings).for_each(|ring| self.say(io, ring * programs, self.config.hops));
        }
    }

    fn say(&self, io: &mut Context<'_>, at: usize, number: u64) {
        if let Some(input) = self.inputs[at] {
            io.send_bytes(input, &line(number));
        }
    }

    fn heard(&mut self, io: &mut Context<'_>, at: usize, number: u64) {
        let programs = self.config.programs;
        let first = at / programs * programs;
        if number > 1 {
            return self.say(io, first + (at + 1 - first) % programs, number - 1);
        }
        for input in self.inputs[first..][..programs].iter_mut().filter_map(Option::take) {
            io.finish(input, None);
        }
        self.left -= 1;
        if self.left == 0 {
            self.took = self.since.elapsed();
            io.stop();
        }
    }
}

impl EventHandler for Ring {
    type Mail = Report;

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, Report>) {
        match event {
            Event::Mail(Report::Started { token, pipes, .. }) => {
                self.started(io, usize::try_from(token).expect("as given"), pipes);
            }
            Event::Data { stream, mut data, .. } => {
                let bytes = data.bytes();
                if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                    let (number, at) = (token(&bytes[..end]), self.outputs[stream.index()]);
                    data.consume(end + 1);
                    self.heard(io, at, number);
                }
            }
            _ => {}
        }
    }
}
