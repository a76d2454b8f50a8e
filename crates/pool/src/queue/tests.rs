use super::*;
use crate::random::Random;

impl Queueable for u8 {
    fn bytes(&self) -> usize {
        usize::from(*self)
    }
}

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn start() -> Instant {
    Instant::now()
}

fn queue() -> Queue<u8> {
    Queue::new(Duration::from_secs(1))
}

fn put<P: Queueable>(queue: &mut Queue<P>, payload: P, lane: Lane, now: Instant) -> Ticket {
    let entry = QueueEntry::of(&payload, now);
    queue.push(payload, entry, lane)
}

fn put_back<P: Queueable>(queue: &mut Queue<P>, payload: P, lane: Lane, now: Instant) -> Ticket {
    let entry = QueueEntry::of(&payload, now);
    queue.push_back_in(payload, entry, lane)
}

fn drain(queue: &mut Queue<u8>) -> Vec<u8> {
    std::iter::from_fn(|| queue.pop(Lane::Common)).map(|(payload, _)| payload).collect()
}

#[test]
fn first_come_first_served_and_bytes_are_counted() {
    let now = start();
    let mut queue = queue();
    for payload in 1..=4 {
        put(&mut queue, payload, Lane::Common, now);
    }
    assert_eq!((queue.length(), queue.bytes(), queue.common()), (4, 10, (4, 10)));
    assert_eq!(queue.next(Lane::Common).map(|next| next.1), Some(1));
    queue.check();
    assert_eq!(drain(&mut queue), [1, 2, 3, 4]);
    assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
    queue.check();
}

#[test]
fn a_ticket_names_nothing_once_its_request_is_gone_even_when_the_place_is_taken_again() {
    let now = start();
    let mut queue = queue();
    let old = put(&mut queue, 1, Lane::Common, now);
    assert_eq!(drain(&mut queue), [1]);
    let new = put(&mut queue, 2, Lane::Common, now);
    assert_eq!(queue.remove(old), None);
    assert_eq!(queue.remove(new), Some(2));
    assert_eq!(queue.remove(new), None);
    queue.check();
}

#[test]
fn what_comes_back_is_first_and_as_old_as_the_oldest() {
    let now = start();
    let later = now + Duration::from_secs(1);
    let mut queue = queue();
    put(&mut queue, 3, Lane::Common, now);
    put(&mut queue, 4, Lane::Common, later);
    put_back(&mut queue, 2, Lane::Common, later);
    put_back(&mut queue, 1, Lane::Common, later);
    assert_eq!(queue.oldest(), Some(now));
    queue.check();
    assert_eq!(drain(&mut queue), [1, 2, 3, 4]);
    put_back(&mut queue, 5, Lane::Common, later);
    assert_eq!(queue.oldest(), Some(later));
}

#[test]
fn places_are_used_again() {
    let now = start();
    let mut queue = queue();
    for _ in 0..100 {
        put(&mut queue, 1, Lane::Common, now);
        put(&mut queue, 2, Lane::Bound(7), now);
        queue.pop(Lane::Common);
        queue.pop(Lane::Bound(7));
    }
    assert_eq!(queue.places.len(), 2);
}

#[test]
fn lanes_do_not_mix_until_they_are_joined() {
    let now = start();
    let mut queue = queue();
    for payload in 1..=6 {
        let lane = if payload % 2 == 0 { Lane::Bound(3) } else { Lane::Common };
        put(&mut queue, payload, lane, now);
    }
    assert_eq!((queue.common().0, queue.bound(3), queue.bound(9)), (3, 3, 0));
    assert_eq!(queue.pop(Lane::Bound(3)).map(|popped| popped.0), Some(2));
    queue.bind_next(3);
    queue.check();
    assert_eq!((queue.common().0, queue.bound(3)), (2, 3));
    assert_eq!(
        queue.head(Lane::Bound(3)).map(|head| head.1),
        Some(4),
        "it stands behind its elders"
    );
    queue.unbind(3);
    queue.check();
    assert_eq!(
        drain(&mut queue),
        [4, 6, 1, 3, 5],
        "those that were bound go first, in their order"
    );
}

/// A request with a priority and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    id: u64,
    priority: u8,
    share: Option<u64>,
}

