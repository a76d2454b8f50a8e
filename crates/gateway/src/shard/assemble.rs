//! Assembles a shard from configurations that are already built.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use exchange::Table;

use super::{Listener, RefusedConnections, Shard, Shortage};
use crate::assembly::Assembly;
use crate::client_limits::{ClientLimits, ListenerLimits};
use crate::drain::Drain;
use crate::shard_mail::ShardMail;
use backend::backends::Backends;
use backend::system::System;
use engine::engine::Engine;
use frontend::session::Scratch;
use observe::calendar::Epoch;
use observe::metrics::ListenerEnds;

impl Shard {
    /// Creates a shard with these listeners and pools. It serves after [`Self::start`] was called. The configurations
    /// need not be built from settings: protocols and kinds of workers may be implemented in another crate.
    #[must_use]
    pub fn assemble(assembly: Assembly) -> Self {
        let Assembly {
            listeners: configured,
            pools,
            spawner,
            runner,
            fleet,
            shard,
            metrics,
            started: (instant, calendar),
            seed,
            admission,
            access_log,
            drain,
        } = assembly;
        let unix = calendar.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let epoch = Epoch { instant, unix_us: i64::try_from(unix).unwrap_or(i64::MAX) };
        let mut backends = Backends::new(System {
            spawner,
            runner,
            reports: {
                let mailbox = fleet.mailbox(shard).clone();
                Arc::new(move |report| mailbox.post(ShardMail::Worker(report)))
            },
            tokens: BTreeMap::new(),
            token_next: 1,
            checks: BTreeMap::new(),
        });
        let mut configs = Vec::new();
        for ((id, config, backend), seed) in pools.into_iter().zip(seed..) {
            let room = fleet.shared(id).map(|shared| shared.room);
            backends.insert((id, &config.name), backend, room, seed);
            configs.push((id, config));
        }
        let mut engine = Engine::new(configs, epoch, seed, Arc::clone(&fleet) as _, shard);
        engine.access_log = access_log;
        if let Some(bindings) = fleet.bindings() {
            engine.share_health(bindings.health.clone());
        }
        let mut listener_limits = ListenerLimits::default();
        let mut listeners = Table::default();
        for (config, socket) in configured {
            let id = config.connection.id;
            let cluster = fleet.bindings().map(|bindings| bindings.secret);
            let limits = ClientLimits::new(config.addresses.clone(), cluster, instant, seed);
            listener_limits.insert(id, limits);
            engine.listener_ends.insert_as(id, ListenerEnds::default());
            listeners.insert_as(id, Listener::new(config, socket));
        }
        Self {
            listeners,
            engine,
            listener_limits,
            backends,
            fleet,
            sessions: Table::default(),
            dirty: Vec::new(),
            woken: Vec::new(),
            refused: RefusedConnections::default(),
            shortage: Shortage::default(),
            scratch: Scratch::default(),
            pool_timer: None,
            drain: Drain::new(drain),
            metrics,
            admission,
            turns: 0,
            supervisor_lost: 0,
            seed,
        }
    }
}
