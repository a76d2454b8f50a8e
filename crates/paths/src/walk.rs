//! Resolves a path, and opens the file that it leads to.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, StatVfsMountFlags, Statx, fstat, fstatfs,
    fstatvfs, open, openat, openat2, readlinkat,
};
use rustix::io::Errno;

use crate::entry;

/// The maximum number of links on one path, as in the kernel.
pub(crate) const LINKS_MAX: usize = 40;

/// The result of resolving a path: a name in a directory. A file of this name need not exist.
#[derive(Debug)]
pub struct Place {
    /// The directory.
    pub folder: OwnedFd,
    /// The name in the directory. It was not a symbolic link, unless `is_open_file`. [`Self::open`] opens it.
    pub name: OsString,
    /// The path without symbolic links. It is relative if the original path is.
    pub path: PathBuf,
    /// The name is an open file of this process, as behind `/dev/stdout`, which has no other path: a link that must be
    /// followed.
    pub is_open_file: bool,
}

impl Place {
    /// Opens the file that has this name now, in the directory that was found, without following a link and without
    /// entering a mount that another user serves. With `CREATE` a missing file is created, unless it is an open file of
    /// this process.
    ///
    /// # Errors
    /// Returns `ELOOP` if a link has taken the name. Otherwise the errors of open(2).
    pub fn open(&self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC;
        if self.is_open_file {
            let flags = flags.difference(OFlags::CREATE);
            return Ok(File::from(openat(&self.folder, &self.name, flags, mode)?));
        }
        let flags = flags | OFlags::NOFOLLOW;
        let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
        let same_mount = ResolveFlags::NO_XDEV;
        let file = match openat2(&self.folder, &self.name, flags, mode, same_mount) {
            // A file can be a mount point too, as the configuration of a container often is.
            Err(Errno::XDEV) => {
                let file = openat(&self.folder, &self.name, entry::FLAGS, Mode::empty())?;
                let folder = entry::stat(&self.folder)?.stx_mnt_id;
                entry::check_mount(folder, &entry::stat(file)?, &self.name)?;
                openat(&self.folder, &self.name, flags, mode)?
            }
            // Some sandboxes have no openat2(2).
            Err(Errno::NOSYS) => openat(&self.folder, &self.name, flags, mode)?,
            file => file?,
        };
        let file = File::from(file);
        // With `O_PATH` the kernel opens the link itself.
        match file.metadata()?.is_symlink() {
            true => Err(Errno::LOOP.into()),
            false => Ok(file),
        }
    }
}

/// Resolves a path. The last name need not exist.
///
/// # Errors
/// Returns an error if another user can have created a link on the path or serves a mount on it, or if the path has the
/// form of a directory. Otherwise the errors of open(2).
pub fn walk(path: &Path) -> io::Result<Place> {
    walk_unless(0o022, path)
}

