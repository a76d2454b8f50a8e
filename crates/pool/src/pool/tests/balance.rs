// tidy: tests
//! Balancing: bound clients, health and priorities.

mod fallback;

use super::*;
use crate::affinity::AffinityLimits;
use crate::fallback::{FallbackReason, FallbackSettings};
use crate::health::HealthSettings;
use crate::settings::{Gone, Member, Sticky};
use crate::why::Decided;
use crate::{AdminState, Control, HealthState, RequestTraits, WorkerView};

/// A request with requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    id: u64,
    key: Option<&'static str>,
    named: Option<u64>,
    share: Option<u64>,
}

impl Queueable for Wish {
    fn bytes(&self) -> usize {
        10
    }

    fn traits(&self) -> RequestTraits<'_> {
        let key = self.key.map(str::as_bytes);
        RequestTraits {
            id: self.id,
            key,
            named: self.named,
            share: self.share,
            ..RequestTraits::default()
        }
    }
}

/// Servers with one slot each, or with the given number.
pub(super) fn servers(names: &[&str], slots: u32) -> Settings {
    let members = names.iter().map(|name| Member::new(name)).collect();
    Settings { members, slots, ..Settings::default() }
}

pub(super) fn sticky(settings: Settings, gone: Gone) -> Settings {
    Settings {
        sticky: Some(Sticky { limits: AffinityLimits::default(), gone, shared: false }),
        ..settings
    }
}

pub(super) struct Port {
    pool: Pool<Wish>,
    now: Instant,
    /// The place of the worker and the number of the request, for each dispatch.
    pub(super) given: Vec<(usize, u64)>,
    refused: Vec<(u64, Cause)>,
    /// Workers that were stopped.
    pub(super) stopped: Vec<WorkerId>,
}

impl Port {
    /// A pool whose workers are all ready.
    pub(super) fn new(settings: Settings) -> Self {
        let now = start();
        let pool = Pool::new(settings, now, 1);
        let mut port =
            Self { pool, now, given: Vec::new(), refused: Vec::new(), stopped: Vec::new() };
        port.follow();
        port
    }

    /// Carries out the effects of the pool. Workers are ready immediately.
    fn follow(&mut self) {
        while let Some(effect) = self.pool.poll_effect() {
            match effect {
                Effect::Dispatch { worker, payload, .. } => {
                    self.given.push((worker.index(), payload.id));
                }
                Effect::Refuse { payload, cause } => self.refused.push((payload.id, cause)),
                Effect::Start { worker } => self.pool.handle_started(self.now, worker),
                Effect::Stop { worker } => self.stopped.push(worker),
                Effect::ToOwner { .. } => unreachable!("it has no branches"),
            }
        }
        self.pool.check();
    }

    fn traits(&mut self, wish: Wish) -> Result<(), Cause> {
        let taken = self.pool.handle_request(self.now, wish).map(|_| ());
        self.follow();
        taken.map_err(|refused| refused.cause)
    }

    /// A request of the client with this key.
    pub(super) fn of(&mut self, id: u64, key: &'static str) -> Result<(), Cause> {
        self.traits(Wish { id, key: Some(key), ..Wish::default() })
    }

    pub(super) fn plain(&mut self, id: u64) -> Result<(), Cause> {
        self.traits(Wish { id, ..Wish::default() })
    }

    fn worker(&self, place: usize) -> WorkerId {
        self.view(place).worker.expect("it runs")
    }

    fn view(&self, place: usize) -> WorkerView<'_> {
        self.pool.workers().nth(place).expect("a place")
    }

    pub(super) fn release(&mut self, place: usize) {
        let worker = self.worker(place);
        self.pool.handle_released(self.now, worker);
        self.follow();
    }

    fn dies(&mut self, place: usize) {
        let worker = self.worker(place);
        self.pool.handle_ended(self.now, worker, false);
        self.follow();
    }

    fn check(&mut self, place: usize, good: bool) {
        let worker = self.worker(place);
        self.pool.handle_check(self.now, worker, good);
        self.follow();
    }

    fn result(&mut self, place: usize, good: bool) {
        let worker = self.worker(place);
        self.pool.handle_result(self.now, worker, good, ms(1));
        self.follow();
    }

    pub(super) fn control(&mut self, name: &str, control: Control) {
        assert!(self.pool.handle_control(self.now, name, control));
        self.follow();
    }

    pub(super) fn settings(&mut self, settings: Settings) {
        self.pool.handle_settings(self.now, settings);
        self.follow();
    }

    fn fallback(&mut self, on: bool) {
        self.pool.handle_fallback(self.now, on);
        self.follow();
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.pool.handle_time(self.now);
        self.follow();
    }

    fn given(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.given)
    }

    fn reason(&self) -> Option<FallbackReason> {
        self.pool.status().fallback.map(|fallback| fallback.0)
    }
}

