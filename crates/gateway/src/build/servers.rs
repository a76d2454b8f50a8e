//! Builds the configuration of servers.

use event::StreamLimits;

use super::context::unless_zero;
use crate::error::BuildError;
use crate::resolver::Resolver;
use backend::upstream::UpstreamConfig;

/// Builds the servers of `pool`.
pub(super) fn config(
    pool: &settings::Pool,
    servers: settings::Servers,
    names: &Resolver,
) -> Result<UpstreamConfig, BuildError> {
    let settings::Servers {
        servers,
        concurrent_max: _,
        connect_timeout: connect,
        read_timeout: between,
        request_timeout: total,
        keepalive_timeout: keep,
        tcp_keepalive_interval: tcp_keepalive,
        // The resolver uses it.
        resolve_interval: _,
    } = servers;
    let address = |settings::Server { address, weight: _, concurrent_max: _, backup: _ }| {
        let shown = address.to_string();
        let to = match address {
            settings::Address::Internet(address) => event::Address::Internet(address),
            settings::Address::Unix(path) => event::Address::Unix(path),
            // The validation of the settings rejects it: a server cannot be an inherited socket.
            settings::Address::Inherited(name) => event::Address::Unix(name.into()),
            settings::Address::Named(name) => {
                let found = names.address(&name).map(event::Address::Internet);
                found.ok_or_else(|| BuildError::Name {
                    pool: pool.name.clone(),
                    name: name.to_string(),
                    why: "it was not looked up".to_owned(),
                })?
            }
        };
        Ok((to, shown))
    };
    Ok(UpstreamConfig {
        addresses: servers.into_iter().map(address).collect::<Result<_, _>>()?,
        reply: response_limits(pool),
        limits: StreamLimits::default(),
        connect,
        deadline: pool.response_timeout,
        between,
        total: unless_zero(total),
        idle: keep,
        keepalive: unless_zero(tcp_keepalive),
        retries: pool.balancing.retries,
        idempotent: pool.idempotent,
        // Health checks decide whether a server is down.
        checked: pool.balancing.health_check.check.is_some(),
        is_spawned_http: false,
        is_member_shard: false,
    })
}

/// Returns the limits for a response of this pool.
pub(super) fn response_limits(pool: &settings::Pool) -> wire::http1::Limits {
    let settings::ResponseLimits { head_max, fields_max } = pool.response;
    let all = wire::http1::Limits::REPLY;
    wire::http1::Limits { head: head_max, line: all.line.min(head_max), fields: fields_max, ..all }
}

/// Returns the properties of a server that its pool uses.
pub(super) fn member(server: &settings::Server) -> pool::Member {
    let settings::Server { address, weight, concurrent_max: slots, backup } = server;
    let (weight, slots, backup) = (*weight, *slots, *backup);
    pool::Member { weight, slots, backup, ..pool::Member::new(&address.to_string()) }
}
