//! The end of a turn: carries out the recorded requests.

use std::io::{self, IoSlice};
use std::time::Duration;

use super::Loop;
use super::received::reason_of;
use crate::kernel::{FdKind, Interest, Kernel, Token};
use crate::output::{Output, PARTS_MAX};
use crate::state::{ClosingFd, Counts, Opening, State};
use crate::stream::{Marks, Phase, Stream};
use crate::{Direction, Fd, KernelError, ListenerId, Reason, StreamId};

/// The maximum number of bytes sent for one stream per turn, so that a fast reader cannot occupy the loop.
const SEND_BUDGET: usize = 1 << 20;

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Carries out all requests. Closes first, so that descriptors are free for new streams. Sends last, so that new
    /// streams can send immediately.
    pub(super) fn carry_out(&mut self) {
        self.carry_out_requests();
        if !self.state.work.releasing.is_empty() {
            self.release_streams();
        }
    }

    fn carry_out_requests(&mut self) {
        while let Some(ClosingFd { fd, watched, resets }) = self.state.work.closing.pop() {
            if resets {
                self.kernel.reset_on_close(&fd);
            }
            if watched {
                // The descriptor may have been refused, or be unwatched already; then there is nothing to undo.
                let _ = self.kernel.unwatch(&fd);
            }
            self.kernel.close(fd);
        }
        while let Some(id) = self.state.work.listeners.pop() {
            self.watch_listener(id);
        }
        if !self.state.work.opening.is_empty() {
            for (id, opening) in std::mem::take(&mut self.state.work.opening) {
                self.open(id, opening);
            }
        }
        self.carry_out_datagrams();
        if self.state.work.dirty.is_empty() {
            return;
        }
        let mut dirty = std::mem::take(&mut self.state.work.dirty);
        let count = dirty.len();
        for &id in &dirty {
            self.transmit(id);
        }
        // Streams that used up their budget were added to the new list.
        dirty.drain(..count);
        dirty.append(&mut self.state.work.dirty);
        self.state.work.dirty = dirty;
    }

    fn watch_listener(&mut self, id: ListenerId) {
        let Some(listener) = self.state.listeners.get_mut(id.index, id.generation) else { return };
        if listener.should_watch() == listener.watched {
            return;
        }
        if listener.watched {
            let _ = self.kernel.unwatch(&listener.fd);
            listener.watched = false;
            return;
        }
        let token = Token::listener(id.index, id.generation);
        match self.kernel.watch(&listener.fd, token, Interest::Listener) {
            Ok(()) => listener.watched = true,
            Err(error) => self.state.work.failed.push((id, KernelError::from(&error))),
        }
    }

    fn open(&mut self, id: StreamId, opening: Opening) {
        if self.state.streams.get(id.index, id.generation).is_none() {
            return;
        }
        let opened = match opening {
            Opening::KeepAlive(after) => return self.keep_alive(id, after),
            Opening::Adopt => self.adopt(id),
            Opening::WatchProcess => Ok(()),
            Opening::Connect(address) => self.kernel.connect(&address).map(|fd| {
                if let Some(stream) = self.state.streams.get_mut(id.index, id.generation) {
                    stream.fd = Some(fd);
                }
            }),
        };
        let Err(error) = opened.and_then(|()| self.watch_stream(id)) else { return };
        let Some(stream) = self.state.streams.get(id.index, id.generation) else { return };
        let reason = match stream.phase {
            Phase::Connecting { .. } => Reason::ConnectFailed(KernelError::from(&error)),
            _ => reason_of(&error),
        };
        self.state.end(id, reason);
    }

    fn keep_alive(&mut self, id: StreamId, after: Duration) {
        let stream = self.state.streams.get(id.index, id.generation);
        if let Some(fd) = stream.and_then(|stream| stream.fd.as_ref()) {
            self.kernel.keep_alive(fd, after);
        }
    }

    fn adopt(&mut self, id: StreamId) -> io::Result<()> {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else {
            return Ok(());
        };
        let Some(fd) = &stream.fd else { return Ok(()) };
        stream.fd_kind = self.kernel.prepare(fd)?;
        stream.marks.set(Marks::WRITABLE);
        stream.marks.set(Marks::SHARED);
        if stream.queued() > 0 {
            self.state.mark_dirty(id);
        }
        Ok(())
    }

    /// Sends the queued bytes of a stream, as far as the kernel accepts them, and ends its direction if that was
    /// requested.
    #[inline]
    fn transmit(&mut self, id: StreamId) {
        let State { streams, counts, outputs, relays, .. } = &mut self.state;
        let Some(stream) = streams.get_mut(id.index, id.generation) else { return };
        stream.marks.clear(Marks::DIRTY);
        if stream.marks.take(Marks::SILENT)
            && stream.phase == Phase::Open
            && let Some(reason) = broken_silence(&mut self.kernel, stream, counts)
        {
            stream.end(reason);
            return self.state.wake(id);
        }
        // The common case: all bytes leave in one call, and nothing else is to be done.
        if stream.idle_after_send() && relays.is_empty() {
            let sent = send(&mut self.kernel, stream, counts);
            if stream.queued() == 0 && sent.is_ok() {
                if let Some(output) = stream.output.take() {
                    outputs.give(output);
                }
                return;
            }
            return self.transmit_on(id, sent);
        }
        self.transmit_on(id, Ok(0));
    }

    /// Sends until all bytes were sent, the kernel accepts no more, or the budget is used up. `first` is the result of
    /// a first call.
    #[inline(never)]
    fn transmit_on(&mut self, id: StreamId, first: io::Result<usize>) {
        let State { streams, counts, outputs, clock, .. } = &mut self.state;
        let Some(stream) = streams.get_mut(id.index, id.generation) else { return };
        if !matches!(stream.phase, Phase::Open | Phase::Flushing) {
            return;
        }
        let before = stream.queued();
        let (mut budget, mut sent) = (SEND_BUDGET, first);
        while let Ok(count) = sent {
            budget = budget.saturating_sub(count.max(1));
            if stream.queued() == 0 || budget == 0 || !stream.marks.has(Marks::WRITABLE) {
                break;
            }
            sent = send(&mut self.kernel, stream, counts);
        }
        let left = stream.queued() > 0 && stream.marks.has(Marks::WRITABLE);
        let waiting = stream.output.as_mut().filter(|it| it.bytes() > 0 && !left);
        let wait_begins = waiting.is_some_and(|output| output.note_wait(clock.now_tick()));
        if stream.queued() == 0
            && let Some(output) = stream.output.take()
        {
            outputs.give(output);
        }
        match sent {
            Err(error) => stream.break_off(reason_of(&error)),
            Ok(_) => {
                if wait_begins {
                    self.state.wait_begins(id);
                }
                if left {
                    self.state.mark_dirty(id);
                }
                self.after_sending(id, before);
            }
        }
        self.state.wake(id);
        self.state.update_relay_to(id, false);
    }

    /// Updates the stream after bytes were sent, or if no bytes are left.
    fn after_sending(&mut self, id: StreamId, before: usize) {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return };
        let queued = stream.queued();
        if stream.phase == Phase::Flushing {
            if queued < before || queued == 0 {
                self.state.begin_linger(id);
            }
            if queued == 0 {
                self.end_direction(id);
            }
        } else if queued == 0 && stream.ends_sending() {
            self.end_sending(id);
        } else if queued <= stream.limits.send_low && stream.marks.take(Marks::HIGH) {
            stream.marks.set(Marks::DRAINED);
        }
    }

    /// Called when all bytes are sent: ends our direction, or the stream if nothing else is open.
    fn end_direction(&mut self, id: StreamId) {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return };
        let one_way = stream.direction == Direction::Out || stream.fd_kind != FdKind::Socket;
        if one_way || stream.marks.has(Marks::PEER_ENDED) {
            return stream.end(Reason::Clean);
        }
        let Some(fd) = &stream.fd else { return };
        if stream.marks.has(Marks::SEND_ENDED) {
            stream.phase = Phase::Lingering;
            return;
        }
        match self.kernel.shutdown_write(fd) {
            Ok(()) => stream.phase = Phase::Lingering,
            Err(error) => stream.end(reason_of(&error)),
        }
    }

    /// Called when all bytes are sent: ends only our direction, and the stream only if the peer's end was delivered.
    fn end_sending(&mut self, id: StreamId) {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return };
        let Some(fd) = &stream.fd else { return };
        // Only the two directions of a socket end separately; those of a terminal end together.
        if stream.fd_kind == FdKind::Socket
            && let Err(error) = self.kernel.shutdown_write(fd)
        {
            return stream.break_off(reason_of(&error));
        }
        stream.marks.set(Marks::SEND_ENDED);
        if stream.marks.has(Marks::EOF_DELIVERED) {
            stream.end(Reason::Clean);
        }
    }
}

