//! A small disk of its own for a test, which can be filled.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Mounts a tmpfs of `$1` MiB at `$2`, says so, and takes it away as soon as nobody holds our
/// standard input open: then whoever wanted it is gone.
const KEEPER: &str = r#"
trap : HUP INT TERM
mount -t tmpfs -o "size=$1m,mode=0755" tmpfs "$2" || exit 1
echo mounted
cat >/dev/null
umount -l "$2"
rmdir "$2"
"#;

/// A mounted disk, gone with the process that wanted it, however that ends.
pub(crate) struct Tmpfs {
    folder: PathBuf,
    keeper: Child,
    stdin: Option<ChildStdin>,
}

impl Tmpfs {
    /// A disk of so many MiB.
    ///
    /// # Errors
    /// What the system says to those who may not mount.
    pub(crate) fn mount(megabytes: u32) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("roadstead-disk-").tempdir().unwrap().keep();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh", &megabytes.to_string()])
            .arg(&folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        if said.is_empty() {
            let why = keeper.wait_with_output().unwrap().stderr;
            fs::remove_dir(&folder).unwrap();
            return Err(String::from_utf8_lossy(&why).trim().to_owned());
        }
        let stdin = keeper.stdin.take();
        Ok(Self { folder, keeper, stdin })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Leaves no room on it.
    pub(crate) fn fill(&self) {
        let mut ballast = fs::File::create(self.ballast()).unwrap();
        let zeros = vec![0; 1 << 16];
        while ballast.write_all(&zeros).is_ok() {}
    }

    /// Takes away what [`fill`](Self::fill) left there.
    pub(crate) fn make_room(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.keeper.wait();
    }
}
