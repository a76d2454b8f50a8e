//! Whether other users can replace a file, or create another file next to it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::ownership::{check_author, check_author_unless};
use crate::read::read_at;
use crate::walk::{Place, is_read_only, walk, walk_unless};

/// The mode bit of a directory in which only the owner of a file may rename or remove it.
const STICKY: u32 = 0o1000;

/// Returns the absolute path of a file without symbolic links, if no other user can make it lead to another file, now
/// or later, or create files next to it. The file need not exist.
///
/// For root, the file and each directory above it must belong to root, and no other user may write to them. For another
/// user, who may share files with groups, only a directory that every user may write to is an error. In both cases a
/// directory with the sticky bit may be writable, except the directory of the file itself, in which other users could
/// create the files that belong next to it.
///
/// # Errors
/// Returns [`PermissionDenied`](io::ErrorKind::PermissionDenied), with a suggested fix, if other users can do this.
/// Otherwise the errors of open(2).
pub fn protected(path: &Path) -> io::Result<PathBuf> {
    protected_for(path, rustix::process::geteuid().is_root())
}

fn protected_for(path: &Path, is_root: bool) -> io::Result<PathBuf> {
    let real = if is_root { std::path::absolute(walk(path)?.path)? } else { followed(path)? };
    check_above(&real, is_root)?;
    match real.symlink_metadata() {
        Ok(found) if is_root => check_author(&found).map_err(|why| denied(&real, &why))?,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(real)
}

/// Reads a regular file that no other user can have written, at a path that no other user can change: by the rules of
/// [`protected`], except that a link of another user is never followed. The file must belong to root or to the user of
/// this process. A user who is not root may share the file and its directories with groups.
///
/// # Errors
/// Returns [`PermissionDenied`](io::ErrorKind::PermissionDenied), with a suggested fix, if another user can do this.
/// Otherwise the errors of [`read`](crate::read()).
pub fn read_protected(path: &Path) -> io::Result<Vec<u8>> {
    read_protected_for(path, rustix::process::geteuid().is_root())
}

fn read_protected_for(path: &Path, is_root: bool) -> io::Result<Vec<u8>> {
    let (bytes, found) = read_at(&place(path, is_root)?)?;
    check_author_unless(others(is_root), &found)?;
    Ok(bytes)
}

/// Checks that no other user can create or replace files in a directory, by the rules of [`read_protected`].
///
/// # Errors
/// Returns [`PermissionDenied`](io::ErrorKind::PermissionDenied), with a suggested fix, if another user can do this.
/// Otherwise the errors of open(2).
pub fn protected_directory(path: &Path) -> io::Result<()> {
    place(&path.join("any"), rustix::process::geteuid().is_root()).map(drop)
}

/// Resolves a path whose directories are protected.
fn place(path: &Path, is_root: bool) -> io::Result<Place> {
    let place = walk_unless(others(is_root), path)?;
    if !is_read_only(&place.folder)? {
        check_above(&std::path::absolute(&place.path)?, is_root)?;
    }
    Ok(place)
}

/// Opens a file that an operator named. Root does not follow a link that another user can have created, does not open a
/// file of another user in a directory that others can write to, and does not open a file that every user can write to.
/// Elsewhere the file may belong to the operator. Another user opens any file.
///
/// # Errors
/// Returns [`PermissionDenied`](io::ErrorKind::PermissionDenied), with a suggested fix, if another user can have chosen
/// the file. Otherwise the errors of open(2).
pub fn open_given(path: &Path, flags: OFlags) -> io::Result<File> {
    if !rustix::process::geteuid().is_root() {
        let flags = flags.bits().cast_signed();
        return OpenOptions::new().read(true).custom_flags(flags).open(path);
    }
    let place = walk(path)?;
    let file = place.open(flags, Mode::empty())?;
    let found = file.metadata()?;
    if !found.is_file() || place.is_open_file || is_read_only(&file)? {
        return Ok(file);
    }
    let directory = rustix::fs::fstat(&place.folder)?;
    let mode = found.mode() & 0o7777;
    let text = if mode & 0o002 != 0 {
        format!("every user can write it (mode {mode:04o}): `chmod o-w` it")
    } else if found.uid() != 0 && directory.st_mode & 0o022 != 0 {
        let (owner, mode) = (found.uid(), directory.st_mode & 0o7777);
        format!(
            "it belongs to user {owner}, and other users can create files in its directory (mode {mode:04o}): \
             `chown root` the file, or `chmod go-w` the directory"
        )
    } else {
        return Ok(file);
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Returns the path with all links resolved. For a file that does not exist, its directory is resolved.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let name = path.file_name().ok_or(error)?;
            Ok(parent.unwrap_or_else(|| Path::new(".")).canonicalize()?.join(name))
        }
        real => real,
    }
}

