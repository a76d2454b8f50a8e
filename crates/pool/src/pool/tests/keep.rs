//! Workers that are reserved for one client.

use std::collections::BTreeMap;

use super::*;
use crate::RequestTraits;
use crate::random::Random;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owned {
    number: u32,
    client: u64,
}

impl Queueable for Owned {
    fn bytes(&self) -> usize {
        10
    }

    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits { client: Some(self.client), ..RequestTraits::default() }
    }
}

/// A pool of ready workers, and its dispatches.
struct Scene {
    pool: Pool<Owned>,
    now: Instant,
    given: Vec<(WorkerId, u32)>,
    refused: Vec<u32>,
    number: u32,
}

impl Scene {
    fn new(settings: Settings) -> Self {
        let now = start();
        let pool = Pool::new(settings, now, 1);
        let mut scene = Self { pool, now, given: Vec::new(), refused: Vec::new(), number: 0 };
        scene.follow();
        scene
    }

    fn follow(&mut self) {
        while let Some(effect) = self.pool.poll_effect() {
            match effect {
                Effect::Dispatch { worker, payload, .. } => {
                    self.given.push((worker, payload.number));
                }
                Effect::Refuse { payload, .. } => self.refused.push(payload.number),
                Effect::Start { worker } => self.pool.handle_started(self.now, worker),
                Effect::Stop { worker } => self.pool.handle_ended(self.now, worker, true),
                Effect::ToOwner { .. } => unreachable!("it has no branches"),
            }
        }
        self.pool.check();
    }

    fn request(&mut self, client: u64) -> Result<(), Cause> {
        let number = self.number;
        self.number += 1;
        let asked = self.pool.handle_request(self.now, Owned { number, client });
        self.follow();
        asked.map(|_| ()).map_err(|refused| refused.cause)
    }

    /// The last dispatched request is answered, and its worker is reserved.
    fn keep(&mut self, client: Option<u64>) {
        let worker = self.given.last().unwrap().0;
        self.pool.handle_reserved(self.now, worker, client);
        self.pool.handle_released(self.now, worker);
        self.follow();
    }

    fn open(&mut self) {
        let worker = self.given.last().unwrap().0;
        self.pool.handle_open(self.now, worker);
        self.follow();
    }

    fn numbers(&self) -> Vec<u32> {
        self.given.iter().map(|(_, number)| *number).collect()
    }
}

#[test]
fn a_kept_worker_is_given_its_client_at_once_and_others_when_it_is_open() {
    let mut scene = Scene::new(fixed(1));
    scene.request(7).unwrap();
    scene.keep(Some(7));
    scene.request(7).unwrap();
    assert_eq!(scene.numbers(), [0, 1], "the same client never waits");
    scene.keep(Some(7));
    scene.request(8).unwrap();
    assert_eq!(scene.numbers(), [0, 1], "another does");
    scene.open();
    assert_eq!(scene.numbers(), [0, 1, 2]);
}

#[test]
fn who_waits_is_not_passed_by_the_client_that_a_worker_is_kept_for() {
    let mut scene = Scene::new(fixed(1));
    for client in [7, 7, 8, 7] {
        scene.request(client).unwrap();
    }
    scene.keep(Some(7));
    assert_eq!(scene.numbers(), [0, 1]);
    scene.keep(Some(7));
    assert_eq!(scene.numbers(), [0, 1], "the next is another client's");
    scene.open();
    assert_eq!(scene.numbers(), [0, 1, 2]);
    scene.keep(Some(8));
    scene.open();
    assert_eq!(scene.numbers(), [0, 1, 2, 3]);
}

#[test]
fn other_workers_serve_meanwhile_and_one_kept_for_nobody_serves_nobody() {
    let mut scene = Scene::new(fixed(2));
    scene.request(7).unwrap();
    scene.keep(None);
    let reservations = scene.given[0].0;
    for client in [7, 8] {
        scene.request(client).unwrap();
    }
    assert_eq!(scene.given.len(), 2, "one slot is free");
    assert_ne!(scene.given[1].0, reservations);
    scene.pool.handle_open(scene.now, reservations);
    scene.follow();
    assert_eq!(scene.given[2].0, reservations);
}

