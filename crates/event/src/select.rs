//! A kernel based on select: two bit sets, sized by the limit of descriptors at the start.
//!
//! Pitfalls:
//! - The C library's `fd_set` ends at 1024 descriptors, and a bit beyond it is written outside of the set. The kernel
//!   itself accepts sets of any length, so ours are sized by `RLIMIT_NOFILE`.
//! - select reports only readable and writable. An end, a reset and a closed writer all look readable; receiving shows
//!   which it was.
//! - Therefore a stream that is not read (paused, or its end was received) does not show that its peer is gone. The
//!   same applies to the write end of a pipe without output. Only for these descriptors, one poll per second asks for
//!   no condition and so reports hang-ups only.
//! - A descriptor that was closed without being removed fails the whole call. Descriptors are removed from the set
//!   before they are closed.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{
    FdSetElement, FdSetIter, PollFd, PollFlags, Timespec, fd_set_insert, fd_set_num_elements,
    fd_set_remove, poll, select,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::kernel::{Completeness, Readiness};
use crate::level::{Level, LevelSet};
use crate::poll::readiness;
use crate::system;

/// The interval of the poll for descriptors that select does not watch.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// The number of descriptors for which the sets have room if there is no limit, or an absurdly high one: 1 MiB of bits.
const DESCRIPTORS_MAX: u64 = 1 << 23;

/// Linux and other systems, with select.
pub type Select = Level<SelectSet>;

/// The bit sets for select.
pub struct SelectSet {
    /// The requested conditions, indexed by descriptor number. `None`: it is not in the set.
    requested: Vec<Option<Readiness>>,
    read: Bits,
    write: Bits,
    /// The number of descriptors in the set that are not requested for reading.
    unread: usize,
    /// One more than the largest descriptor that was ever in the set.
    bound: usize,
    descriptors_max: usize,
    probed: Instant,
    /// Where the next search begins.
    from: usize,
}

/// The requested bits, and the copy that the kernel replaces by its answer.
#[derive(Default)]
struct Bits {
    asked: Vec<FdSetElement>,
    answer: Vec<FdSetElement>,
}

impl Bits {
    fn put(&mut self, fd: RawFd, wanted: bool) {
        if wanted {
            fd_set_insert(&mut self.asked, fd);
        } else {
            fd_set_remove(&mut self.asked, fd);
        }
    }

    /// Copies the first `length` elements again.
    fn copied(&mut self, length: usize) -> &mut [FdSetElement] {
        self.answer[..length].copy_from_slice(&self.asked[..length]);
        &mut self.answer[..length]
    }
}

impl fmt::Debug for SelectSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectSet")
            .field("descriptors_max", &self.descriptors_max)
            .finish_non_exhaustive()
    }
}

impl LevelSet for SelectSet {
    fn new() -> io::Result<Self> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_MAX);
        let descriptors_max = i32::try_from(limit.min(DESCRIPTORS_MAX)).expect("it fits");
        let length = fd_set_num_elements(0, descriptors_max);
        let bits = || {
            let words = || vec![FdSetElement::default(); length];
            Bits { asked: words(), answer: words() }
        };
        Ok(Self {
            requested: Vec::new(),
            read: bits(),
            write: bits(),
            unread: 0,
            bound: 0,
            descriptors_max: usize::try_from(descriptors_max).expect("it is not negative"),
            probed: Instant::now(),
            from: 0,
        })
    }

    fn request(&mut self, fd: BorrowedFd<'_>, requested: Readiness) -> io::Result<()> {
        let fd = fd.as_raw_fd();
        if index(fd) >= self.descriptors_max {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.remove(fd);
        if index(fd) >= self.requested.len() {
            self.requested.resize(index(fd) + 1, None);
        }
        self.requested[index(fd)] = Some(requested);
        self.bound = self.bound.max(index(fd) + 1);
        self.read.put(fd, requested.any(Readiness::READ));
        self.write.put(fd, requested.any(Readiness::WRITE));
        if !requested.any(Readiness::READ) {
            if self.unread == 0 {
                self.probed = Instant::now();
            }
            self.unread += 1;
        }
        Ok(())
    }

    fn remove(&mut self, fd: RawFd) {
        let Some(requested) = self.requested.get_mut(index(fd)).and_then(Option::take) else {
            return;
        };
        self.read.put(fd, false);
        self.write.put(fd, false);
        self.unread -= usize::from(!requested.any(Readiness::READ));
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        count_max: usize,
        ready: &mut Vec<(RawFd, Readiness)>,
    ) -> io::Result<Completeness> {
        let next_probe = PROBE_EVERY.saturating_sub(self.probed.elapsed());
        let probes_first = self.unread > 0 && timeout.is_none_or(|timeout| next_probe < timeout);
        let timeout = if probes_first { Some(next_probe) } else { timeout };
        match self.select(timeout.map(system::timespec).as_ref()) {
            Ok(()) => {}
            Err(Errno::INTR) => return Ok(Completeness::Partial),
            Err(error) => return Err(error.into()),
        }
        if self.unread > 0 && self.probed.elapsed() >= PROBE_EVERY {
            self.probe(ready)?;
        }
        self.collect(ready);
        let mut is_complete = !ready.is_empty() || !probes_first;
        if ready.len() > count_max {
            is_complete = false;
            let first = ready.iter().position(|(fd, _)| index(*fd) >= self.from).unwrap_or(0);
            ready.rotate_left(first);
            self.from = index(ready[count_max].0);
            ready.truncate(count_max);
        }
        Ok(if is_complete { Completeness::Complete } else { Completeness::Partial })
    }
}

