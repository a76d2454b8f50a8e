//! The shards of a daemon, as seen from each of them.
//!
//! What it is: their mailboxes, the owner shard of each pool, and the counts that are exact for all shards together.
//! What it must never depend on: a stream, a request.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use event::Mailbox;
use exchange::{BindingChange, ListenerId, PoolId, SHARDS_MAX, Table};
use pool::{Room, Tokens};
use settings::{Configuration, FallbackAnswer, Protocol};

use crate::descriptors::DescriptorLimit;
use crate::error::BuildError;
use crate::holders::Holders;
use crate::memory::MemoryLimit;
use crate::resolver::{self, Lookup, Resolver};
use crate::shard_mail::ShardMail;
use crate::shared_bindings::SharedBindings;
use crate::shared_upstreams::{SharedUpstreams, shared_servers};
use engine::backlog::Backlog;
use engine::shard_group::ShardGroup;
use engine::shard_message::MAIL_BYTES_MAX;
use flow::order::Order;
use frontend::bodies::Bodies;
use observe::status::OrderResult;

/// The minimum and maximum number of bytes of one request's parts in transit between two shards.
const WINDOW_MIN: usize = 4 << 10;
const WINDOW_MAX: usize = 256 << 10;

/// The maximum number of messages that wait for a shard when changes of bindings are sent to it.
const CHANGES_WAITING_MAX: usize = 16;

/// All shards of a daemon. A single shard is a fleet of one.
pub struct Fleet {
    mailboxes: Vec<Mailbox<ShardMail>>,
    /// The pools in the order of the configuration. Their ids are assigned here, so they are the same on all shards.
    pools: Table<PoolId, FleetPool>,
    listeners: Table<ListenerId, FleetListener>,
    window: usize,
    /// The random secret for the cookies of all pools.
    secret: Mutex<Option<[u8; 32]>>,
    /// The resolver for names of servers.
    names: Arc<Resolver>,
    memory: MemoryLimit,
    holders: Holders,
    descriptors: DescriptorLimit,
    /// The number of bytes of requests in transit to each shard.
    mail_bytes: Vec<AtomicUsize>,
    /// The next ticket of a client that waits for space in a queue.
    tickets: AtomicU64,
    /// The bindings that are shared with other daemons.
    bindings: OnceLock<SharedBindings>,
    /// What operators have stored for servers on all machines, by pool and server.
    stored: Mutex<BTreeMap<(String, String), Order>>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.names.end();
    }
}

/// The state of a pool that all shards share.
struct FleetPool {
    name: String,
    owner: u32,
    backlog: Backlog,
    /// Set if all shards serve the pool.
    shared: Option<Mutex<SharedUpstreams>>,
}

/// The state of a listener that all shards share.
struct FleetListener {
    name: String,
    /// The only shard that listens; `None`: all shards listen.
    only: Option<u32>,
    /// The number of open connections on all shards.
    open: AtomicU32,
    /// The number of bytes of bodies that are being buffered completely.
    bodies: Arc<Bodies>,
}

impl FleetListener {
    fn new(name: &str, only: Option<u32>) -> Self {
        Self { name: name.to_owned(), only, open: AtomicU32::new(0), bodies: Arc::default() }
    }
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("shards", &self.mailboxes.len()).finish_non_exhaustive()
    }
}

impl Fleet {
    /// Creates the fleet of the shards whose loops have these mailboxes, in this order.
    ///
    /// # Panics
    /// If `mailboxes` is empty or has more than [`SHARDS_MAX`] elements.
    #[must_use]
    pub fn new(mailboxes: Vec<Mailbox<ShardMail>>, configuration: &Configuration) -> Arc<Self> {
        Self::with_lookup(mailboxes, configuration, None)
    }

