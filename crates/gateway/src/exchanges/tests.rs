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
    impl pool::Payload for Nothing {
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
