//! The table of moves, whole.

use super::*;

/// What each move makes of each state; `-` cannot happen.
const TABLE: &str = "\
state      admit     dispatch  give back next      pass on   cross
received   waiting   working   -         -         received  away
waiting    -         working   -         -         received  -
working    -         -         waiting   received  -         away
away       -         -         -         -         -         -
";

/// A ticket of a pool that has nobody to ask.
fn ticket() -> Ticket {
    struct Nothing;
    impl pool::Queueable for Nothing {
        fn bytes(&self) -> usize {
            0
        }
    }
    let now = Instant::now();
    let mut pool = pool::Pool::new(pool::Settings::default(), now, 1);
    pool.handle_request(now, Nothing).ok().expect("it has room for one")
}

#[test]
fn no_other_move_is_possible() {
    let (ticket, worker) = (ticket(), WorkerId::new(0, 0));
    let states = [State::Received, State::Waiting(ticket), State::Working(worker), State::Away(1)];
    let moves = [
        Move::Admit(ticket),
        Move::Dispatch(worker),
        Move::GiveBack(ticket),
        Move::Next,
        Move::PassOn,
        Move::Cross(1),
    ];
    let line = |first: &str, cells: [&str; 6]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:<10}")).collect();
        format!("{first:<11}{cells}").trim_end().to_owned() + "\n"
    };
    let mut table = line("state", MOVES);
    for (number, state) in states.into_iter().enumerate() {
        assert_eq!(state.number(), number);
        let after = moves.map(|step| state.after(step).map_or("-", |next| STATES[next.number()]));
        table += &line(STATES[number], after);
    }
    assert_eq!(table, TABLE);
    assert!(moves.iter().enumerate().all(|(number, step)| step.number() == number));
}

/// A request of this process.
fn exchange() -> Exchange {
    Exchange {
        client: Client::Nobody,
        source: Source { peer: exchange::Peer::Inside, listener: None },
        at_us: 0,
        stamps: Stamps::received(Instant::now()),
        body_end: None,
        log_entry: None,
        parts: Vec::new(),
        window: Window::default(),
        pool: PoolId::new(0, 1),
        attempt: Attempt::default(),
        json_reply: None,
        state: State::Received,
    }
}

#[test]
fn the_requests_of_one_shard_are_numbered_from_one() {
    let mut exchanges = Exchanges::of_shard(0, 1);
    let first = exchanges.insert(exchange());
    let rejected = exchanges.id_of_rejected();
    assert!(exchanges.remove(first).is_some());
    let third = exchanges.insert(exchange());
    let shown = [first, rejected, third].map(|id| id.to_string());
    assert_eq!(shown, ["1", "2", "3"]);
    assert_eq!(exchanges.ids(), [third], "the numbers are kept");
}

#[test]
fn no_two_shards_give_the_same_number() {
    let mut numbers: Vec<u64> = (0..3)
        .flat_map(|shard| {
            let mut exchanges = Exchanges::of_shard(shard, 3);
            [(); 4].map(|()| exchanges.insert(exchange()).as_u64())
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_request_of_another_shard_keeps_its_number_and_takes_none() {
    let (mut client, mut owner) = (Exchanges::of_shard(0, 2), Exchanges::of_shard(1, 2));
    let request = client.insert(exchange());
    let from_shard = Exchange { client: Client::OffShard { request, session: None }, ..exchange() };
    let from_shard = owner.insert(from_shard);
    assert_eq!(from_shard.as_u64(), request.as_u64());
    assert_ne!(from_shard, request, "each has a place of its own");
    assert_eq!(owner.insert(exchange()).as_u64(), 2);
}

#[test]
fn the_id_of_an_earlier_request_of_a_place_finds_nothing() {
    let mut exchanges = Exchanges::of_shard(2, 3);
    let earlier = exchanges.insert(exchange());
    assert!(exchanges.close(earlier).is_some());
    let later = exchanges.insert(exchange());
    assert_eq!(earlier.index(), later.index(), "its place is taken again");
    assert!(exchanges.get_mut(earlier).is_none());
    assert!(exchanges.remove(earlier).is_none() && exchanges.close(earlier).is_none());
    assert!(exchanges.close_if(earlier, |_| unreachable!("it has gone")).is_none());
    assert!(exchanges.get_mut(later).is_some());
    assert!(exchanges.get_mut(RequestId::NONE).is_none());
}