/// Resolves a path. `others`: the mode bits of a directory that let other users create links in it.
pub(crate) fn walk_unless(others: u32, path: &Path) -> io::Result<Place> {
    // Not the current directory of an absolute path: this user may have no right to enter it.
    let first = if path.is_absolute() { "/" } else { "." };
    let mut folder = open(first, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut real = PathBuf::new();
    let mut steps = steps(path);
    let mut links = 0;
    while let Some(step) = steps.pop() {
        let is_last = steps.is_empty();
        if step == "/" {
            folder = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            real.push("/");
            continue;
        }
        let found = openat(&folder, &step, entry::FLAGS, Mode::empty());
        let Some(link) = link_or_checked(&folder, &step, &found)? else {
            real.push(&step);
            if !is_last {
                folder = found?;
                continue;
            }
            return match found {
                Ok(_) | Err(Errno::NOENT) => {
                    Ok(Place { folder, name: step, path: real, is_open_file: false })
                }
                Err(error) => Err(error.into()),
            };
        };
        check_link(&folder, &step, &link, others)?;
        if is_last && is_proc(&folder)? {
            real.push(&step);
            return Ok(Place { folder, name: step, path: real, is_open_file: true });
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(&folder, &step, Vec::new())?.into_bytes();
        steps.extend(self::steps(&PathBuf::from(OsString::from_vec(target))));
    }
    Err(io::ErrorKind::IsADirectory.into())
}

/// Returns what is known of a symbolic link. Any other file must not be on a mount that another user serves.
fn link_or_checked(
    folder: &OwnedFd,
    name: &OsStr,
    found: &rustix::io::Result<OwnedFd>,
) -> io::Result<Option<Statx>> {
    let Ok(file) = found else { return Ok(None) };
    let found = entry::stat(file)?;
    if entry::kind(&found).is_symlink() {
        return Ok(Some(found));
    }
    entry::check_mount(entry::stat(folder)?.stx_mnt_id, &found, name)?;
    Ok(None)
}

/// Returns the parts of a path in reverse order.
fn steps(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Checks that only root and this user can have created a link in this directory: by the owner and the mode of the
/// directory, and by the owner of the link if the directory has the sticky bit. On a read-only mount, nobody can create
/// one: the volumes of a container often are such mounts, with directories that every user could write to.
fn check_link(folder: &OwnedFd, name: &OsStr, link: &Statx, others: u32) -> io::Result<()> {
    let ours = [0, rustix::process::geteuid().as_raw()];
    let directory = fstat(folder)?;
    let is_private = directory.st_mode & others == 0 || is_read_only(folder)?;
    let is_sticky = directory.st_mode & 0o1000 != 0;
    let is_own = ours.contains(&link.stx_uid);
    if ours.contains(&directory.st_uid) && (is_private || is_sticky && is_own) {
        return Ok(());
    }
    let text = format!("`{}` is a symbolic link that another user can change", name.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Whether the file is on a mount that is read-only.
pub(crate) fn is_read_only(file: &impl AsFd) -> io::Result<bool> {
    Ok(fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

pub(crate) fn is_proc(folder: &impl AsFd) -> io::Result<bool> {
    Ok(fstatfs(folder)?.f_type == PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_followed_where_nobody_else_can_have_made_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        create_dir(&inner).expect("a folder");
        let (real, link) = (folder.path().join("file"), inner.join("link"));
        symlink("../file", &link).expect("a link");
        for (mode, follows) in [(0o777, false), (0o770, false), (0o755, true), (0o1777, true)] {
            set_permissions(&inner, Permissions::from_mode(mode)).expect("a mode");
            let found = walk(&link);
            assert_eq!(found.is_ok(), follows, "{mode:o}");
            let error = found.map(|place| assert_eq!(place.path, inner.join("../file")));
            let text = error.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(text.contains("`link` is a symbolic link that another user"), !follows);
        }
        std::fs::write(&real, "x").expect("a file");
        assert_eq!(walk(&real).expect("no link of others").path, real);
    }

    /// Another user changes the path between its resolution and the opening of its file.
    #[test]
    fn what_is_opened_is_in_the_directory_that_was_walked_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["here", "there"] {
            create_dir(at(name)).expect("a folder");
            std::fs::write(at(name).join("file"), name).expect("a file");
        }
        let content = |place: &Place| {
            let file = place.open(OFlags::RDONLY, Mode::empty())?;
            io::read_to_string(file)
        };
        let place = walk(&at("here/file")).expect("a place");
        std::fs::rename(at("here"), at("moved")).expect("it is moved");
        symlink("there", at("here")).expect("a link");
        assert_eq!(content(&place).expect("it is read"), "here");
        std::fs::remove_file(at("moved/file")).expect("it is removed");
        symlink("../there/file", at("moved/file")).expect("a link");
        let looped = |error: io::Error| Errno::from_io_error(&error);
        let error = content(&place).map_err(looped).expect_err("it is a link now");
        assert_eq!(error, Some(Errno::LOOP));
        for flags in [OFlags::PATH, OFlags::WRONLY | OFlags::CREATE] {
            let error = place.open(flags, Mode::RUSR).map_err(looped).expect_err("a link");
            assert_eq!(error, Some(Errno::LOOP));
        }
    }

    #[test]
    fn a_file_that_is_not_there_has_a_place_and_a_directory_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(walk(&folder.path().join("new")).expect("a place").name, "new");
        let error = walk(&folder.path().join("none/new")).expect_err("there is no directory");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(walk(Path::new("/")).is_err() && walk(Path::new("")).is_err());
        assert_eq!(
            walk(Path::new("src/./lib.rs")).expect("relative").path,
            Path::new("src/lib.rs")
        );
    }

    /// Another user may serve a mount and never answer. The mounts here have no server at all.
    #[test]
    fn a_mount_that_another_user_serves_is_not_entered() {
        const INNER: &str = "ROADSTEAD_TEST_FOLDER";
        if let Ok(folder) = std::env::var(INNER) {
            let error = |name: &str| {
                let place = walk(&Path::new(&folder).join(name));
                let opened = place.and_then(|place| place.open(OFlags::RDONLY, Mode::empty()));
                opened.expect_err("it is refused").to_string()
            };
            assert_eq!(error("app/x"), "`app` is a mount that another user serves");
            assert_eq!(error("app"), "`app` is a mount that another user serves");
            assert_eq!(error("file"), "`file` is a mount that another user serves");
            walk(&Path::new(&folder).join("own/x")).expect("a mount of root");
            println!("ended");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["app", "own"] {
            create_dir(folder.path().join(name)).expect("a folder");
        }
        std::fs::write(folder.path().join("file"), "").expect("a file");
        let script = "exec 3<>/dev/fuse && o=allow_other,user_id=7,group_id=7 && mount -i -t tmpfs x own && \
                      mount -i -t fuse -o fd=3,rootmode=40000,$o x app && exec 4<>/dev/fuse && \
                      mount -i -t fuse -o fd=4,rootmode=100000,$o x file && echo mounted && exec \"$@\"";
        let ran = std::process::Command::new("timeout")
            .args(["60", "unshare", "-m", "sh", "-c", script, "sh"])
            .arg(std::env::current_exe().expect("a path"))
            .args(["--nocapture", "a_mount_that_another_user_serves_is_not_entered"])
            .current_dir(folder.path())
            .env(INNER, folder.path())
            .output()
            .expect("timeout(1)");
        let text = String::from_utf8_lossy(&ran.stdout);
        // Only root may mount, and not in every container.
        assert!(!text.contains("mounted") || text.contains("ended"), "{ran:?}");
    }
}
