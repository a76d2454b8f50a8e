//! The transition table of an HTTP connection, for both directions. `http.rs` has the diagram.

use std::sync::atomic::{AtomicU64, Ordering};

/// The state of the request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Head,
    Body,
    BufferedBody,
    Whole,
    Switched,
    Ended,
}

/// A transition of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// A complete request is submitted.
    Ask,
    /// A request with an incomplete body is submitted.
    AskPart,
    /// A body is buffered before its request is submitted.
    Gather,
    /// The last byte of a body has arrived.
    Complete,
    /// The server has switched the protocol.
    Switch,
    /// Request and reply are complete. The next request may follow.
    Next,
    /// Further input is not read.
    End,
}

const STAGES: usize = 6;
const MOVES: usize = 7;

/// The next stage for each stage and transition. `None`: the transition is impossible.
const TABLE: [[Option<Stage>; MOVES]; STAGES] = {
    use Stage::{Body, BufferedBody, Ended, Head, Switched, Whole};
    const NO: Option<Stage> = None;
    const fn to(stage: Stage) -> Option<Stage> {
        Some(stage)
    }
    [
        // ask        ask part    gather         complete    switch        next      end
        [to(Whole), to(Body), to(BufferedBody), NO, NO, NO, to(Ended)],
        [NO, NO, NO, to(Whole), NO, NO, to(Ended)],
        [NO, NO, NO, to(Whole), NO, NO, to(Ended)],
        [NO, NO, NO, NO, to(Switched), to(Head), to(Ended)],
        [NO, NO, NO, NO, NO, NO, to(Ended)],
        [NO, NO, NO, NO, NO, NO, NO],
    ]
};

/// Whether, in each stage, a reply may be not begun, and begun. Without either there is no request.
const REPLIES: [[bool; 2]; STAGES] =
    [[false, false], [true, true], [false, false], [true, true], [false, true], [false, false]];

const STAGE_WORDS: [&str; STAGES] = ["head", "body", "buffered", "whole", "switched", "ended"];
const MOVE_WORDS: [&str; MOVES] =
    ["ask", "ask part", "gather", "complete", "switch", "next", "end"];

/// The transitions that occurred in this process, one bit each.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The transitions of HTTP connections that occurred in this process, each as the names of the old stage and of the
/// transition. For tests: they are recorded only with debug assertions.
#[must_use]
pub fn session_moves_made() -> Vec<(&'static str, &'static str)> {
    let made = MADE.load(Ordering::Relaxed);
    listed(|stage, step| (made >> bit(stage, step)) & 1 == 1)
}

/// Every transition that the table allows, in the same form.
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

impl Stage {
    /// Whether a reply may be not begun, and begun. Without either there is no request.
    pub(super) const fn replies(self) -> [bool; 2] {
        REPLIES[self as usize]
    }
}

impl Move {
    /// The next stage. `None`: the transition is impossible.
    pub(super) const fn of(self, stage: Stage) -> Option<Stage> {
        TABLE[stage as usize][self as usize]
    }

    /// Records that the transition occurred in this stage, for tests.
    pub(super) fn note(self, stage: Stage) {
        MADE.fetch_or(1 << bit(stage as usize, self as usize), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table, as a reader wants it; `-` cannot happen.
    const PRINTED: &str = "\
stage      ask       ask part  gather    complete  switch    next      end
head       whole     body      buffered  -         -         -         ended
body       -         -         -         whole     -         -         ended
buffered   -         -         -         whole     -         -         ended
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
}
