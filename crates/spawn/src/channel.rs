//! Packets with descriptors over a Unix socket, without blocking.
//!
//! What it is: one end of a SOCK_SEQPACKET pair, with a queue for packets that the socket does not accept yet. What it
//! depends on: bytes and descriptors. What it must never depend on: their meaning.
//!
//! Neither end blocks when it sends, so the two ends cannot deadlock. The size of the queue is limited by the number of
//! programs: a few packets for each.

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

/// The maximum size of a packet, in bytes. It is below the default send buffer of a socket (208 KiB), into which a
/// packet must fit as a whole, and above [`crate::COMMAND_BYTES_MAX`] with the lengths of the fields.
const PACKET_BYTES_MAX: usize = 160 * 1024;

/// Bytes that must remain free in a send buffer in addition to the packet (the kernel requires 32).
const PACKET_OVERHEAD: usize = 1024;

/// The maximum number of descriptors in one packet.
pub(crate) const DESCRIPTORS_MAX: usize = 4;

/// The result of [`Channel::receive`].
pub(crate) enum Received<'a> {
    Packet(&'a [u8], Vec<OwnedFd>),
    /// No packet is available yet.
    Nothing,
    /// The other end was closed.
    End,
}

/// One end of a channel.
pub(crate) struct Channel {
    socket: OwnedFd,
    queue: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    buffer: Box<[u8]>,
}

impl Channel {
    /// Creates two ends, both close-on-exec and non-blocking. The second is for another process.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&ours, &theirs] {
            // The kernel doubles the value. If the system does not allow a buffer of this size, the longest packet
            // could not be sent: fail now instead of at that packet.
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

    /// Whether packets wait until the socket is writable.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Sends a packet, after the queued packets. Its descriptors are closed here after they were sent. `receive`
    /// reports a lost peer.
    pub(crate) fn send(&mut self, bytes: Vec<u8>, descriptors: Vec<OwnedFd>) {
        self.queue.push_back((bytes, descriptors));
        self.flush();
    }

    /// Sends packets until the socket accepts no more.
    pub(crate) fn flush(&mut self) {
        while let Some((bytes, descriptors)) = self.queue.front() {
            match transmit(&self.socket, bytes, descriptors) {
                Err(Errno::INTR) => {}
                // ETOOMANYREFS (too many descriptors in flight) ends when the peer receives some.
                Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => return,
                Ok(()) | Err(_) => drop(self.queue.pop_front()),
            }
        }
    }

    /// Returns the next packet.
    pub(crate) fn receive(&mut self) -> Received<'_> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut into = [IoSliceMut::new(&mut self.buffer)];
            match recvmsg(&self.socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                // Reported once, if the peer closed its end without reading our packets. The packets that it had sent
                // follow, and then the end.
                Err(Errno::CONNRESET) => {}
                Err(_) => return Received::End,
                Ok(received) => break received.bytes,
            }
        };
        // Empty packets are never sent, so an empty read is the end.
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
