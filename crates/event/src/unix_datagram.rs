//! Unix datagrams, received with the user of the sender and sent only to a socket of that user.
//!
//! The address of a sender is a path that the sender chose. When the reply is sent, another file may be at that path: a
//! link to a socket that the sender itself may not reach, or this socket. The kernel would send with the rights and the
//! credentials of this process. Therefore the file is opened without following a link, checked, and sent to through its
//! descriptor, so that it cannot be replaced in between.

use std::io::{IoSliceMut, Write};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, makedev, statx,
};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendFlags, SocketAddrUnix};

use crate::{DatagramKind, Fd, FileId, Origin};

/// The layout of a `cmsghdr` (its length, level and type) and of a `ucred` (process, user and group; cmsg(3), unix(7)).
const HEADER: usize = size_of::<usize>() + 2 * size_of::<i32>();
const CREDENTIALS: usize = 3 * size_of::<u32>();
const SPACE: usize = (HEADER + CREDENTIALS).next_multiple_of(size_of::<usize>());
/// `SCM_CREDENTIALS` of Linux.
const SCM_CREDENTIALS: i32 = 2;

/// Room for the credentials and nothing else: descriptors that the sender passes are discarded by the kernel.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; SPACE]);

/// Receives one datagram, and returns its full length.
pub(crate) fn receive(fd: &Fd, room: &mut [u8]) -> rustix::io::Result<(usize, Origin)> {
    let mut control = Control([MaybeUninit::new(0); SPACE]);
    // Not parsed by rustix, whose type does not allow the process 0, which a sender in another process namespace has. Its
    // destructor would parse it.
    let mut buffer = ManuallyDrop::new(RecvAncillaryBuffer::new(&mut control.0));
    let flags = RecvFlags::TRUNC | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(fd, &mut [IoSliceMut::new(room)], &mut buffer, flags)?;
    let from = received.address.and_then(|from| SocketAddrUnix::try_from(from).ok());
    let user = user(&initialised(&control));
    Ok((received.bytes, from.map_or(Origin::NOWHERE, |from| Origin::of_sender(from, user))))
}

#[expect(unsafe_code, reason = "the buffer of rustix is of uninitialised bytes")]
fn initialised(control: &Control) -> [u8; SPACE] {
    // SAFETY: every byte was initialised with 0, and the kernel only overwrites bytes.
    control.0.map(|byte| unsafe { byte.assume_init() })
}

/// Returns the user in the first control message. With this option set, the kernel writes the credentials first.
fn user(control: &[u8; SPACE]) -> Option<u32> {
    let (length, rest) = control.split_first_chunk()?;
    let (_level, rest) = rest.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first_chunk()?;
    let (_process, rest) = rest.split_first_chunk::<4>()?;
    let (user, _) = rest.split_first_chunk()?;
    let is_credentials = usize::from_ne_bytes(*length) == HEADER + CREDENTIALS
        && i32::from_ne_bytes(*kind) == SCM_CREDENTIALS;
    is_credentials.then(|| u32::from_ne_bytes(*user))
}

/// Sends one datagram to the socket at a path, if it belongs to `owner` and is not this socket.
pub(crate) fn send_to_owner(
    fd: &Fd,
    kind: DatagramKind,
    to: &SocketAddrUnix,
    owner: u32,
    bytes: &[u8],
) -> rustix::io::Result<usize> {
    let path = to.path_bytes().ok_or(Errno::DESTADDRREQ)?;
    let (file, found) = open_file(path)?;
    // A reply to this socket would be the next request.
    let is_own = kind == DatagramKind::Unix { file: Some(id(&found)) };
    if !is_socket(&found) || found.stx_uid != owner || is_own {
        return Err(Errno::ACCESS);
    }
    // On the stack: no reply allocates.
    let mut name = [0; 32];
    let room = name.len();
    let mut rest = &mut name[..];
    write!(rest, "/proc/self/fd/{}", file.as_raw_fd()).map_err(|_| Errno::NAMETOOLONG)?;
    let length = room - rest.len();
    let opened = SocketAddrUnix::new(&name[..length])?;
    rustix::net::sendto(fd, bytes, SendFlags::NOSIGNAL, &opened)
}

/// Returns the file at the address of a socket. It is read once, before the first datagram: the owner of the directory can
/// put any file in its place later, and a lookup can then take for ever.
pub(crate) fn own_file(fd: &Fd) -> Option<FileId> {
    let own = SocketAddrUnix::try_from(rustix::net::getsockname(fd).ok()?).ok()?;
    let (_file, found) = open_file(own.path_bytes()?).ok()?;
    is_socket(&found).then(|| id(&found))
}

/// Opens the file at a path without following a link at its end, and without waiting. A lookup in a file system that
/// another user serves (FUSE), or whose server is away, can take for ever. Therefore only names that the kernel has in its
/// cache are looked up: those of a socket and its directories are there as long as the socket is open. `/proc/PID/root`
/// leads into the file systems of that process, where a lookup may wait.
fn open_file(path: &[u8]) -> rustix::io::Result<(OwnedFd, Statx)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |how| rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), how);
    let file = match open(ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED) {
        // Linux before 5.12.
        Err(Errno::INVAL) => open(ResolveFlags::NO_MAGICLINKS),
        Err(Errno::AGAIN) => Err(Errno::ACCESS),
        result => result,
    }?;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(&file, "", flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    // The user who serves it need not answer when the datagram is sent.
    match paths::is_trusted_mount(found.stx_mnt_id) {
        Ok(true) => Ok((file, found)),
        _ => Err(Errno::ACCESS),
    }
}

fn is_socket(file: &Statx) -> bool {
    FileType::from_raw_mode(file.stx_mode.into()).is_socket()
}

fn id(file: &Statx) -> FileId {
    FileId { device: makedev(file.stx_dev_major, file.stx_dev_minor), inode: file.stx_ino }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_socket_is_found_once_and_not_through_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = crate::Address::Unix(path.clone());
        let (fd, _) = crate::bind_datagrams(&address).unwrap();
        let found = rustix::fs::stat(&path).unwrap();
        let id = FileId { device: found.st_dev, inode: found.st_ino };
        assert_eq!(own_file(&fd), Some(id));
        // The path of the socket leads through a magic link afterwards.
        let (kept, root) = (folder.path().join("kept"), path.strip_prefix("/").unwrap());
        std::fs::rename(&path, &kept).unwrap();
        let magic = std::path::Path::new("/proc/self/root").join(root);
        let (through, _) = crate::bind_datagrams(&crate::Address::Unix(magic)).unwrap();
        assert_eq!(own_file(&through), None);
        let (client, _) =
            crate::bind_datagrams(&crate::Address::Unix(folder.path().join("client"))).unwrap();
        assert!(own_file(&client).is_some());
    }

    #[test]
    fn the_user_is_read_from_credentials_alone() {
        let mut control = [0; SPACE];
        assert_eq!(user(&control), None, "no message is not one of root");
        let word = size_of::<usize>();
        control[..word].copy_from_slice(&(HEADER + CREDENTIALS).to_ne_bytes());
        control[word + 4..word + 8].copy_from_slice(&SCM_CREDENTIALS.to_ne_bytes());
        control[HEADER + 4..HEADER + 8].copy_from_slice(&1234_u32.to_ne_bytes());
        assert_eq!(user(&control), Some(1234), "the process may be 0");
        control[word + 4] ^= 1;
        assert_eq!(user(&control), None, "another kind");
    }
}
