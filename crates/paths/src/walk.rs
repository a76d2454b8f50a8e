//! The walk of a path, and the opening of what it leads to.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, open, openat, readlinkat,
};

/// Links on one path, as in the kernel.
const LINKS_MAX: usize = 40;

/// For a directory on the way, or the link in its place.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Where a path leads: a name in a directory. There may be no file of this name.
#[derive(Debug)]
pub struct Place {
    /// The directory.
    pub folder: OwnedFd,
    /// The name there. It was no symbolic link, unless `is_open_file`; [`Self::open`] opens it.
    pub name: OsString,
    /// A path to it without symbolic links, relative if the one that was given is.
    pub path: PathBuf,
    /// It is an open file of this process, as behind `/dev/stdout`, which has no other path: a link that is
    /// to be followed.
    pub is_open_file: bool,
}

impl Place {
    /// Opens what has the name now, in the very directory that was found, and follows no link there. With `CREATE`
    /// a file is made where there is none, unless it is an open file of this process.
    ///
    /// # Errors
    /// `ELOOP` where a link has taken the name, or as open(2).
    pub fn open(&self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let more = OFlags::CLOEXEC;
        let flags = match self.is_open_file {
            true => flags.difference(OFlags::CREATE) | more,
            false => flags | more | OFlags::NOFOLLOW,
        };
        let file = File::from(openat(&self.folder, &self.name, flags, mode)?);
        // With `O_PATH` the link itself is opened.
        match file.metadata()?.is_symlink() {
            true => Err(rustix::io::Errno::LOOP.into()),
            false => Ok(file),
        }
    }
}

/// Follows a path, but not its last name if there is no such file.
///
/// # Errors
/// Where another user can have made a link on it, where it is a directory by its form, or as open(2).
pub fn walk(path: &Path) -> io::Result<Place> {
    let mut folder = OwnedFd::from(File::open(".")?);
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
        let found = openat(&folder, &step, FOLDER, Mode::empty());
        let is_link = match &found {
            Ok(found) => FileType::from_raw_mode(fstat(found)?.st_mode).is_symlink(),
            Err(_) => false,
        };
        if !is_link {
            real.push(&step);
            if !is_last {
                folder = found?;
                continue;
            }
            return match found {
                Ok(_) | Err(rustix::io::Errno::NOENT) => {
                    Ok(Place { folder, name: step, path: real, is_open_file: false })
                }
                Err(error) => Err(error.into()),
            };
        }
        check_link(&folder, &step)?;
        if is_last && is_proc(&folder)? {
            real.push(&step);
            return Ok(Place { folder, name: step, path: real, is_open_file: true });
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

/// The parts of a path, the first one at the end.
fn steps(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Whether nobody but root and this user can have put a link there: by the owner and the mode of its
/// directory, and by its own owner where the directory has the sticky bit.
fn check_link(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
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

    /// Another user changes the path after its walk and before its file is opened.
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
        let looped = |error: io::Error| rustix::io::Errno::from_io_error(&error);
        let error = content(&place).map_err(looped).expect_err("it is a link now");
        assert_eq!(error, Some(rustix::io::Errno::LOOP));
        for flags in [OFlags::PATH, OFlags::WRONLY | OFlags::CREATE] {
            let error = place.open(flags, Mode::RUSR).map_err(looped).expect_err("a link");
            assert_eq!(error, Some(rustix::io::Errno::LOOP));
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
}
