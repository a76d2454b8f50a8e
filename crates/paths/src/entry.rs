//! One step on a path: a file in a directory, opened without following a link and without waiting for the file system of
//! another user.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat2, statx,
};
use rustix::io::Errno;

use crate::mounts;

/// The flags for opening a file, or the link in its place, without access to its content.
pub(crate) const FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How often a name is looked up in the kernel's cache, where a concurrent change can make a lookup fail.
const CACHED_TRIES: usize = 4;

/// Opens a file, if possible without waiting for the lock of its directory: a user who may read a directory can hold its
/// lock for as long as he wishes (getdents64(2) into a page of a file that he serves).
///
/// In a `shared` directory, where other users can create and remove files, only names in the kernel's cache are found. A
/// bound socket and the directories above it are there as long as the socket is open.
pub(crate) fn open(
    folder: impl AsFd,
    name: &OsStr,
    is_shared: bool,
) -> io::Result<(OwnedFd, Statx)> {
    let open = |how| openat2(&folder, name, FLAGS, Mode::empty(), how);
    let plain = ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    let file = loop {
        tries += 1;
        match open(plain | ResolveFlags::CACHED) {
            Err(Errno::AGAIN) if tries < CACHED_TRIES => {}
            Err(Errno::AGAIN) if is_shared => return Err(Errno::NOENT.into()),
            // Linux before 5.12 does not know this flag.
            Err(Errno::AGAIN | Errno::INVAL) => break open(plain)?,
            file => break file?,
        }
    };
    let found = stat(&file)?;
    Ok((file, found))
}

/// Examines a file as the kernel knows it, without asking its file system.
pub(crate) fn stat(file: impl AsFd) -> rustix::io::Result<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(file, "", flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

pub(crate) fn kind(found: &Statx) -> FileType {
    FileType::from_raw_mode(found.stx_mode.into())
}

/// Checks that a file in a directory on the mount `folder` is not on a mount of another user, who need not answer.
pub(crate) fn check_mount(folder: u64, found: &Statx, name: &OsStr) -> io::Result<()> {
    if found.stx_mnt_id == folder || mounts::is_trusted(found.stx_mnt_id)? {
        return Ok(());
    }
    let text = format!("`{}` is a mount that another user serves", name.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}