    /// Like [`Self::new`], but names of servers are resolved with `lookup` instead of the system's resolver.
    ///
    /// # Panics
    /// As for [`Self::new`].
    #[must_use]
    pub fn with_lookup(
        mailboxes: Vec<Mailbox<ShardMail>>,
        configuration: &Configuration,
        lookup: Option<Lookup>,
    ) -> Arc<Self> {
        // This must happen before any program can be started.
        if let Err(error) = spawn::withhold(configuration.secret_variables()) {
            tracing::error!("secrets in the environment cannot be protected: {error}");
        }
        let count = u32::try_from(mailboxes.len()).unwrap_or(u32::MAX);
        assert!((1..=SHARDS_MAX).contains(&count), "1 to {SHARDS_MAX} shards");
        let pool_owners = assign_owners(configuration, count);
        let owner = |pool: &str| {
            let place = configuration.pools.iter().position(|it| it.name == pool);
            place.map_or(0, |place| pool_owners[place])
        };
        let mut listeners = Table::default();
        for listener in &configuration.listeners {
            let only = is_on_one_shard(listener).then(|| listener.pool.as_deref().map_or(0, owner));
            listeners.insert(FleetListener::new(&listener.name, only));
        }
        let mut pools = Table::default();
        for (pool, &owner) in configuration.pools.iter().zip(&pool_owners) {
            let servers = shared_servers(pool).filter(|_| count > 1);
            let shares = servers.and_then(|servers| SharedUpstreams::default().with(&servers));
            // The capacity until the owner shard stores the current one.
            let settings::Queue { requests_max: length, bytes_max: bytes, .. } = pool.queue;
            let backlog = Backlog::new(Room { requests: length, bytes });
            let name = pool.name.clone();
            pools.insert(FleetPool { name, owner, backlog, shared: shares.map(Mutex::new) });
        }
        let smallest = configuration.listeners.iter().map(|listener| listener.send_max).min();
        let names = Resolver::new(lookup.unwrap_or_else(resolver::system), mailboxes.clone());
        Arc::new(Self {
            holders: Holders::new(count as usize),
            memory: MemoryLimit::new(configuration.daemon.memory_max.unwrap_or(usize::MAX)),
            descriptors: DescriptorLimit::unknown(),
            mail_bytes: mailboxes.iter().map(|_| AtomicUsize::new(0)).collect(),
            tickets: AtomicU64::new(0),
            bindings: OnceLock::new(),
            stored: Mutex::default(),
            names,
            mailboxes,
            pools,
            secret: Mutex::new(None),
            listeners,
            window: (smallest.unwrap_or(WINDOW_MAX) / 4).clamp(WINDOW_MIN, WINDOW_MAX),
        })
    }

    /// Creates a fleet of one shard that is not built from settings. `listeners` are the names of its listeners.
    /// `pools` are the names of its pools, each with the capacity of its queue. Listener and pool ids are in this
    /// order. Memory is not limited.
    #[must_use]
    pub fn alone(
        mailbox: Mailbox<ShardMail>,
        listeners: &[&str],
        pools: &[(&str, Room)],
    ) -> Arc<Self> {
        let mut table = Table::default();
        for name in listeners {
            table.insert(FleetListener::new(name, None));
        }
        let mut served = Table::default();
        for &(name, room) in pools {
            let backlog = Backlog::new(room);
            served.insert(FleetPool { name: name.to_owned(), owner: 0, backlog, shared: None });
        }
        Arc::new(Self {
            holders: Holders::new(1),
            memory: MemoryLimit::new(usize::MAX),
            descriptors: DescriptorLimit::unknown(),
            mail_bytes: vec![AtomicUsize::new(0)],
            tickets: AtomicU64::new(0),
            bindings: OnceLock::new(),
            stored: Mutex::default(),
            names: Resolver::new(resolver::system(), vec![mailbox.clone()]),
            mailboxes: vec![mailbox],
            pools: served,
            secret: Mutex::new(None),
            listeners: table,
            window: WINDOW_MAX,
        })
    }

    /// Shares bindings with other daemons. Call it once, before shards are built.
    pub fn share_bindings(&self, bindings: SharedBindings) {
        let is_first = self.bindings.set(bindings).is_ok();
        debug_assert!(is_first, "bindings are shared once");
    }

