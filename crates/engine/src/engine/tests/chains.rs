//! Clients that are paused because the queues of a chain are full: each is served, and within a bound.

use std::collections::VecDeque;

use super::*;
use crate::shard_message::ShardMessages;
use exchange::Random;
use flow::permit::{Grant, Permit};

/// A pool: the number of the pool that its replies go to, and the length of its queue.
type Plan = (Option<usize>, u32);

/// A client of a pool on a shard.
#[derive(Clone, Copy, Debug)]
struct RequestSource {
    shard: usize,
    pool: usize,
    /// The requests that it will still send.
    left: u32,
    /// It sends without waiting for replies.
    greedy: bool,
    /// The largest size of its next request.
    bytes: usize,
    in_flight: u32,
    answered: u32,
    permit: Permit,
    /// When it last received a reply, in steps.
    last: u32,
}

/// Shards, the first of which owns pools with one worker each.
struct World {
    shards: Vec<Engine>,
    pools: Vec<PoolId>,
    askers: Vec<RequestSource>,
    /// Messages on their way to each shard.
    mail: Vec<Vec<(u32, ShardMessages)>>,
    /// Clients of each shard that can be read in its next turn.
    readable: Vec<Vec<usize>>,
    /// Requests that the worker of each pool has.
    busy: Vec<VecDeque<(WorkerId, RequestId)>>,
    step: u32,
}

impl World {
    fn new(count: usize, configs: &[Plan]) -> Self {
        let (group, pools) = Shards::new(count, configs.len());
        let epoch = Epoch { instant: Instant::now(), unix_us: 0 };
        let engine = |shard: usize| {
            let config = |(place, &(then, length)): (usize, &Plan)| {
                let mut config = config("it");
                config.then = then.map(|then| pools[then]);
                config.pool.queue.length = length;
                config.pool.sizing.min = u32::from(shard == 0);
                config.pool.sizing.spare = 0;
                config.pool.sizing.max = 1;
                (pools[place], config)
            };
            let configs = configs.iter().enumerate().map(config).collect();
            Engine::new(configs, epoch, 1, Arc::clone(&group) as _, u32::try_from(shard).unwrap())
        };
        let mut world = Self {
            shards: (0..count).map(engine).collect(),
            mail: (0..count).map(|_| Vec::new()).collect(),
            readable: vec![Vec::new(); count],
            busy: vec![VecDeque::new(); configs.len()],
            pools,
            askers: Vec::new(),
            step: 0,
        };
        (0..count).for_each(|shard| world.turn(shard));
        world
    }

    fn add(&mut self, shard: usize, pool: usize, (greedy, left): (bool, u32)) {
        self.readable[shard].push(self.askers.len());
        self.askers.push(RequestSource {
            shard,
            pool,
            left,
            greedy,
            bytes: 10,
            in_flight: 0,
            answered: 0,
            permit: Permit::Free,
            last: 0,
        });
    }

    fn session(&self, asker: usize) -> SessionId {
        let shard = u32::try_from(self.askers[asker].shard).unwrap();
        SessionId::new(shard, Place::new(u32::try_from(asker).unwrap(), 1))
    }

    /// A client is read: it sends what it may, and returns the rest of its grant.
    fn read(&mut self, asker: usize) {
        let session = self.session(asker);
        let Self { shards, pools, askers, .. } = self;
        let it = &mut askers[asker];
        let (engine, pool) = (&mut shards[it.shard], pools[it.pool]);
        if it.permit.is_waiting() {
            return;
        }
        while it.left > 0
            && (it.in_flight == 0 || it.greedy)
            && engine.may_send((pool, session, false), &mut it.permit, it.bytes)
        {
            (it.left, it.in_flight) = (it.left - 1, it.in_flight + 1);
            engine.spend_permit(pool, &mut it.permit);
            let client = Client::Session { session, sequence: u64::from(it.left) };
            let source = Source { peer: Peer::Local, listener: None };
            let payload = Payload::Frame(Slice::from("x"));
            engine.submit(client, source, (payload, RequestMeta::default()), pool, None);
        }
        if let Permit::Granted(_) = it.permit {
            engine.stop_waiting(pool, &mut it.permit);
        }
    }

    /// A client disconnects.
    fn leave(&mut self, asker: usize) {
        let it = &mut self.askers[asker];
        it.left = 0;
        self.shards[it.shard].stop_waiting(self.pools[it.pool], &mut it.permit);
    }

