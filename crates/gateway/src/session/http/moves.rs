//! What may follow on what in a connection of a client: the table of the moves of both directions.
//! `http.rs` has the picture.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Dialogue, Input, Output};

/// How far the request has come, without what is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body,
    Gathering,
    Whole,
    Switched,
    Ended,
}

/// What can happen to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// A whole request is submitted.
    Ask,
    /// One is submitted whose body is still to come.
    AskPart,
    /// A body is taken before its request is submitted.
    Gather,
    /// The last byte of a body has come.
    Complete,
    /// The server has changed the protocol.
    Switch,
    /// Request and reply are whole: the next may come.
    Next,
    /// Nothing that comes is read any more.
    End,
}

const STAGES: usize = 6;
const MOVES: usize = 7;

/// What each move makes of each stage; `None` cannot happen.
const TABLE: [[Option<Stage>; MOVES]; STAGES] = {
    use Stage::{Body, Ended, Gathering, Head, Switched, Whole};
    const NO: Option<Stage> = None;
    const fn to(stage: Stage) -> Option<Stage> {
        Some(stage)
    }
    [
        // ask        ask part    gather         complete    switch        next      end
        [to(Whole), to(Body), to(Gathering), NO, NO, NO, to(Ended)],
        [NO, NO, NO, to(Whole), NO, NO, to(Ended)],
        [NO, NO, NO, to(Whole), NO, NO, to(Ended)],
        [NO, NO, NO, NO, to(Switched), to(Head), to(Ended)],
        [NO, NO, NO, NO, NO, NO, to(Ended)],
        [NO, NO, NO, NO, NO, NO, NO],
    ]
};

/// How far a reply may have come in each stage: not at all, begun. Where neither, nothing is asked.
const REPLIES: [[bool; 2]; STAGES] =
    [[false, false], [true, true], [false, false], [true, true], [false, true], [false, false]];

const STAGE_WORDS: [&str; STAGES] = ["head", "body", "gathering", "whole", "switched", "ended"];
const MOVE_WORDS: [&str; MOVES] =
    ["ask", "ask part", "gather", "complete", "switch", "next", "end"];

/// The moves that were made in this process, a bit each.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The moves of connections of HTTP that were made in this process, each by the words of its stage and
/// its own. They are only noted where debug assertions are: for tests.
#[must_use]
pub fn session_moves_made() -> Vec<(&'static str, &'static str)> {
    let made = MADE.load(Ordering::Relaxed);
    listed(|stage, step| (made >> bit(stage, step)) & 1 == 1)
}

/// Every move that the table allows, in the same words.
#[must_use]
pub fn session_moves() -> Vec<(&'static str, &'static str)> {
    listed(|stage, step| TABLE[stage][step].is_some())
}

fn listed(wanted: impl Fn(usize, usize) -> bool) -> Vec<(&'static str, &'static str)> {
    let all = (0..STAGES).flat_map(|stage| (0..MOVES).map(move |step| (stage, step)));
    all.filter(|(stage, step)| wanted(*stage, *step))
        .map(|(stage, step)| (STAGE_WORDS[stage], MOVE_WORDS[step]))
        .collect()
}

const fn bit(stage: usize, step: usize) -> usize {
    stage * MOVES + step
}

impl Input {
    const fn stage(&self) -> Stage {
        match self {
            Self::Head => Stage::Head,
            Self::Body(_) => Stage::Body,
            Self::Gathering(_) => Stage::Gathering,
            Self::Whole => Stage::Whole,
            Self::Switched => Stage::Switched,
            Self::Ended => Stage::Ended,
        }
    }
}

impl Dialogue {
    /// Makes a move, and gives what was kept of the stage before. That the table allows it is looked at
    /// where debug assertions are: what a peer says must not end a daemon.
    pub(super) fn step(&mut self, step: Move, next: Input) -> Input {
        if cfg!(debug_assertions) {
            let (from, to) = (self.input.stage() as usize, next.stage());
            assert_eq!(TABLE[from][step as usize], Some(to), "{step:?} of {:?}", self.input);
            MADE.fetch_or(1 << bit(from, step as usize), Ordering::Relaxed);
        }
        std::mem::replace(&mut self.input, next)
    }

    /// Sweeps that the reply has come no further than it may at this stage of the request.
    pub(super) fn check(&self) {
        let allowed = REPLIES[self.input.stage() as usize];
        let fits = match self.asked.as_ref().map(|asked| asked.output) {
            None => true,
            Some(Output::None) => allowed[0],
            Some(Output::Begun(_) | Output::HeadOnly) => allowed[1],
            Some(Output::Done) => false,
        };
        assert!(fits, "{:?} of {:?}", self.asked, self.input);
    }
}

#[cfg(test)]
mod tests {
    use wire::http1::{Method, Sending};

    use super::*;

    /// The table, as a reader wants it; `-` cannot happen.
    const PRINTED: &str = "\
stage      ask       ask part  gather    complete  switch    next      end
head       whole     body      gathering -         -         -         ended
body       -         -         -         whole     -         -         ended
gathering  -         -         -         whole     -         -         ended
whole      -         -         -         -         switched  head      ended
switched   -         -         -         -         -         -         ended
ended      -         -         -         -         -         -         -
";

    #[test]
    fn no_other_move_is_possible() {
        let line = |first: &str, cells: [&str; MOVES]| {
            let cells: String = cells.iter().map(|cell| format!("{cell:<10}")).collect();
            format!("{first:<11}{cells}").trim_end().to_owned() + "\n"
        };
        let mut printed = line("stage", MOVE_WORDS);
        for (word, row) in STAGE_WORDS.iter().zip(TABLE) {
            printed += &line(word, row.map(|to| to.map_or("-", |to| STAGE_WORDS[to as usize])));
        }
        assert_eq!(printed, PRINTED);
    }

    #[test]
    fn behind_the_head_of_a_reply_to_head_nothing_is_sent() {
        for sending in [Sending::Verbatim, Sending::Chunked, Sending::Data] {
            assert_eq!(Output::begun(Method::Head, sending), Output::HeadOnly);
            assert_eq!(Output::begun(Method::Get, sending), Output::Begun(sending));
        }
    }

    #[test]
    #[should_panic(expected = "Switch of Head")]
    fn a_move_that_the_table_has_not_is_found() {
        let session = crate::exchanges::SessionId::new(0, crate::table::Place::new(0, 0));
        let mut dialogue = Dialogue::new(session, 0);
        dialogue.step(Move::Switch, Input::Switched);
    }
}
