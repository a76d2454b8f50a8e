//! Clients that are redirected while a pool cannot answer them, under load, and return later.

use super::{Ground, LOOKS, REPEATED, load::Load};
use crate::daemon::until;
use crate::times;

const FALLBACK: &str = "fallback = { redirect = \"http://elsewhere.example/\", until = \"50%\" }";

#[test]
fn over_its_limit_a_pool_sends_clients_elsewhere_and_no_longer_than_that() {
    for shards in [1, 2] {
        // One server with few slots before many clients: the queue is full now and then.
        let pool = format!("queue = {{ max_requests = 2, timeout = \"20s\" }}\n{FALLBACK}");
        let ground = Ground::start(shards, 1, 0, &pool);
        let load = Load::start(ground.daemon.address());
        let fallback = || ground.daemon.metric("roadstead_fallback_responses_total", &[]);
        for _ in 0..times(50) {
            let before = fallback();
            until("some are sent elsewhere", || fallback() > before);
            ground.until_more(20);
        }
        let daemon = &ground.daemon;
        let verdict = load.end(&ground.folder.path().join("done"));
        until("the way is free again", || daemon.metric("roadstead_fallback_active", &[]) == 0);
        let load = Load::start_with(daemon.address(), 1);
        ground.until_more(5);
        let alone = ground.end(&format!("over its limit, {shards} shards: {verdict:?}"), load);
        assert_eq!((verdict.needless, verdict.wrong), (Vec::new(), Vec::new()));
        assert_eq!((alone.needless, alone.redirected), (Vec::new(), 0));
        assert!(verdict.redirected > 0 && verdict.answered > 0);
    }
}

#[test]
fn with_no_server_left_clients_are_sent_elsewhere_until_one_is_back() {
    for shards in [1, 2] {
        let pool = format!("{FALLBACK}\n{LOOKS}\n{REPEATED}");
        let mut ground = Ground::start(shards, 2, 0, &pool);
        let load = Load::start(ground.daemon.address());
        let rounds = times(50);
        for _ in 0..rounds {
            ground.until_more(30);
            let fallback =
                |ground: &Ground| ground.daemon.metric("roadstead_fallback_responses_total", &[]);
            ground.servers.iter_mut().for_each(super::Server::kill);
            let before = fallback(&ground);
            until("they are sent elsewhere", || fallback(&ground) > before + 20);
            ground.servers.iter_mut().for_each(super::Server::restart);
        }
        ground.until_more(30);
        let verdict =
            ground.end(&format!("{rounds} times without a server, {shards} shards"), load);
        assert_eq!(verdict.needless, []);
        assert!(verdict.redirected > 0);
        assert!(verdict.effects_unknown <= u64::from(rounds) * 2 * super::SLOTS as u64);
    }
}
