//! The state that all shards share which serve the same pool of servers.
//!
//! What it is: the token words of the servers and the number of connections to each. Both are indexed by a place, which
//! is reserved for a server while the daemon runs. What it must never depend on: a stream, a request.

use std::sync::Arc;

use pool::Tokens;

use backend::connection_counts::ConnectionCounts;

/// The maximum number of servers that a pool may have had. Each uses about 200 bytes per shard, even after its removal.
pub(crate) const PLACES_MAX: usize = 4096;

/// The shared state of one pool. Clones share the same words and counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedUpstreams {
    /// The name of each server, by place.
    names: Vec<String>,
    /// The slots of each server; 0: the server was removed.
    pub(crate) slots: Vec<u32>,
    pub(crate) tokens: Vec<Arc<Tokens>>,
    /// The number of connections to the servers.
    pub(crate) room: ConnectionCounts,
}

impl SharedUpstreams {
    /// Returns the state with these servers and their slots. New servers are appended in their order, as in the pool
    /// itself. Returns `None` if the pool has had more than [`PLACES_MAX`] servers.
    pub(crate) fn with(&self, servers: &[(String, u32)]) -> Option<Self> {
        let mut shares = self.clone();
        shares.slots.fill(0);
        for &(ref name, slots) in servers {
            match shares.names.iter().position(|it| it == name) {
                Some(place) => shares.slots[place] = slots,
                None => {
                    shares.names.push(name.clone());
                    shares.slots.push(slots);
                    shares.tokens.push(Arc::new(Tokens::new(slots)));
                }
            }
        }
        shares.room = self.room.with(&shares.slots);
        (shares.names.len() <= PLACES_MAX).then_some(shares)
    }
}

/// Returns the names and slots of the servers of a pool that every shard serves; `None` for a pool that only its owner
/// shard serves.
///
/// Each shard can have its own connections to servers. A pool that needs a single place of decision stays on its owner
/// shard.
pub(crate) fn shared_servers(pool: &settings::Pool) -> Option<Vec<(String, u32)>> {
    let all = pool.servers().filter(|_| !pool.needs_one_place())?;
    let slots = |server: &settings::Server| {
        (server.address.to_string(), server.concurrent_max.unwrap_or(all.concurrent_max))
    };
    Some(all.servers.iter().map(slots).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_its_place_and_its_word() {
        let names = |all: &[(&str, u32)]| {
            all.iter().map(|&(name, slots)| (name.to_owned(), slots)).collect::<Vec<_>>()
        };
        let first = SharedUpstreams::default().with(&names(&[("a", 2), ("b", 2)])).unwrap();
        assert!(first.tokens[1].take());
        let next = first.with(&names(&[("c", 4), ("b", 3)])).unwrap();
        assert_eq!((next.names.len(), &next.slots[..]), (3, &[0, 3, 4][..]));
        let left: Vec<u32> = next.tokens.iter().map(|word| word.look().1).collect();
        assert_eq!(
            left,
            [2, 1, 4],
            "what is taken stays so; the home of the pool adds what is more"
        );
        let back = next.with(&names(&[("a", 1)])).unwrap();
        assert_eq!((back.names.len(), &back.slots[..]), (3, &[1, 0, 0][..]));
        let many: Vec<_> = (0..=PLACES_MAX).map(|number| (number.to_string(), 1)).collect();
        assert!(back.with(&many).is_none());
    }

    fn slots(more: &str) -> Option<Vec<u32>> {
        let text = format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"a\"\n\
             [pool.a]\nservers = [\"10.0.0.1:80\", {{ address = \"10.0.0.2:80\", max_concurrent = 2 }}]\nupstream.max_concurrent = 7\n{more}"
        );
        let source = settings::Source { name: "test".to_owned(), text };
        let configuration = settings::parse(&source, &|_| None).unwrap();
        let servers = shared_servers(&configuration.pools[0])?;
        Some(servers.into_iter().map(|(_, slots)| slots).collect())
    }

    #[test]
    fn servers_are_shared_unless_something_needs_one_place() {
        let both = || Some(vec![7, 2]);
        assert_eq!(slots(""), both());
        assert_eq!(slots("sticky = { cookie = \"worker\" }"), both());
        assert_eq!(slots("balance = \"hash\"\nfallback = { line = \"x\" }"), both());
        assert_eq!(slots("max_concurrent = 3"), None);
        assert_eq!(slots("sticky = { key = \"source\" }"), None);
        assert_eq!(slots("sticky = { cookie = \"JSESSIONID\", mode = \"passive\" }"), None);
    }
}
