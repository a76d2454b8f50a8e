//! Processes that ended programs left behind.
//!
//! What it is: the rules by which an orphan is killed, and what is known of each orphan. What it depends on: the programs
//! that run, `/proc`. What it must never depend on: a read that can block; the [`reader`](super::reader) does those.
//!
//! To make sure that no process outlives its program, a rule is needed: an orphan in another session does not show
//! which program started it. An orphan is killed as soon as no running program can be its origin:
//! 1. it is in the session of a running program → it belongs to that program and is kept;
//! 2. it is in the session of a program that has just ended → killed;
//! 3. its environment contains the mark of a start by this supervisor → kept while that program runs, otherwise killed;
//!    but a mark is forged, and is ignored, if that program started later, or is one that rule 4 excludes by its user;
//! 4. otherwise (it cleared its environment, or is in the middle of execve) → kept while a program runs that started no
//!    later than it and can have started it, otherwise killed. A program with a user of its own and without the right to
//!    gain others (`no_new_privs`) starts no process of another user.
//!
//! Rules 3 and 4 need files that can block. An orphan whose files were not read yet is kept, and is looked at again. If
//! its files block, rule 4 uses the time when the supervisor first saw it, which is later than its start.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::family::{STOP_STRAYS_MAX, kill_all_of, signal_group};
use super::program::Program;
use super::reader::{Answer, Facts, Reader};
use crate::process::{children, descendants, own, session, users};

/// The maximum time of a read. It takes some ten microseconds if it does not block.
const READ_MAX: Duration = Duration::from_millis(100);

/// The maximum time of a search, without its last read. Meanwhile the supervisor starts and reports nothing.
const SEARCH_MAX: Duration = Duration::from_millis(300);

/// After a search, nothing is read for this many times the duration of the search. So an orphan that makes reads slow
/// cannot keep the supervisor busy by causing searches.
const REST_FACTOR: u32 = 4;

/// How long the files of an orphan are not read again after they have blocked: doubled each time, up to the second.
const BLOCKED_FIRST: Duration = Duration::from_millis(200);
const BLOCKED_LAST: Duration = Duration::from_secs(10);

/// What is known of the orphans.
pub(super) struct Orphans {
    pub(super) reader: Reader,
    known: HashMap<i32, Known>,
    /// Until when nothing is read.
    rests_until: Option<Instant>,
}

/// What is known of an orphan.
struct Known {
    /// When it was first seen, in clock ticks since boot.
    seen: u64,
    facts: Option<Facts>,
    /// When its files were last read.
    asked: Option<Instant>,
    /// How often its files have blocked in sequence.
    blocked: u32,
}

impl Known {
    /// Whether its files are to be read. A mark does not change.
    fn is_to_ask(&self, now: Instant) -> bool {
        let pause = match self.blocked {
            0 => Duration::ZERO,
            times => (BLOCKED_FIRST * (1 << (times - 1).min(10))).min(BLOCKED_LAST),
        };
        self.facts.as_ref().is_none_or(|facts| facts.mark.is_none())
            && self.asked.is_none_or(|asked| now >= asked + pause)
    }
}

impl Orphans {
    pub(super) fn new() -> Self {
        Self { reader: Reader::new(), known: HashMap::new(), rests_until: None }
    }

    /// A child was reaped, so its id may be reused. Returns whether it was a reader.
    pub(super) fn was_reaped(&mut self, pid: i32) -> bool {
        self.known.remove(&pid);
        self.reader.was_reaped(pid)
    }

    /// Kills the orphans that no running program can have started. Children of those become orphans in turn, and the end
    /// of the killed processes causes the next call. `ended` are the processes that were just reaped. No program was
    /// started since, so their ids are not reused yet. Returns whether orphans remain that are to be looked at again.
    pub(super) fn kill_strays(&mut self, programs: &HashMap<i32, Program>, ended: &[i32]) -> bool {
        let (mut strays, mut others) = (Vec::new(), Vec::new());
        for pid in children(own()) {
            if programs.contains_key(&pid) || self.reader.is(pid) {
                continue;
            }
            match session(pid) {
                Some(session) if ended.contains(&session) => strays.push(pid),
                Some(session) if !programs.contains_key(&session) => others.push(pid),
                _ => {}
            }
        }
        self.learn(&others);
        let is_unknown = |pid: &i32| self.known.get(pid).is_none_or(|it| it.facts.is_none());
        let unknown = others.iter().filter(|pid| is_unknown(pid)).count();
        let is_stray =
            |pid: &i32| self.known.get(pid).is_some_and(|it| is_stray(*pid, it, programs, users));
        strays.extend(others.iter().copied().filter(is_stray));
        kill(&strays);
        unknown > 0
    }

