//! Commands of operators, stored in real NATS servers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};

use cluster::{
    Author, Cluster, ClusterConfig, CommandError, CommandRequest, EntryChange, OperatorKey, Secret,
    Setting, Sharing, State,
};
use exchange::AdminState;

use crate::SOON;
use crate::daemon::wait_for;
use crate::nats::Nats;

/// A daemon that keeps what was applied.
struct Machine {
    name: &'static str,
    cluster: Cluster,
    settings: Arc<Mutex<BTreeMap<OperatorKey, Setting>>>,
}

impl Machine {
    fn start(name: &'static str, nats: &Nats) -> Self {
        let settings = Arc::new(Mutex::new(BTreeMap::new()));
        let applied = Arc::clone(&settings);
        let apply = move |key: &OperatorKey,
                          setting,
                          _: Option<&Author>,
                          replies: Vec<cluster::CommandReply>| {
            applied.lock().unwrap().insert(key.clone(), setting);
            replies.into_iter().for_each(|reply| reply(Ok(String::new())));
        };
        let servers = nats.urls();
        let config = ClusterConfig {
            replicas: servers.len().min(3),
            servers,
            tls: None,
            credentials: None,
            site: "site".to_owned(),
            machine: name.to_owned(),
            secret: Secret(1, 2),
        };
        let sharing = Sharing { operator: Some(Box::new(apply)), health: None, limits: None };
        let seed = exchange::mix(Arc::as_ptr(&settings) as u64 ^ u64::from(std::process::id()));
        let cluster = Cluster::start_sharing(config, Vec::new(), sharing, seed).unwrap();
        Self { name, cluster, settings }
    }

    /// Gives a command and waits for its outcome.
    fn command(
        &self,
        key: &OperatorKey,
        change: EntryChange,
        second: u32,
    ) -> Result<(), CommandError> {
        let when = format!("2026-11-28T14:{:02}:{:02}.000Z", second / 60, second % 60);
        let author = Author { who: "uid 0".to_owned(), machine: self.name.to_owned(), when };
        let (sender, receiver) = mpsc::channel();
        let request = CommandRequest { key: key.clone(), change, author };
        self.cluster.command(request, Box::new(move |result| drop(sender.send(result))));
        receiver.recv_timeout(SOON).unwrap().map(drop).map_err(|(error, _)| error)
    }

    /// Gives a command until no other machine is faster.
    fn insist(&self, key: &OperatorKey, change: EntryChange, second: u32) {
        loop {
            match self.command(key, change, second) {
                Err(CommandError::Conflict) => {}
                outcome => return assert_eq!(outcome, Ok(())),
            }
        }
    }

    fn setting(&self, key: &OperatorKey) -> Option<Setting> {
        self.settings.lock().unwrap().get(key).copied()
    }

    fn is_in_sync(&self) -> bool {
        self.cluster.status().operator.unwrap().state == State::InSync
    }
}

fn key(worker: &str) -> OperatorKey {
    OperatorKey::Worker { pool: "a pool".to_owned(), worker: worker.to_owned() }
}

const DISABLE: EntryChange = EntryChange::AdminState(AdminState::Disabled);

#[test]
fn concurrent_commands_for_one_server_are_all_applied_in_one_order() {
    let Some(nats) = Nats::start(3) else { return };
    let machines = ["one", "two"].map(|name| Machine::start(name, &nats));
    for machine in &machines {
        assert!(machine.cluster.wait_in_sync(SOON * 2), "{:?}", machine.cluster.status());
    }
    let [one, two] = &machines;
    let key = key("10.0.0.1:80");
    // The outcome of a command is known when it applies here.
    assert_eq!(one.command(&key, DISABLE, 0), Ok(()));
    assert_eq!(
        one.setting(&key),
        Some(Setting::Worker { admin_state: AdminState::Disabled, weight: None })
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for weight in 1..=40 {
                one.insist(&key, EntryChange::Weight(Some(weight)), weight);
            }
        });
        for round in 1..=40 {
            let states = [AdminState::Drained, AdminState::Enabled];
            let change = EntryChange::AdminState(states[round as usize % 2]);
            two.insist(&key, change, round);
        }
    });
    let expected = Setting::Worker { admin_state: AdminState::Drained, weight: Some(40) };
    for machine in &machines {
        wait_for("the last of both", SOON, || machine.setting(&key) == Some(expected));
    }
    let conflicts =
        machines.each_ref().map(|it| it.cluster.status().operator.unwrap().counters.conflicts);
    println!("conflicts: {conflicts:?}");
}

#[test]
fn settings_survive_a_restart_and_a_loss_of_the_file_store() {
    let Some(mut nats) = Nats::start(1) else { return };
    let one = Machine::start("one", &nats);
    assert!(one.cluster.wait_in_sync(SOON * 2), "{:?}", one.cluster.status());
    assert_eq!(one.command(&key("a"), DISABLE, 1), Ok(()));
    assert_eq!(one.command(&key("b"), EntryChange::Weight(Some(3)), 2), Ok(()));
    for is_wiped in [false, true] {
        wait_for("it shows that it is in sync", SOON, || one.is_in_sync());
        nats.kill(0);
        wait_for("it is detached", SOON, || !one.is_in_sync());
        assert_eq!(
            one.command(&key("a"), EntryChange::Weight(Some(9)), 3),
            Err(CommandError::Unreachable)
        );
        if is_wiped {
            nats.wipe(0);
        }
        nats.run(0);
        nats.wait_until_ready();
        wait_for("it is in sync", SOON * 2, || one.is_in_sync());
        let counters = one.cluster.status().operator.unwrap().counters;
        assert_eq!(counters.histories_lost, u64::from(is_wiped));
    }
    let restored = || one.cluster.status().operator.unwrap().counters.restored == 2;
    wait_for("both are stored again", SOON, restored);
    let two = Machine::start("two", &nats);
    assert!(two.cluster.wait_in_sync(SOON), "{:?}", two.cluster.status());
    for key in [key("a"), key("b")] {
        assert_eq!(two.setting(&key), one.setting(&key));
    }
}