impl SelectSet {
    #[expect(unsafe_code, reason = "the kernel is told of descriptors by their bits")]
    fn select(&mut self, timeout: Option<&Timespec>) -> rustix::io::Result<()> {
        let bound = i32::try_from(self.bound).expect("it is below the limit of descriptors");
        let length = fd_set_num_elements(0, bound);
        let (read, write) = (self.read.copied(length), self.write.copied(length));
        // SAFETY: every descriptor in the sets is open, because it is removed before it is closed; and both sets have
        // an element for every descriptor below `bound`.
        unsafe { select(bound, Some(read), Some(write), None, timeout) }.map(drop)
    }

    /// Appends the answer of the kernel, in the order of descriptors.
    fn collect(&self, ready: &mut Vec<(RawFd, Readiness)>) {
        let bound = i32::try_from(self.bound).expect("it is below the limit of descriptors");
        let length = fd_set_num_elements(0, bound);
        let mut read = FdSetIter::new(&self.read.answer[..length]).peekable();
        let mut write = FdSetIter::new(&self.write.answer[..length]).peekable();
        loop {
            let next = match (read.peek(), write.peek()) {
                (None, None) => return,
                (Some(&one), None) | (None, Some(&one)) => one,
                (Some(&one), Some(&other)) => one.min(other),
            };
            let mut readiness = Readiness::NONE;
            if read.next_if_eq(&next).is_some() {
                readiness |= Readiness::READ;
            }
            if write.next_if_eq(&next).is_some() {
                readiness |= Readiness::WRITE;
            }
            ready.push((next, readiness));
        }
    }

    /// Finds the hang-ups that select does not report. A descriptor with a hang-up is removed from the answer, so that
    /// it is reported once.
    fn probe(&mut self, ready: &mut Vec<(RawFd, Readiness)>) -> io::Result<()> {
        self.probed = Instant::now();
        let unread: Vec<RawFd> = (0..)
            .zip(&self.requested)
            .filter(|(_, requested)| {
                requested.is_some_and(|requested| !requested.any(Readiness::READ))
            })
            .map(|(fd, _)| fd)
            .collect();
        let mut entries: Vec<PollFd<'_>> = unread.iter().map(|&fd| entry(fd)).collect();
        match poll(&mut entries, Some(&Timespec::default())) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for (fd, entry) in unread.into_iter().zip(entries) {
            let readiness = readiness(entry.revents());
            if readiness.any(Readiness::HANGUP | Readiness::ERROR) {
                fd_set_remove(&mut self.write.answer, fd);
                ready.push((fd, readiness));
            }
        }
        Ok(())
    }
}

/// An entry that requests no condition.
#[expect(unsafe_code, reason = "the sets know descriptors by their numbers")]
fn entry<'a>(fd: RawFd) -> PollFd<'a> {
    // SAFETY: the descriptor is in the set, so it is open, and its number is not -1.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    PollFd::from_borrowed_fd(fd, PollFlags::empty())
}

fn index(fd: RawFd) -> usize {
    usize::try_from(fd).expect("an open descriptor is not negative")
}
