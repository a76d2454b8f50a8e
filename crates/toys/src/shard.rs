//! A shard with one listener and one pool, assembled without settings.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use backend::backends::BackendConfig;
use backend::system::Threads;
use backend::workers::WorkersConfig;
use engine::balance::BalanceConfig;
use engine::pool_config::PoolConfig;
use event::{Fd, Mailbox, StreamLimits};
use flow::request_shape::RequestShape;
use frontend::connection::ConnectionConfig;
use frontend::listener::ListenerConfig;
use frontend::protocol::ProtocolConfig;
use gateway::{Access, Assembly, DrainLimits, Fleet, Shard, ShardMail};
use observe::access_log::AccessLog;
use observe::metrics::{Metrics, RejectReasons};
use pool::{QueueLimits, Room};
use spawn::Spawn;

/// The name of the listener.
pub const LISTENER: &str = "toy";
/// The name of the pool.
pub const POOL: &str = "toys";

/// Creates a shard that serves `protocol` on this socket with a fixed number of `workers`, and returns it with a handle
/// that drains it. It must run on the loop of this mailbox.
///
/// # Panics
/// Never: the listener and the pool belong to the fleet that this function creates.
#[must_use]
pub fn shard(
    mailbox: Mailbox<ShardMail>,
    socket: Fd,
    protocol: Arc<dyn ProtocolConfig>,
    workers: (WorkersConfig, u32),
) -> (Shard, Access) {
    let (workers, count) = workers;
    let queue = QueueLimits::default();
    let room = Room { requests: queue.length, bytes: queue.bytes };
    let fleet = Fleet::alone(mailbox, &[LISTENER], &[(POOL, room)]);
    let id = fleet.listener(LISTENER).expect("the fleet has this listener");
    let pool = fleet.pool(POOL).expect("the fleet has this pool");
    let reasons = RejectReasons::default();
    let metrics = Metrics::new(vec![LISTENER.to_owned()], vec![POOL.to_owned()], &reasons);
    let metrics = Arc::new(metrics);
    let listener = ListenerConfig {
        name: LISTENER.to_owned(),
        connections_max: 100,
        datagram_max: 1024,
        addresses: settings::Addresses::default(),
        connection: Arc::new(ConnectionConfig {
            id,
            pool,
            keeps_half_closed: false,
            idle: None,
            first_request_timeout: None,
            send_timeout: None,
            send_rate_min: 0,
            reply_buffered: 64 << 10,
            limits: StreamLimits::default(),
            logged: None,
            protocol: Arc::clone(&protocol) as _,
        }),
        protocol_config: protocol,
    };
    let sizing = elastic::Sizing::fixed(count);
    let config = PoolConfig {
        binding_uses: None,
        name: POOL.to_owned(),
        pool: pool::Settings { queue, sizing, ..pool::Settings::default() },
        then: None,
        balance: BalanceConfig::default(),
        takes: RequestShape::Messages,
        own: None,
        is_tagged: false,
        traits: workers.traits(),
    };
    let shard = Shard::assemble(Assembly {
        listeners: vec![(listener, Some(socket))],
        pools: vec![(pool, config, BackendConfig { workers, check: None })],
        spawner: Box::new(NoPrograms),
        runner: Box::new(Threads),
        fleet: Arc::clone(&fleet),
        shard: 0,
        metrics: Arc::clone(&metrics),
        started: (Instant::now(), SystemTime::now()),
        seed: 1,
        admission: None,
        access_log: AccessLog::new(None, None),
        drain: DrainLimits {
            within: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(1),
        },
    });
    (shard, Access::new(fleet, vec![metrics]))
}

/// A spawner without programs: no toy is a program.
struct NoPrograms;

impl Spawn for NoPrograms {
    fn start(&mut self, _token: u64, _command: spawn::Command) {
        debug_assert!(false, "no pool has programs");
    }

    fn stop(&mut self, _token: u64, _how: spawn::Stop) {}

    fn program_socket(&mut self, _how: spawn::SocketKind) -> io::Result<spawn::ProgramSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn resident(&self, _process: u32) -> Option<u64> {
        None
    }
}