    /// One turn of a shard, as the gateway has them.
    fn turn(&mut self, shard: usize) {
        for (from, ShardMessages(messages)) in std::mem::take(&mut self.mail[shard]) {
            messages.into_iter().for_each(|it| self.shards[shard].handle_crossing(from, it));
        }
        for asker in std::mem::take(&mut self.readable[shard]) {
            self.read(asker);
        }
        self.settle(shard);
        let mut woken = Vec::new();
        self.shards[shard].wake_paused(&mut woken);
        for (session, grant) in woken {
            self.wake(shard, session, grant);
        }
        self.shards[shard].tell_room();
        let outgoing: Vec<_> = self.shards[shard].shard_link.outgoing().collect();
        for (to, messages) in outgoing {
            self.mail[to as usize].push((u32::try_from(shard).unwrap(), messages));
        }
    }

    fn wake(&mut self, shard: usize, session: SessionId, grant: Grant) {
        let asker = session.place.index as usize;
        assert!(self.askers[asker].permit.is_waiting(), "it was woken once");
        self.askers[asker].permit = Permit::Granted(grant);
        self.readable[shard].push(asker);
    }

    /// Carries out effects and hands out replies.
    fn settle(&mut self, shard: usize) {
        while let Some((pool, effect)) = self.shards[shard].poll_effect() {
            match effect {
                BackendEffect::Start { worker } => {
                    self.shards[shard].handle_event(pool, BackendEvent::Started { worker });
                }
                BackendEffect::Dispatch { worker, request, .. } => {
                    let place = self.pools.iter().position(|it| *it == pool).unwrap();
                    self.busy[place].push_back((worker, request.id));
                }
                other => panic!("{other:?}"),
            }
        }
        for (client, reply_event) in std::mem::take(&mut self.shards[shard].finished) {
            match (client, reply_event) {
                (Client::OffShard { request, .. }, reply_event) => {
                    let reply_event = ShardMessage::ReplyEvent(request, reply_event);
                    self.shards[shard].shard_link.send(request.shard(), reply_event);
                }
                (Client::Session { session, .. }, ReplyEvent::End(Outcome::Reply(_))) => {
                    let asker = session.place.index as usize;
                    let it = &mut self.askers[asker];
                    it.in_flight -= 1;
                    it.answered += 1;
                    it.last = self.step;
                    self.readable[shard].push(asker);
                }
                (_, other) => panic!("{other:?}"),
            }
        }
    }

    /// The worker of a pool answers its oldest request.
    fn answer(&mut self, pool: usize) {
        if let Some((worker, id)) = self.busy[pool].pop_front() {
            let outcome = Outcome::Reply(Slice::from("x"));
            let pool = self.pools[pool];
            self.shards[0].handle_event(pool, BackendEvent::Answered { id, outcome });
            self.shards[0].handle_event(pool, BackendEvent::Released { worker });
            self.turn(0);
        }
    }

    fn has_turn(&self, shard: usize) -> bool {
        !self.mail[shard].is_empty() || !self.readable[shard].is_empty()
    }

    /// All shards have turns until none has anything to do.
    fn rest(&mut self) {
        while let Some(shard) = (0..self.shards.len()).find(|shard| self.has_turn(*shard)) {
            self.turn(shard);
        }
    }

    /// In each step the workers of all pools but the stuck ones answer one request each. Returns the most steps for
    /// which a client that waits for its replies waited for one of them.
    fn longest_wait(&mut self, steps: u32, stuck: &[usize]) -> u32 {
        let mut longest = 0;
        for _ in 0..steps {
            self.rest();
            self.step += 1;
            (0..self.pools.len())
                .filter(|pool| !stuck.contains(pool))
                .for_each(|pool| self.answer(pool));
            self.rest();
            let polite = self.askers.iter().filter(|it| !it.greedy && !stuck.contains(&it.pool));
            longest = polite.map(|it| self.step - it.last).max().unwrap().max(longest);
        }
        longest
    }
}

/// Two clients of each pool, and a third that sends without waiting for replies in the pool `greedy`; on all shards.
fn crowd(shards: usize, configs: &[Plan], greedy: usize) -> World {
    let mut world = World::new(shards, configs);
    world.add(shards - 1, greedy, (true, u32::MAX));
    for pool in 0..configs.len() {
        (0..2).for_each(|number| world.add(number % shards, pool, (false, u32::MAX)));
    }
    world
}

