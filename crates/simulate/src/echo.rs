//! The event loop alone in the same worlds: a handler that uses all features of streams, and sends back the bytes that
//! it receives.
//!
//! It also answers datagrams. It consumes data in parts or takes it, leaves a rest and requests it again, pauses and
//! resumes by deadlines, pauses while its output is above the high mark, and closes or waits after a hang-up. The rules
//! for the order of events are checked at every event.

use std::collections::BTreeMap;
use std::time::Duration;

use event::{
    Context, Data, DeadlineName, Event, EventHandler, Fd, Loop, LoopSettings, StreamId,
    StreamLimits,
};
use gateway::ShardMail;

use crate::chance::Chance;
use crate::check::ends::{Ends, Found};
use crate::clients::{Client, End, Leaving, Reading};
use crate::ids::DescriptorId;
use crate::kernel::SimulatedKernel;
use crate::turns;
use crate::turns::Next;
use crate::world::{Shared, World};

/// The deadline at which a paused stream continues, and the deadline at which an unused stream is closed.
const GO_ON: DeadlineName = DeadlineName(0);

const IDLE: DeadlineName = DeadlineName(1);

const IDLE_MAX: Duration = Duration::from_secs(300);

const TURNS_MAX: u64 = 400_000;
const LIMITS: StreamLimits = StreamLimits {
    recv_buffer_max: 1 << 20,
    send_high: 900,
    send_low: 200,
    send_max: 1 << 20,
    progress_after: None,
};

/// The events that were received for a stream.
#[derive(Debug, Default)]
struct StreamState {
    eof: bool,
    hangup: bool,
    broken: bool,
    /// Its output is above the high mark.
    clogged: bool,
    resting: bool,
}

struct Echo {
    chance: Chance,
    streams: BTreeMap<StreamId, StreamState>,
    violations: Vec<String>,
    given_up: usize,
}

impl Echo {
    fn stream_state(&mut self, stream: StreamId, what: &str) -> &mut StreamState {
        if !self.streams.contains_key(&stream) {
            self.violations.push(format!("{what} of {stream:?}, which is no more"));
        }
        self.streams.entry(stream).or_default()
    }

    fn data(&mut self, io: &mut Context<'_>, stream: StreamId, data: &mut Data<'_>) {
        io.deadline(stream, IDLE, Some(io.now() + IDLE_MAX));
        let length = data.bytes().len();
        let stream_state = self.stream_state(stream, "Data");
        let (eof, resting) = (stream_state.eof, stream_state.resting || stream_state.clogged);
        if eof || length == 0 {
            self.violations.push(format!("Data of {stream:?} behind its end, or without bytes"));
        }
        if resting {
            self.violations.push(format!("Data of {stream:?} though it is paused"));
        }
        let rests = self.chance.in_1000(300);
        let count = if rests { self.chance.below(length + 1) } else { length };
        let queued = if self.chance.in_1000(500) {
            io.send(stream, data.take(count))
        } else {
            let queued = io.send_bytes(stream, &data.bytes()[..count]);
            data.consume(count);
            queued
        };
        let clogged = count > 0 && queued > LIMITS.send_high;
        if rests || clogged {
            // Without a pause, the rest is delivered again with the next bytes, or when it is requested.
            let pauses = clogged || data.is_last() || self.chance.in_1000(700);
            let stream_state = self.stream_state(stream, "Data");
            stream_state.clogged = clogged;
            stream_state.resting = rests && pauses;
            if pauses {
                io.pause(stream);
            }
            if rests {
                let pause =
                    self.chance.time(Duration::from_micros(100), Duration::from_millis(300));
                io.deadline(stream, GO_ON, Some(io.now() + pause));
            }
        }
    }

    /// Resumes a stream after a pause, or when its output has room again.
    fn go_on(&mut self, io: &mut Context<'_>, stream: StreamId) {
        let stream_state = self.stream_state(stream, "Deadline or Drained");
        if !stream_state.clogged && !stream_state.resting {
            io.resume(stream);
        }
    }
}