/// Checks all directories above a file.
fn check_above(real: &Path, is_root: bool) -> io::Result<()> {
    for (height, directory) in real.ancestors().skip(1).enumerate() {
        let found = directory.symlink_metadata()?;
        check(&found, is_root, height > 0).map_err(|why| denied(directory, &why))?;
    }
    Ok(())
}

/// Returns the mode bits that let other users write to a directory or a file.
const fn others(is_root: bool) -> u32 {
    if is_root { 0o022 } else { 0o002 }
}

/// What to use instead of a directory that is refused.
const ANOTHER: &str = "a directory that only this user can change";

fn check(directory: &Metadata, is_root: bool, may_be_sticky: bool) -> io::Result<()> {
    let (mode, owner) = (directory.mode(), directory.uid());
    let text = if is_root && owner != 0 {
        format!(
            "belongs to user {owner}, who can replace what is in it: `chown root` it, or use {ANOTHER}"
        )
    } else if mode & others(is_root) == 0 {
        return Ok(());
    } else if mode & STICKY == 0 {
        let mode = mode & 0o7777;
        format!(
            "can be changed by other users (mode {mode:04o}): `chmod {}-w` it, or use {ANOTHER}",
            of_others(is_root)
        )
    } else if may_be_sticky {
        return Ok(());
    } else {
        let mode = mode & 0o7777;
        // As `/tmp`, whose mode must stay.
        format!(
            "lets other users create files in it (mode {mode:04o}): use {ANOTHER}, for example one in it"
        )
    };
    Err(io::Error::other(text))
}

const fn of_others(is_root: bool) -> &'static str {
    if is_root { "go" } else { "o" }
}

