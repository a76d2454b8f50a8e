//! Both ends of a tunnel send data.

use std::time::Duration;

use crate::http::message;
use crate::http::message::{Request, RequestKind};
use crate::http::servers::{Fault, ServerAction, Turn};
use crate::http::speakers::{Role, Then, body_of};
use crate::http::tunnels::{Tunnel, TunnelEnd};
use crate::scheduled_event::Moment;
use crate::world::World;

/// The amount of data of a visitor that the gateway must slow down.
const MUCH: usize = 3 * HELD_MAX;

/// Whether these bytes equal [`body_of`] from `at` on.
fn is_part_of_body(id: u64, at: usize, bytes: &[u8]) -> bool {
    let unit = format!("{id},").into_bytes();
    let rest = unit.iter().cycle().skip(at % unit.len());
    bytes.iter().eq(rest.take(bytes.len()))
}

/// The maximum number of bytes of one direction of a tunnel that the gateway may hold: its output buffer to the server,
/// the bytes of one more iteration, and the bytes in transit between two shards.
const HELD_MAX: usize = 1 << 20;

impl World {
    /// Draws the amount of data that a visitor sends in a tunnel.
    pub(super) fn talk_length(&mut self) -> usize {
        let wide = self.scenario.socket_receive.min(self.scenario.socket_send) > 10_000;
        let much = if wide { 8 } else { 0 };
        self.chance.weighted(&[(3, 0), (3, 5), (3, 900), (3, 70_000), (much, MUCH)])
    }

    /// Changes the protocol of a server, which then sends data immediately.
    pub(super) fn server_switches(&mut self, number: usize, request: &Request) {
        let id = request.id;
        let length = self.chance.pick(&[0, 7, 3000, 70_000]);
        let said = body_of(id, length);
        let closes = self.fault(350);
        let closes_at =
            self.time.now + self.chance.time(Duration::from_millis(1), Duration::from_secs(3));
        let deaf_for = self.chance.time(Duration::from_millis(1), Duration::from_secs(3));
        let deaf_until = self.chance.in_1000(500).then(|| self.time.now + deaf_for);
        let speaker = &mut self.http.speakers[number];
        speaker.read += request.whole.as_ref().map_or(0, |(_, used)| *used);
        let at = speaker.read;
        let head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        speaker.output.extend_from_slice(head);
        speaker.output.extend_from_slice(&said);
        speaker.reads_at = speaker.reads_at.max(deaf_until.unwrap_or_default());
        self.http.said.entry(id).or_default().push(said);
        if self.link(number).given.len() > at {
            self.violation(format!("a server got bytes of the tunnel of {id} before its 101"));
        }
        let link = self.link(number);
        link.tunnel = Some(Tunnel { at, id, compared: at, deaf_until, is_ending: false });
        link.turn = Some(Turn { action: ServerAction::Talk, at: Moment::ZERO });
        link.until_close = true;
        link.closes_at = closes.then_some(closes_at);
        for at in link.closes_at.into_iter().chain(deaf_until) {
            self.call_speaker_later(number, at);
        }
        let request = usize::try_from(id).unwrap_or(0);
        self.note("changes the protocol: speaker, request", number, request);
    }

    /// Makes a server read the data of its visitor, and end after the visitor or before.
    pub(super) fn server_talks(&mut self, number: usize, ended: bool) {
        let now = self.time.now;
        let link = self.link(number);
        let Some(tunnel) = link.tunnel else { return };
        let (faulty, closes) = (link.fault.is_some(), link.closes_at.is_some_and(|at| at <= now));
        let Tunnel { at, id, is_ending, .. } = tunnel;
        self.listens_again(number, tunnel);
        let due = self.http.asked.get(&id).copied().unwrap_or_default();
        let got = self.http.speakers[number].input.len() - at;
        if !self.compare(number, tunnel) || got > due {
            self.violation(format!("a server got other bytes in the tunnel of {id}"));
            return;
        }
        if is_ending {
            return;
        }
        if ended {
            let visitor = self.connection_of_speaker(self.http.asker(id));
            let has_ended = self.net.flow(visitor.up).end_sent;
            if (got < due || !has_ended) && !faulty {
                self.violation(format!("the tunnel of {id} ended before all of it had come"));
            }
            self.end_talk(number, Then::Close);
        } else if closes {
            self.server_parts(number, got < due);
        }
    }

