//! Passes bytes from one stream to another without delivering them to the handler.
//!
//! ```text
//!            held bytes, and bytes that one side cannot splice
//!   from ───────────────── copy ─────────────────► output of `to` ───► kernel
//!     └──── splice ───► pipe ────────────────── splice ──────────────────┘
//! ```
//!
//! Invariant: `accepted + in_flight + left = limit`, where `in_flight` bytes are in the output or in the pipe.

use std::io;

use block::{Block, CAPACITY_POOLED_MAX};

use super::Loop;
use super::received::{note_end, note_received, reason_of};
use crate::data::Data;
use crate::kernel::{FdKind, Kernel};
use crate::relay::{Relay, RelayMode};
use crate::stream::Marks;
use crate::{Event, EventHandler, StreamId};

/// The maximum number of bytes per splice.
const SPLICE_MAX: usize = 256 << 10;

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Moves some bytes. Returns their cost in the budget.
    pub(super) fn relay(&mut self, id: StreamId) -> usize {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return 0 };
        let mut relay = stream.relay.take().expect("only a stream that relays is asked to");
        let unconsumed = stream.unconsumed.take();
        let fd_kind = stream.fd_kind;
        let to = self.state.streams.get(relay.to.index, relay.to.generation);
        let cost = match (to, unconsumed) {
            (Some(to), unconsumed) if to.takes_output() => {
                let splices = [fd_kind, to.fd_kind].iter().all(|fd_kind| *fd_kind != FdKind::Other);
                match unconsumed {
                    Some(unconsumed) => self.relay_hold(id, &mut relay, unconsumed),
                    None if relay.is_splicing() => self.splice_out(&mut relay),
                    None if to.queued() > to.limits.send_low => {
                        relay.waits = true;
                        0
                    }
                    None if splices
                        && to.queued() == 0
                        && !matches!(relay.mode, RelayMode::Copy) =>
                    {
                        self.splice_in(id, &mut relay)
                    }
                    // Spliced bytes must not overtake copied bytes that are still queued.
                    None if splices && !matches!(relay.mode, RelayMode::Copy) => {
                        relay.waits = true;
                        0
                    }
                    None => self.relay_copy(id, &mut relay),
                }
            }
            (_, unconsumed) => {
                relay.target_gone = true;
                if let Some(stream) = self.state.streams.get_mut(id.index, id.generation) {
                    stream.unconsumed = unconsumed;
                }
                0
            }
        };
        if let Some(stream) = self.state.streams.get_mut(id.index, id.generation) {
            stream.relay = Some(relay);
        }
        cost
    }

    /// Held bytes, which were received already, go first.
    fn relay_hold(&mut self, id: StreamId, relay: &mut Relay, mut unconsumed: Block) -> usize {
        let count = unconsumed.len().min(usize::try_from(relay.left).unwrap_or(usize::MAX));
        self.state.queue(relay.to, |output| output.push_bytes(&unconsumed.filled()[..count]));
        self.sent_off(relay, count);
        unconsumed.shift(count);
        if let Some(stream) = self.state.streams.get_mut(id.index, id.generation)
            && !unconsumed.is_empty()
        {
            stream.unconsumed = Some(unconsumed);
            stream.marks.set(Marks::OFFER);
        }
        count
    }

    fn sent_off(&mut self, relay: &mut Relay, count: usize) {
        relay.in_flight += count;
        relay.left -= count as u64;
    }

    fn relay_copy(&mut self, id: StreamId, relay: &mut Relay) -> usize {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return 0 };
        let block = self.hot.refill(CAPACITY_POOLED_MAX);
        let room = block.spare();
        let length = room.len().min(usize::try_from(relay.left).unwrap_or(usize::MAX));
        let fd = stream.fd.as_ref().expect("an open stream has a descriptor");
        self.state.counts.receives += 1;
        match self.kernel.receive(fd, stream.fd_kind, &mut room[..length]) {
            Ok(count) if count > 0 => {
                note_received(stream, count, length);
                self.state.counts.received += count as u64;
                block.advance(count);
                self.sent_off(relay, count);
                if count * 2 >= CAPACITY_POOLED_MAX {
                    let part = Data::new(&mut self.hot).take(count);
                    self.state.queue(relay.to, |output| output.push(part));
                } else {
                    let bytes = self.hot.bytes();
                    self.state.queue(relay.to, |output| output.push_bytes(bytes));
                }
                count
            }
            result => {
                note_end(stream, result);
                self.state.update_relay_to(id, false);
                0
            }
        }
    }

    fn splice_in(&mut self, id: StreamId, relay: &mut Relay) -> usize {
        if matches!(relay.mode, RelayMode::Untried) {
            match self.kernel.splice_pipe() {
                Ok(splice_pipe) => relay.mode = RelayMode::Splice(splice_pipe),
                Err(_) => relay.mode = RelayMode::Copy,
            }
        }
        let RelayMode::Splice(splice_pipe) = &relay.mode else { return 0 };
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return 0 };
        let length = SPLICE_MAX.min(usize::try_from(relay.left).unwrap_or(SPLICE_MAX));
        let fd = stream.fd.as_ref().expect("an open stream has a descriptor");
        self.state.counts.receives += 1;
        match self.kernel.splice_in(fd, splice_pipe, length) {
            Ok(count) if count > 0 => {
                // A short splice has no meaning here: it ends where the kernel's own buffers end.
                self.state.counts.received += count as u64;
                self.sent_off(relay, count);
                count
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                relay.mode = RelayMode::Copy;
                0
            }
            result => {
                note_end(stream, result);
                self.state.update_relay_to(id, false);
                // All received bytes were accepted, so the other side has not delayed the bytes that come next.
                relay.wait = None;
                self.release_splice_pipe(relay);
                0
            }
        }
    }

    /// Returns an empty pipe for other relays: a relay that waits for bytes keeps no pipe.
    fn release_splice_pipe(&mut self, relay: &mut Relay) {
        if relay.in_flight == 0
            && let RelayMode::Splice(splice_pipe) =
                std::mem::replace(&mut relay.mode, RelayMode::Untried)
        {
            self.kernel.keep_splice_pipe(splice_pipe);
        }
    }

    fn splice_out(&mut self, relay: &mut Relay) -> usize {
        let tick = self.state.clock.now_tick();
        let RelayMode::Splice(splice_pipe) = &relay.mode else { return 0 };
        let Some(to) = self.state.streams.get_mut(relay.to.index, relay.to.generation) else {
            return 0;
        };
        if !to.marks.has(Marks::WRITABLE) {
            if relay.wait_to_splice(tick) {
                self.state.wait_begins(relay.to);
            }
            return 0;
        }
        let fd = to.fd.as_ref().expect("an open stream has a descriptor");
        self.state.counts.sends += 1;
        match self.kernel.splice_out(splice_pipe, fd, relay.in_flight) {
            Ok(count) => {
                self.state.counts.sent += count as u64;
                relay.in_flight -= count;
                relay.accepted += count as u64;
                relay.spliced += count as u64;
                self.release_splice_pipe(relay);
                0
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                to.marks.clear(Marks::WRITABLE);
                if relay.wait_to_splice(tick) {
                    self.state.wait_begins(relay.to);
                }
                0
            }
            Err(error) => {
                to.break_off(reason_of(&error));
                relay.target_gone = true;
                self.state.wake(relay.to);
                0
            }
        }
    }

    pub(super) fn deliver_relayed<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: StreamId,
    ) {
        let Some(stream) = self.state.stream(id) else { return };
        let (done, key) = (stream.relay_is_done(), stream.key);
        let relay = stream.relay.as_mut().expect("only a stream that relays tells of it");
        let count = std::mem::take(&mut relay.accepted);
        if done {
            self.end_relay(id);
        }
        self.deliver(owner, Event::Relayed { stream: id, key, count, done });
    }

    fn end_relay(&mut self, id: StreamId) {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return };
        if let Some(relay) = stream.relay.take() {
            self.state.relays.remove(&relay.to);
        }
    }
}
