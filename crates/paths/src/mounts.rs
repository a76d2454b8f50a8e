//! Which mounts a lookup may enter: all except those that another user serves (FUSE), who need not answer.
//!
//! The question is answered from `/proc/self/mountinfo`, because statfs(2) asks the file system itself. The kernel
//! reports each change of the mounts to poll(2), so the file is read again only after a change.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

thread_local! {
    static MOUNTS: RefCell<Mounts> = const { RefCell::new(Mounts { file: None, trusted: Vec::new() }) };
}

struct Mounts {
    file: Option<File>,
    /// The ids of the mounts that no other user serves, in order.
    trusted: Vec<u64>,
}

/// Whether no other user serves this mount. The caller holds an open file of the mount: otherwise another mount could
/// get its id.
///
/// # Errors
/// The list of mounts cannot be read.
pub fn is_trusted(mount: u64) -> io::Result<bool> {
    MOUNTS.with_borrow_mut(|mounts| match mounts.refresh() {
        Ok(()) => Ok(mounts.trusted.binary_search(&mount).is_ok()),
        // Without `/proc`, nothing is known about any mount.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    })
}

impl Mounts {
    fn refresh(&mut self) -> io::Result<()> {
        let (file, is_new) = match self.file.take() {
            Some(file) => (self.file.insert(file), false),
            None => (self.file.insert(File::open("/proc/self/mountinfo")?), true),
        };
        let mut entries = [PollFd::new(file, PollFlags::PRI)];
        let is_changed = poll(&mut entries, Some(&Timespec::default()))? > 0;
        if !is_new && !is_changed {
            return Ok(());
        }
        let mut text = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
        if let Err(error) = read {
            // The next call reads it again.
            self.file = None;
            return Err(error);
        }
        let ours = [0, rustix::process::geteuid().as_raw()];
        self.trusted.clear();
        self.trusted
            .extend(text.split(|&byte| byte == b'\n').filter_map(|line| trusted(line, ours)));
        self.trusted.sort_unstable();
        Ok(())
    }
}

/// Returns the id of the mount that a line describes (proc_pid_mountinfo(5)), unless a user who is not one of `ours`
/// serves it.
fn trusted(line: &[u8], ours: [u32; 2]) -> Option<u64> {
    let line = String::from_utf8_lossy(line);
    let (mount, file_system) = line.split_once(" - ")?;
    let id = mount.split(' ').next()?.parse().ok()?;
    let mut words = file_system.split(' ');
    let kind = words.next()?;
    let is_fuse = kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.");
    let options = words.nth(1).unwrap_or_default();
    let user = options.split(',').find_map(|option| option.strip_prefix("user_id="));
    let is_ours = user.is_some_and(|user| user.parse().is_ok_and(|user| ours.contains(&user)));
    (!is_fuse || is_ours).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_that_another_user_serves_is_not_entered() {
        for (line, found) in [
            (
                "36 35 98:0 /m /m\\040t rw,noatime master:1 - ext3 /dev/root rw,errors=continue",
                Some(36),
            ),
            ("40 35 0:9 / /run rw - tmpfs tmpfs rw,size=5k", Some(40)),
            ("41 35 0:9 / /h rw - fuse.sshfs x rw,user_id=1000,group_id=1000,allow_other", None),
            ("41 35 0:9 / /h rw shared:3 - fuse x rw,user_id=1000,group_id=1000", None),
            ("42 35 0:9 / /h rw - fuse.sshfs x rw,user_id=7,group_id=7", Some(42)),
            ("43 35 0:9 / /h rw - fuseblk /dev/sdb rw,user_id=0,group_id=0", Some(43)),
            ("44 35 0:9 / /h rw - fuse x rw", None),
            ("45 35 0:9 / /sys/fs/fuse/connections rw - fusectl x rw", Some(45)),
            ("", None),
        ] {
            assert_eq!(trusted(line.as_bytes(), [0, 7]), found, "{line}");
        }
    }

    #[test]
    fn the_mounts_of_this_machine_are_read_once() {
        let text = std::fs::read_to_string("/proc/self/mountinfo").expect("a list");
        let id = |line: &str| line.split(' ').next()?.parse().ok();
        let mount: u64 = text.lines().find_map(id).expect("a mount");
        for _ in 0..2 {
            assert!(is_trusted(mount).expect("a list"));
            assert!(!is_trusted(u64::MAX).expect("a list"), "it has no such mount");
        }
    }
}
