//! Every number of the cluster, declared once: its field, its kind, its name in the Prometheus text format, and its help
//! text, which also documents the field.
//!
//! No shard counts them: they are read from the thread of the cluster when the page is made.

use super::page::Page;

/// A metric of the cluster, of its commands, or of one pool.
struct Family<T> {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: fn(&T) -> String,
}

/// Declares a struct of numbers, and its families in the order of the page.
macro_rules! numbers {
    (
        $(#[$about:meta])*
        $Numbers:ident, $FAMILIES:ident {
            $( $field:ident: $kind:ident $Type:ty, $name:literal $help:literal, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $Numbers {
            $( #[doc = $help] pub $field: $Type, )*
        }

        const $FAMILIES: &[Family<$Numbers>] = &[
            $( Family {
                name: $name,
                kind: stringify!($kind),
                help: $help,
                of: |it| it.$field.to_string(),
            }, )*
        ];
    };
}

numbers! {
    /// Metrics of the connection.
    ClusterConnection, CONNECTION {
        connected: gauge u8, "roadstead_cluster_connected"
            "1 while there is a connection to a NATS server.",
        reconnects: counter u64, "roadstead_cluster_reconnects_total"
            "Connections to NATS servers that were lost.",
        hints_sent: counter u64, "roadstead_cluster_health_hints_sent_total"
            "Changes of the health of servers that this daemon has reported to other machines.",
        hints_received: counter u64, "roadstead_cluster_health_hints_received_total"
            "Changes of the health of servers that other machines have reported.",
    }
}

numbers! {
    /// Metrics of the limits of addresses that machines share.
    ClusterLimits, LIMITS {
        sent: counter u64, "roadstead_cluster_limit_reports_sent_total"
            "Messages with which this daemon has reported what addresses used.",
        received: counter u64, "roadstead_cluster_limit_reports_received_total"
            "Messages with which other machines have reported what addresses used.",
    }
}

numbers! {
    /// Metrics of the commands of operators that machines share.
    ClusterCommands, COMMANDS {
        in_sync: gauge u8, "roadstead_cluster_commands_in_sync"
            "1 while the commands of operators are read and stored as they happen.",
        entries: gauge usize, "roadstead_cluster_command_entries"
            "Servers and fallbacks for which operators have set another state or weight than the default.",
        stored: counter u64, "roadstead_cluster_commands_stored_total"
            "Commands of this daemon that were stored for all machines.",
        failed: counter u64, "roadstead_cluster_commands_failed_total"
            "Commands of this daemon that were not stored, or whose outcome is unknown.",
        conflicts: counter u64, "roadstead_cluster_command_conflicts_total"
            "Writes of commands that were repeated because another machine was faster.",
        restored: counter u64, "roadstead_cluster_commands_restored_total"
            "Entries that this daemon stored again because the NATS servers had lost them.",
    }
}

numbers! {
    /// Metrics of a pool whose bindings machines share.
    ClusterPool, POOL {
        in_sync: gauge u8, "roadstead_cluster_in_sync"
            "1 while the bindings of the pool are read and written as they happen.",
        keys: gauge usize, "roadstead_cluster_keys" "Clients whose binding this daemon knows.",
        waiting: gauge usize, "roadstead_cluster_waiting" "Bindings that wait to be written.",
        behind: gauge u64, "roadstead_cluster_behind"
            "Changes that the NATS servers have and that were not read.",
        machines: gauge usize, "roadstead_cluster_machines"
            "Other machines that share the bindings and were heard in the last 2 minutes.",
        proof_age_seconds: gauge f64, "roadstead_cluster_proof_age_seconds"
            "Time since another machine was found to have the same bindings; -1: never.",
        writes: counter u64, "roadstead_cluster_writes_total"
            "Bindings that were sent to the NATS servers.",
        write_failures: counter u64, "roadstead_cluster_write_failures_total"
            "Bindings that the NATS servers did not store, or whose outcome is unknown.",
        conflicts: counter u64, "roadstead_cluster_conflicts_total"
            "Clients that two machines bound at the same time; one binding was replaced.",
        differing_shards: counter u64, "roadstead_cluster_differing_shards_total"
            "Parts of the table that differed from those of another machine and were read again.",
    }
}

/// The metrics of the cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterMetrics {
    /// The connection.
    pub connection: ClusterConnection,
    /// The limits of addresses; `None`: none are shared.
    pub limits: Option<ClusterLimits>,
    /// The commands of operators; `None`: none are shared.
    pub commands: Option<ClusterCommands>,
    /// The pools that share bindings, with their names.
    pub pools: Vec<(String, ClusterPool)>,
}

impl ClusterMetrics {
    /// Returns all metrics in the Prometheus text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page::default();
        single(&mut page, CONNECTION, &self.connection);
        if let Some(limits) = &self.limits {
            single(&mut page, LIMITS, limits);
        }
        if let Some(commands) = &self.commands {
            single(&mut page, COMMANDS, commands);
        }
        for family in POOL {
            page.head(family.name, family.kind, family.help);
            for (pool, numbers) in &self.pools {
                page.line(family.name, &format!("{{pool=\"{pool}\"}}"), (family.of)(numbers));
            }
        }
        page.into_text()
    }
}

fn single<T>(page: &mut Page, families: &[Family<T>], numbers: &T) {
    for family in families {
        page.head(family.name, family.kind, family.help);
        page.line(family.name, "", (family.of)(numbers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pools_have_the_name_of_the_pool() {
        let pool = |proof_age_seconds| ClusterPool {
            in_sync: 1,
            proof_age_seconds,
            ..ClusterPool::default()
        };
        let metrics = ClusterMetrics {
            pools: vec![("a".to_owned(), pool(-1.0)), ("b".to_owned(), pool(0.25))],
            ..ClusterMetrics::default()
        };
        let page = metrics.render();
        let family = "# HELP roadstead_cluster_proof_age_seconds \
                      Time since another machine was found to have the same bindings; -1: never.\n\
                      # TYPE roadstead_cluster_proof_age_seconds gauge\n\
                      roadstead_cluster_proof_age_seconds{pool=\"a\"} -1\n\
                      roadstead_cluster_proof_age_seconds{pool=\"b\"} 0.25\n";
        assert!(page.contains(family), "{page}");
        assert!(page.contains("\nroadstead_cluster_connected 0\n"), "{page}");
    }

    #[test]
    fn what_is_not_shared_has_no_metrics() {
        let nothing = ClusterMetrics::default().render();
        assert!(!nothing.contains("limit_reports") && !nothing.contains("command"), "{nothing}");
        let metrics = ClusterMetrics {
            limits: Some(ClusterLimits { sent: 1, received: 2 }),
            commands: Some(ClusterCommands { entries: 3, ..ClusterCommands::default() }),
            ..ClusterMetrics::default()
        };
        let page = metrics.render();
        assert!(page.contains("\nroadstead_cluster_limit_reports_received_total 2\n"), "{page}");
        assert!(page.contains("\nroadstead_cluster_command_entries 3\n"), "{page}");
    }
}
