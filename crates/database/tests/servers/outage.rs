//! Servers that reject logins or cannot be reached.

use std::thread;
use std::time::{Duration, Instant};

use database::{Host, Job, Secret, Server};
use exchange::{Factory, Stop};

use crate::place::{Place, batch_now, hit, insert, options_of, serve, serve_until};
use crate::proxy::Proxy;
use crate::server::{Kind, eventually};

crate::suite_of_servers!(
    each_batch_of_an_outage_waits_for_its_end,
    a_login_that_is_denied_is_not_tried_with_every_batch,
    handlers_of_a_pool_share_their_logins,
);

fn each_batch_of_an_outage_waits_for_its_end(place: &Place) {
    place.with_hits();
    let proxy = Proxy::to(place.port());
    let mut handler =
        place.handler_by(&proxy, Job { retry: Duration::from_secs(3600), ..insert() });
    proxy.close();
    let stop = Stop::default();
    thread::scope(|scope| {
        let before = proxy.connections();
        let first = scope.spawn(|| serve_until(handler.as_mut(), &batch_now([hit(1)]), &stop));
        eventually("a login fails", || proxy.connections() > before);
        stop.request();
        assert!(first.join().unwrap()[0].starts_with("!database "));
    });
    for id in 2..4 {
        proxy.close();
        thread::scope(|scope| {
            let before = proxy.connections();
            let later = scope
                .spawn(|| serve_until(handler.as_mut(), &batch_now([hit(id)]), &Stop::default()));
            eventually("another login fails", || proxy.connections() > before);
            proxy.open();
            assert_eq!(later.join().unwrap(), [format!("ok {id}")]);
        });
    }
    assert_eq!(place.hits(), ["2|/2|200", "3|/3|200"]);
}

/// Returns the number of logins that the documented back-off allows in this time, if none succeeds.
fn allowed(since: Instant) -> u32 {
    12 + u32::try_from(since.elapsed().as_secs() / 5).unwrap()
}

fn a_login_that_is_denied_is_not_tried_with_every_batch(place: &Place) {
    place.with_hits();
    let Place::Server(server, name) = place else { unreachable!("it is a server") };
    let proxy = Proxy::to(place.port());
    let (user, password) = match server.kind {
        Kind::Postgres => ("roadstead".to_owned(), None),
        Kind::Mariadb => {
            for host in ["localhost", "127.0.0.1"] {
                place.run(&format!("create user {name}@'{host}' identified by 'right'"));
                place.run(&format!("grant all on {name}.* to {name}@'{host}'"));
            }
            (name.clone(), Some(Secret::new("right".to_owned())))
        }
    };
    let host = Host::Internet("127.0.0.1".to_owned(), proxy.port());
    let options =
        options_of(server.kind, Server { host, user, password, ..place.login() }, insert());
    let mut handler = options.unwrap().open().unwrap();
    assert_eq!(serve(&mut handler, [hit(0)]), ["ok 0"]);
    let deny = |deny: bool| match server.kind {
        Kind::Postgres => drop(
            server.run("postgres", &format!("alter database {name} allow_connections {}", !deny)),
        ),
        Kind::Mariadb => {
            let password = if deny { "wrong" } else { "right" };
            for host in ["localhost", "127.0.0.1"] {
                place.run(&format!("alter user {name}@'{host}' identified by '{password}'"));
            }
        }
    };
    for round in 1..3 {
        deny(true);
        proxy.cut_all();
        let (since, before) = (Instant::now(), proxy.connections());
        for _ in 0..200 {
            let answers = serve_until(handler.as_mut(), &batch_now([hit(7)]), &Stop::default());
            assert!(answers[0].starts_with("!database "), "{answers:?}");
        }
        let logins = proxy.connections() - before;
        assert!(logins <= allowed(since), "{logins} logins in {:?}", since.elapsed());
        deny(false);
        let mut answers = Vec::new();
        let since = Instant::now();
        while answers != [format!("ok {round}")] {
            assert!(since.elapsed() < Duration::from_secs(60), "{answers:?}");
            let batch = batch_now([hit(round)]);
            answers = serve_until(handler.as_mut(), &batch, &Stop::default());
        }
        // The next failure starts with the shortest pause: it ends before a batch fails.
        proxy.cut_all();
        assert_eq!(serve(&mut handler, [hit(10 + round)]), [format!("ok {}", 10 + round)]);
    }
}

fn handlers_of_a_pool_share_their_logins(place: &Place) {
    place.with_hits();
    let proxy = Proxy::to(place.port());
    let host = Host::Internet("127.0.0.1".to_owned(), proxy.port());
    let Place::Server(server, _) = place else { unreachable!("it is a server") };
    let job = Job { retry: Duration::from_millis(700), ..insert() };
    let pool = options_of(server.kind, Server { host, ..place.login() }, job).unwrap();
    let handlers: Vec<_> = (0..16).map(|_| pool.open().unwrap()).collect();
    proxy.close();
    let (since, before) = (Instant::now(), proxy.connections());
    thread::scope(|scope| {
        for mut handler in handlers {
            scope.spawn(move || {
                let answers = serve_until(handler.as_mut(), &batch_now([hit(1)]), &Stop::default());
                assert!(answers[0].starts_with("!database "), "{answers:?}");
            });
        }
    });
    let logins = proxy.connections() - before;
    // Each pause lasts at least half of 20, 40, 80, … ms, at most one second.
    let allowed = 8 + u32::try_from(since.elapsed().as_millis() / 500).unwrap();
    assert!(logins <= allowed, "{logins} logins in {:?}", since.elapsed());
}

#[test]
fn a_postgres_that_its_operator_has_made_read_only_is_waited_for() {
    let place = Place::postgres();
    place.with_hits();
    let Place::Server(server, name) = &place else { unreachable!("it is a server") };
    let switch = |on: &str| {
        server.run(
            "postgres",
            &format!("alter database {name} set default_transaction_read_only = {on}"),
        );
    };
    switch("on");
    let mut handler = place.handler(Job { retry: Duration::ZERO, ..insert() });
    let answers = serve(&mut handler, [hit(1)]);
    assert!(answers[0].starts_with("!database "), "{answers:?}");
    switch("off");
    assert_eq!(serve(&mut handler, [hit(2)]), ["ok 2"]);
    assert_eq!(place.hits(), ["2|/2|200"]);
}
