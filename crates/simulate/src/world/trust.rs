//! Servers that answer a request twice, and the guarantee of the gateway for this case: after it has received
//! unrequested bytes, it does not reuse connections of that server.

use std::time::Duration;

use crate::http::speakers::Role;
use crate::ids::DescriptorId;
use crate::world::World;

/// The minimum time for which a server is not trusted.
const DISTRUSTED: Duration = Duration::from_secs(60);

/// The maximum delay of a second reply.
const LATE_MAX: Duration = Duration::from_millis(20);

impl World {
    /// Schedules a second copy of a reply.
    pub(super) fn answer_again(&mut self, number: usize, reply: Vec<u8>) {
        let late = self.chance.time(Duration::from_micros(1), LATE_MAX);
        let at = self.time.now + late;
        self.link(number).again = Some((at, reply));
        self.call_speaker_later(number, at);
    }

    /// Sends the second copy of a reply if it is due and no other reply is incomplete.
    pub(super) fn server_says_again(&mut self, number: usize) {
        let now = self.time.now;
        let Some((_, reply)) = self.link(number).again.take_if(|(at, _)| *at <= now) else {
            return;
        };
        self.note("says a reply once more: speaker, bytes", number, reply.len());
        self.http.speakers[number].output.extend(reply);
    }

    /// Records bytes that the gateway received from a server.
    pub(crate) fn count_received(&mut self, id: DescriptorId, count: usize) {
        let speakers = &mut self.http.speakers;
        let connections = &self.net.connections;
        let of = |connection: crate::ids::ConnectionId| connections[connection.0].descriptor == id;
        let Some(speaker) = speakers.iter_mut().find(|it| of(it.connection)) else { return };
        let Role::Server(link) = &mut speaker.role else { return };
        link.heard += count;
        let server = link.server;
        // All its requests are answered, and more bytes than their replies have arrived.
        let is_answered = link.is_between() && !link.until_close;
        let asked = link.requests();
        let end = asked.checked_sub(1).and_then(|last| link.ends.get(last));
        if is_answered && end.is_some_and(|end| link.heard > *end) {
            self.http.servers[server].distrusted = Some(self.time.now);
        }
    }

    /// Checks that a connection may be reused for another request.
    pub(super) fn check_trust(&mut self, number: usize) {
        let server = self.link(number).server;
        let since = self.http.servers[server].distrusted;
        let now = self.time.now;
        if since.is_some_and(|since| since < now && now < since + DISTRUSTED) {
            self.violation(format!("a connection of server {server} is reused: speaker {number}"));
        }
    }
}
