//! What a stream notes of what its kernel said when it receives.

use std::io;

use block::CAPACITY_POOLED_MAX;

use crate::Reason;
use crate::data::Lent;
use crate::kernel::{FdKind, Kernel};
use crate::state::Counts;
use crate::stream::{Marks, Phase, Stream};

/// An offer counts as much against the read budget at least, so that an owner who resumes in every
/// callback cannot keep the loop.
pub(super) const OFFER_COST_MIN: usize = 512;

/// Receives once into the hot block, for a stream that holds nothing, and returns how much came.
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
    match kernel.receive(fd, stream.medium, &mut room[..room_length]) {
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

/// A short read means that the kernel has no more, unless an end is behind what came: then one has
/// to read until it shows, for no edge will come again.
#[inline]
pub(super) fn note_received(stream: &mut Stream, count: usize, room: usize) {
    let short = count < room && stream.medium != FdKind::Other;
    if short && !stream.marks.has(Marks::TO_THE_END) {
        stream.marks.clear(Marks::READABLE);
    }
}

/// Nothing was received: the end, an error, or nothing yet.
#[inline(never)]
pub(super) fn note_end(stream: &mut Stream, result: io::Result<usize>) {
    match result {
        // After a reset was already noticed by a write, recv returns 0 and not the error: that is
        // no end that the peer meant.
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

/// The reason that an error of a read or a write is.
pub(super) fn reason_of(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => Reason::Reset,
        kind => Reason::Failed(kind),
    }
}