/// Returns why a stream ends whose peer should be silent and is not. Receiving one byte is sufficient to find out.
#[inline(never)]
fn broken_silence(
    kernel: &mut impl Kernel,
    stream: &Stream,
    counts: &mut Counts,
) -> Option<Reason> {
    if stream.unconsumed.is_some() {
        return Some(Reason::NotSilent);
    }
    let fd = stream.fd.as_ref()?;
    counts.receives += 1;
    match kernel.receive(fd, stream.fd_kind, &mut [0]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Ok(count) if count > 0 => Some(Reason::NotSilent),
        Ok(_) => Some(Reason::Reset),
        Err(error) => Some(reason_of(&error)),
    }
}

/// Sends queued bytes with one call and returns the number that the kernel accepted: zero if it has no room.
#[inline(always)]
fn send(kernel: &mut impl Kernel, stream: &mut Stream, counts: &mut Counts) -> io::Result<usize> {
    let (Some(fd), Some(output)) = (&stream.fd, &mut stream.output) else { return Ok(0) };
    if output.bytes() == 0 || !stream.marks.has(Marks::WRITABLE) {
        return Ok(0);
    }
    counts.sends += 1;
    let sent = match output.only_part() {
        Some(part) => kernel.send(fd, stream.fd_kind, &[IoSlice::new(part)]),
        None => send_parts(kernel, fd, stream.fd_kind, output),
    };
    match sent {
        Ok(sent) => {
            output.sent(sent);
            counts.sent += sent as u64;
            Ok(sent)
        }
        // When there is room again, the kernel reports it as an edge.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            stream.marks.clear(Marks::WRITABLE);
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

#[inline(never)]
fn send_parts(
    kernel: &mut impl Kernel,
    fd: &Fd,
    fd_kind: FdKind,
    output: &Output,
) -> io::Result<usize> {
    let mut parts = [IoSlice::new(&[]); PARTS_MAX];
    let count = output.parts(&mut parts);
    kernel.send(fd, fd_kind, &parts[..count])
}