#[test]
fn a_client_stays_with_its_worker_and_waits_for_it_though_others_are_free() {
    let mut port = Port::new(sticky(servers(&["a", "b"], 1), Gone::Reschedule));
    port.of(1, "x").unwrap();
    port.of(2, "y").unwrap();
    assert_eq!(port.given(), [(0, 1), (1, 2)]);
    port.release(1);
    port.of(3, "x").unwrap();
    assert_eq!(port.given(), [], "its worker is busy, and no other will do");
    port.plain(4).unwrap();
    assert_eq!(port.given(), [(1, 4)]);
    port.release(0);
    assert_eq!(port.given(), [(0, 3)]);
    assert_eq!(port.pool.status().bound, 2);
}

#[test]
fn who_waits_longer_goes_first_bound_or_not() {
    let mut port = Port::new(sticky(servers(&["a"], 1), Gone::Reschedule));
    port.of(1, "x").unwrap();
    port.pass(ms(1));
    port.plain(2).unwrap();
    port.pass(ms(1));
    port.of(3, "x").unwrap();
    port.pass(ms(1));
    port.plain(4).unwrap();
    for _ in 0..3 {
        port.release(0);
    }
    let order: Vec<u64> = port.given().iter().map(|given| given.1).collect();
    assert_eq!(order, [1, 2, 3, 4]);
}

#[test]
fn two_requests_of_a_new_client_that_wait_go_to_one_worker() {
    let mut port = Port::new(sticky(servers(&["a", "b"], 1), Gone::Reschedule));
    port.plain(1).unwrap();
    port.plain(2).unwrap();
    port.of(3, "x").unwrap();
    port.of(4, "x").unwrap();
    port.given();
    port.release(1);
    assert_eq!(port.given(), [(1, 3)]);
    port.release(0);
    assert_eq!(port.given(), [], "the client was bound by its first request");
    port.release(1);
    assert_eq!(port.given(), [(1, 4)]);
}

#[test]
fn a_drained_worker_keeps_its_clients_and_gets_no_others() {
    for drain in [Control::Weight(Some(0)), Control::AdminState(AdminState::Drained)] {
        let mut port = Port::new(sticky(servers(&["a", "b"], 9), Gone::Reschedule));
        port.of(1, "x").unwrap();
        port.control("a", drain);
        port.of(2, "x").unwrap();
        port.of(3, "y").unwrap();
        port.plain(4).unwrap();
        assert_eq!(port.given(), [(0, 1), (0, 2), (1, 3), (1, 4)]);
        port.control("a", Control::Weight(None));
        port.control("a", Control::AdminState(AdminState::Enabled));
        port.plain(5).unwrap();
        port.plain(6).unwrap();
        assert_eq!(port.given(), [(1, 5), (0, 6)]);
    }
}

#[test]
fn when_all_are_drained_only_the_bound_are_served() {
    let mut port = Port::new(sticky(servers(&["a"], 9), Gone::Reschedule));
    port.of(1, "x").unwrap();
    port.control("a", Control::AdminState(AdminState::Drained));
    port.of(2, "x").unwrap();
    assert_eq!(port.plain(3), Err(Cause::Down));
    port.control("a", Control::AdminState(AdminState::Disabled));
    assert_eq!(port.of(4, "x"), Err(Cause::Down));
    assert_eq!(port.given(), [(0, 1), (0, 2)]);
}

