//! One step on a path: a file in a directory, opened without following a link and without waiting for the file system of
//! another user.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat2, statx,
};

use crate::mounts;

/// The flags for opening a file, or the link in its place, without access to its content.
pub(crate) const FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a file.
pub(crate) fn open(folder: impl AsFd, name: &OsStr) -> io::Result<(OwnedFd, Statx)> {
    let file = openat2(folder, name, FLAGS, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
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
