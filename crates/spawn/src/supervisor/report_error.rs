//! Error messages of the supervisor.

use std::io::{IoSlice, stderr};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, write};

/// The current position in the file.
const HERE: u64 = u64::MAX;

/// Writes a message to standard error, which is that of the daemon. If it does not accept the message at once, the
/// message is dropped: while the supervisor waits, no program is started or ended.
pub(super) fn report_error(what: &str) {
    let text = format!("roadstead supervisor: {what}\n");
    let bytes = text.as_bytes();
    let written = pwritev2(stderr(), &[IoSlice::new(bytes)], HERE, ReadWriteFlags::NOWAIT);
    if written == Err(Errno::OPNOTSUPP) {
        // A terminal. It is opened again, because the mode of standard error also applies to other processes.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if let Ok(terminal) = rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()) {
            let _ = write(terminal, bytes);
        }
    }
}