impl Queueable for Asked {
    fn bytes(&self) -> usize {
        1
    }

    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits {
            id: self.id,
            priority: self.priority,
            share: self.share,
            ..RequestTraits::default()
        }
    }
}

#[test]
fn the_urgent_overtake_but_nobody_starves() {
    let now = start();
    let at = |ms| now + Duration::from_millis(ms);
    let mut queue = Queue::new(Duration::from_secs(1));
    let ask = |id, priority| Asked { id, priority, share: None };
    put(&mut queue, ask(1, 5), Lane::Common, at(0));
    put(&mut queue, ask(2, 9), Lane::Common, at(1));
    put(&mut queue, ask(3, 4), Lane::Common, at(900));
    put(&mut queue, ask(4, 0), Lane::Common, at(1000));
    // Three levels are worth three seconds: the urgent request overtakes for no longer than that.
    put(&mut queue, ask(5, 6), Lane::Common, at(2990));
    put(&mut queue, ask(6, 6), Lane::Common, at(3002));
    let popped = std::iter::from_fn(|| queue.pop(Lane::Common)).map(|popped| popped.0.id);
    assert_eq!(popped.collect::<Vec<_>>(), [4, 3, 1, 5, 2, 6]);
}

#[test]
fn those_who_share_take_turns_however_much_each_asks() {
    let now = start();
    let mut queue = Queue::new(Duration::from_secs(1));
    let ask = |id, share| Asked { id, priority: 5, share };
    for id in 0..6 {
        put(&mut queue, ask(id, Some(1)), Lane::Common, now);
    }
    put(&mut queue, ask(10, Some(2)), Lane::Common, now);
    put(&mut queue, ask(20, None), Lane::Common, now);
    put(&mut queue, ask(11, Some(2)), Lane::Common, now);
    queue.check();
    let popped = std::iter::from_fn(|| queue.pop(Lane::Common)).map(|popped| popped.0.id);
    assert_eq!(popped.collect::<Vec<_>>(), [0, 10, 20, 1, 11, 2, 3, 4, 5]);
    queue.check();
}

#[test]
fn in_the_lane_of_a_worker_the_urgent_overtake_and_those_who_share_take_turns() {
    let now = start();
    let mut queue = Queue::new(Duration::from_secs(1));
    let own = Lane::Bound(2);
    for id in 0..3 {
        put(&mut queue, Asked { id, priority: 5, share: Some(1) }, own, now);
    }
    put(&mut queue, Asked { id: 10, priority: 5, share: Some(2) }, own, now);
    put(&mut queue, Asked { id: 20, priority: 0, share: Some(3) }, own, now);
    let popped = std::iter::from_fn(|| queue.pop(own)).map(|popped| popped.0.id);
    assert_eq!(popped.collect::<Vec<_>>(), [20, 0, 10, 1, 2]);
}

#[test]
fn lanes_that_want_one_worker_take_turns_as_if_they_were_one() {
    let now = start();
    let at = |ms| now + Duration::from_millis(ms);
    let mut queue = Queue::new(Duration::from_secs(1));
    let lanes = [Lane::Common, Lane::Bound(0)];
    let ask = |id, priority, share| Asked { id, priority, share };
    // One client floods the lane of its worker; others are not bound to a worker.
    for id in 0..4 {
        put(&mut queue, ask(id, 5, Some(1)), Lane::Bound(0), at(0));
    }
    for id in 10..12 {
        put(&mut queue, ask(id, 5, Some(id)), Lane::Common, at(5));
    }
    // The oldest of the requests without a group, in any lane.
    put(&mut queue, ask(20, 5, None), Lane::Bound(0), at(6));
    put(&mut queue, ask(21, 5, None), Lane::Common, at(7));
    put(&mut queue, ask(30, 4, None), Lane::Bound(0), at(900));
    put(&mut queue, ask(31, 5, None), Lane::Common, at(901));
    let mut popped = Vec::new();
    while let Some(lane) = queue.next_lane(lanes.into_iter()) {
        popped.extend(queue.pop(lane).map(|popped| popped.0.id));
        queue.check();
    }
    assert_eq!(popped, [30, 0, 10, 11, 20, 21, 1, 31, 2, 3]);
}

/// The flow of a request: its lane, its level and its group.
type FlowOf = (bool, u8, Option<u64>);

