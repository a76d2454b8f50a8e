//! Faults of servers: they are killed, stand still, lose their files, or get old files back.

use std::path::Path;

use async_nats::jetstream::stream::StorageType;
use cluster::State;
use rustix::process::Signal;

use crate::admin::{Admin, STREAM};
use crate::daemon::{Daemon, client, settings, under_requests, wait_for};
use crate::faults::HEALED;
use crate::nats::Nats;
use crate::{AGREED_SOON, SOON, bind_and_wait, two_daemons, wait_for_agreement, wait_until_same};

fn leader(nats: &Nats) -> usize {
    let mut leader = None;
    wait_for("a leader", AGREED_SOON, || {
        leader = nats.leader(STREAM);
        leader.is_some()
    });
    leader.unwrap()
}

#[test]
fn the_leader_of_the_bucket_may_die_while_clients_are_bound() {
    let Some(mut nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    bind_and_wait(&daemons, 0..100);
    let mut bound = 100;
    for _ in 0..3 {
        let leader = leader(&nats);
        under_requests(&daemons, 0..bound, || {
            nats.kill(leader);
            // Half of them are bound before another server leads.
            bind_and_wait(&daemons, bound..bound + 50);
        });
        bound += 50;
        nats.run(leader);
        nats.wait_until_ready();
        wait_until_same(&daemons, 0..bound, HEALED);
    }
    wait_for_agreement(&daemons, bound);
}

#[test]
fn a_server_that_stands_still_delays_no_binding_for_good() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    bind_and_wait(&daemons, 0..100);
    let mut bound = 100;
    for victim in [leader(&nats), 0, 1, 2] {
        under_requests(&daemons, 0..bound, || {
            nats.signal(victim, Signal::STOP);
            bind_and_wait(&daemons, bound..bound + 50);
            nats.signal(victim, Signal::CONT);
        });
        bound += 50;
        nats.wait_until_ready();
        wait_until_same(&daemons, 0..bound, HEALED);
    }
    wait_for_agreement(&daemons, bound);
}

#[test]
fn all_servers_may_stand_still() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    bind_and_wait(&daemons, 0..100);
    under_requests(&daemons, 0..100, || {
        (0..3).for_each(|server| nats.signal(server, Signal::STOP));
        (100..150).for_each(|number| one.bind(client(number), 1));
        (125..175).for_each(|number| two.bind(client(number), 2));
        wait_for("both have given the connection up", AGREED_SOON, || {
            daemons.iter().all(|it| it.state() == State::Detached)
        });
        (0..3).for_each(|server| nats.signal(server, Signal::CONT));
    });
    nats.wait_until_ready();
    wait_until_same(&daemons, 0..175, HEALED);
    wait_for_agreement(&daemons, 175);
}

#[test]
fn a_server_may_lose_its_files() {
    let Some(mut nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    bind_and_wait(&daemons, 0..100);
    let mut bound = 100;
    for victim in [leader(&nats), 0, 1, 2] {
        under_requests(&daemons, 0..bound, || {
            nats.kill(victim);
            std::fs::remove_dir_all(nats.folder().join(victim.to_string())).unwrap();
            nats.run(victim);
            bind_and_wait(&daemons, bound..bound + 50);
        });
        bound += 50;
        nats.wait_until_ready();
        wait_until_same(&daemons, 0..bound, HEALED);
    }
    wait_for_agreement(&daemons, bound);
    let third = Daemon::start("three", &nats.urls(), settings());
    wait_for("a daemon that starts later", SOON, || third.length() as u64 == bound);
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn servers_that_get_an_older_copy_of_their_files_learn_the_later_bindings_again() {
    let Some(mut nats) = Nats::start(3) else { return };
    // A bucket in files keeps its history and its epoch. One in memory is empty after a restart.
    let created = two_daemons(&nats, settings());
    let admin = Admin::connect(&nats.urls());
    let config = admin.config();
    drop(created);
    admin.delete();
    admin.create(async_nats::jetstream::stream::Config { storage: StorageType::File, ..config });
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    bind_and_wait(&daemons, 0..100);
    let folder = nats.folder().to_owned();
    let stop = |nats: &mut Nats| {
        (0..3).for_each(|server| nats.kill(server));
        wait_for("both are detached", AGREED_SOON, || {
            daemons.iter().all(|it| it.state() == State::Detached)
        });
    };
    stop(&mut nats);
    for server in ["0", "1", "2"] {
        copy_folder(&folder.join(server), &folder.join("copy").join(server));
    }
    nats.run_all();
    wait_until_same(&daemons, 0..100, HEALED);
    bind_and_wait(&daemons, 100..200);
    // Some of the old ones get another target.
    (0..50).for_each(|number| one.bind(client(number), 77));
    wait_for("the others", AGREED_SOON, || (0..50).all(|it| two.find(client(it)) == Some(77)));
    stop(&mut nats);
    for server in ["0", "1", "2"] {
        std::fs::remove_dir_all(folder.join(server)).unwrap();
        copy_folder(&folder.join("copy").join(server), &folder.join(server));
    }
    under_requests(&daemons, 0..200, || nats.run_all());
    wait_until_same(&daemons, 0..200, HEALED);
    wait_for_agreement(&daemons, 200);
}
