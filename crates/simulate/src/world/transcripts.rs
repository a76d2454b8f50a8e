//! Records the bytes that the gateway sends.

use crate::ids::{DescriptorId, Party};
use crate::net::Kind;
use crate::world::World;

impl World {
    /// Records bytes that the kernel accepted from the gateway.
    pub(crate) fn note_sent(&mut self, id: DescriptorId, bytes: &[u8]) {
        let party = match self.net.descriptor(id).kind {
            Kind::Socket(connection) => self.net.connection(connection).far,
            Kind::PipeOut(flow) => self.net.flow(flow).reader,
            Kind::Listener(_) | Kind::PipeIn(_) | Kind::Datagrams => return,
        };
        let kind = match party {
            Party::Client(_) => "client",
            Party::Program(_) => "program",
            Party::Speaker(_) => "speaker",
            Party::Gateway(_) => return,
        };
        self.record.transcripts.sent((kind, party.number()), bytes);
        self.trace(|| format!("sent to {kind} {}: {}", party.number(), bytes.escape_ascii()));
    }
}
