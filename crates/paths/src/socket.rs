//! Opens the Unix socket at a path, so that this process connects to no socket that another user has chosen and that
//! only this process may connect to.
//!
//! A symbolic link is followed only where no other user can have created it, as in [`walk`](crate::walk()). Another
//! user can also move a socket or a directory of somebody else into the path. Therefore the owner of the socket must
//! fit, and in some directories the path that it was bound to: see [`SocketFile::open`].
//!
//! No step waits for another user: a file system that another user serves is not entered, neither at its mount nor
//! through `/proc/PID/root`.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Statx, openat2, readlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::entry::{self, kind, open, stat};
use crate::walk::{LINKS_MAX, is_proc, is_read_only};

/// The mode bit of a directory in which only the owner of a file may rename or remove it.
const STICKY: u16 = 0o1000;
const FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The file of a Unix socket, to connect to. It stays the same file, whatever happens to its path.
#[derive(Debug)]
pub struct SocketFile<'path> {
    file: OwnedFd,
    /// The path, if no other user can change it.
    protected: Option<&'path Path>,
    /// The path to which the socket must have been bound, because another user may have moved it.
    bound_to: Option<&'path Path>,
}

impl<'path> SocketFile<'path> {
    /// Opens the socket at a path, without waiting for another user.
    ///
    /// If no other user can write to a directory on the path, every socket is accepted. If another user owns a
    /// directory on the path, or a file in a directory with the sticky bit, the socket must belong to that user. In a
    /// directory that others can write to and that has no sticky bit, root accepts no socket of root. In all
    /// directories that others can write to, a socket of root or of the user of this process must have no other hard
    /// link. In a directory with the sticky bit, or below it, the socket must have been bound to this path, which
    /// [`connect`](Self::connect) checks: nobody can move it away, but somebody may have moved it in. A user who is not
    /// root may share directories with groups.
    ///
    /// A path like `/proc/self/fd/3/name` leads to a socket in a directory that this process holds, and trusts.
    ///
    /// # Errors
    /// Returns [`PermissionDenied`](io::ErrorKind::PermissionDenied), with the reason, if another user can have chosen
    /// the socket. Otherwise the errors of connect(2).
    pub fn open(path: &'path Path) -> io::Result<Self> {
        if let Some((directory, name)) = held(path) {
            let directory = rustix::fs::open(
                directory,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
            let file = openat2(&directory, name, FLAGS, Mode::empty(), resolve)?;
            let found = stat(&file)?;
            return match kind(&found) {
                FileType::Socket => Ok(Self { file, protected: None, bound_to: None }),
                FileType::Symlink => Err(Errno::LOOP.into()),
                _ => Err(Errno::CONNREFUSED.into()),
            };
        }
        let mut walk = Walk::new();
        let file = walk.socket(path)?;
        let protected = (walk.author == Author::Nobody).then_some(path);
        let bound_to = walk.is_moved_in.then_some(path);
        Ok(Self { file, protected, bound_to })
    }

    /// Connects `socket` to the socket.
    ///
    /// # Errors
    /// Those of connect(2). `EACCES` if the socket was bound to another path and may have been moved. Then it has received
    /// a connection without data.
    pub fn connect(&self, socket: impl AsFd) -> rustix::io::Result<()> {
        let mut name = Name::default();
        write!(name, "/proc/self/fd/{}", self.file.as_raw_fd()).map_err(|_| Errno::NAMETOOLONG)?;
        let result = rustix::net::connect(&socket, &SocketAddrUnix::new(name.bytes())?);
        match (result, self.protected) {
            // `/proc` is not mounted.
            (Err(Errno::NOENT), Some(path)) => {
                rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
            }
            _ => result,
        }?;
        match self.bound_to {
            Some(path) => self.check_name(&socket, path),
            None => Ok(()),
        }
    }

    /// Finds out whether [`connect`](Self::connect) will refuse the socket because it may have been moved. Connects to it
    /// for this, if it was opened in a directory into which other users can move files.
    ///
    /// # Errors
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied), with the reason. No error if the socket cannot be reached.
    pub fn examine(&self) -> io::Result<()> {
        if self.bound_to.is_none() {
            return Ok(());
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        if self.connect(&socket) != Err(Errno::ACCESS) {
            return Ok(());
        }
        let peer = rustix::net::getpeername(&socket).ok().flatten();
        let Some(peer) = peer.and_then(|peer| SocketAddrUnix::try_from(peer).ok()) else {
            return Ok(());
        };
        let bound = String::from_utf8_lossy(peer.path_bytes().unwrap_or_default()).into_owned();
        denied(format!(
            "it was bound to `{bound}`, and other users can move files to its path: bind it to its absolute path"
        ))
    }

    /// Checks that the peer was bound to this path: as it is given, or without links.
    fn check_name(&self, socket: impl AsFd, path: &Path) -> rustix::io::Result<()> {
        let peer =
            SocketAddrUnix::try_from(rustix::net::getpeername(socket)?.ok_or(Errno::ACCESS)?)?;
        let bound = peer.path_bytes().unwrap_or_default();
        let is_given = path.is_absolute() && path.as_os_str().as_bytes() == bound;
        let is_real = || {
            let mut name = Name::default();
            write!(name, "/proc/self/fd/{}", self.file.as_raw_fd())
                .map_err(|_| Errno::NAMETOOLONG)?;
            rustix::fs::readlink(name.bytes(), Vec::new()).map(|real| real.to_bytes() == bound)
        };
        if is_given || is_real()? { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

/// A short text on the stack.
#[derive(Default)]
struct Name {
    text: [u8; 32],
    length: usize,
}

impl Name {
    fn bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

impl Write for Name {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let room = self.text.get_mut(self.length..self.length + more.len());
        room.ok_or(std::fmt::Error)?.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}

/// Splits `/proc/self/fd/N/name`.
fn held(path: &Path) -> Option<(&Path, &OsStr)> {
    let rest = path.as_os_str().as_bytes().strip_prefix(b"/proc/self/fd/")?;
    let slash = rest.iter().position(|&byte| byte == b'/')?;
    let (number, name) = (&rest[..slash], &rest[slash + 1..]);
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let is_name = !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/');
    (is_number && is_name).then(|| path.parent().zip(path.file_name())).flatten()
}

/// Who can have chosen what is at a path, besides root and this user.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Author {
    Nobody,
    /// Users who can write to a directory of root or of this user.
    Anybody,
    User(u32),
    /// More than one user owns a part of the path.
    Several,
}

impl Author {
    fn and(self, user: u32) -> Self {
        match self {
            Self::Nobody | Self::Anybody => Self::User(user),
            Self::User(other) if other == user => self,
            Self::User(_) | Self::Several => Self::Several,
        }
    }
}

/// A resolution in progress.
struct Walk {
    ours: [u32; 2],
    is_root: bool,
    /// The mode bits of a directory that let other users write to it.
    others: u16,
    author: Author,
    /// A part of the path is in a directory into which other users can move files.
    is_moved_in: bool,
    links: usize,
}

impl Walk {
    fn new() -> Self {
        let user = rustix::process::geteuid();
        let others = if user.is_root() { 0o022 } else { 0o002 };
        let ours = [0, user.as_raw()];
        Self {
            ours,
            is_root: user.is_root(),
            others,
            author: Author::Nobody,
            is_moved_in: false,
            links: 0,
        }
    }

    fn socket(&mut self, path: &Path) -> io::Result<OwnedFd> {
        let mut rest = Cow::Borrowed(path);
        let first = if path.is_absolute() { "/" } else { "." };
        let mut folder = open(CWD, OsStr::new(first), false)?;
        loop {
            let mut parts = rest.components().filter(|part| *part != Component::CurDir);
            let (target, after) = loop {
                let Some(part) = parts.next() else { return Err(Errno::CONNREFUSED.into()) };
                if part == Component::RootDir {
                    folder = open(CWD, part.as_os_str(), false)?;
                    continue;
                }
                let is_shared = self.is_shared(&folder.1);
                let (file, found) = open(&folder.0, part.as_os_str(), is_shared)?;
                self.judge(&folder, &found)?;
                match kind(&found) {
                    FileType::Symlink => {
                        let target = self.target(&folder, part.as_os_str(), &file, &found)?;
                        break (target, parts.collect::<PathBuf>());
                    }
                    FileType::Directory => {
                        entry::check_mount(folder.1.stx_mnt_id, &found, part.as_os_str())?;
                        folder = (file, found);
                    }
                    FileType::Socket if parts.next().is_none() => {
                        self.check_owner(&folder.1, &found)?;
                        return Ok(file);
                    }
                    _ if parts.next().is_none() => return Err(Errno::CONNREFUSED.into()),
                    _ => return Err(Errno::NOTDIR.into()),
                }
            };
            rest = Cow::Owned(target.join(after));
        }
    }

    /// Whether other users can create and remove files in a directory.
    fn is_shared(&self, directory: &Statx) -> bool {
        !self.ours.contains(&directory.stx_uid) || directory.stx_mode & self.others != 0
    }

    /// Records who can have put this file into this directory.
    fn judge(&mut self, folder: &(OwnedFd, Statx), found: &Statx) -> io::Result<()> {
        let directory = &folder.1;
        if !self.ours.contains(&directory.stx_uid) {
            self.author = self.author.and(directory.stx_uid);
        } else if directory.stx_mode & self.others != 0 && !is_read_only(&folder.0)? {
            if directory.stx_mode & STICKY == 0 {
                if self.author == Author::Nobody {
                    self.author = Author::Anybody;
                }
            } else {
                self.is_moved_in = true;
                if !self.ours.contains(&found.stx_uid) {
                    self.author = self.author.and(found.stx_uid);
                }
            }
        }
        Ok(())
    }

    /// Returns the target of a symbolic link that no other user can have created.
    fn target(
        &mut self,
        folder: &(OwnedFd, Statx),
        name: &OsStr,
        link: &OwnedFd,
        found: &Statx,
    ) -> io::Result<PathBuf> {
        let directory = &folder.1;
        let is_own = self.ours.contains(&found.stx_uid);
        let is_private = directory.stx_mode & self.others == 0
            || directory.stx_mode & STICKY != 0 && is_own
            || is_read_only(&folder.0)?;
        if !self.ours.contains(&directory.stx_uid) || !is_private {
            let name = name.display();
            return denied(format!("`{name}` is a symbolic link that another user can change"));
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        if is_proc(&folder.0)? {
            // `/proc/self` is an ordinary link, `/proc/PID/root` leads into the mounts of that process.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let resolve = ResolveFlags::NO_MAGICLINKS;
            if openat2(&folder.0, name, flags, Mode::empty(), resolve).err() == Some(Errno::LOOP) {
                let name = name.display();
                return denied(format!("`{name}` leads to the files of a process"));
            }
        }
        let target = readlinkat(link, "", Vec::new())?.into_bytes();
        Ok(PathBuf::from(OsString::from_vec(target)))
    }

    /// Checks that nobody who can have chosen a socket lacks the right to connect to it.
    fn check_owner(&self, directory: &Statx, found: &Statx) -> io::Result<()> {
        let (owner, mode) = (found.stx_uid, directory.stx_mode & 0o7777);
        let is_own = self.ours.contains(&owner);
        if is_own && directory.stx_mode & self.others != 0 && found.stx_nlink > 1 {
            return denied(format!(
                "it has another hard link, and other users can create files in its directory (mode {mode:04o})"
            ));
        }
        match self.author {
            Author::Nobody => Ok(()),
            Author::Anybody if is_own && self.is_root => denied(format!(
                "it belongs to user {owner}, and other users can rename files on its path: `chmod go-w` the \
                 directories, or set their sticky bit"
            )),
            Author::Anybody => Ok(()),
            Author::User(user) if user == owner => Ok(()),
            Author::User(user) => denied(format!(
                "it belongs to user {owner}, and user {user} can replace it: `chown` the socket to user {user}, or \
                 the directories to root"
            )),
            Author::Several => denied(
                "several other users can replace it: `chown` the directories on its path to root"
                    .to_owned(),
            ),
        }
    }
}

fn denied<T>(text: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, hard_link, remove_file, rename, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn reach(path: &Path) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok(SocketFile::open(path)?.connect(&socket)?)
    }

    fn error(path: &Path) -> String {
        let error = reach(path).expect_err("it is refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        error.to_string()
    }

    fn set_mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_link_of_another_user_does_not_lead_to_a_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let (app, secret) = (folder.path().join("app"), folder.path().join("secret"));
        create_dir(&app).expect("a folder");
        let _secret = UnixListener::bind(&secret).expect("a socket");
        let link = app.join("link");
        symlink("../secret", &link).expect("a link");
        reach(&link).expect("only this user can have created it");
        set_mode(&app, 0o777);
        assert!(error(&link).contains("`link` is a symbolic link that another user"));
        set_mode(&app, 0o1777);
        reach(&link).expect("only this user can have created it");
        set_mode(&app, 0o755);
        if chown(&app, Some(7), None).is_ok() {
            assert!(error(&link).contains("`link` is a symbolic link that another user"));
        }
    }

    #[test]
    fn a_path_through_a_process_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let _socket = UnixListener::bind(&path).expect("a socket");
        let inner = path.strip_prefix("/").expect("absolute");
        let through = Path::new("/proc/self/root").join(inner);
        assert!(error(&through).contains("`root` leads to the files of a process"));
        let link = folder.path().join("link");
        symlink(&through, &link).expect("a link");
        assert!(error(&link).contains("`root` leads to the files of a process"));
        assert!(reach(Path::new("/proc/self/fd/root/x/s")).is_err());
    }

    #[test]
    fn a_directory_that_is_held_needs_no_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        create_dir(&inner).expect("a folder");
        let _socket = UnixListener::bind(inner.join("1")).expect("a socket");
        symlink("1", inner.join("2")).expect("a link");
        let directory = std::fs::File::open(&inner).expect("a folder");
        rename(&inner, folder.path().join("moved")).expect("it is moved");
        let at = |name| PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()));
        reach(&at("1")).expect("it is held");
        assert!(reach(&at("2")).is_err(), "a link");
        assert!(reach(&at("../moved/1")).is_err(), "no name");
        assert_eq!(reach(&at("3")).expect_err("missing").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_socket_must_belong_to_the_user_who_can_replace_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (app, inner) = (folder.path().join("app"), folder.path().join("app/inner"));
        create_dir(&app).expect("a folder");
        create_dir(&inner).expect("a folder");
        let path = inner.join("s");
        let _socket = UnixListener::bind(&path).expect("a socket");
        if chown(&path, Some(7), None).is_err() {
            return;
        }
        // The owners and the modes of the two directories, and the owners of sockets that are accepted.
        let table: [([u32; 2], [u32; 2], &[u32]); 9] = [
            ([0, 0], [0o755, 0o755], &[0, 7, 8]),
            ([0, 7], [0o755, 0o755], &[7]),
            ([7, 0], [0o755, 0o755], &[7]),
            ([7, 7], [0o755, 0o755], &[7]),
            ([7, 8], [0o755, 0o755], &[]),
            ([0, 0], [0o777, 0o755], &[7, 8]),
            ([0, 0], [0o755, 0o775], &[7, 8]),
            ([0, 0], [0o755, 0o1777], &[0, 7, 8]),
            ([0, 7], [0o1777, 0o755], &[7]),
        ];
        for (owners, modes, accepted) in table {
            for (directory, (owner, mode)) in
                [&app, &inner].into_iter().zip(owners.into_iter().zip(modes))
            {
                chown(directory, Some(owner), None).expect("an owner");
                set_mode(directory, mode);
            }
            for owner in [0, 7, 8] {
                chown(&path, Some(owner), None).expect("an owner");
                let found = reach(&path);
                let context = format!("{owners:?} {modes:?} {owner}: {found:?}");
                assert_eq!(found.is_ok(), accepted.contains(&owner), "{context}");
            }
        }
    }

    #[test]
    fn a_hard_link_of_our_socket_in_a_shared_directory_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let shared = folder.path().join("shared");
        create_dir(&shared).expect("a folder");
        let (own, path) = (folder.path().join("own"), shared.join("s"));
        let _socket = UnixListener::bind(&own).expect("a socket");
        hard_link(&own, &path).expect("a link");
        set_mode(&shared, 0o1777);
        assert!(error(&path).contains("has another hard link"));
        remove_file(&own).expect("a file");
        assert_eq!(error(&path), "Permission denied (os error 13)");
        let reason = SocketFile::open(&path).expect("one name").examine().expect_err("moved");
        assert!(reason.to_string().contains("/own`, and other users can move files"), "{reason}");
    }