#[test]
fn clients_of_a_program_that_died_get_another_or_are_refused() {
    let sizing = elastic::Sizing { min: 2, max: 2, ..elastic::Sizing::default() };
    let plain = Settings { sizing, slots: 9, ..Settings::default() };
    let mut port = Port::new(sticky(plain.clone(), Gone::Reschedule));
    port.of(1, "x").unwrap();
    port.pass(ms(2000));
    port.dies(0);
    port.of(2, "x").unwrap();
    port.of(3, "x").unwrap();
    let given = port.given();
    assert_eq!(given[1].0, given[2].0, "bound anew");
    let why: Vec<_> = port.pool.why(2).map(|decision| decision.decided).collect();
    assert!(matches!(why[..], [Decided::Rescheduled("gone"), Decided::Given(..)]), "{why:?}");

    let mut port = Port::new(sticky(plain, Gone::Refuse));
    port.of(1, "x").unwrap();
    port.pass(ms(2000));
    port.dies(0);
    assert_eq!(port.of(2, "x"), Err(Cause::Gone), "the new program is not the one it knew");
    port.of(3, "y").unwrap();
}

#[test]
fn those_who_wait_for_a_worker_that_falls_ill_go_on_in_their_order() {
    let mut port = Port::new(sticky(servers(&["a", "b"], 1), Gone::Reschedule));
    port.of(1, "x").unwrap();
    for id in 2..5 {
        port.of(id, "x").unwrap();
    }
    for _ in 0..3 {
        port.check(0, false);
    }
    assert_eq!(port.view(0).health, HealthState::Down);
    assert_eq!(port.given(), [(0, 1), (1, 2)]);
    port.release(1);
    port.release(1);
    assert_eq!(port.given(), [(1, 3), (1, 4)]);
}

#[test]
fn a_bound_client_is_held_while_its_worker_restarts_but_not_for_ever() {
    let settings = Settings { hold: ms(100), ..servers(&["a", "b"], 1) };
    let mut port = Port::new(sticky(settings, Gone::Reschedule));
    port.of(1, "x").unwrap();
    port.release(0);
    port.given();
    (0..3).for_each(|_| port.check(0, false));
    port.of(2, "x").unwrap();
    port.pass(ms(50));
    assert_eq!(port.given(), [], "it may come back");
    (0..2).for_each(|_| port.check(0, true));
    assert_eq!(port.given(), [(0, 2)]);
    port.release(0);
    (0..3).for_each(|_| port.check(0, false));
    port.of(3, "x").unwrap();
    assert_eq!(port.pool.next_time(), Some(port.now + ms(100)));
    port.pass(ms(100));
    assert_eq!(port.given(), [(1, 3)]);
}

#[test]
fn nobody_is_given_to_whoever_takes_the_place_of_the_worker_he_waits_for() {
    let mut settings = Settings { hold: ms(1000), ..servers(&["a", "b"], 1) };
    settings = sticky(settings, Gone::Refuse);
    let mut port = Port::new(settings.clone());
    port.of(1, "k").unwrap();
    port.dies(0);
    port.of(2, "k").unwrap();
    settings.members = servers(&["c", "b"], 1).members;
    port.settings(settings);
    assert_eq!(port.refused, [(2, Cause::Gone)]);
}

#[test]
fn everybody_is_held_while_nobody_is_fit_then_refused() {
    let mut port = Port::new(Settings { hold: ms(100), ..servers(&["a"], 1) });
    (0..3).for_each(|_| port.check(0, false));
    port.plain(1).unwrap();
    port.pass(ms(99));
    assert!(port.refused.is_empty());
    port.pass(ms(1));
    assert_eq!(port.refused, [(1, Cause::Down)]);
    assert_eq!(port.plain(2), Err(Cause::Down));
    (0..2).for_each(|_| port.check(0, true));
    port.plain(3).unwrap();
    assert_eq!(port.given(), [(0, 3)]);
}

#[test]
fn a_worker_whose_requests_fail_is_ejected_and_the_last_one_never() {
    let health = HealthSettings { errors: 2, eject: ms(1000), ..HealthSettings::default() };
    let mut port = Port::new(Settings { health, ..servers(&["a", "b"], 9) });
    (0..2).for_each(|_| port.result(0, false));
    (0..2).for_each(|_| port.result(1, false));
    assert_eq!(port.view(0).health, HealthState::Ejected);
    assert_eq!(port.view(1).health, HealthState::Up);
    for id in 0..4 {
        port.plain(id).unwrap();
    }
    assert!(port.given().iter().all(|given| given.0 == 1));
    assert_eq!(port.pool.next_time(), Some(port.now + ms(1000)));
    port.pass(ms(1000));
    assert_eq!(port.view(0).health, HealthState::Up);
}

