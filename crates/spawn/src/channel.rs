//! Packets with descriptors over a Unix socket, without ever blocking.
//!
//! What it is: one end of a SOCK_SEQPACKET pair with a queue for what the socket does not take
//! yet. What it knows: bytes and descriptors. What it must never know: their meaning.
//!
//! Neither end ever blocks on sending, so the two cannot wait for each other. The queue is bounded
//! by what its owner has started: a few packets a program.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The longest packet. Below the 208 KiB that a socket's send buffer has by default, which a
/// packet must fit into as a whole; and above [`crate::COMMAND_BYTES_MAX`] with its lengths.
const PACKET_BYTES_MAX: usize = 160 * 1024;

/// What the kernel wants to have left in a send buffer beside the packet (it asks for 32).
const PACKET_OVERHEAD: usize = 1024;

/// Descriptors that go with one packet.
pub(crate) const DESCRIPTORS_MAX: usize = 4;

/// What [`Channel::receive`] found.
pub(crate) enum Received<'a> {
    Packet(&'a [u8], Vec<OwnedFd>),
    /// Not now.
    Nothing,
    /// The other end is gone.
    End,
}

/// One end.
pub(crate) struct Channel {
    socket: OwnedFd,
    queue: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    buffer: Box<[u8]>,
}

impl Channel {
    /// Two ends, both close-on-exec and non-blocking; the second is for another process.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&ours, &theirs] {
            // The kernel doubles it; where it may not be raised so far, the longest packet may
            // not pass, which is better known now.
            set_socket_send_buffer_size(end, PACKET_BYTES_MAX)?;
            if socket_send_buffer_size(end)? < PACKET_BYTES_MAX + PACKET_OVERHEAD {
                return Err(Errno::MSGSIZE);
            }
        }
        Ok((Self::new(ours), theirs))
    }

    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            queue: VecDeque::new(),
            buffer: vec![0; PACKET_BYTES_MAX].into_boxed_slice(),
        }
    }

    /// Whether packets wait for the socket to become writable.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Sends a packet, after those queued. The descriptors are closed here once they are sent. A
    /// lost peer is noticed by `receive`.
    pub(crate) fn send(&mut self, bytes: Vec<u8>, descriptors: Vec<OwnedFd>) {
        self.queue.push_back((bytes, descriptors));
        self.flush();
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) {
        while let Some((bytes, descriptors)) = self.queue.front() {
            match transmit(&self.socket, bytes, descriptors) {
                Err(Errno::INTR) => {}
                // Too many descriptors in flight (ETOOMANYREFS) passes as the peer takes them.
                Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => return,
                Ok(()) | Err(_) => drop(self.queue.pop_front()),
            }
        }
    }

    /// The next packet.
    pub(crate) fn receive(&mut self) -> Received<'_> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut into = [IoSliceMut::new(&mut self.buffer)];
            match recvmsg(&self.socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                // Said once, when the peer went with our packets unread; what it had sent, and
                // then the end, come after.
                Err(Errno::CONNRESET) => {}
                Err(_) => return Received::End,
                Ok(received) => break received.bytes,
            }
        };
        // Nobody sends an empty packet.
        if received == 0 {
            return Received::End;
        }
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                descriptors.extend(more);
            }
        }
        Received::Packet(&self.buffer[..received], descriptors)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn transmit(socket: &OwnedFd, bytes: &[u8], descriptors: &[OwnedFd]) -> Result<(), Errno> {
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(&borrowed));
        assert!(fits, "a packet carries at most {DESCRIPTORS_MAX} descriptors");
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_queue_when_the_socket_is_full_and_arrive_in_order_with_their_descriptors() {
        let (mut sender, other) = Channel::pair().unwrap();
        let mut receiver = Channel::new(other);
        let packet = |number: u8| vec![number; 100_000];
        for number in 0..20 {
            let (read, _write) = rustix::pipe::pipe().unwrap();
            sender.send(packet(number), vec![read]);
        }
        assert!(sender.has_queued(), "two megabytes do not fit into a socket");
        let mut next = 0;
        while next < 20 {
            match receiver.receive() {
                Received::Packet(bytes, descriptors) => {
                    assert_eq!(bytes, packet(next));
                    assert_eq!(descriptors.len(), 1);
                    next += 1;
                }
                Received::Nothing => sender.flush(),
                Received::End => panic!("the sender is there"),
            }
        }
        assert!(!sender.has_queued());
    }

    #[test]
    fn a_peer_that_goes_with_packets_unread_is_an_end() {
        let (mut ours, theirs) = Channel::pair().unwrap();
        ours.send(vec![1], Vec::new());
        drop(theirs);
        assert!(matches!(ours.receive(), Received::End));
        ours.send(vec![2], Vec::new());
        assert!(!ours.has_queued(), "what nobody will read is not kept");
    }
}
