//! The spawner of a world: creates the pipes and the state of programs.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use spawn::{Command, Pipes, ProgramSocket, SocketKind, Spawn, Status, Stop};

use crate::chance::Actor;
use crate::ids::{DescriptorId, Party};
use crate::net::{Kind, Net};
use crate::programs::{Life, Nature, Program};
use crate::scheduled_event::ScheduledEvent;
use crate::world::Shared;

/// The spawner of a world.
#[derive(Debug)]
pub(crate) struct SimulatedSpawner {
    pub(crate) shared: Shared,
    /// The shard whose programs it starts.
    pub(crate) shard: usize,
    /// A descriptor of the system. Its duplicates represent the simulated pipes.
    pub(crate) placeholder: OwnedFd,
}

impl SimulatedSpawner {
    pub(crate) fn new(shared: Shared, shard: usize) -> io::Result<Self> {
        Ok(Self { shared, shard, placeholder: File::open("/dev/null")?.into() })
    }

    pub(crate) fn stand_in(&self, net: &mut Net, kind: Kind) -> Option<(OwnedFd, DescriptorId)> {
        let fd = self.placeholder.try_clone().ok()?;
        let id = net.add_descriptor(kind);
        net.placeholders.insert(fd.as_raw_fd(), id);
        Some((fd, id))
    }
}

impl Spawn for SimulatedSpawner {
    fn start(&mut self, token: u64, command: Command) {
        let mut world = self.shared.lock();
        let number = world.workers.programs.len();
        world.act(Actor("birth of a program", number));
        let serves = world.server_of(number, &command);
        let capacity = world.scenario.pipe;
        let program = Party::Program(number);
        // The gateway's end gets its descriptor below.
        let nobody = Party::Gateway(DescriptorId(0));
        let stdin = world.net.add_flow(nobody, program, capacity);
        let stdout = world.net.add_flow(program, nobody, capacity);
        let stderr = world.net.add_flow(program, nobody, capacity);
        let ends = [Kind::PipeOut(stdin), Kind::PipeIn(stdout), Kind::PipeIn(stderr)];
        let mut held = Vec::new();
        for (kind, flow) in ends.into_iter().zip([stdin, stdout, stderr]) {
            let Some((fd, id)) = self.stand_in(&mut world.net, kind) else { break };
            let ours = Party::Gateway(id);
            let flow = world.net.flow(flow);
            if flow.reader == program {
                flow.writer = ours;
            } else {
                flow.reader = ours;
            }
            held.push(fd);
        }
        let mut held = held.into_iter();
        let pipes = match (held.next(), held.next(), held.next()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Some(Pipes { stdin, stdout, stderr }),
            _ => None,
        };
        let nature = if serves.is_some() { world.host_nature() } else { world.nature() };
        // A program that prints surplus lines does so from its first request, before it could be trusted.
        let patience = world.chance.below(12);
        let patience = if nature == Nature::Strays { 0 } else { patience };
        let delay = world.chance.time(Duration::from_micros(100), Duration::from_millis(20));
        world.note("a program is started: program", number, 0);
        world.trace(|| format!("program {number} will be {nature:?} after {patience} lines"));
        world.workers.programs.push(Program {
            shard: self.shard,
            token,
            nature,
            life: Life::Starting,
            status: Status::Code(0),
            killed_early: false,
            stdin,
            stdout,
            stderr,
            begun: Vec::new(),
            heard: Vec::new(),
            said: Vec::new(),
            given: Vec::new(),
            acts: VecDeque::new(),
            unwritten: VecDeque::new(),
            complaint: 0,
            input_over: false,
            called: None,
            patience,
            serves,
            pipes,
        });
        world.after(delay, ScheduledEvent::ProgramStarts(number));
    }

    fn program_socket(&mut self, how: SocketKind) -> io::Result<ProgramSocket> {
        self.shared.lock().make_program_socket(how)
    }

    fn resident(&self, _pid: u32) -> Option<u64> {
        None
    }

    fn stop(&mut self, token: u64, how: Stop) {
        let mut world = self.shared.lock();
        let mine = |it: &Program| it.shard == self.shard && it.token == token;
        let found = world.workers.programs.iter().rposition(mine);
        if let Some(number) = found {
            world.act(Actor("stop of a program", number));
            let delay = world.chance.time(Duration::from_micros(20), Duration::from_millis(2));
            world.after(delay, ScheduledEvent::Signal(number, how));
        }
    }
}
