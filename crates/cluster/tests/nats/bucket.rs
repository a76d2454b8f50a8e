//! Faults of the bucket: it is full, purged, replaced by an older one, or its entries expire early.

use std::time::Duration;

use cluster::Settings;

use crate::admin::Admin;
use crate::daemon::{Daemon, client, settings, under_requests, wait_for};
use crate::faults::HEALED;
use crate::nats::Nats;
use crate::{AGREED_SOON, SOON, bind_and_wait, two_daemons, wait_for_agreement, wait_until_same};

#[test]
fn bindings_for_which_the_bucket_has_no_room_are_kept_and_stored_later() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    bind_and_wait(&daemons, 0..100);
    let admin = Admin::connect(&nats.urls());
    let most = admin.config().max_bytes;
    let full = i64::try_from(admin.bytes()).unwrap();
    under_requests(&daemons, 0..100, || {
        admin.update(|config| config.max_bytes = full);
        (100..150).for_each(|number| one.bind(client(number), 1));
        wait_for("the reason is shown", AGREED_SOON, || {
            let rejected = one.table_status().rejected;
            rejected.is_some_and(|reason| reason.contains("maximum bytes"))
        });
        assert!((100..150).all(|number| one.find(client(number)) == Some(1)));
        assert!((100..150).all(|number| two.find(client(number)).is_none()));
        admin.update(|config| config.max_bytes = most);
    });
    wait_until_same(&daemons, 0..150, HEALED);
    wait_for("no reason is shown", HEALED, || one.table_status().rejected.is_none());
    wait_for_agreement(&daemons, 150);
}

#[test]
fn a_bucket_that_is_purged_gets_the_bindings_in_use_again() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    bind_and_wait(&daemons, 0..100);
    let admin = Admin::connect(&nats.urls());
    let third = under_requests(&daemons, 0..100, || {
        admin.purge();
        bind_and_wait(&daemons, 100..150);
        // Its digest shows that the bucket has less than the others have.
        let third = Daemon::start("three", &nats.urls(), settings());
        wait_for("the bucket has all", HEALED, || admin.messages() >= 151);
        third
    });
    wait_until_same(&daemons, 0..150, HEALED);
    wait_for("the new daemon has all", HEALED, || third.length() == 150);
}

#[test]
fn a_bucket_that_is_deleted_is_created_and_filled_again() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    bind_and_wait(&daemons, 0..100);
    let admin = Admin::connect(&nats.urls());
    under_requests(&daemons, 0..100, || {
        admin.delete();
        bind_and_wait(&daemons, 100..150);
    });
    wait_until_same(&daemons, 0..150, HEALED);
    wait_for_agreement(&daemons, 150);
}

#[test]
fn a_bucket_with_an_older_history_and_the_same_epoch_gets_the_later_bindings_again() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    bind_and_wait(&daemons, 0..100);
    let admin = Admin::connect(&nats.urls());
    let (config, old) = (admin.config(), admin.copy());
    assert!(old.len() >= 101, "{}", old.len());
    bind_and_wait(&daemons, 100..200);
    (0..50).for_each(|number| one.bind(client(number), 77));
    wait_for("the others", AGREED_SOON, || (0..50).all(|it| two.find(client(it)) == Some(77)));
    under_requests(&daemons, 0..200, || {
        admin.delete();
        admin.create(config);
        admin.publish(old);
    });
    wait_until_same(&daemons, 0..200, HEALED);
    wait_for_agreement(&daemons, 200);
    let third = Daemon::start("three", &nats.urls(), settings());
    wait_for("a daemon that starts later", SOON, || third.length() == 200);
}

/// What a server does whose wall clock jumps ahead: it expires all entries. Its clock itself cannot be changed: the
/// server is a static program that asks the kernel, and the clock of the kernel is that of the whole machine.
#[test]
fn bindings_that_the_servers_expire_early_are_kept_where_they_are_in_use() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    bind_and_wait(&daemons, 0..100);
    let admin = Admin::connect(&nats.urls());
    let config = admin.config();
    let second = Duration::from_secs(1);
    let kept = || daemons.iter().map(|it| it.table_status().counters.kept).max().unwrap();
    under_requests(&daemons, 0..100, || {
        admin.update(|config| {
            (config.max_age, config.duplicate_window) = (second, second);
        });
        wait_for("all have expired", AGREED_SOON, || kept() >= 100);
        admin.update(|changed| {
            (changed.max_age, changed.duplicate_window) = (config.max_age, config.duplicate_window);
        });
    });
    wait_until_same(&daemons, 0..100, HEALED);
    wait_for_agreement(&daemons, 100);
}

#[test]
fn more_entries_than_the_table_may_have_evict_those_that_were_idle_longest() {
    let Some(nats) = Nats::start(1) else { return };
    let settings = Settings { entries_max: 200, ..settings() };
    let daemons = two_daemons(&nats, settings);
    let [one, two] = &daemons;
    for number in 0..1000 {
        one.bind(client(number), 1);
    }
    // A binding that was evicted before it was written is shared at the next request.
    wait_for("the newest are shared", AGREED_SOON, || {
        (900..1000).all(|number| {
            one.request(client(number)).is_some() && two.find(client(number)) == Some(1)
        })
    });
    wait_for("evictions", SOON, || one.table_status().counters.evicted >= 800);
    two.bind(client(999), 2);
    wait_for("it is bound again", AGREED_SOON, || one.find(client(999)) == Some(2));
}
