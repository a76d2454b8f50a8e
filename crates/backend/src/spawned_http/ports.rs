//! Verifies which process accepts connections on the port of a program. Any user of the machine can listen on a free
//! port, before the program does or after it has stopped listening. Therefore each connection is verified before
//! anything is sent on it.

use std::net::{Ipv4Addr, SocketAddr};

use event::{Address, Context, StreamId};
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
    /// The address of the program.
    pub(super) address: &'a Address,
}

struct Known {
    worker: WorkerId,
    program: PortProgram,
    /// The last foreign user that was found, so that each is logged once.
    stranger: Option<u32>,
}

/// The programs of one pool that serve on ports.
#[derive(Default)]
pub(super) struct Ports {
    known: Vec<Known>,
}

impl Ports {
    /// Returns which process accepts a connection. A socket in the file system belongs to its program and needs no
    /// check.
    pub(super) fn look(&mut self, io: &Context<'_>, made: &Made<'_>, system: &System) -> PortOwner {
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
        // A simulated kernel has no addresses, and its spawner does not need them.
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let own = io.local_address(made.stream).unwrap_or(nowhere);
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

    /// Removes the state of a program that has ended or was never started.
    pub(super) fn leave(&mut self, worker: WorkerId) {
        self.known.retain(|known| known.worker != worker);
    }
}