#[test]
fn one_client_of_many_does_not_keep_a_worker_for_ever() {
    let mut scene = Scene::new(fixed(2));
    scene.request(7).unwrap();
    let reservations = scene.given[0].0;
    scene.keep(Some(7));
    for client in [8, 7, 9] {
        scene.request(client).unwrap();
    }
    // The other worker receives the first request. The client of the reserved worker waits for its turn, because others
    // wait.
    assert_eq!(scene.numbers(), [0, 1, 2], "the next when it comes: nobody else waits");
    scene.pool.handle_released(scene.now, reservations);
    scene.follow();
    for client in [7, 8] {
        scene.request(client).unwrap();
    }
    let other = scene.given[1].0;
    scene.pool.handle_released(scene.now, other);
    scene.follow();
    assert_eq!(scene.given[3], (other, 3));
    scene.pool.handle_released(scene.now, other);
    scene.follow();
    assert_eq!(scene.given[4], (other, 4), "of the kept one's client, while another waits");
    scene.pool.handle_open(scene.now, reservations);
    scene.follow();
    assert_eq!(scene.given[5], (reservations, 5));
}

#[test]
fn a_client_needs_no_room_in_the_queue_for_the_worker_that_is_kept_for_it() {
    let queue = QueueLimits { length: 0, ..QueueLimits::default() };
    let mut scene = Scene::new(Settings { queue, ..fixed(1) });
    scene.request(7).unwrap();
    scene.keep(Some(7));
    assert_eq!(scene.request(8), Err(Cause::Full));
    scene.request(7).unwrap();
    assert_eq!(scene.numbers(), [0, 2]);
}

#[test]
fn what_waits_for_a_kept_worker_is_served_before_the_end() {
    let mut scene = Scene::new(fixed(1));
    scene.request(7).unwrap();
    scene.keep(Some(7));
    scene.request(8).unwrap();
    scene.pool.handle_drain(scene.now);
    scene.pool.handle_stop(scene.now);
    scene.follow();
    assert_eq!(scene.refused, [0_u32; 0]);
    scene.open();
    assert_eq!(scene.numbers(), [0, 1]);
    scene.pool.handle_released(scene.now, scene.given[0].0);
    scene.follow();
    assert_eq!(scene.pool.status().idle, 0, "it has stopped");
}

#[test]
fn a_worker_that_ends_is_kept_for_nobody() {
    let mut scene = Scene::new(fixed(1));
    scene.request(7).unwrap();
    scene.keep(Some(7));
    scene.request(8).unwrap();
    let worker = scene.given[0].0;
    scene.pool.handle_retired(scene.now, worker);
    scene.pool.handle_ended(scene.now, worker, true);
    scene.follow();
    assert_eq!(scene.numbers(), [0, 1], "the one in its place serves anybody");
}

#[test]
fn whatever_happens_a_kept_worker_is_given_nothing_of_others_and_nobody_waits_for_ever() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut scene = Scene::new(fixed(1 + u32::try_from(seed % 3).unwrap()));
        let mut reservations: BTreeMap<WorkerId, Option<u64>> = BTreeMap::new();
        let mut clients = Vec::new();
        let (mut seen, mut busy) = (0, Vec::new());
        for step in 0..400 {
            scene.now += ms(random.below(3));
            let is_over = step > 300;
            match random.below(4) {
                0 | 1 if !is_over => {
                    clients.push(random.below(3));
                    scene.request(*clients.last().unwrap()).unwrap();
                }
                2 if !busy.is_empty() => {
                    let at = usize::try_from(random.below(busy.len() as u64)).unwrap();
                    let (worker, number): (WorkerId, u32) = busy.swap_remove(at);
                    if random.below(2) == 0 {
                        let client = clients[number as usize];
                        let client = (random.below(4) > 0).then_some(client);
                        reservations.insert(worker, client);
                        scene.pool.handle_reserved(scene.now, worker, client);
                    }
                    scene.pool.handle_released(scene.now, worker);
                    scene.follow();
                }
                3 => {
                    let worker = reservations.keys().next().copied();
                    let free = worker.filter(|it| !busy.iter().any(|(busy, _)| busy == it));
                    if let Some(worker) = free {
                        reservations.remove(&worker);
                        scene.pool.handle_open(scene.now, worker);
                        scene.follow();
                    }
                }
                _ => {}
            }
            for (worker, number) in &scene.given[seen..] {
                if let Some(client) = reservations.get(worker) {
                    assert_eq!(*client, Some(clients[*number as usize]), "seed {seed}");
                }
                busy.push((*worker, *number));
            }
            seen = scene.given.len();
        }
        let idle = scene.pool.status().queued == 0 || !busy.is_empty() || !reservations.is_empty();
        assert!(idle, "seed {seed}: somebody waits for nothing");
    }
}
