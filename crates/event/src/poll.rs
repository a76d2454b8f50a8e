//! A kernel based on poll: one array, passed to the system completely at every wait.
//!
//! Pitfalls:
//! - `POLLHUP` and `POLLERR` are reported for every descriptor, also if nothing is requested for it, and do not go
//!   away. A descriptor that has reported them therefore leaves the array; otherwise no wait would block.
//! - A descriptor that was closed without being removed reports `POLLNVAL`, which is harmless.
//! - The kernel examines every entry at every wait. 10,000 idle streams cost a millisecond, which is why epoll is the
//!   default.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::kernel::{Completeness, Readiness};
use crate::level::{Level, LevelSet};
use crate::system;

/// Linux and other systems, with poll.
pub type Poll = Level<PollSet>;

/// The array for poll.
#[derive(Default)]
pub struct PollSet {
    /// Entries without gaps; `owners` contains the descriptor of each.
    entries: Vec<PollFd<'static>>,
    owners: Vec<RawFd>,
    /// Indexed by descriptor number: its place in the array plus one, or 0.
    places: Vec<u32>,
    /// Where the next search begins.
    from: usize,
}

impl fmt::Debug for PollSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollSet").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl PollSet {
    fn place(&self, fd: RawFd) -> Option<usize> {
        let place = *self.places.get(usize::try_from(fd).ok()?)?;
        (place as usize).checked_sub(1)
    }
}

impl LevelSet for PollSet {
    fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn request(&mut self, fd: BorrowedFd<'_>, requested: Readiness) -> io::Result<()> {
        let number = fd.as_raw_fd();
        let entry = PollFd::from_borrowed_fd(outliving(fd), flags(requested));
        if let Some(place) = self.place(number) {
            self.entries[place] = entry;
            return Ok(());
        }
        let index = usize::try_from(number).expect("an open descriptor is not negative");
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        self.entries.push(entry);
        self.owners.push(number);
        self.places[index] = u32::try_from(self.entries.len()).expect("descriptors are few");
        Ok(())
    }

    fn remove(&mut self, fd: RawFd) {
        let Some(place) = self.place(fd) else { return };
        self.entries.swap_remove(place);
        self.owners.swap_remove(place);
        let index = |fd: RawFd| usize::try_from(fd).expect("an open descriptor is not negative");
        if let Some(&moved) = self.owners.get(place) {
            self.places[index(moved)] = u32::try_from(place + 1).expect("descriptors are few");
        }
        self.places[index(fd)] = 0;
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        count_max: usize,
        ready: &mut Vec<(RawFd, Readiness)>,
    ) -> io::Result<Completeness> {
        let timeout = timeout.map(system::timespec);
        let found = match poll(&mut self.entries, timeout.as_ref()) {
            Ok(found) => found,
            Err(Errno::INTR) => return Ok(Completeness::Partial),
            Err(error) => return Err(error.into()),
        };
        let length = self.entries.len();
        let mut at = if self.from < length { self.from } else { 0 };
        for _ in 0..length {
            if ready.len() == found.min(count_max) {
                break;
            }
            let reported = self.entries[at].revents();
            if !reported.is_empty() {
                ready.push((self.owners[at], readiness(reported)));
            }
            at = if at + 1 == length { 0 } else { at + 1 };
        }
        self.from = at;
        Ok(if found > count_max { Completeness::Partial } else { Completeness::Complete })
    }
}

/// Converts a borrowed descriptor to one without a lifetime. The array keeps descriptors without borrowing them; each
/// is owned by a stream.
#[expect(unsafe_code, reason = "an array of borrows cannot be kept beside their owners")]
fn outliving(fd: BorrowedFd<'_>) -> BorrowedFd<'static> {
    // SAFETY: the number is not -1, and the descriptor is removed from the set before it is closed.
    unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) }
}

fn flags(requested: Readiness) -> PollFlags {
    let mut flags = PollFlags::empty();
    if requested.any(Readiness::READ) {
        flags |= PollFlags::IN | PollFlags::RDHUP;
    }
    if requested.any(Readiness::WRITE) {
        flags |= PollFlags::OUT;
    }
    flags
}

pub(crate) fn readiness(flags: PollFlags) -> Readiness {
    let mut readiness = Readiness::NONE;
    for (flag, ready) in [
        (PollFlags::IN, Readiness::READ),
        (PollFlags::OUT, Readiness::WRITE),
        (PollFlags::RDHUP, Readiness::READ_END),
        (PollFlags::HUP, Readiness::HANGUP),
        (PollFlags::ERR, Readiness::ERROR),
        (PollFlags::NVAL, Readiness::HANGUP),
    ] {
        if flags.contains(flag) {
            readiness |= ready;
        }
    }
    readiness
}
