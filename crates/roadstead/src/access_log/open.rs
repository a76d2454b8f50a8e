//! Opens the file of the access log. The daemon may run as root, and other users may be able to change the directory:
//! see [`paths`].

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat};

/// Opens a regular file, a FIFO that has a reader, or a character device. A missing file is created with mode 0640.
/// Never blocks.
///
/// # Errors
/// The file is of another kind; it belongs to a user who must not have it; another user can change the path to it; or
/// any error of open(2).
pub(super) fn open_log(path: &Path) -> io::Result<File> {
    let place = paths::walk(path)?;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = place.open(flags | OFlags::CREATE, Mode::from_raw_mode(0o640))?;
    let found = fstat(&file)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    let is_device = kind.is_char_device();
    if !is_device && !kind.is_file() && !kind.is_fifo() {
        let text = "it is not a regular file, a FIFO or a character device";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // The owner is not checked for an open file of this process, because it was not found by its name, nor for a
    // terminal, because it belongs to the user who logged in.
    if !place.is_open_file && !is_device {
        let folder = fstat(&place.folder)?.st_mode;
        check_owner(found.st_uid, folder, rustix::process::geteuid().as_raw())?;
    }
    // The log's thread may block until the reader reads.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Checks the owner of the file, because the owner can read the log. In a directory where every user can create files,
/// another user may have created this file for that purpose.
fn check_owner(owner: u32, folder_mode: u32, user: u32) -> io::Result<()> {
    let is_own = owner == 0 || owner == user;
    let why = match (is_own, user) {
        (true, _) => return Ok(()),
        (false, 0) => "the daemon runs as root",
        (false, _) if folder_mode & 0o002 != 0 => "every user can make files in its directory",
        (false, _) => return Ok(()),
    };
    let text = format!("it belongs to user {owner}, and {why}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
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
            // A symbolic link of another user in a directory such as /tmp.
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
        // A path without a symbolic link is accepted, even if every user can write to the directory.
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
    fn the_file_of_another_user_is_written_only_where_not_everybody_can_make_one() {
        for (owner, folder, user, is_taken) in [
            (8, 0o40_755, 7, true),
            (8, 0o40_775, 7, true),
            (8, 0o41_777, 7, false),
            (8, 0o40_777, 7, false),
            (7, 0o41_777, 7, true),
            (0, 0o41_777, 7, true),
            (8, 0o40_755, 0, false),
            (0, 0o41_777, 0, true),
        ] {
            let checked = check_owner(owner, folder, user);
            assert_eq!(checked.is_ok(), is_taken, "{owner} {folder:o} {user}");
        }
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