    #[test]
    fn a_socket_that_was_moved_into_a_shared_directory_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("a path");
        let (shared, private) = (real.join("shared"), real.join("private"));
        create_dir(&shared).expect("a folder");
        create_dir(&private).expect("a folder");
        set_mode(&shared, 0o1777);
        let path = shared.join("s");
        let _socket = UnixListener::bind(private.join("s")).expect("a socket");
        rename(private.join("s"), &path).expect("it is moved");
        assert_eq!(error(&path), "Permission denied (os error 13)");
        // The same with the directory.
        let _socket = UnixListener::bind(private.join("s")).expect("a socket");
        rename(&private, shared.join("private")).expect("it is moved");
        let path = shared.join("private/s");
        assert_eq!(error(&path), "Permission denied (os error 13)");
        remove_file(&path).expect("a file");
        let _socket = UnixListener::bind(&path).expect("a socket");
        reach(&path).expect("it was bound here");
        SocketFile::open(&path).expect("a socket").examine().expect("it was bound here");
        // Through a link, and through a path with other spellings.
        symlink(&shared, real.join("link")).expect("a link");
        reach(&real.join("link/private/./s")).expect("it is the same path");
    }

    #[test]
    fn other_errors_are_those_of_the_system() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let kind = |path: &Path| reach(path).expect_err("there is no socket").kind();
        assert_eq!(kind(&path), io::ErrorKind::NotFound);
        std::fs::write(&path, "x").expect("a file");
        assert_eq!(kind(&path), io::ErrorKind::ConnectionRefused);
        assert_eq!(kind(&path.join("x")), io::ErrorKind::NotADirectory);
        assert_eq!(kind(folder.path()), io::ErrorKind::ConnectionRefused);
        remove_file(&path).expect("a file");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert_eq!(kind(&path), io::ErrorKind::ConnectionRefused);
        remove_file(&path).expect("a file");
        symlink("s", &path).expect("a link");
        let error = reach(&path).expect_err("a loop");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::LOOP));
    }
}
