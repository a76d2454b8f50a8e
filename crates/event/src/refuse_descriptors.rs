//! Descriptors that the peer of a Unix socket passes.

use std::os::fd::{AsFd, AsRawFd};

/// `SO_PASSRIGHTS` of Linux 6.16.
const SO_PASSRIGHTS: libc::c_int = 83;
/// The size of its value, an int.
const SIZE: libc::socklen_t = 4;

/// Makes the kernel refuse descriptors that peers pass to a Unix socket (`SCM_RIGHTS` of unix(7)): they fail to send
/// them, with `EPERM`. Connections that a listening socket gets from then on inherit this.
///
/// A process that receives such descriptors and does not want them closes them, and closing some takes as long as their
/// sender wishes: a TCP socket with `SO_LINGER` and unsent bytes, a file on FUSE. [`bind`](crate::bind) and all methods
/// that take over a descriptor call this function; call it before the peer can send.
///
/// Returns `false` if the socket is not a Unix socket, or the kernel is older than Linux 6.16.
#[expect(unsafe_code, reason = "neither the standard library nor rustix has this option")]
pub fn refuse_descriptors(socket: impl AsFd) -> bool {
    // Where the option has another number, it is not used.
    if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
        return false;
    }
    let off: libc::c_int = 0;
    // SAFETY: the option has an int as its value, which outlives the call.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const off).cast(),
            SIZE,
        )
    };
    failed == 0
}

#[cfg(test)]
mod tests {
    use std::io::{self, IoSlice};
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use crate::{Address, BindSettings};

    /// Passes standard input to the peer.
    fn pass(socket: &UnixStream) -> rustix::io::Result<usize> {
        let (stdin, mut space) = (io::stdin(), [std::mem::MaybeUninit::uninit(); 64]);
        let fds = [std::os::fd::AsFd::as_fd(&stdin)];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(socket, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL)
    }

    #[test]
    fn no_peer_can_pass_a_descriptor() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert_eq!(pass(&theirs), Ok(1), "it is allowed at first");
        if !super::refuse_descriptors(&ours) {
            return; // The kernel is older than Linux 6.16.
        }
        let refused = Err(rustix::io::Errno::PERM);
        assert_eq!(pass(&theirs), refused);
        assert_eq!(pass(&ours), Ok(1), "the other direction");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = crate::bind(&Address::Unix(path.clone()), &BindSettings::default());
        assert_eq!(pass(&UnixStream::connect(&path).unwrap()), refused, "before it is accepted");
        let server = folder.path().join("server");
        let listener = std::os::unix::net::UnixListener::bind(&server).unwrap();
        let _ours = crate::system::connect(&Address::Unix(server)).unwrap();
        assert_eq!(pass(&listener.accept().unwrap().0), refused, "a server");
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = crate::Fd::from(ours);
        crate::system::prepare(&ours).unwrap();
        assert_eq!(pass(&theirs), refused, "a socket that is taken over");
    }

    #[test]
    fn other_descriptors_are_left_alone() {
        let (reader, _writer) = io::pipe().unwrap();
        assert!(!super::refuse_descriptors(reader));
        assert!(!super::refuse_descriptors(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()));
    }
}
