//! Whether other users can replace a file, or create another file next to it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::ownership::check_author;
use crate::walk::walk;

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
    for (height, directory) in real.ancestors().skip(1).enumerate() {
        let found = directory.symlink_metadata()?;
        check(&found, is_root, height > 0).map_err(|why| denied(directory, &why))?;
    }
    match real.symlink_metadata() {
        Ok(found) if is_root => check_author(&found).map_err(|why| denied(&real, &why))?,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(real)
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

fn check(directory: &Metadata, is_root: bool, may_be_sticky: bool) -> io::Result<()> {
    let (mode, owner) = (directory.mode(), directory.uid());
    let text = if is_root && owner != 0 {
        format!("belongs to user {owner}, who can replace what is in it: `chown root` it")
    } else if mode & if is_root { 0o022 } else { 0o002 } == 0 {
        return Ok(());
    } else if mode & STICKY == 0 {
        let mode = mode & 0o7777;
        format!(
            "can be changed by other users (mode {mode:04o}): `chmod {}-w` it",
            of_others(is_root)
        )
    } else if may_be_sticky {
        return Ok(());
    } else {
        "is one in which other users can make files".to_owned()
    };
    Err(io::Error::other(text))
}

const fn of_others(is_root: bool) -> &'static str {
    if is_root { "go" } else { "o" }
}

fn denied(path: &Path, why: &io::Error) -> io::Error {
    let text =
        format!("`{}` {why}, or use a directory that only this user can change", path.display());
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
                assert!(text.contains("or use a directory that only this user"), "{text}");
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
