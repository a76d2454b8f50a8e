//! From the kernel to the handler: receiving, offering, and the order of a stream's last events.

use block::{Block, CAPACITY_POOLED_MAX};

use super::Loop;
use super::received::{OFFER_COST_MIN, note_end, note_received, receive};
use crate::context::Context;
use crate::data::{Data, Lent};
use crate::kernel::Kernel;
use crate::state::State;
use crate::stream::{Marks, Phase, Step};
use crate::{Direction, Event, EventHandler, OwnerKey, Reason, StreamId};

/// The maximum number of held bytes that are copied before the next bytes into the hot block. More held bytes stay in
/// their block, which grows.
const HOLD_COPIED_MAX: usize = CAPACITY_POOLED_MAX / 4;

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Steps a stream until it has nothing to do or has used up its budget of this turn. `received`: the number of
    /// bytes that it has already received in this turn.
    #[inline(never)]
    pub(super) fn step<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: StreamId,
        received: usize,
    ) {
        let mut budget = self.state.settings.read_budget.saturating_sub(cost_of(received));
        while let Some(stream) = self.state.streams.get_mut(id.index, id.generation) {
            let cost = match stream.step() {
                Step::Idle => return,
                Step::Receive if budget > 0 && stream.unconsumed.is_none() => {
                    cost_of(self.receive(owner, id))
                }
                step => match self.uncommon_step(owner, id, step, budget) {
                    Some(cost) => cost,
                    None => return,
                },
            };
            budget = budget.saturating_sub(cost);
        }
    }

    /// Executes a step and returns its cost, or `None` if it was the last step of this turn.
    #[inline(never)]
    fn uncommon_step<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: StreamId,
        step: Step,
        budget: usize,
    ) -> Option<usize> {
        let stream = self.state.streams.get_mut(id.index, id.generation)?;
        let cost = match step {
            Step::Idle => return None,
            Step::Receive | Step::Discard | Step::Relay | Step::Offer { .. } if budget == 0 => {
                self.state.postpone(id);
                return None;
            }
            Step::Receive => self.receive_more(owner, id),
            Step::Discard => self.discard(id),
            Step::Relay => self.relay(id),
            Step::Offer { last } => {
                let held = stream.unconsumed.take().expect("only what is held is offered again");
                self.offer(owner, id, Lent::new(held, last));
                OFFER_COST_MIN
            }
            Step::DeliverConnected => {
                stream.marks.clear(Marks::CONNECTED);
                let key = stream.key;
                self.deliver(owner, Event::Connected { stream: id, key });
                0
            }
            Step::DeliverDrained => {
                stream.marks.clear(Marks::DRAINED);
                let key = stream.key;
                self.deliver(owner, Event::Drained { stream: id, key });
                0
            }
            Step::DeliverHangup => {
                stream.marks.clear(Marks::HANGUP);
                let key = stream.key;
                self.deliver(owner, Event::Hangup { stream: id, key });
                0
            }
            Step::DeliverEndAhead => {
                stream.marks.set(Marks::END_AHEAD_DELIVERED);
                let key = stream.key;
                self.deliver(owner, Event::EndAhead { stream: id, key });
                0
            }
            Step::DeliverBroken => {
                stream.marks.set(Marks::BROKEN_DELIVERED);
                let key = stream.key;
                self.deliver(owner, Event::Broken { stream: id, key });
                0
            }
            Step::DeliverRelayed => {
                self.deliver_relayed(owner, id);
                0
            }
            Step::DeliverEof => {
                self.deliver_eof(owner, id);
                0
            }
            Step::Close(reason) => {
                self.deliver_closed(owner, id, reason);
                return None;
            }
        };
        Some(cost)
    }

    fn deliver_closed<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: StreamId,
        reason: Reason,
    ) {
        let found = self.state.streams.get(id.index, id.generation);
        let (unsent, key) = found.map_or_else(Default::default, |it| (it.queued(), it.key));
        let pipe = found.filter(|it| it.direction == Direction::Out && reason != Reason::Clean);
        let pipe = pipe.and_then(|it| it.fd.as_ref());
        self.state.unread = pipe.map_or(0, |fd| (self.state.unread_in_pipe)(fd).unwrap_or(0));
        self.state.remove_stream(id);
        self.state.unsent = Some((id, unsent));
        self.deliver(owner, Event::Closed { stream: id, key, reason });
        self.state.unsent = None;
    }

    fn deliver_eof<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, id: StreamId) {
        let Some(stream) = self.state.stream(id) else { return };
        stream.marks.set(Marks::EOF_DELIVERED);
        if stream.direction == Direction::In || stream.marks.has(Marks::SEND_ENDED) {
            stream.end(Reason::Clean);
        }
        let key = stream.key;
        self.deliver(owner, Event::Eof { stream: id, key });
    }

    /// Receives once into the hot block, for a stream without held bytes, and offers the received bytes. Returns their
    /// number.
    fn receive<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, id: StreamId) -> usize {
        let State { streams, counts, .. } = &mut self.state;
        let Some(stream) = streams.get_mut(id.index, id.generation) else { return 0 };
        let Self { kernel, hot, hot_capacity, .. } = self;
        let received = receive(kernel, stream, hot, hot_capacity, counts);
        let key = stream.key;
        if received > 0 {
            self.offer_hot(owner, id, key);
        }
        received
    }

    /// Offers the bytes in the hot block, and keeps those that are not consumed.
    #[inline]
    pub(super) fn offer_hot<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: StreamId,
        key: OwnerKey,
    ) {
        let data = Data::new(&mut self.hot);
        owner.handle(&mut Context::new(&mut self.state), Event::Data { stream: id, key, data });
        if !self.hot.is_used_up() {
            let lent = std::mem::replace(&mut self.hot, Lent::nothing());
            self.keep(id, lent);
        }
    }

    /// Receives once behind the held bytes, and offers all of them. Returns the cost in the budget.
    fn receive_more<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, id: StreamId) -> usize {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return 0 };
        let held = stream.unconsumed.as_ref().map_or(0, Block::len);
        let recv_buffer_max = stream.limits.recv_buffer_max;
        let mut grown_hold = None;
        let block = if held > HOLD_COPIED_MAX {
            let unconsumed = stream.unconsumed.take().expect("it holds something");
            grown_hold.insert(grown(unconsumed, recv_buffer_max))
        } else {
            let hot = self.hot.refill(CAPACITY_POOLED_MAX);
            if let Some(unconsumed) = &stream.unconsumed {
                hot.push(unconsumed.filled());
            }
            hot
        };
        // Regardless of the handler's actions, at most `recv_buffer_max` bytes can be held afterwards.
        let room_max = recv_buffer_max.saturating_sub(held).max(1);
        let room = block.spare();
        let room_length = room.len().min(room_max);
        self.state.counts.receives += 1;
        let fd = stream.fd.as_ref().expect("an open stream has a descriptor");
        match self.kernel.receive(fd, stream.fd_kind, &mut room[..room_length]) {
            Ok(count) if count > 0 => {
                note_received(stream, count, room_length);
                self.state.counts.received += count as u64;
                stream.unconsumed = None;
                block.advance(count);
                let lent = match grown_hold {
                    Some(block) => Lent::new(block, false),
                    None => std::mem::replace(&mut self.hot, Lent::nothing()),
                };
                self.offer(owner, id, lent);
                count.max(OFFER_COST_MIN)
            }
            result => {
                note_end(stream, result);
                if let Some(block) = grown_hold {
                    stream.unconsumed = Some(block);
                }
                0
            }
        }
    }

    /// Receives once and discards the bytes.
    fn discard(&mut self, id: StreamId) -> usize {
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return 0 };
        let room = self.hot.refill(CAPACITY_POOLED_MAX).spare();
        let room_length = room.len();
        let fd = stream.fd.as_ref().expect("an open stream has a descriptor");
        self.state.counts.receives += 1;
        match self.kernel.receive(fd, stream.fd_kind, room) {
            Ok(count) if count > 0 => {
                note_received(stream, count, room_length);
                self.state.counts.received += count as u64;
                count
            }
            result => {
                note_end(stream, result);
                0
            }
        }
    }

    /// Lends a block to the handler and keeps the bytes that are not consumed.
    fn offer<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, id: StreamId, mut lent: Lent) {
        let mut key = OwnerKey::NONE;
        if let Some(stream) = self.state.streams.get_mut(id.index, id.generation) {
            stream.marks.clear(Marks::OFFER);
            key = stream.key;
        }
        self.deliver(owner, Event::Data { stream: id, key, data: Data::new(&mut lent) });
        self.keep(id, lent);
    }

    /// Keeps the bytes that were not consumed, if the stream may still hold them.
    #[inline(never)]
    fn keep(&mut self, id: StreamId, lent: Lent) {
        let rest = lent.left();
        if rest == 0 {
            return self.recycle(lent);
        }
        let untouched = lent.consumed() == 0;
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else {
            return self.recycle(lent);
        };
        let paused = stream.marks.has(Marks::PAUSED.or(Marks::RELEASING));
        let open = matches!(stream.phase, Phase::Open | Phase::Broken(_));
        if !open || (lent.is_last() && !paused) {
            return self.recycle(lent);
        }
        if untouched && !paused && rest >= stream.limits.recv_buffer_max {
            stream.end(Reason::RecvBufferFull);
            return self.recycle(lent);
        }
        // Few remaining bytes get a block of their own size. Otherwise the block is kept, unless it is more memory than
        // the stream may occupy.
        let recv_buffer_max = stream.limits.recv_buffer_max;
        if rest * 4 <= lent.capacity() || lent.capacity() > recv_buffer_max {
            stream.unconsumed = Some(copied(lent.bytes(), recv_buffer_max));
            return self.recycle(lent);
        }
        stream.unconsumed = Some(match lent.into_block() {
            Ok((mut block, start)) => {
                if start > 0 {
                    block.shift(start);
                }
                block
            }
            Err(shared) => copied(&shared, recv_buffer_max),
        });
    }

    /// Reuses a block as the hot block if there is none.
    fn recycle(&mut self, lent: Lent) {
        let fits = (self.hot_capacity..=CAPACITY_POOLED_MAX).contains(&lent.capacity());
        if self.hot.capacity() == 0 && lent.is_own() && fits {
            self.hot = lent;
        }
    }
}

/// The cost in the budget of receiving and offering `received` bytes.
fn cost_of(received: usize) -> usize {
    if received == 0 { 0 } else { received.max(OFFER_COST_MIN) }
}

/// Returns a copy in a block of its size class, or of its exact length if the class exceeds `recv_buffer_max`.
fn copied(bytes: &[u8], recv_buffer_max: usize) -> Block {
    let mut block = Block::with_capacity_max(bytes.len(), recv_buffer_max);
    block.push(bytes);
    block
}

/// Returns a long hold with room for more bytes. Its capacity doubles up to `recv_buffer_max`, so growing costs one or
/// two copies per byte.
fn grown(unconsumed: Block, recv_buffer_max: usize) -> Block {
    let wanted = (unconsumed.len() * 2).min(recv_buffer_max.max(unconsumed.len() + 1));
    if unconsumed.remaining() >= HOLD_COPIED_MAX || unconsumed.capacity() >= wanted {
        return unconsumed;
    }
    let mut larger = Block::with_capacity_max(wanted, recv_buffer_max);
    larger.push(unconsumed.filled());
    larger
}