    pub(crate) fn bindings(&self) -> Option<&SharedBindings> {
        self.bindings.get()
    }

    /// Sends changes by other daemons to the shard that owns a pool. If it `is_limited`, few messages may wait.
    ///
    /// # Errors
    /// The changes: too many wait, or the shard has ended.
    pub fn send_binding_changes(
        &self,
        pool: PoolId,
        changes: Vec<BindingChange>,
        is_limited: bool,
    ) -> Result<(), Vec<BindingChange>> {
        let mailbox = self.mailbox(self.owner(pool));
        if !is_limited {
            mailbox.post(ShardMail::Bindings { pool, changes });
            return Ok(());
        }
        if mailbox.waiting() >= CHANGES_WAITING_MAX {
            return Err(changes);
        }
        match mailbox.try_send(ShardMail::Bindings { pool, changes }) {
            Err(ShardMail::Bindings { changes, .. }) => Err(changes),
            _ => Ok(()),
        }
    }

    /// Applies what operators have stored for a pool on all machines. A reload that adds a server applies it too.
    /// `reply` is called as for [`ShardMail::Order`].
    pub fn apply_stored(
        &self,
        pool: &str,
        order: Order,
        reply: Box<dyn FnOnce(OrderResult) + Send>,
    ) {
        if let Order::Stored { worker, .. } = &order {
            self.stored().insert((pool.to_owned(), worker.clone()), order.clone());
        }
        let owner = self.mailbox(self.owner_of(pool));
        owner.post(ShardMail::Order { pool: pool.to_owned(), order, reply });
    }

    /// What operators have stored for a server.
    pub(crate) fn stored_order(&self, pool: &str, worker: &str) -> Option<Order> {
        self.stored().get(&(pool.to_owned(), worker.to_owned())).cloned()
    }

    fn stored(&self) -> MutexGuard<'_, BTreeMap<(String, String), Order>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another daemon reports that the health of a server has changed. If too many messages wait, the report is
    /// dropped: the next check of the server is due soon anyway.
    pub fn check_now(&self, pool: &str, worker: &str) {
        let Some((pool, owner)) = self.find(pool) else { return };
        let mailbox = self.mailbox(owner);
        if mailbox.waiting() < CHANGES_WAITING_MAX {
            // A shard that has ended checks nothing.
            let _ = mailbox.try_send(ShardMail::CheckNow { pool, worker: worker.to_owned() });
        }
    }

    /// The shard that owns a pool.
    pub(crate) fn owner(&self, pool: PoolId) -> u32 {
        self.pools.get(pool).map_or(0, |pool| pool.owner)
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn length(&self) -> usize {
        self.mailboxes.len()
    }

    /// Whether a shard listens for the clients of this listener.
    #[must_use]
    pub fn listens(&self, shard: u32, listener: &str) -> bool {
        let found = self.listeners.values().find(|it| it.name == listener);
        found.is_some_and(|it| it.only.is_none_or(|only| only == shard))
    }

    /// Returns the id of the listener with this name.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<ListenerId> {
        let found = self.listeners.entries().find(|(_, listener)| listener.name == name);
        found.map(|(id, _)| id)
    }

    /// Returns the name of a listener.
    pub(crate) fn listener_name(&self, listener: ListenerId) -> &str {
        &self.listeners[listener].name
    }

    /// Returns the mailbox of a shard.
    ///
    /// # Panics
    /// If no such shard exists.
    #[must_use]
    pub fn mailbox(&self, shard: u32) -> &Mailbox<ShardMail> {
        &self.mailboxes[shard as usize]
    }

    /// Sends a message to every shard.
    pub fn send_to_all(&self, mut mail: impl FnMut() -> ShardMail) {
        for mailbox in &self.mailboxes {
            mailbox.post(mail());
        }
    }