#[test]
fn slow_answers_count_as_failures() {
    let health = HealthSettings { errors: 1, slow: Some(ms(100)), ..HealthSettings::default() };
    let mut port = Port::new(Settings { health, ..servers(&["a", "b"], 9) });
    let worker = port.worker(0);
    port.pool.handle_result(port.now, worker, true, ms(100));
    assert_eq!(port.view(0).health, HealthState::Up);
    port.pool.handle_result(port.now, worker, true, ms(101));
    assert_eq!(port.view(0).health, HealthState::Ejected);
}

#[test]
fn fitness_and_hands_outlive_a_reload_and_what_is_not_declared_any_more_leaves() {
    let health = HealthSettings { checked: true, ..HealthSettings::default() };
    let checked = |names| Settings { health, ..servers(names, 9) };
    let mut port = Port::new(checked(&["a", "b", "c"]));
    (0..3).for_each(|_| port.check(1, false));
    port.control("c", Control::AdminState(AdminState::Disabled));
    let records = port.pool.health();
    port.settings(checked(&["c", "d", "b"]));
    let seen: Vec<_> =
        port.pool.workers().map(|view| (view.name, view.health, view.admin_state)).collect();
    assert_eq!(seen[1], (Some("b"), HealthState::Down, AdminState::Enabled));
    assert_eq!(seen[2], (Some("c"), HealthState::Up, AdminState::Disabled));
    assert_eq!(port.stopped.len(), 1, "a has nothing to do");
    let gone = port.stopped[0];
    port.pool.handle_ended(port.now, gone, true);
    port.follow();
    port.plain(1).unwrap();
    assert_eq!(port.pool.status().candidates, 1);
    let mut other = Port::new(servers(&["b", "x"], 9));
    other.pool.restore_health(other.now, &records);
    other.follow();
    assert_eq!(other.view(0).health, HealthState::Down);
}

#[test]
fn a_new_worker_is_given_little_at_first() {
    let settings = Settings {
        slow_start: Duration::from_secs(16),
        schedule: Schedule::WeightedRoundRobin,
        ..servers(&["a", "b"], 1000)
    };
    let mut port = Port::new(settings);
    port.pass(Duration::from_secs(17));
    (0..3).for_each(|_| port.check(0, false));
    (0..2).for_each(|_| port.check(0, true));
    let count = |port: &mut Port, asked: u64| {
        let mut mine = 0;
        for id in 0..asked {
            port.plain(id).unwrap();
            let (place, _) = port.given()[0];
            port.release(place);
            mine += u64::from(place == 0);
        }
        mine
    };
    let first = count(&mut port, 170);
    assert!((8..=12).contains(&first), "{first} of 170: a sixteenth of the other's");
    port.pass(Duration::from_secs(8));
    let half = count(&mut port, 150);
    assert!((45..=55).contains(&half), "{half} of 150: half of the other's");
    port.pass(Duration::from_secs(8));
    let whole = count(&mut port, 150);
    assert!((70..=80).contains(&whole), "{whole} of 150");
}

#[test]
fn turns_follow_a_weight_that_is_set_by_hand_and_no_longer_when_it_is_taken_back() {
    let mut port = Port::new(servers(&["a", "b"], 1000));
    let count = |port: &mut Port| {
        let mut mine = 0;
        for id in 0..40 {
            port.plain(id).unwrap();
            let (place, _) = port.given()[0];
            port.release(place);
            mine += u32::from(place == 0);
        }
        mine
    };
    assert_eq!(count(&mut port), 20);
    for (weight, expected) in [(Some(3), 30), (Some(0), 0), (None, 20)] {
        assert!(port.pool.handle_control(port.now, "a", Control::Weight(weight)));
        port.follow();
        assert_eq!(count(&mut port), expected, "{weight:?}");
    }
}

