//! The loops of a gateway with their shards, which run one iteration at a time.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use event::{Fd, Loop, LoopSettings};
use gateway::{Access, Fleet, LogSink, Parts, Shard, ShardMail};
use settings::{Configuration, Source};

use crate::kernel::SimulatedKernel;
use crate::lockstep::Lockstep;
use crate::scheduled_event::Moment;
use crate::spawner::SimulatedSpawner;
use crate::tables::Tables;
use crate::turns::Next;
use crate::world::Shared;
use crate::{http, turns};

/// All shards of a gateway that have not ended.
pub(crate) struct Shards {
    shared: Shared,
    members: Vec<Option<Member>>,
    pub(crate) access: Access,
    /// Remains of the shards that have ended.
    pub(crate) left: Unfinished,
}

struct Member {
    turning: Loop<SimulatedKernel, ShardMail>,
    shard: Shard,
}

/// What shards had not finished when they ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unfinished {
    /// The number of requests.
    pub(crate) cut: usize,
    pub(crate) streams: usize,
    /// The number of sockets made for programs.
    pub(crate) program_sockets: usize,
}

impl Shards {
    pub(crate) fn new(shared: &Shared, seed: u64) -> Result<Self, String> {
        let (text, budgets, count) = {
            let world = shared.lock();
            world.trace(|| format!("{:#?}", world.scenario));
            (world.scenario.text.clone(), world.scenario.budgets, world.scenario.shards)
        };
        let configuration = configuration(text)?;
        let [events_max, accept_budget, mail_budget, read_budget] = budgets;
        let settings = LoopSettings {
            events_max,
            accept_budget,
            mail_budget,
            read_budget,
            ..LoopSettings::default()
        };
        let turning = (0..count).map(|shard| {
            let turning = Loop::new(SimulatedKernel::new(shared.clone(), shard), settings);
            let turning = turning.map_err(|error| error.to_string())?;
            shared.lock().add_mailbox(shard, turning.mailbox());
            Ok(turning)
        });
        let turning = turning.collect::<Result<Vec<_>, String>>()?;
        let fleet = Fleet::new(turning.iter().map(Loop::mailbox).collect(), &configuration);
        let sockets = sockets(shared, &configuration, &fleet);
        let (mut members, mut metrics) = (Vec::new(), Vec::new());
        let sink = configuration.access_log.is_some().then(|| {
            let (sink, source) = LogSink::new(http::log::BYTES_MAX);
            shared.lock().http.log = Some(source);
            sink
        });
        for ((number, turning), sockets) in turning.into_iter().enumerate().zip(sockets) {
            let numbers = Arc::new(gateway::metrics_for(&configuration));
            metrics.push(Arc::clone(&numbers));
            let spawner =
                SimulatedSpawner::new(shared.clone(), number).map_err(|error| error.to_string())?;
            let shard = Shard::new(Parts {
                configuration: configuration.clone(),
                sockets,
                handler_registry: Arc::new(Tables(shared.clone())),
                spawner: Box::new(spawner),
                runner: Box::new(Lockstep { shared: shared.clone(), shard: number }),
                fleet: Arc::clone(&fleet),
                shard: u32::try_from(number).expect("a world has few shards"),
                metrics: numbers,
                started: (
                    shared.lock().time.origin,
                    UNIX_EPOCH + Duration::from_secs(1_700_000_000),
                ),
                seed: seed.wrapping_add((number as u64) << 32),
                admission: None,
                access_log: sink.clone(),
            })
            .map_err(|error| error.to_string())?;
            members.push(Some(Member { turning, shard }));
        }
        let access = Access::new(fleet, metrics);
        let mut shards =
            Self { shared: shared.clone(), members, access, left: Unfinished::default() };
        shards.start()?;
        Ok(shards)
    }

    fn start(&mut self) -> Result<(), String> {
        for Member { turning, shard } in self.members.iter_mut().flatten() {
            shard.start(&mut turning.context());
        }
        for Member { turning, shard } in self.members.iter_mut().flatten() {
            turns::fall_asleep(turning, shard)?;
        }
        Ok(())
    }

    /// Runs the next iteration of a shard and then checks the shard. Returns at `until` if no shard has one before.
    pub(crate) fn turn(&mut self, until: Option<Moment>) -> Result<(), String> {
        let Next::Turn(number) = turns::next(&self.shared, until) else { return Ok(()) };
        let Some(Member { turning, shard }) = &mut self.members[number] else { return Ok(()) };
        let going = turns::turn(&self.shared, number, turning, shard)?;
        shard.check();
        if going {
            return Ok(());
        }
        let Some(Member { mut turning, mut shard }) = self.members[number].take() else {
            return Ok(());
        };
        self.left.cut += shard.end().cut;
        self.left.streams += turning.context().streams();
        let is_owner = self.shared.lock().scenario.owner_shard == number;
        if is_owner {
            self.left.program_sockets = self.shared.lock().http.program_sockets();
        }
        Ok(())
    }

    /// Whether all shards have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.members.iter().all(Option::is_none)
    }

    /// Ends all shards abruptly.
    pub(crate) fn end_abruptly(&mut self) {
        self.members.clear();
    }
}

/// Returns the listening sockets of each shard: shared ones, and those of one shard only.
fn sockets(
    shared: &Shared,
    configuration: &Configuration,
    fleet: &Fleet,
) -> Vec<Vec<(String, Fd)>> {
    let mut sockets: Vec<Vec<(String, Fd)>> = (0..fleet.length()).map(|_| Vec::new()).collect();
    let mut world = shared.lock();
    for listener in &configuration.listeners {
        let descriptors = world.net.add_port(fleet.length());
        for ((id, sockets), shard) in descriptors.into_iter().zip(&mut sockets).zip(0..) {
            if fleet.listens(shard, &listener.name) {
                let number = u32::try_from(id.0).expect("a world has few descriptors");
                sockets.push((listener.name.clone(), Fd::simulated(number)));
            } else {
                world.net.descriptor(id).open = false;
            }
        }
    }
    sockets
}

fn configuration(text: String) -> Result<Configuration, String> {
    let source = Source { name: "simulated.toml".to_owned(), text };
    settings::parse(&source, &|_| None).map_err(|faults| format!("{faults:?}"))
}