#[test]
fn whatever_waits_in_two_lanes_a_naive_view_says_the_same_of_whose_turn_it_is() {
    let now = start();
    let mut random = Random::new(9);
    let step = Duration::from_millis(3);
    let mut queue = Queue::new(step);
    let (own, lanes) = (Lane::Bound(1), [Lane::Common, Lane::Bound(1)]);
    // All waiting requests, the oldest first, and when each flow last had its turn or was added.
    let mut waiting: Vec<(FlowOf, u64, Instant)> = Vec::new();
    let mut stamps: std::collections::BTreeMap<FlowOf, u64> = std::collections::BTreeMap::new();
    for id in 0..30_000 {
        let when = now + Duration::from_micros(id * 10);
        if random.below(200) < 101 {
            let priority = u8::try_from(random.below(3)).unwrap();
            let share = (random.below(3) > 0).then(|| random.below(3));
            let (bound, flow) = (random.below(2) == 0, (priority, share));
            let flow = (bound, flow.0, flow.1);
            if !waiting.iter().any(|other| other.0 == flow) {
                stamps.insert(flow, id);
            }
            waiting.push((flow, id, when));
            let lane = if bound { own } else { Lane::Common };
            put(&mut queue, Asked { id, priority, share }, lane, when);
            continue;
        }
        let due = |&((_, level, _), _, since): &(FlowOf, u64, Instant)| {
            (since + step * level.into(), level)
        };
        // The first of each flow; of those the first of each level of a lane; of those the first of a lane.
        let first_of = |bound: bool| {
            let level = |level: u8| {
                let of = waiting.iter().filter(|one| one.0.0 == bound && one.0.1 == level);
                of.min_by_key(|one| (stamps[&one.0], one.1)).copied()
            };
            (0..3).filter_map(level).min_by_key(due)
        };
        let next = match (first_of(false), first_of(true)) {
            (Some(common), Some(bound)) if common.0.1 == bound.0.1 => {
                let plain = common.0.2.is_none() && bound.0.2.is_none();
                let before =
                    if plain { bound.1 < common.1 } else { stamps[&bound.0] < stamps[&common.0] };
                Some(if before { bound } else { common })
            }
            (common, bound) => common.into_iter().chain(bound).min_by_key(due),
        };
        let lane = queue.next_lane(lanes.into_iter());
        let popped = lane.and_then(|lane| queue.pop(lane)).map(|popped| popped.0.id);
        assert_eq!(popped, next.map(|next| next.1), "step {id}");
        if let Some((flow, taken, _)) = next {
            waiting.retain(|one| one.1 != taken);
            stamps.insert(flow, id);
        }
    }
}

#[test]
fn anything_may_happen_in_any_order() {
    let now = start();
    let mut random = Random::new(4);
    let mut queue = Queue::new(Duration::from_millis(3));
    let mut tickets = Vec::new();
    let mut expected = 0_u32;
    for id in 0..20_000 {
        let when = now + Duration::from_micros(id * 10);
        let priority = u8::try_from(random.below(12)).unwrap();
        let share = (random.below(2) == 0).then(|| random.below(5));
        let worker = u32::try_from(random.below(3)).unwrap();
        let lane = if random.below(3) == 0 { Lane::Bound(worker) } else { Lane::Common };
        match random.below(9) {
            0..4 => tickets.push(put(&mut queue, Asked { id, priority, share }, lane, when)),
            4 => tickets.push(put_back(&mut queue, Asked { id, priority, share }, lane, when)),
            5 => {
                let some = tickets.len() as u64;
                if some > 0 {
                    let ticket = tickets.swap_remove(usize::try_from(random.below(some)).unwrap());
                    expected -= u32::from(queue.remove(ticket).is_some());
                }
                continue;
            }
            6 => {
                expected -= u32::from(queue.pop(lane).is_some());
                continue;
            }
            7 => {
                expected -= u32::from(queue.pop_oldest().is_some());
                continue;
            }
            _ if random.below(2) == 0 => {
                queue.bind_next(worker);
                continue;
            }
            _ => {
                queue.unbind(worker);
                continue;
            }
        }
        expected += 1;
        queue.check();
        assert_eq!(queue.length(), expected);
    }
}
