//! Warnings about limits of memory that exclude each other.

use crate::model::Configuration;
use crate::quantities::size_text;
use crate::remarks::Remark;

/// Returns a remark for each pool whose queue can never be full, because `memory_max` is reached before.
pub(super) fn memory_warnings(configuration: &Configuration) -> Vec<Remark> {
    let Some(max) = configuration.daemon.memory_max else { return Vec::new() };
    let above = configuration.pools.iter().filter(|pool| pool.queue.bytes_max > max);
    let remark = |pool: &crate::model::Pool| Remark {
        path: ["daemon", "memory_max"].map(str::to_owned).to_vec(),
        message: format!(
            "`queue.max_bytes` of pool `{}` ({}) is more than `daemon.memory_max` ({}): requests are rejected because of \
             `memory_max` before the queue is full; lower `queue.max_bytes`",
            pool.name,
            size_text(pool.queue.bytes_max as u64),
            size_text(max as u64),
        ),
    };
    above.map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_above_the_memory_of_the_daemon_is_reported() {
        let said = |daemon: &str, queue: &str| {
            let text = format!(
                "[daemon]\n{daemon}\n[listener.main]\nlisten = \":7000\"\npool = \"a\"\n\
                 [pool.a]\nprogram = [\"cat\"]\n{queue}\n"
            );
            let source = crate::Source { name: "x.toml".to_owned(), text };
            let configuration = crate::parse(&source, &|_| None).unwrap();
            memory_warnings(&configuration).into_iter().map(|it| it.message).collect::<String>()
        };
        assert_eq!(said("", "queue = { max_bytes = \"1GiB\" }"), "");
        assert_eq!(said("memory_max = \"64MiB\"", ""), "", "64 MiB is the default of the queue");
        assert_eq!(said("memory_max = \"1MiB\"", "queue = { max_bytes = \"1MiB\" }"), "");
        let above = said("memory_max = \"1MiB\"", "queue = { max_bytes = \"2MiB\" }");
        assert!(
            above.contains("pool `a` (2MiB) is more than `daemon.memory_max` (1MiB)"),
            "{above}"
        );
    }
}
