//! Opens the file of the access log, which may be root's in a directory that others can change.
//!
//! The path is walked directory by directory. A symbolic link on it is followed only where nobody else can
//! have made it: a daemon that runs as root could be led to any file. Directories themselves may be
//! writable for others, as `/var/log` is for a group on many systems.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    FileType, Mode, OFlags, PROC_SUPER_MAGIC, fcntl_getfl, fcntl_setfl, fstat, fstatfs, open,
    openat, readlinkat,
};

/// Links on one path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Opens a regular file, which is made with mode 0640 where there is none, a FIFO that somebody reads, or a
/// character device. It never waits for anybody.
///
/// # Errors
/// Where the file is of another kind or, for root, of another user; where another user can have led the way
/// to it; or as open(2).
pub(super) fn open_log(path: &Path) -> io::Result<File> {
    let mut folder = OwnedFd::from(File::open(".")?);
    let mut steps = steps(path);
    let mut links = 0;
    while let Some(step) = steps.pop() {
        let is_last = steps.is_empty();
        if step == "/" {
            folder = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            continue;
        }
        let found = match is_last {
            true => open_last(&folder, &step, OFlags::NOFOLLOW | OFlags::CREATE),
            false => openat(&folder, &step, FOLDER, Mode::empty()),
        };
        let is_link = match &found {
            Ok(found) => FileType::from_raw_mode(fstat(found)?.st_mode).is_symlink(),
            Err(error) => is_last && *error == rustix::io::Errno::LOOP,
        };
        if !is_link {
            match is_last {
                true => return checked(found?, true),
                false => folder = found?,
            }
            continue;
        }
        check_link(&folder, &step)?;
        if is_last && is_proc(&folder)? {
            // An open file of this process, as behind `/dev/stdout`: it has no other path.
            return checked(open_last(&folder, &step, OFlags::empty())?, false);
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let target = readlinkat(&folder, &step, Vec::new())?.into_bytes();
        steps.extend(self::steps(&PathBuf::from(OsString::from_vec(target))));
    }
    Err(io::ErrorKind::IsADirectory.into())
}

/// For a directory on the way, or the link in its place.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The parts of a path, the first one at the end.
fn steps(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

fn open_last(folder: &OwnedFd, name: &OsString, more: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, flags | OFlags::NOCTTY | more, Mode::from_raw_mode(0o640))
}

/// `by_name`: it was found by its name, and not as an open file of this process.
fn checked(file: OwnedFd, by_name: bool) -> io::Result<File> {
    let found = fstat(&file)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    let is_device = kind.is_char_device();
    if !is_device && !kind.is_file() && !kind.is_fifo() {
        let text = "it is not a regular file, a FIFO or a character device";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // Its owner reads what is in it. A terminal is that of whoever logged in.
    if by_name && !is_device && rustix::process::geteuid().is_root() && found.st_uid != 0 {
        let text = format!("it belongs to user {}, and the daemon runs as root", found.st_uid);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    // The thread of the log may wait for who reads it.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

/// Whether nobody but root and this user can have put a link there: by the owner and the mode of its
/// directory, and by its own owner where the directory has the sticky bit.
fn check_link(folder: &OwnedFd, name: &OsString) -> io::Result<()> {
    let ours = [0, rustix::process::geteuid().as_raw()];
    let directory = fstat(folder)?;
    let link = fstat(openat(folder, name, FOLDER, Mode::empty())?)?;
    let is_private = directory.st_mode & 0o022 == 0;
    let is_sticky = directory.st_mode & 0o1000 != 0;
    let is_own = ours.contains(&link.st_uid);
    if ours.contains(&directory.st_uid) && (is_private || is_sticky && is_own) {
        return Ok(());
    }
    let text = format!("`{}` is a symbolic link that another user can change", name.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

fn is_proc(folder: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(folder)?.f_type == PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, read_dir, remove_file, set_permissions};
    use std::io::{Read, Write};
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};

    use rustix::fs::CWD;

    use super::*;

    #[test]
    fn a_link_that_another_user_can_change_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("log");
        create_dir(&inner).unwrap();
        let (precious, path) = (folder.path().join("precious"), inner.join("access.log"));
        symlink(&precious, &path).unwrap();
        for (mode, follows) in [(0o777, false), (0o770, false), (0o755, true), (0o1777, true)] {
            set_permissions(&inner, Permissions::from_mode(mode)).unwrap();
            assert_eq!(open_log(&path).is_ok(), follows, "{mode:o}");
            assert_eq!(remove_file(&precious).is_ok(), follows, "{mode:o}");
        }
        if rustix::process::geteuid().is_root() {
            // The link of another user in a directory such as /tmp.
            std::os::unix::fs::lchown(&path, Some(65534), None).unwrap();
            assert!(open_log(&path).is_err());
            assert!(!precious.exists());
        }
    }

    #[test]
    fn a_directory_that_another_user_can_make_a_link_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, precious) = (folder.path().join("outer"), folder.path().join("precious"));
        create_dir(&outer).unwrap();
        create_dir(&precious).unwrap();
        symlink("../precious", outer.join("log")).unwrap();
        let path = outer.join("log/access.log");
        set_permissions(&outer, Permissions::from_mode(0o777)).unwrap();
        let error = open_log(&path).unwrap_err();
        assert!(error.to_string().contains("`log` is a symbolic link"), "{error}");
        assert_eq!(read_dir(&precious).unwrap().count(), 0);
        set_permissions(&outer, Permissions::from_mode(0o755)).unwrap();
        open_log(&path).unwrap();
        assert!(precious.join("access.log").exists());
        // A directory that is none is as good as any, whoever can write it.
        set_permissions(&outer, Permissions::from_mode(0o777)).unwrap();
        open_log(&outer.join("access.log")).unwrap();
    }

    #[test]
    fn links_in_a_circle_have_an_end() {
        let folder = tempfile::tempdir().unwrap();
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        for path in ["a", "a/log"] {
            assert!(open_log(&folder.path().join(path)).is_err(), "{path}");
        }
        assert!(open_log(Path::new("/")).is_err() && open_log(Path::new("")).is_err());
        assert!(open_log(folder.path()).is_err());
    }

    #[test]
    fn a_fifo_is_written_if_somebody_reads_it_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let error = open_log(&path).unwrap_err();
        assert_eq!(rustix::io::Errno::from_io_error(&error), Some(rustix::io::Errno::NXIO));
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut reader = File::options().read(true).custom_flags(flags).open(&path).unwrap();
        let mut log = open_log(&path).unwrap();
        assert!(!fcntl_getfl(&log).unwrap().contains(OFlags::NONBLOCK));
        log.write_all(b"a line\n").unwrap();
        let mut line = [0; 7];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"a line\n");
    }

    #[test]
    fn devices_and_open_files_of_the_process_are_taken_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = File::create_new(folder.path().join("log")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let mut log = open_log(Path::new(&format!("/proc/self/fd/{number}"))).unwrap();
        log.write_all(b"a line\n").unwrap();
        open.flush().unwrap();
        assert_eq!(std::fs::read(folder.path().join("log")).unwrap(), b"a line\n");
        open_log(Path::new("/dev/full")).unwrap();
    }

    #[test]
    fn root_does_not_write_into_the_file_of_another_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let error = open_log(&path).unwrap_err().to_string();
        assert!(error.contains("user 65534"), "{error}");
    }
}
