//! Updates a stream from the results of its receive calls.

use std::io;

use block::CAPACITY_POOLED_MAX;

use crate::data::Lent;
use crate::kernel::{FdKind, Kernel};
use crate::state::Counts;
use crate::stream::{Marks, Phase, Stream};
use crate::{KernelError, Reason};

/// The minimum cost of an offer in the read budget, so that a handler that resumes in every callback cannot occupy the
/// loop.
pub(super) const OFFER_COST_MIN: usize = 512;

/// Receives once into the hot block, for a stream without held bytes, and returns the number of received bytes.
#[inline(always)]
pub(super) fn receive(
    kernel: &mut impl Kernel,
    stream: &mut Stream,
    hot: &mut Lent,
    hot_capacity: &mut usize,
    counts: &mut Counts,
) -> usize {
    let room = hot.refill(*hot_capacity).spare();
    let room_length = room.len().min(stream.limits.recv_buffer_max.max(1));
    let fd = stream.fd.as_ref().expect("an open stream has a descriptor");
    counts.receives += 1;
    match kernel.receive(fd, stream.fd_kind, &mut room[..room_length]) {
        Ok(count) if count > 0 => {
            note_received(stream, count, room_length);
            stream.marks.clear(Marks::OFFER);
            counts.received += count as u64;
            hot.advance(count);
            if count == room_length {
                *hot_capacity = CAPACITY_POOLED_MAX;
            }
            count
        }
        result => {
            note_end(stream, result);
            0
        }
    }
}

/// Records received bytes. A short read means that the kernel has no more bytes, unless an end follows. In that case
/// the stream must read until the end is received, because no further edge is reported.
#[inline]
pub(super) fn note_received(stream: &mut Stream, count: usize, room: usize) {
    let short = count < room && stream.fd_kind != FdKind::Other;
    if short && !stream.marks.has(Marks::TO_THE_END) {
        stream.marks.clear(Marks::READABLE);
    }
}

/// Records that no bytes were received: the end, an error, or no bytes yet.
#[inline(never)]
pub(super) fn note_end(stream: &mut Stream, result: io::Result<usize>) {
    match result {
        // If a write has already returned the reset, recv returns 0 instead of the error. That is not a regular end of
        // the peer.
        Ok(_) if !matches!(stream.phase, Phase::Broken(_)) => {
            stream.marks.set(Marks::PEER_ENDED);
        }
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
            stream.break_off(reason_of(&error));
        }
        Ok(_) | Err(_) => {}
    }
    stream.marks.clear(Marks::READABLE);
}

/// Converts the error of a read or a write to a reason.
pub(super) fn reason_of(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => Reason::Reset,
        _ => Reason::Failed(KernelError::from(error)),
    }
}
