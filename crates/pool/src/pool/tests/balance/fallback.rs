// tidy: tests
//! The fallback of a pool of servers.

use super::*;

#[test]
fn fallback_by_hand_refuses_what_comes_and_serves_what_waits() {
    let mut port = Port::new(servers(&["a"], 1));
    port.plain(1).unwrap();
    port.plain(2).unwrap();
    port.fallback(true);
    assert_eq!(port.plain(3), Err(Cause::Fallback));
    port.release(0);
    assert_eq!(port.given(), [(0, 1), (0, 2)]);
    assert_eq!(port.reason(), Some(FallbackReason::Operator));
    port.fallback(false);
    port.plain(4).unwrap();
}

#[test]
fn over_its_limit_a_pool_is_in_fallback_until_the_load_has_fallen() {
    let fallback = Some(FallbackSettings { until: 50, steady: ms(10) });
    let queue = QueueLimits { length: 3, ..QueueLimits::default() };
    let mut port = Port::new(Settings { fallback, queue, ..servers(&["a"], 1) });
    for id in 0..4 {
        port.plain(id).unwrap();
    }
    assert_eq!((port.plain(9), port.reason()), (Err(Cause::Full), Some(FallbackReason::Full)));
    port.release(0);
    assert_eq!(port.plain(9), Err(Cause::Full), "there is room, but three of four are taken");
    port.release(0);
    assert_eq!(port.pool.next_time(), Some(port.now + ms(10)));
    port.pass(ms(10));
    assert_eq!(port.reason(), None);
    port.plain(5).unwrap();
    assert_eq!(port.pool.status().fallback_activations, 1);
}

#[test]
fn free_slots_are_used_while_the_fallback_is_on_and_it_ends_though_requests_keep_coming() {
    let fallback = Some(FallbackSettings { until: 50, steady: ms(10) });
    let queue = QueueLimits { length: 1, ..QueueLimits::default() };
    let mut port = Port::new(Settings { fallback, queue, ..servers(&["a"], 1) });
    port.plain(1).unwrap();
    port.plain(2).unwrap();
    assert_eq!(port.plain(3), Err(Cause::Full));
    port.release(0);
    port.release(0);
    for id in 4..14 {
        assert_eq!(port.reason(), Some(FallbackReason::Full), "it was calm for {} ms", id - 4);
        port.plain(id).unwrap();
        assert_eq!(port.plain(99), Err(Cause::Full), "nobody waits meanwhile");
        port.pass(ms(1));
        port.release(0);
    }
    assert_eq!(port.reason(), None);
    let served: Vec<u64> = port.given().iter().map(|given| given.1).collect();
    assert_eq!(served, (1..=2).chain(4..14).collect::<Vec<_>>());
    port.plain(14).unwrap();
    port.plain(15).unwrap();
}

#[test]
fn fallback_for_want_of_workers_comes_and_goes_with_them() {
    let fallback = Some(FallbackSettings::default());
    let mut port = Port::new(Settings { fallback, ..servers(&["a", "b"], 1) });
    for place in 0..2 {
        (0..3).for_each(|_| port.check(place, false));
    }
    assert_eq!((port.plain(1), port.reason()), (Err(Cause::Down), Some(FallbackReason::NoWorker)));
    (0..2).for_each(|_| port.check(1, true));
    assert_eq!(port.reason(), None);
    port.plain(2).unwrap();
    assert_eq!(port.given(), [(1, 2)]);
}

#[test]
fn having_waited_too_long_is_a_reason_too() {
    let fallback = Some(FallbackSettings { until: 0, steady: ms(0) });
    let mut port = Port::new(Settings { fallback, ..servers(&["a"], 1) });
    port.plain(1).unwrap();
    port.plain(2).unwrap();
    port.pass(Duration::from_secs(5));
    assert_eq!(port.refused, [(2, Cause::Waited)]);
    assert_eq!(port.plain(3), Err(Cause::Waited));
    port.release(0);
    assert_eq!(port.reason(), None);
    port.plain(4).unwrap();
}
