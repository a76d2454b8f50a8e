//! Servers that answer a request twice, and what the gateway promises then: once it has received bytes
//! that no request asked for, it reuses no connection of that server.

use std::time::Duration;

use crate::http::speakers::Role;
use crate::ids::DescriptorId;
use crate::world::World;

/// How long a server is distrusted at least.
const DISTRUSTED: Duration = Duration::from_secs(60);

/// How late a second reply is at most.
const LATE_MAX: Duration = Duration::from_millis(20);

impl World {
    /// A server will say a reply once more.
    pub(super) fn answer_again(&mut self, number: usize, reply: Vec<u8>) {
        let late = self.chance.time(Duration::from_micros(1), LATE_MAX);
        let at = self.time.now + late;
        self.link(number).again = Some((at, reply));
        self.call_speaker_later(number, at);
    }

    /// Says a reply once more, if it is time and no other reply is in the middle.
    pub(super) fn server_says_again(&mut self, number: usize) {
        let now = self.time.now;
        let Some((_, reply)) = self.link(number).again.take_if(|(at, _)| *at <= now) else {
            return;
        };
        self.note("says a reply once more: speaker, bytes", number, reply.len());
        self.http.speakers[number].output.extend(reply);
    }

    /// The gateway received bytes of a speaker.
    pub(crate) fn speaker_is_heard(&mut self, id: DescriptorId, count: usize) {
        let speakers = &mut self.http.speakers;
        let connections = &self.net.connections;
        let of = |connection: crate::ids::ConnectionId| connections[connection.0].descriptor == id;
        let Some(speaker) = speakers.iter_mut().find(|it| of(it.connection)) else { return };
        let Role::Server(link) = &mut speaker.role else { return };
        link.heard += count;
        let server = link.server;
        // All requests that it was given are answered, and more has come than their replies.
        let is_answered = link.is_between() && !link.until_close;
        let asked = link.requests();
        let end = asked.checked_sub(1).and_then(|last| link.ends.get(last));
        if is_answered && end.is_some_and(|end| link.heard > *end) {
            self.http.servers[server].distrusted = Some(self.time.now);
        }
    }

    /// A connection is used for another request.
    pub(super) fn check_trust(&mut self, number: usize) {
        let server = self.link(number).server;
        let since = self.http.servers[server].distrusted;
        let now = self.time.now;
        if since.is_some_and(|since| since < now && now < since + DISTRUSTED) {
            self.violation(format!("a connection of server {server} is reused: speaker {number}"));
        }
    }
}