    /// Returns the owner shard of the pool with this name. For an unknown name, returns the first shard.
    pub(crate) fn owner_of(&self, pool: &str) -> u32 {
        self.find(pool).map_or(0, |(_, owner)| owner)
    }

    /// Returns the id of the pool with this name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<PoolId> {
        self.find(name).map(|(id, _)| id)
    }

    /// Returns the id and the owner shard of the pool with this name.
    pub(crate) fn find(&self, name: &str) -> Option<(PoolId, u32)> {
        let found = self.pools.entries().find(|(_, pool)| pool.name == name);
        found.map(|(id, pool)| (id, pool.owner))
    }

    /// Returns the ids of all pools by name.
    pub(crate) fn pool_ids(&self) -> BTreeMap<String, PoolId> {
        self.pools.entries().map(|(id, pool)| (pool.name.clone(), id)).collect()
    }

    /// Returns the state that the shards share for a pool which all of them serve; `None` for a pool that only its
    /// owner shard serves.
    pub(crate) fn shared(&self, id: PoolId) -> Option<SharedUpstreams> {
        let shares = self.pools.get(id)?.shared.as_ref()?;
        Some(shares.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Sets the state that the shards share for a pool.
    pub(crate) fn share(&self, id: PoolId, shares: SharedUpstreams) {
        if let Some(kept) = self.pools.get(id).and_then(|pool| pool.shared.as_ref()) {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = shares;
        }
    }

    /// Returns the secret for cookies without a configured secret. It is drawn once for all shards.
    pub(crate) fn secret(&self) -> io::Result<[u8; 32]> {
        let mut secret = self.secret.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(drawn) = *secret {
            return Ok(drawn);
        }
        let mut drawn = [0; 32];
        event::fill_random(&mut drawn)?;
        *secret = Some(drawn);
        Ok(drawn)
    }

    /// Resolves the names of servers in a configuration that are not known yet. May block.
    ///
    /// # Errors
    /// A name has no address.
    pub fn look_up(&self, configuration: &Configuration) -> Result<(), BuildError> {
        self.names.look_up(configuration)
    }

    /// Starts to resolve the names of this configuration again at their intervals, on a separate thread. The
    /// configuration must be the active one.
    ///
    /// # Errors
    /// The system cannot start the thread.
    pub fn watch_names(&self, configuration: &Configuration) -> io::Result<()> {
        self.names.watch(configuration)
    }

    pub(crate) fn names(&self) -> &Resolver {
        &self.names
    }

    /// Returns the counter of bytes of bodies that all shards together are buffering completely for a listener.
    pub(crate) fn bodies(&self, listener: ListenerId) -> &Arc<Bodies> {
        &self.listeners[listener].bodies
    }

    /// Sets the limit on memory, in bytes. It applies from the next turn of each shard, which is triggered immediately.
    pub fn set_memory_max(&self, max: usize) {
        self.memory.set_max(max);
        self.send_to_all(|| ShardMail::Memory);
    }

    /// Sets the limit of open files in this process; `None`: unlimited. Clients leave a part of them for workers.
    pub fn set_descriptors_max(&self, max: Option<u64>) {
        self.descriptors.set(max);
    }

    pub(crate) const fn descriptors(&self) -> &DescriptorLimit {
        &self.descriptors
    }

    pub(crate) const fn holders(&self) -> &Holders {
        &self.holders
    }

    pub(crate) const fn memory(&self) -> &MemoryLimit {
        &self.memory
    }

    /// Returns the number of bytes in use, as published by the shards.
    pub(crate) fn held(&self) -> usize {
        let bodies = self.listeners.values().map(|it| it.bodies.held());
        self.memory.account().held().saturating_add(bodies.sum())
    }

    /// Counts one more open connection of a listener, unless all shards together have `max`.
    pub(crate) fn open(&self, listener: ListenerId, max: u32) -> bool {
        let more = |open: u32| (open < max).then(|| open + 1);
        // This is only a counter: no other memory is made visible by it.
        let open = &self.listeners[listener].open;
        open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts a closed connection of a listener.
    pub(crate) fn close(&self, listener: ListenerId) {
        self.listeners[listener].open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ShardGroup for Fleet {
    fn count(&self) -> usize {
        self.length()
    }

    fn owners(&self) -> Table<PoolId, u32> {
        let mut owners = Table::default();
        self.pools.entries().for_each(|(id, pool)| owners.insert_as(id, pool.owner));
        owners
    }

    fn tokens(&self, pool: PoolId) -> Option<Vec<Arc<Tokens>>> {
        self.shared(pool).map(|shared| shared.tokens)
    }

    fn backlog(&self, pool: PoolId) -> &Backlog {
        &self.pools[pool].backlog
    }

    fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::SeqCst)
    }

    fn window(&self) -> usize {
        self.window
    }

    /// Whether the memory limit is exceeded. The result of an earlier turn may be out of date, so the current use is
    /// compared too.
    fn lacks_memory(&self) -> bool {
        self.memory.is_over() && self.held() > self.memory.low()
    }

    /// Reserves space for a request in the mailbox of a shard. If nothing is in transit, a request of any size fits.
    fn post_bytes(&self, shard: u32, bytes: usize) -> bool {
        let more = |waiting: usize| {
            let all = waiting.saturating_add(bytes);
            (waiting == 0 || all <= MAIL_BYTES_MAX).then_some(all)
        };
        let waiting = &self.mail_bytes[shard as usize];
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn take_bytes(&self, shard: u32, bytes: usize) {
        self.mail_bytes[shard as usize].fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Whether only one shard listens: state per client address is kept in one place.
fn is_on_one_shard(listener: &settings::Listener) -> bool {
    listener.protocol == Protocol::Datagrams || listener.addresses.limits.is_some()
}

/// Assigns the pools to the shards. Pools that pass requests to each other get the same shard.
fn assign_owners(configuration: &Configuration, shards: u32) -> Vec<u32> {
    let pools = &configuration.pools;
    let place = |name: &String| pools.iter().position(|pool| pool.name == *name);
    // For each pool, the index of the first pool of its group.
    let mut first: Vec<usize> = (0..pools.len()).collect();
    for (from, pool) in pools.iter().enumerate() {
        let fallback =
            pool.balancing.fallback.as_ref().and_then(|fallback| match &fallback.answer {
                FallbackAnswer::Pool(name) => place(name),
                FallbackAnswer::Line(_) | FallbackAnswer::File(_) | FallbackAnswer::Redirect(_) => {
                    None
                }
            });
        for to in pool.then.as_ref().and_then(place).into_iter().chain(fallback) {
            let (a, b) = (first[from], first[to]);
            first.iter_mut().filter(|it| **it == a.max(b)).for_each(|it| *it = a.min(b));
        }
    }
    let mut groups: Vec<usize> = Vec::new();
    let mut owner = |group: usize| {
        let number = groups.iter().position(|it| *it == group).unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        });
        u32::try_from(number % shards as usize).unwrap_or(0)
    };
    first.into_iter().map(&mut owner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(text: &str) -> Configuration {
        let source = settings::Source { name: "test".to_owned(), text: text.to_owned() };
        settings::parse(&source, &|_| None).unwrap()
    }

    #[test]
    fn pools_that_hand_on_to_each_other_are_at_home_together() {
        let pool = |name: &str, more: &str| format!("[pool.{name}]\nprogram = [\"cat\"]\n{more}\n");
        let text = [
            "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"a\"\n".to_owned(),
            pool("a", "then = \"c\""),
            pool("b", ""),
            pool("c", ""),
            pool("d", ""),
            pool("e", "fallback = { pool = \"d\" }"),
        ];
        let configuration = configuration(&text.concat());
        assert_eq!(assign_owners(&configuration, 1), [0; 5]);
        assert_eq!(assign_owners(&configuration, 2), [0, 1, 0, 0, 0]);
        assert_eq!(assign_owners(&configuration, 4), [0, 1, 0, 2, 2]);
    }
}
