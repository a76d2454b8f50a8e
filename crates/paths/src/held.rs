//! The files of this process in `/proc` that later lookups pass.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, open};

/// Keeps `/proc/self/fd` and `/proc/self/mountinfo` in the kernel's cache from now on: as long as a file is open, its name
/// is found without the lock of its directory. Another user can hold the lock of `/proc/PID`, which everybody may list,
/// and then the lookup of a name that is not in the cache waits. Call it before other users can expect this process.
///
/// It opens two descriptors, once for the process. Without `/proc` it does nothing.
pub fn hold_process_files() {
    static HELD: OnceLock<[Option<OwnedFd>; 2]> = OnceLock::new();
    HELD.get_or_init(|| {
        ["/proc/self/fd", "/proc/self/mountinfo"]
            .map(|path| open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok())
    });
}
