//! Datagrams travel to the gateway and back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use event::Origin;

use crate::datagrams::Datagram;
use crate::ids::DescriptorId;
use crate::net::{Edge, Kind};
use crate::scheduled_event::ScheduledEvent;
use crate::world::World;

/// The port of the host that sends the first datagram. Each datagram is sent by another host.
const FIRST_PORT: u16 = 20_000;

/// Longer than any block.
const TOO_LONG: usize = 70_000;

impl World {
    /// Adds a socket, and hosts that send to it.
    pub(crate) fn add_datagrams(&mut self) -> DescriptorId {
        let socket = self.net.add_descriptor(Kind::Datagrams);
        self.net.descriptor(socket).owned = true;
        self.datagrams.socket = Some(socket);
        self.datagrams.room = self.chance.pick(&[1, 3, 100]);
        for number in 0..self.chance.below(40) {
            let length = self.chance.pick(&[0, 1, 500, 65_000]) + 8;
            let long = self.chance.in_1000(20);
            let mut bytes = format!("{number:08}").into_bytes();
            bytes.resize(if long { TOO_LONG } else { length }, b'x');
            let datagram = Datagram { bytes, arrived: 0, answers: Vec::new(), excused: long };
            self.datagrams.all.push(datagram);
            let at = self.chance.time(Duration::from_micros(100), Duration::from_secs(5));
            let times = if self.fault(50) { 2 } else { 1 };
            for _ in 0..times {
                self.at(at, ScheduledEvent::Datagram(number));
            }
            self.datagrams.last_at = self.datagrams.last_at.max(at);
        }
        socket
    }

    /// Excuses all datagrams because the socket could not be watched.
    pub(crate) fn excuse_datagrams(&mut self) {
        for datagram in &mut self.datagrams.all {
            datagram.excused = true;
        }
    }

    /// Whether no datagram or reply can arrive any more.
    pub(crate) fn datagrams_are_over(&self) -> bool {
        self.time.now > self.datagrams.last_at + Duration::from_secs(30)
    }

    pub(crate) fn datagram_arrives(&mut self, number: usize) {
        let Some(socket) = self.datagrams.socket else { return };
        if self.datagrams.arrived.len() >= self.datagrams.room || self.fault(30) {
            self.note("is lost on its way: datagram", number, 0);
            self.datagrams.all[number].excused = true;
            return;
        }
        self.note("arrives: datagram", number, 0);
        self.datagrams.all[number].arrived += 1;
        self.datagrams.arrived.push_back(number);
        self.edge(socket, Edge::Read);
    }

    pub(crate) fn receive_datagram(
        &mut self,
        id: DescriptorId,
        room: &mut [u8],
    ) -> io::Result<(usize, Origin)> {
        if !self.datagrams.can_be_received() || self.chance.in_1000(self.scenario.again) {
            self.net.arm_datagrams(id, Edge::Read);
            if self.datagrams.can_be_received() {
                self.edge(id, Edge::Read);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.fault(50) {
            // A reply of the gateway found no receiver. The kernel reports that to the next receive call.
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let number = self.datagrams.arrived.pop_front().expect("there is one");
        self.note("the gateway receives: datagram", number, 0);
        let bytes = &self.datagrams.all[number].bytes;
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        let port = FIRST_PORT + u16::try_from(number).expect("few datagrams");
        Ok((bytes.len(), Origin::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))))
    }

    pub(crate) fn send_datagram(
        &mut self,
        id: DescriptorId,
        to: &Origin,
        bytes: &[u8],
    ) -> io::Result<()> {
        let again = self.chance.in_1000(self.scenario.again);
        if !self.datagrams.can_be_sent() || again {
            self.net.arm_datagrams(id, Edge::Write);
            if self.datagrams.can_be_sent() {
                self.edge(id, Edge::Write);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let port = to.internet().map_or(0, |address| address.port());
        let number = usize::from(port.saturating_sub(FIRST_PORT));
        let refused = self.fault(30);
        let Some(datagram) = self.datagrams.all.get_mut(number) else {
            self.violation(format!("a datagram is sent to {to:?}, where nobody is"));
            return Ok(());
        };
        if refused {
            datagram.excused = true;
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        datagram.answers.push(bytes.to_vec());
        self.note("the gateway sends: datagram, bytes", number, bytes.len());
        self.datagrams.leaving += 1;
        let delay = self.latency();
        self.after(delay, ScheduledEvent::DatagramLeft);
        Ok(())
    }

    /// Frees the space of a reply that has left.
    pub(crate) fn datagram_left(&mut self) {
        self.datagrams.leaving -= 1;
        if let Some(socket) = self.datagrams.socket {
            self.edge(socket, Edge::Write);
        }
    }
}
