//! The memory limit of the whole daemon: its value in `/status`, and a reload that changes it.

use serde_json::Value;

use crate::daemon::{Daemon, folder, one_pool, read_log, until, worker_program};

const MIB: u64 = 1 << 20;

/// Returns a configuration with this number of shards and this limit.
fn text(shards: u32, memory_max: &str) -> String {
    let pool = one_pool("frame_max = \"4MiB\"", &worker_program(&["--echo"]));
    format!("[daemon]\nshards = {shards}\nmemory_max = \"{memory_max}\"\n{pool}")
}

fn number(memory: &Value, name: &str) -> u64 {
    memory[name].as_u64().unwrap_or_else(|| panic!("{name}: {memory}"))
}

#[test]
fn a_reload_changes_the_limit_on_memory_at_once_and_status_shows_it() {
    for shards in [1, 2] {
        let folder = folder();
        let daemon = Daemon::serve(folder.path(), &text(shards, "1GiB"));
        let memory = daemon.status()["memory"].clone();
        assert_eq!(number(&memory, "max_bytes"), 1 << 30);
        assert_eq!(memory["over"], false);
        let before = number(&memory, "bytes");
        // Lines without an end, which the daemon holds. After that there are no events.
        let clients: Vec<_> = (0..6)
            .map(|_| {
                let mut client = daemon.connect();
                client.send(vec![b'x'; 1 << 20]);
                client
            })
            .collect();
        until("it holds them", || number(&daemon.status()["memory"], "bytes") >= before + 6 * MIB);
        Daemon::rewrite(folder.path(), &text(shards, "2MiB"));
        daemon.reload().unwrap();
        // Only the reload makes the shards check the limit.
        until("connections are closed", || {
            read_log(folder.path()).contains("memory_max (2097152) is kept again")
        });
        let memory = daemon.status()["memory"].clone();
        assert_eq!(number(&memory, "max_bytes"), 2 * MIB);
        assert!(number(&memory, "bytes") <= 2 * MIB, "{memory}");
        assert_eq!(memory["over"], false);
        let closed =
            daemon.metric("roadstead_connections_closed_total", &["\"main\"", "\"memory\""]);
        assert!((4..=6).contains(&closed), "{closed}");
        assert_eq!(daemon.metric("roadstead_memory_limit_bytes", &[]), 2 * MIB);
        drop(clients);
        assert_eq!(daemon.connect().ask("others"), "others");
        assert!(daemon.stop().success());
    }
}