#[test]
fn every_client_of_a_chain_is_served_while_one_pool_is_flooded() {
    // In each order in the file.
    let chains: [&[Plan]; 8] = [
        &[(Some(1), 4), (None, 4)],
        &[(None, 4), (Some(0), 4)],
        &[(Some(2), 4), (Some(2), 4), (None, 4)],
        &[(Some(1), 4), (None, 4), (Some(1), 4)],
        &[(None, 4), (Some(0), 4), (Some(0), 4)],
        &[(Some(1), 4), (Some(2), 4), (None, 4)],
        &[(None, 4), (Some(0), 4), (Some(1), 4)],
        &[(Some(1), 9), (None, 1)],
    ];
    for configs in chains {
        for greedy in 0..configs.len() {
            for shards in [1, 2, 3] {
                let longest = crowd(shards, configs, greedy).longest_wait(200, &[]);
                assert!(longest <= 40, "{longest} steps: {configs:?}, {greedy}, {shards} shards");
            }
        }
    }
}

#[test]
fn clients_of_a_pool_do_not_wait_for_a_stuck_pool_before_it() {
    for (configs, stuck) in [([(Some(1), 4), (None, 16)], 0), ([(None, 16), (Some(0), 4)], 1)] {
        for shards in [1, 2, 3] {
            let longest = crowd(shards, &configs, stuck).longest_wait(200, &[stuck]);
            assert!(longest <= 10, "{longest} steps: {configs:?} on {shards} shards");
        }
    }
}

#[test]
fn a_large_request_waits_for_its_bytes_and_nobody_passes_it() {
    let mut world = World::new(1, &[(None, 100)]);
    world.add(0, 0, (true, 2));
    world.rest();
    for bytes in [6 << 20, 10] {
        world.add(0, 0, (false, 1));
        world.askers.last_mut().unwrap().bytes = bytes;
    }
    world.rest();
    assert!(world.askers[1..].iter().all(|it| it.permit.is_waiting()), "one request is queued");
    world.answer(0);
    world.rest();
    assert!(world.askers[1..].iter().all(|it| it.in_flight == 1));
}

#[test]
fn the_owner_shard_is_notified_when_the_first_client_of_another_shard_leaves() {
    let mut world = World::new(2, &[(None, 1)]);
    world.add(0, 0, (true, 2));
    world.rest();
    // The queue is full. The client of the other shard waits first.
    for shard in [1, 0] {
        world.add(shard, 0, (false, 1));
        world.rest();
    }
    (0..2).for_each(|_| world.answer(0));
    world.turn(0);
    assert!(world.has_turn(1) && !world.has_turn(0), "only the first client may send");
    world.leave(1);
    world.rest();
    assert_eq!(world.askers[2].in_flight, 1);
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.draw() % bound as u64).unwrap()
}

/// Random chains, clients and orders of turns. A shard has a turn only if there is something for it: a lost wake-up
/// leaves a client paused at the end.
#[test]
fn no_client_is_left_paused_when_all_requests_are_answered() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let (shards, count) = (1 + below(&mut random, 4), 1 + below(&mut random, 4));
        let then = |place: usize, random: &mut Random| {
            (place > 0 && below(random, 4) > 0).then(|| below(random, place))
        };
        let mut configs: Vec<Plan> = (0..count)
            .map(|place| {
                (then(place, &mut random), 1 + u32::try_from(below(&mut random, 6)).unwrap())
            })
            .collect();
        if below(&mut random, 2) == 0 {
            // The other order in the file.
            configs.reverse();
            configs.iter_mut().for_each(|config| config.0 = config.0.map(|then| count - 1 - then));
        }
        let mut world = World::new(shards, &configs);
        for _ in 0..2 + below(&mut random, 8) {
            let left = 1 + u32::try_from(below(&mut random, 30)).unwrap();
            let greedy = below(&mut random, 2) == 0;
            world.add(below(&mut random, shards), below(&mut random, count), (greedy, left));
        }
        let leaves = below(&mut random, 3) == 0;
        loop {
            let turns: Vec<usize> = (0..shards).filter(|it| world.has_turn(*it)).collect();
            let busy: Vec<usize> = (0..count).filter(|it| !world.busy[*it].is_empty()).collect();
            match below(&mut random, turns.len() + busy.len() + 1) {
                _ if turns.is_empty() && busy.is_empty() => break,
                number if number < turns.len() => world.turn(turns[number]),
                number if number < turns.len() + busy.len() => {
                    world.answer(busy[number - turns.len()]);
                }
                // Its shard has a turn for it, with all that is there for it.
                _ if leaves => {
                    let asker = below(&mut random, world.askers.len());
                    world.leave(asker);
                    world.turn(world.askers[asker].shard);
                }
                _ => {}
            }
        }
        for asker in &world.askers {
            assert_eq!((asker.left, asker.in_flight), (0, 0), "seed {seed}: {asker:?}");
        }
    }
}