impl EventHandler for Echo {
    type Mail = ShardMail;

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ShardMail>) {
        match event {
            Event::Accepted { stream, .. } => {
                if self.streams.insert(stream, StreamState::default()).is_some() {
                    self.violations.push(format!("{stream:?} was accepted twice"));
                }
                io.limits(stream, LIMITS);
                io.deadline(stream, IDLE, Some(io.now() + IDLE_MAX));
            }
            Event::Data { stream, mut data, .. } => self.data(io, stream, &mut data),
            Event::Eof { stream, .. } => {
                let stream_state = self.stream_state(stream, "Eof");
                let (again, paused) =
                    (stream_state.eof, stream_state.resting || stream_state.clogged);
                stream_state.eof = true;
                if again || paused {
                    self.violations.push(format!("Eof of {stream:?} twice, or though it pauses"));
                }
                io.finish(stream, None);
            }
            Event::Drained { stream, .. } => {
                io.deadline(stream, IDLE, Some(io.now() + IDLE_MAX));
                self.stream_state(stream, "Drained").clogged = false;
                self.go_on(io, stream);
            }
            Event::Hangup { stream, .. } => {
                if std::mem::replace(&mut self.stream_state(stream, "Hangup").hangup, true) {
                    self.violations.push(format!("Hangup of {stream:?} twice"));
                }
                if self.chance.in_1000(500) {
                    io.close(stream);
                    self.streams.remove(&stream);
                }
            }
            Event::Broken { stream, .. } => {
                let stream_state = self.stream_state(stream, "Broken");
                stream_state.clogged = false;
                if std::mem::replace(&mut stream_state.broken, true) {
                    self.violations.push(format!("Broken of {stream:?} twice"));
                }
                self.go_on(io, stream);
            }
            Event::Closed { stream, .. } => {
                self.stream_state(stream, "Closed");
                self.streams.remove(&stream);
            }
            Event::Deadline { stream, name: GO_ON, .. } => {
                self.stream_state(stream, "Deadline").resting = false;
                self.go_on(io, stream);
            }
            Event::Deadline { stream, .. } => {
                self.stream_state(stream, "Deadline");
                self.given_up += 1;
                io.close(stream);
                self.streams.remove(&stream);
            }
            Event::Datagram { socket, from, bytes } => {
                let taken = io.send_datagram(socket, from, bytes);
                let lost = (!taken).then(|| "a datagram was not taken".to_owned());
                self.violations.extend(lost);
            }
            _ => {}
        }
    }
}

/// Runs an echo in the world until all its clients are done and all their streams are closed.
pub(crate) fn run(shared: &Shared, seed: u64, turns: &mut u64) -> Result<(), String> {
    let [events_max, accept_budget, mail_budget, read_budget] = shared.lock().scenario.budgets;
    let settings = LoopSettings {
        events_max,
        accept_budget,
        mail_budget,
        read_budget,
        ..LoopSettings::default()
    };
    let mut turning = Loop::new(SimulatedKernel::new(shared.clone(), 0), settings)
        .map_err(|error| error.to_string())?;
    let (listener, socket) = {
        let mut world = shared.lock();
        world.add_mailbox(0, turning.mailbox());
        let listener = world.net.add_port(1)[0];
        for _ in 0..world.scenario.clients {
            let after = world.chance.time(Duration::from_micros(100), Duration::from_secs(5));
            let client = world.add_client(0, after, false);
            world.users.clients[client].expects_an_echo();
        }
        let socket = world.add_datagrams();
        let number = |id: DescriptorId| u32::try_from(id.0).unwrap_or_default();
        (number(listener), number(socket))
    };
    turning.context().accept_from(Fd::simulated(listener));
    turning.context().datagram(Fd::simulated(socket));
    let mut owner = Echo {
        chance: Chance::new(!seed),
        streams: BTreeMap::new(),
        violations: Vec::new(),
        given_up: 0,
    };
    turns::fall_asleep(&mut turning, &mut owner)?;
    loop {
        *turns += 1;
        let until = shared.lock().time.now + Duration::from_secs(1);
        if let Next::Turn(_) = turns::next(shared, Some(until)) {
            turns::turn(shared, 0, &mut turning, &mut owner)?;
        }
        let streams = turning.context().streams();
        let mut world = shared.lock();
        for text in owner.violations.drain(..) {
            world.violation(text);
        }
        if streams != owner.streams.len() {
            return Err(format!("{streams} streams, but {} are known", owner.streams.len()));
        }
        let done = world.users.clients.iter().all(Client::is_done);
        let gone = world.users.clients.iter().filter(|client| may_be_given_up(client)).count();
        if owner.given_up > gone {
            world.violation("a stream was given up whose client was there".to_owned());
        }
        if !world.record.is_clean() || (done && streams == 0 && world.datagrams_are_over()) {
            break;
        }
        if *turns > TURNS_MAX {
            return Err(format!("{streams} streams are left after {TURNS_MAX} turns"));
        }
    }
    Ok(())
}

/// Whether a client may remain silent forever.
fn may_be_given_up(client: &Client) -> bool {
    let vanishes = matches!(client.leaving, Leaving::Vanishes(_));
    client.excused.is_some() || client.reading == Reading::Never || vanishes
}

/// Checks that every client received what it had sent: a beginning of it, or all.
pub(crate) fn check(world: &World) -> Found {
    let mut found = world.datagrams.faults();
    let is_clean = found.is_empty() && world.record.is_clean();
    for (number, client) in world.users.clients.iter().enumerate() {
        let (sent, got) = (&client.bytes[..client.sent], &client.received);
        if !sent.starts_with(got) {
            found.push(format!("client {number} got something else than it had sent"));
        }
        let wants_all = matches!(client.leaving, Leaving::HalfCloses | Leaving::WhenAnswered);
        let excused =
            client.excused.is_some() || !is_clean || client.reading == Reading::Never || !wants_all;
        let whole = got.len() == client.bytes.len() && client.end != Some(End::Reset);
        if !excused && !whole {
            found.push(format!(
                "client {number} did nothing wrong and got {} of {} bytes back: {:?}, {:?}",
                got.len(),
                client.bytes.len(),
                client.end,
                client.leaving
            ));
        }
    }
    Found { ends: Ends::new(), violations: found }
}
