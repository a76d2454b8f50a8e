//! Who accepts connections at the ports of programs. Any user of the machine can listen on a port on which
//! nobody does: before its program, and while that lives on without listening. So it is looked at for each
//! connection, before anything is sent on it.

use std::net::{Ipv4Addr, SocketAddr};

use event::{Address, Calls, StreamId};
use exchange::WorkerId;
use spawn::{PortOwner, PortProgram};

use crate::system::System;

/// A connection to the socket of a program.
pub(super) struct Made<'a> {
    pub(super) stream: StreamId,
    pub(super) worker: WorkerId,
    /// The name of the worker.
    pub(super) name: &'a str,
    /// The process, while it runs.
    pub(super) pid: Option<u32>,
    /// Where it was made to.
    pub(super) address: &'a Address,
}

struct Known {
    worker: WorkerId,
    program: PortProgram,
    /// The other user who was found last, so that each is logged once.
    stranger: Option<u32>,
}

/// The programs of one pool that serve on ports.
#[derive(Default)]
pub(super) struct Ports {
    known: Vec<Known>,
}

impl Ports {
    /// Who accepts a connection. No program can be known by a socket in the file system: that is its own.
    pub(super) fn look(
        &mut self,
        calls: &Calls<'_>,
        made: &Made<'_>,
        system: &System,
    ) -> PortOwner {
        let Address::Internet(address) = made.address else { return PortOwner::Program };
        let place = match self.known.iter().position(|it| it.worker == made.worker) {
            Some(place) => place,
            None => {
                let Some(pid) = made.pid else { return PortOwner::Nobody };
                let program = PortProgram::new(address.port(), pid);
                self.known.push(Known { worker: made.worker, program, stranger: None });
                self.known.len() - 1
            }
        };
        let Known { program, stranger, .. } = &mut self.known[place];
        // A simulated kernel has no addresses, and its spawner does not ask for them.
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let own = calls.own_address(made.stream).unwrap_or(nowhere);
        let owner = system.spawner.port_owner(program, own);
        if let PortOwner::Other(user) = owner
            && stranger.replace(user) != Some(user)
        {
            tracing::warn!(
                worker = made.name,
                process = made.pid,
                user,
                "another user listens on {address}, which was kept for a program: nothing is sent there"
            );
        }
        owner
    }

    /// A program has ended, or was never there.
    pub(super) fn leave(&mut self, worker: WorkerId) {
        self.known.retain(|known| known.worker != worker);
    }
}
