//! A small file system for a test, which can be filled.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Mounts a tmpfs of `$1` MiB at `$2`, reports that, and unmounts it when standard input is closed: then the process
/// that started it has ended.
const SUPERVISOR: &str = r#"
trap : HUP INT TERM
mount -t tmpfs -o "size=$1m,mode=0755" tmpfs "$2" || exit 1
echo mounted
cat >/dev/null
umount -l "$2"
rmdir "$2"
"#;

/// A mounted file system. It is removed together with the process that mounted it, however that process ends.
pub(crate) struct Tmpfs {
    folder: PathBuf,
    supervisor: Child,
    stdin: Option<ChildStdin>,
}

impl Tmpfs {
    /// Mounts a file system of this size in MiB.
    ///
    /// # Errors
    /// Returns the error of the system if this process may not mount.
    pub(crate) fn mount(megabytes: u32) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("roadstead-disk-").tempdir().unwrap().keep();
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "sh", &megabytes.to_string()])
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(supervisor.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if said.is_empty() {
            let why = supervisor.wait_with_output().unwrap().stderr;
            fs::remove_dir(&folder).unwrap();
            return Err(String::from_utf8_lossy(&why).trim().to_owned());
        }
        let stdin = supervisor.stdin.take();
        Ok(Self { folder, supervisor, stdin })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Fills the file system completely.
    pub(crate) fn fill(&self) {
        let mut ballast = fs::File::create(self.ballast()).unwrap();
        let zeros = vec![0; 1 << 16];
        while ballast.write_all(&zeros).is_ok() {}
    }

    /// Removes the data of [`fill`](Self::fill).
    pub(crate) fn make_room(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.supervisor.wait();
    }
}