    /// Reads the files of orphans. Those that were not read for the longest time are first.
    fn learn(&mut self, orphans: &[i32]) {
        let seen = clock_ticks();
        let new = || Known { seen, facts: None, asked: None, blocked: 0 };
        let begun = Instant::now();
        let mut to_ask = Vec::new();
        for &pid in orphans {
            let known = self.known.entry(pid).or_insert_with(new);
            if known.is_to_ask(begun) {
                to_ask.push((known.asked, pid));
            }
        }
        if to_ask.is_empty() || self.rests_until.is_some_and(|until| begun < until) {
            return;
        }
        to_ask.sort_unstable();
        let mark_start = format!("{}.", own());
        for (_, pid) in to_ask {
            let Some(known) = self.known.get_mut(&pid) else { continue };
            let answer = self.reader.ask(pid, READ_MAX);
            if answer == Answer::NoReader {
                break;
            }
            known.asked = Some(Instant::now());
            known.blocked = if answer == Answer::Blocked { known.blocked + 1 } else { 0 };
            if let Answer::Facts(mut facts) = answer {
                // The mark of another supervisor is none.
                facts.mark = facts.mark.filter(|mark| mark.starts_with(&mark_start));
                known.facts = Some(facts);
            }
            if begun.elapsed() >= SEARCH_MAX {
                break;
            }
        }
        self.rests_until = Some(Instant::now() + begun.elapsed() * REST_FACTOR);
    }
}

fn kill(strays: &[i32]) {
    if strays.is_empty() {
        return;
    }
    // All descendants of a stray are strays. A group is signalled only if the orphan leads it, because only then the
    // number belongs to the orphan. All strays are stopped together: they may continue each other.
    strays.iter().for_each(|&pid| signal_group(pid, Signal::STOP));
    kill_all_of(STOP_STRAYS_MAX, || {
        strays.iter().flat_map(|&pid| descendants(pid).into_iter().chain([pid])).collect()
    });
    strays.iter().for_each(|&pid| signal_group(pid, Signal::KILL));
}

/// Rules 3 and 4. `users` returns the users of a process.
fn is_stray(
    pid: i32,
    orphan: &Known,
    programs: &HashMap<i32, Program>,
    users: impl Fn(i32) -> Option<Vec<u32>>,
) -> bool {
    let of_orphan = users(pid).unwrap_or_default();
    // As root, or while its users are not known, a program can be the origin of any process.
    let is_other = |users: Vec<u32>| !users.iter().any(|it| *it == 0 || of_orphan.contains(it));
    let started = match &orphan.facts {
        Some(Facts { mark: Some(mark), started }) => {
            let Some((&program, marked)) = programs.iter().find(|(_, it)| it.mark == *mark) else {
                return true;
            };
            // A process can write any mark. It is not believed if this program cannot be the origin.
            let is_forged = marked.started > *started
                || marked.keeps_user
                    && !of_orphan.is_empty()
                    && users(program).is_some_and(is_other);
            if !is_forged {
                return false;
            }
            *started
        }
        Some(facts) => facts.started,
        None if orphan.blocked > 0 => orphan.seen,
        None => return false,
    };
    let older = || programs.iter().filter(|(_, program)| program.started <= started);
    if older().any(|(_, program)| !program.keeps_user) {
        return false;
    }
    !of_orphan.is_empty() && older().all(|(&program, _)| users(program).is_some_and(is_other))
        || older().next().is_none()
}