fn denied(path: &Path, why: &io::Error) -> io::Error {
    let text = format!("`{}` {why}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_file_in_a_directory_of_others_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        create_dir(&inner).expect("a folder");
        let path = inner.join("file");
        let is_root = rustix::process::geteuid().is_root();
        // First the directory itself, then the one above it, which may have the sticky bit.
        for (directory, above) in [(inner.as_path(), false), (folder.path(), true)] {
            for (mode, is_taken, is_taken_by_root) in [
                (0o755, true, true),
                (0o775, true, false),
                (0o777, false, false),
                (0o1777, above, above),
                (0o1775, true, above),
            ] {
                set_mode(directory, mode);
                let found = protected_for(&path, false);
                assert_eq!(found.is_ok(), is_taken, "{mode:o}: {found:?}");
                if is_root {
                    let found = protected_for(&path, true);
                    assert_eq!(found.is_ok(), is_taken_by_root, "{mode:o}: {found:?}");
                }
                let Err(error) = found else { continue };
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                let text = error.to_string();
                assert!(text.contains(&directory.display().to_string()), "{text}");
                assert!(text.contains("use a directory that only this user"), "{text}");
            }
            set_mode(directory, 0o755);
        }
    }

    #[test]
    fn root_takes_only_files_and_directories_of_root() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, path) = (folder.path().join("inner"), folder.path().join("inner/file"));
        create_dir(&inner).expect("a folder");
        write(&path, "x").expect("a file");
        assert_eq!(protected_for(&path, true).expect("of root"), path);
        for of_another in [&inner, &path] {
            chown(of_another, Some(7), None).expect("an owner");
            let text = protected_for(&path, true).expect_err("of another user").to_string();
            assert!(text.contains("belongs to user 7"), "{text}");
            assert!(protected_for(&path, false).is_ok());
            chown(of_another, Some(0), None).expect("an owner");
        }
        set_mode(&path, 0o666);
        assert!(protected_for(&path, true).expect_err("writable").to_string().contains("0666"));
    }

    #[test]
    fn only_files_that_no_other_user_can_have_written_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, path) = (folder.path().join("inner"), folder.path().join("inner/file"));
        let link = inner.join("link");
        create_dir(&inner).expect("a folder");
        write(&path, "x").expect("a file");
        symlink("file", &link).expect("a link");
        let user = rustix::process::geteuid();
        for (directory, file, is_read, is_read_by_root) in [
            (0o755, 0o644, true, true),
            (0o775, 0o664, true, false),
            (0o755, 0o664, true, false),
            (0o755, 0o666, false, false),
            (0o777, 0o644, false, false),
            (0o1777, 0o644, false, false),
            (0o1775, 0o644, true, false),
        ] {
            set_mode(&inner, directory);
            set_mode(&path, file);
            for (is_root, is_read) in [(false, is_read), (true, is_read_by_root)] {
                if is_root && !user.is_root() {
                    continue;
                }
                for path in [&path, &link] {
                    let found = read_protected_for(path, is_root);
                    let context = format!("{is_root} {directory:o} {file:o}: {found:?}");
                    assert_eq!(found.is_ok(), is_read, "{context}");
                }
            }
            let found = protected_directory(&inner);
            let mode = others(user.is_root());
            assert_eq!(found.is_ok(), directory & mode == 0 || directory == 0o1775 && mode == 2);
        }
    }

    #[test]
    fn a_file_or_a_link_of_another_user_is_not_read() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&path, "x").expect("a file");
        symlink("file", &link).expect("a link");
        chown(&path, Some(7), None).expect("an owner");
        for is_root in [true, false] {
            let text = read_protected_for(&path, is_root).expect_err("of another").to_string();
            assert!(text.contains("belongs to user 7"), "{text}");
        }
        // The operator may name it, unless others can create files next to it.
        for (mode, is_opened) in [(0o755, true), (0o775, false), (0o777, false), (0o1777, false)] {
            set_mode(folder.path(), mode);
            let opened = open_given(&path, OFlags::empty());
            assert_eq!(opened.is_ok(), is_opened, "{mode:o}: {opened:?}");
            let text = opened.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(text.contains("belongs to user 7"), !is_opened, "{text}");
        }
        chown(&path, Some(0), None).expect("an owner");
        assert!(open_given(&path, OFlags::empty()).is_ok());
        std::os::unix::fs::lchown(&link, Some(7), None).expect("an owner");
        let text = open_given(&link, OFlags::empty()).expect_err("a link").to_string();
        assert!(text.contains("symbolic link that another user"), "{text}");
        set_mode(&path, 0o666);
        let text = open_given(&path, OFlags::empty()).expect_err("writable").to_string();
        assert!(text.contains("mode 0666"), "{text}");
    }

    #[test]
    fn the_path_has_no_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        symlink("file", &link).expect("a link");
        for is_file in [false, true] {
            let real = protected_for(&folder.path().join("./file"), false).expect("a place");
            assert_eq!(real, folder.path().join("file"));
            assert_eq!(protected_for(&link, false).expect("a place").is_file(), is_file);
            write(&real, "x").expect("a file");
        }
        assert!(protected_for(&folder.path().join("none/file"), false).is_err());
    }
}
