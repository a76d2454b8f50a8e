//! What the settings say of servers.

use std::time::Duration;

use event::StreamLimits;
use settings::Idempotent;

use super::{PlanError, unless_zero};
use crate::names::Names;

/// What the servers of a pool are.
#[derive(Clone, Debug)]
pub(crate) struct ServersPlan {
    /// Where they listen, and how that is shown.
    pub(crate) addresses: Vec<(event::Address, String)>,
    pub(crate) reply: wire::http1::Limits,
    pub(crate) limits: StreamLimits,
    pub(crate) connect: Duration,
    /// Until the first byte of the reply.
    pub(crate) deadline: Duration,
    pub(crate) between: Duration,
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Duration,
    /// After so long without a word the kernel asks whether a server is there.
    pub(crate) keepalive: Option<Duration>,
    /// How often a request is given to another when one failed it.
    pub(crate) retries: settings::Retries,
    /// Which requests may be made again though a server had them.
    pub(crate) idempotent: Idempotent,
    /// Checks say when a server is down; without them it retires when it cannot be connected to.
    pub(crate) checked: bool,
    /// They are programs of ours.
    pub(crate) is_hosted: bool,
    /// What follows when one cannot be connected to is for the pool's home to say, on another shard.
    pub(crate) is_branch: bool,
}

/// The servers of `pool`.
pub(super) fn plan(
    pool: &settings::Pool,
    servers: settings::Servers,
    names: &Names,
) -> Result<ServersPlan, PlanError> {
    let settings::Servers {
        servers,
        requests_max: _,
        connect,
        between,
        total,
        keep,
        tcp_keepalive,
        // It is for whoever looks names up.
        resolve: _,
    } = servers;
    let address = |settings::Server { address, weight: _, slots: _, backup: _ }| {
        let shown = address.to_string();
        let to = match address {
            settings::Address::Internet(address) => event::Address::Internet(address),
            settings::Address::Unix(path) => event::Address::Unix(path),
            // The checks refuse it: nobody hands a connection over.
            settings::Address::Inherited(name) => event::Address::Unix(name.into()),
            settings::Address::Named(name) => {
                let found = names.address(&name).map(event::Address::Internet);
                found.ok_or_else(|| PlanError::Name {
                    pool: pool.name.clone(),
                    name: name.to_string(),
                    why: "it was not looked up".to_owned(),
                })?
            }
        };
        Ok((to, shown))
    };
    Ok(ServersPlan {
        addresses: servers.into_iter().map(address).collect::<Result<_, _>>()?,
        reply: response_limits(pool),
        limits: StreamLimits::default(),
        connect,
        deadline: pool.deadline,
        between,
        total: unless_zero(total),
        idle: keep,
        keepalive: unless_zero(tcp_keepalive),
        retries: pool.balance.retries,
        idempotent: pool.idempotent,
        // Something looks at them.
        checked: pool.balance.health.check.is_some(),
        is_hosted: false,
        is_branch: false,
    })
}

/// What a response of this pool may have at most.
pub(super) fn response_limits(pool: &settings::Pool) -> wire::http1::Limits {
    let settings::ResponseLimits { head_max, fields_max } = pool.response;
    let all = wire::http1::Limits::REPLY;
    wire::http1::Limits { head: head_max, line: all.line.min(head_max), fields: fields_max, ..all }
}

/// What a server is to its pool.
pub(super) fn member(server: &settings::Server) -> pool::Member {
    let settings::Server { address, weight, slots, backup } = server;
    let (weight, slots, backup) = (*weight, *slots, *backup);
    pool::Member { weight, slots, backup, ..pool::Member::new(&address.to_string()) }
}