#[test]
fn backup_workers_serve_when_no_other_is_fit() {
    let mut settings = servers(&["a", "b"], 9);
    settings.members[1].backup = true;
    let mut port = Port::new(settings);
    port.plain(1).unwrap();
    (0..3).for_each(|_| port.check(0, false));
    port.plain(2).unwrap();
    (0..2).for_each(|_| port.check(0, true));
    port.plain(3).unwrap();
    assert_eq!(port.given(), [(0, 1), (1, 2), (0, 3)]);
}

#[test]
fn the_pool_as_a_whole_has_a_limit() {
    let mut port = Port::new(sticky(
        Settings { slots_all: Some(3), ..servers(&["a", "b"], 9) },
        Gone::Reschedule,
    ));
    for id in 1..=3 {
        port.of(id, "x").unwrap();
    }
    port.of(4, "x").unwrap();
    port.plain(5).unwrap();
    assert_eq!(port.given().len(), 3);
    port.release(0);
    port.release(0);
    assert_eq!(port.given().len(), 2);
    assert_eq!(port.pool.status().slots_in_use, 3);
}

#[test]
fn an_ejected_server_that_fails_its_checks_gets_nothing_until_they_pass() {
    let health =
        HealthSettings { errors: 3, eject: ms(2000), checked: true, ..HealthSettings::default() };
    let mut port = Port::new(Settings { health, ..servers(&["a", "b"], 9) });
    let worker = port.worker(0);
    (0..3).for_each(|_| port.pool.handle_result(port.now, worker, false, ms(1)));
    port.follow();
    assert_eq!(port.view(0).health, HealthState::Ejected);
    port.check(0, false);
    port.pass(ms(2000));
    assert_eq!(port.view(0).health, HealthState::Down, "its time is over, its checks fail");
    port.plain(1).unwrap();
    port.plain(2).unwrap();
    assert!(port.given().iter().all(|given| given.0 == 1));
    port.check(0, true);
    port.check(0, true);
    assert_eq!(port.view(0).health, HealthState::Up);
}

#[test]
fn a_cookie_names_a_worker_and_one_that_is_gone_names_nobody() {
    let mut port = Port::new(servers(&["a", "b"], 9));
    let named = port.pool.affinity_target(port.worker(1));
    for id in 0..3 {
        port.traits(Wish { id, named, ..Wish::default() }).unwrap();
    }
    assert_eq!(port.given(), [(1, 0), (1, 1), (1, 2)]);
    port.traits(Wish { id: 4, named: Some(u64::MAX), ..Wish::default() }).unwrap();
    assert_eq!(port.given().len(), 1);
}

#[test]
fn why_tells_who_was_out_and_how_long_it_took() {
    let mut port = Port::new(servers(&["a", "b", "c", "d"], 1));
    (0..3).for_each(|_| port.check(0, false));
    port.control("b", Control::AdminState(AdminState::Disabled));
    port.control("c", Control::Weight(Some(0)));
    port.plain(7).unwrap();
    port.plain(8).unwrap();
    port.pass(ms(30));
    port.release(3);
    let why: Vec<_> = port.pool.why(8).collect();
    let [decision] = why[..] else { panic!("{why:?}") };
    assert!(matches!(decision.decided, Decided::Given(worker, _) if worker.index() == 3));
    assert_eq!((decision.waited(), decision.candidates, decision.free), (ms(30), 1, 0b1100));
    let out: Vec<_> = decision.out().iter().map(|out| (out.name.as_deref(), out.why)).collect();
    let due = [(Some("a"), "down"), (Some("b"), "disabled"), (Some("c"), "weight 0")];
    assert_eq!(out, due);
}

#[test]
fn flows_share_a_busy_worker() {
    let mut port = Port::new(servers(&["a"], 1));
    port.plain(0).unwrap();
    for id in 1..=4 {
        port.traits(Wish { id, share: Some(1), ..Wish::default() }).unwrap();
    }
    port.traits(Wish { id: 9, share: Some(2), ..Wish::default() }).unwrap();
    (0..5).for_each(|_| port.release(0));
    let order: Vec<u64> = port.given().iter().map(|given| given.1).collect();
    assert_eq!(order, [0, 1, 9, 2, 3, 4]);
}
