use super::*;
use crate::random::Random;

impl Payload for u8 {
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

fn put<P: Payload>(queue: &mut Queue<P>, payload: P, lane: Lane, now: Instant) -> Ticket {
    let entry = Entry::of(&payload, now);
    queue.push(payload, entry, lane)
}

fn put_back<P: Payload>(queue: &mut Queue<P>, payload: P, lane: Lane, now: Instant) -> Ticket {
    let entry = Entry::of(&payload, now);
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
    queue.unbind(3);
    queue.check();
    assert_eq!(
        drain(&mut queue),
        [4, 6, 1, 3, 5],
        "those that were bound go first, in their order"
    );
}

/// A request with a priority and somebody with whom it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    id: u64,
    priority: u8,
    share: Option<u64>,
}

impl Payload for Asked {
    fn bytes(&self) -> usize {
        1
    }

    fn ask(&self) -> Ask<'_> {
        Ask { id: self.id, priority: self.priority, share: self.share, ..Ask::default() }
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
    // Three levels are worth three seconds: no later than that does the urgent overtake.
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