    /// Ends a tunnel from the side of the server. `is_short`: its visitor has not sent all data.
    pub(super) fn server_parts(&mut self, number: usize, is_short: bool) {
        self.link(number).closes_at = None;
        match self.chance.below(3) {
            0 => {
                self.link(number).blame(Fault::Within);
                self.end_talk(number, Then::Reset);
            }
            1 => self.http.speakers[number].then = Then::Finish,
            _ => {
                // Later bytes for the server are answered by a reset, which may destroy its output.
                if is_short {
                    self.link(number).blame(Fault::Within);
                }
                self.end_talk(number, Then::Close);
            }
        }
    }

    /// Whether the bytes since the last call are the data of the visitor.
    pub(super) fn compare(&mut self, number: usize, tunnel: Tunnel) -> bool {
        let Tunnel { at, id, compared, .. } = tunnel;
        let input = &self.http.speakers[number].input;
        let same = is_part_of_body(id, compared - at, &input[compared..]);
        let compared = input.len();
        self.link(number).tunnel = Some(Tunnel { compared, ..tunnel });
        same
    }

    /// Makes a server read again. The data of its visitor had to wait at the visitor meanwhile.
    pub(super) fn listens_again(&mut self, number: usize, tunnel: Tunnel) {
        if tunnel.deaf_until.is_none_or(|until| until > self.time.now) {
            return;
        }
        let held = self.http.held(&mut self.net, number, tunnel.id);
        self.note("listens again: speaker, bytes held", number, held);
        if held > HELD_MAX {
            self.violation(format!("{held} bytes of the tunnel of {} are held", tunnel.id));
        }
        if let Some(tunnel) = &mut self.link(number).tunnel {
            tunnel.deaf_until = None;
        }
    }

    pub(super) fn end_talk(&mut self, number: usize, then: Then) {
        self.http.speakers[number].then = then;
        if let Some(tunnel) = &mut self.link(number).tunnel {
            tunnel.is_ending = true;
        }
    }

    /// Sends data if the protocol was changed. Returns true if the visitor has nothing else to do.
    pub(super) fn visitor_talks(&mut self, number: usize) -> bool {
        let now = self.time.now;
        let Role::Visitor(visitor) = &self.http.speakers[number].role else { return false };
        let Some(ask) = visitor.asks.get(visitor.answers.len()).copied() else { return false };
        let RequestKind::Upgrades { eager } = ask.request_kind else { return false };
        let speaker = &self.http.speakers[number];
        if !message::switches(&speaker.input[speaker.read..], ask.request_kind) {
            return false;
        }
        match visitor.tunnel_end {
            None => {
                let said = if eager { Vec::new() } else { body_of(ask.id, ask.length) };
                self.visitor_begins_to_talk(number, said);
            }
            Some(TunnelEnd::SaysNoMore(at)) if at > now => self.call_speaker_later(number, at),
            Some(TunnelEnd::SaysNoMore(_)) => {
                if !std::mem::replace(&mut self.visitor(number).is_silent, true) {
                    self.http.speakers[number].then = Then::Finish;
                }
            }
            Some(TunnelEnd::Leaves) => self.http.speakers[number].then = Then::Close,
        }
        true
    }

    /// Makes a visitor whose server has ended send the rest before it closes.
    pub(super) fn visitor_goes_on(&mut self, number: usize) -> bool {
        let speaker = &self.http.speakers[number];
        let says = speaker.written < speaker.output.len();
        let talks = matches!(&speaker.role, Role::Visitor(visitor) if visitor.tunnel_end.is_some());
        if says && talks {
            self.http.speakers[number].then = Then::Close;
        }
        says && talks
    }

    pub(super) fn visitor_begins_to_talk(&mut self, number: usize, said: Vec<u8>) {
        let stays = self.chance.time(Duration::from_millis(1), Duration::from_secs(5));
        let tunnel_end = match self.chance.below(10) {
            0..5 => TunnelEnd::SaysNoMore(self.time.now),
            5..8 => TunnelEnd::SaysNoMore(self.time.now + stays),
            _ => TunnelEnd::Leaves,
        };
        self.note("talks: visitor", number, 0);
        self.visitor(number).tunnel_end = Some(tunnel_end);
        let speaker = &mut self.http.speakers[number];
        speaker.excused |= tunnel_end == TunnelEnd::Leaves;
        speaker.output.extend(said);
        if speaker.output.len() - speaker.written > HELD_MAX {
            speaker.piece = speaker.piece.max(100_000);
        }
        self.call_speaker(number, self.time.now);
    }
}
