//! Receives and sends datagrams within the budgets of a turn.

use std::io;

use block::{Block, CAPACITY_POOLED_MAX};

use super::Loop;
use super::received::OFFER_COST_MIN;
use crate::data::Lent;
use crate::kernel::{Kernel, Readiness, Token};
use crate::{Direction, Event, EventHandler, Interest, KernelError, SocketId};

/// The maximum number of datagrams sent for one socket per turn.
const SEND_BUDGET: usize = 256;

/// The result of one call to receive.
enum Received {
    Datagram(usize, crate::Origin),
    /// The datagram is lost; there may be more.
    Lost,
    NoMore,
}

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    pub(super) fn handle_socket_report<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: SocketId,
        readiness: Readiness,
    ) {
        let Some(socket) = self.state.socket(id) else { return };
        let gone = Readiness::HANGUP | Readiness::ERROR;
        if readiness.any(gone | Readiness::READ) {
            socket.readable = true;
        }
        if readiness.any(gone | Readiness::WRITE) {
            socket.writable = true;
            if !socket.waiting.is_empty() {
                self.state.mark_socket_dirty(id);
            }
        }
        self.receive_datagrams(owner, id);
    }

    /// Receives and delivers datagrams one by one, until there are no more or the budget is used up.
    fn receive_datagrams<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, id: SocketId) {
        let mut budget = self.state.settings.read_budget;
        while let Some(socket) = self.state.sockets.get_mut(id.index, id.generation) {
            if !socket.readable {
                return;
            }
            if budget == 0 {
                return self.state.postpone_socket(id);
            }
            let mut lent = std::mem::replace(&mut self.hot, Lent::nothing());
            let block = lent.refill(CAPACITY_POOLED_MAX);
            match self.receive_datagram(id, block) {
                Received::Datagram(length, from) => {
                    block.advance(length);
                    let event = Event::Datagram { socket: id, from: &from, bytes: block.filled() };
                    self.deliver(owner, event);
                    budget = budget.saturating_sub(length.max(OFFER_COST_MIN));
                }
                Received::Lost => budget = budget.saturating_sub(OFFER_COST_MIN),
                Received::NoMore => {}
            }
            self.hot = lent;
        }
    }

    fn receive_datagram(&mut self, id: SocketId, block: &mut Block) -> Received {
        let Some(socket) = self.state.sockets.get_mut(id.index, id.generation) else {
            return Received::NoMore;
        };
        let room = block.spare();
        self.state.counts.receives += 1;
        match self.kernel.receive_datagram(&socket.fd, socket.kind, room) {
            Ok((length, from)) if length <= room.len() => {
                self.state.counts.received += length as u64;
                Received::Datagram(length, from)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.readable = false;
                Received::NoMore
            }
            // The datagram is too long for any block, or the error reports that a datagram that we sent was not
            // received.
            Ok(_) | Err(_) => {
                self.state.counts.datagrams_lost += 1;
                Received::Lost
            }
        }
    }

    /// Continues with the sockets that used up their budget in the last turn.
    pub(super) fn receive_postponed<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        for id in std::mem::take(&mut self.state.work.sockets_ready) {
            if let Some(socket) = self.state.sockets.get_mut(id.index, id.generation) {
                socket.ready = false;
                self.receive_datagrams(owner, id);
            }
        }
    }

    /// Reports and removes the sockets that could not be watched.
    pub(super) fn report_failed_sockets<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        while let Some((id, error)) = self.state.work.sockets_failed.pop() {
            if self.state.remove_socket(id) {
                self.deliver(owner, Event::DatagramsFailed { socket: id, error });
            }
        }
    }

    pub(super) fn carry_out_datagrams(&mut self) {
        let work = &self.state.work;
        if work.sockets_opening.is_empty() && work.sockets_dirty.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.state.work.sockets_opening) {
            let Some(socket) = self.state.sockets.get_mut(id.index, id.generation) else {
                continue;
            };
            let token = Token::datagrams(id.index, id.generation);
            let interest = Interest::Stream(Direction::Both);
            let opened = self.kernel.prepare_datagrams(&socket.fd).and_then(|kind| {
                socket.kind = kind;
                self.kernel.watch(&socket.fd, token, interest)
            });
            if let Err(error) = opened {
                self.state.work.sockets_failed.push((id, KernelError::from(&error)));
            }
        }
        for id in std::mem::take(&mut self.state.work.sockets_dirty) {
            self.send_datagrams(id);
        }
    }

    fn send_datagrams(&mut self, id: SocketId) {
        let Some(socket) = self.state.sockets.get_mut(id.index, id.generation) else { return };
        socket.dirty = false;
        for _ in 0..SEND_BUDGET {
            let Some((to, bytes)) = socket.waiting.front() else { return };
            if !socket.writable {
                return;
            }
            self.state.counts.sends += 1;
            match self.kernel.send_datagram(&socket.fd, socket.kind, to, bytes) {
                Ok(()) => self.state.counts.sent += bytes.len() as u64,
                // If a Unix socket at the other end is full, ours does not report when it has room again. Nothing would
                // trigger the next attempt, and all datagrams behind this one would wait with it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && to.unix().is_none() => {
                    socket.writable = false;
                    return;
                }
                Err(_) => self.state.counts.datagrams_lost += 1,
            }
            socket.waiting.pop_front();
        }
        if !socket.waiting.is_empty() {
            self.state.mark_socket_dirty(id);
        }
    }
}