/// Returns the time since boot in clock ticks, in which the kernel reports the start of a process.
pub(super) fn clock_ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    u64::try_from(now.tv_sec).unwrap_or(0) * per_second + nanoseconds * per_second / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::program::State;

    fn program(mark: &str, started: u64) -> Program {
        let (mark, group, state) = (mark.into(), None, State::Running);
        Program { token: 1, mark, started, keeps_user: false, group, state }
    }

    fn orphan(facts: Option<(u64, Option<&str>)>, blocked: u32) -> Known {
        let facts = facts.map(|(started, mark)| Facts { started, mark: mark.map(str::to_owned) });
        Known { seen: 50, facts, asked: None, blocked }
    }

    #[test]
    fn an_orphan_is_a_stray_when_no_running_program_can_have_started_it() {
        let programs = HashMap::from([(11, program("7.1", 20)), (12, program("7.2", 40))]);
        let of = |facts, blocked| is_stray(10, &orphan(facts, blocked), &programs, |_| None);
        assert!(!of(Some((45, Some("7.2"))), 0) && of(Some((45, Some("7.3"))), 0));
        assert!(!of(Some((20, None)), 0), "of the same tick");
        assert!(of(Some((19, None)), 0), "older than all");
        assert!(!of(None, 0), "not read yet");
        assert!(!of(None, 3), "seen after a start");
        let younger = HashMap::from([(11, program("7.1", 51))]);
        let of = |blocked| is_stray(10, &orphan(None, blocked), &younger, |_| None);
        assert!(of(1) && !of(0));
    }

    #[test]
    fn a_program_that_keeps_its_user_is_the_origin_of_no_other_user() {
        let mut programs = HashMap::from([(11, program("7.1", 20)), (12, program("7.2", 40))]);
        let of = |programs: &_, orphan_users: &[u32], program_users: Option<u32>| {
            is_stray(10, &orphan(Some((45, None)), 0), programs, |pid| match pid {
                10 => Some(orphan_users.to_vec()),
                _ => program_users.map(|user| vec![user; 4]),
            })
        };
        assert!(!of(&programs, &[7], Some(8)), "neither keeps its user");
        programs.get_mut(&11).unwrap().keeps_user = true;
        assert!(!of(&programs, &[7], Some(8)), "one does not");
        programs.get_mut(&12).unwrap().keeps_user = true;
        assert!(of(&programs, &[7], Some(8)));
        assert!(!of(&programs, &[7, 8], Some(8)), "one of its users");
        assert!(!of(&programs, &[7], Some(0)) && !of(&programs, &[7], None));
        assert!(!of(&programs, &[], Some(8)), "its users are not known");
    }

    #[test]
    fn a_forged_mark_does_not_keep_an_orphan() {
        let mut programs = HashMap::from([(11, program("7.1", 20)), (12, program("7.2", 40))]);
        programs.values_mut().for_each(|program| program.keeps_user = true);
        let of = |programs: &_, started, mark| {
            is_stray(10, &orphan(Some((started, Some(mark))), 0), programs, |pid| match pid {
                10 => Some(vec![7]),
                11 => Some(vec![7]),
                _ => Some(vec![8]),
            })
        };
        assert!(!of(&programs, 45, "7.1"), "its own program");
        assert!(!of(&programs, 45, "7.2"), "the program of its user can be the origin");
        assert!(of(&programs, 15, "7.1"), "a program that started later, and no other is older");
        programs.remove(&11);
        assert!(of(&programs, 45, "7.2"), "a program of another user");
        programs.get_mut(&12).unwrap().keeps_user = false;
        assert!(!of(&programs, 45, "7.2"), "it may have changed its user");
    }

    #[test]
    fn files_that_block_are_read_more_and_more_rarely() {
        let mut known = orphan(None, 0);
        let now = Instant::now();
        assert!(known.is_to_ask(now));
        for (blocked, pause) in [(1, 200), (2, 400), (3, 800), (9, 10_000), (u32::MAX, 10_000)] {
            (known.asked, known.blocked) = (Some(now), blocked);
            let pause = Duration::from_millis(pause);
            assert!(known.is_to_ask(now + pause), "{blocked}");
            assert!(!known.is_to_ask(now + pause.saturating_sub(Duration::from_millis(1))));
        }
        let of = |mark| orphan(Some((45, mark)), 0).is_to_ask(now);
        assert!(of(None) && !of(Some("7.1")), "a mark is read once");
    }

    #[test]
    fn the_clock_is_that_of_the_start_of_processes() {
        let before = clock_ticks();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let after = clock_ticks();
        let started = crate::process::started(child.id().cast_signed());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(started.is_some_and(|at| (before..=after).contains(&at)), "{before} {started:?}");
    }
}
