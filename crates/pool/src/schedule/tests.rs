// tidy: tests
//! Each schedule against an oracle that examines all workers, and the properties of each schedule.

use super::*;

/// Workers as a list: the weight and the slots in use of each.
struct Naive {
    slots: u32,
    weights: Vec<u32>,
    in_use: Vec<u32>,
    here: Vec<bool>,
    /// Workers with a free slot, in the order of their turns.
    turns: Vec<u32>,
}

impl Naive {
    fn new(weights: &[u32], slots: u32) -> Self {
        let here = vec![true; weights.len()];
        let turns = (0..u32::try_from(weights.len()).unwrap()).collect();
        Self { slots, weights: weights.to_vec(), in_use: vec![0; weights.len()], here, turns }
    }

    /// Records the turns after an event of a worker. A worker that was given a request goes behind all others.
    fn note(&mut self, worker: u32, given: bool) {
        let free = self.free();
        self.turns.retain(|turn| free.contains(turn) && !(given && *turn == worker));
        if free.contains(&worker) && !self.turns.contains(&worker) {
            self.turns.push(worker);
        }
    }

    fn eligibility(&self, worker: u32) -> Eligibility {
        let at = worker as usize;
        Eligibility {
            in_use: self.in_use[at],
            slots: self.slots,
            weight: self.weights[at],
            share: self.weights[at] * SHARE_OF_ONE,
            identity: crate::random::mix(u64::from(worker)),
            backup: false,
            out: false,
        }
    }

    fn places(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.weights.len()).unwrap()
    }

    fn free(&self) -> Vec<u32> {
        self.places()
            .filter(|at| self.here[*at as usize] && self.in_use[*at as usize] < self.slots)
            .collect()
    }

    fn schedule(&self, schedule: Schedule) -> FreeWorkers {
        let weights = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let mut free =
            FreeWorkers::new(schedule, Capacity::new(self.weights.len() as u64, weights));
        self.places().for_each(|place| free.offer(place, &self.eligibility(place)));
        free
    }

    fn check(&self, free: &FreeWorkers) {
        free.check(|worker| self.here[worker as usize].then(|| self.eligibility(worker)));
        assert_eq!(free.any(), !self.free().is_empty());
    }

    /// Compares the load relative to the weight, without a division.
    fn lighter(&self, one: u32, other: u32) -> bool {
        let (one, other) = (one as usize, other as usize);
        if self.in_use[one] == 0 || self.in_use[other] == 0 {
            return self.in_use[one] < self.in_use[other];
        }
        let left = u64::from(self.in_use[one] + 1) * u64::from(self.weights[other]);
        left < u64::from(self.in_use[other] + 1) * u64::from(self.weights[one])
    }
}

/// Random turns of a schedule. `judge` receives the free workers, the chosen one and the key.
fn play(
    schedule: Schedule,
    weights: &[u32],
    slots: u32,
    mut judge: impl FnMut(&Naive, u32, u64, Choice),
) {
    let mut random = Random::new(11);
    let mut chance = Random::new(12);
    let mut naive = Naive::new(weights, slots);
    let mut free = naive.schedule(schedule);
    let workers = weights.len() as u64;
    for _ in 0..20_000 {
        let worker = u32::try_from(chance.below(workers)).unwrap();
        let at = worker as usize;
        match chance.below(20) {
            0..9 => {
                let key = chance.below(500);
                let chosen = free.next(&mut random, Some(key));
                assert_eq!(chosen.is_some(), !naive.free().is_empty(), "somebody who is free");
                if let Some((chosen, choice)) = chosen {
                    assert!(naive.free().contains(&chosen), "never over a limit");
                    judge(&naive, chosen, key, choice);
                    naive.in_use[chosen as usize] += 1;
                    free.given(chosen, &naive.eligibility(chosen));
                    naive.note(chosen, true);
                }
            }
            9..18 if naive.in_use[at] > 0 => {
                naive.in_use[at] -= 1;
                if naive.here[at] {
                    free.offer(worker, &naive.eligibility(worker));
                }
            }
            18 if naive.here[at] => {
                naive.here[at] = false;
                free.remove(worker);
            }
            19 if !naive.here[at] => {
                naive.here[at] = true;
                free.offer(worker, &naive.eligibility(worker));
            }
            _ => {}
        }
        naive.note(worker, false);
        naive.check(&free);
    }
}

#[test]
fn least_outstanding_is_the_least_for_its_weight() {
    play(Schedule::LeastRequests, &[1, 2, 3, 5, 8, 1], 6, |naive, chosen, _, _| {
        for other in naive.free() {
            assert!(!naive.lighter(other, chosen), "{other} has less to do than {chosen}");
        }
    });
}

#[test]
fn least_outstanding_among_equals_gives_each_its_turn() {
    let mut naive = Naive::new(&[1, 1, 1], 3);
    naive.in_use = vec![2, 0, 1];
    let mut free = naive.schedule(Schedule::LeastRequests);
    let mut random = Random::new(1);
    let mut turns = Vec::new();
    while let Some((worker, _)) = free.next(&mut random, None) {
        naive.in_use[worker as usize] += 1;
        free.given(worker, &naive.eligibility(worker));
        naive.check(&free);
        turns.push(worker);
    }
    assert_eq!(turns, [1, 2, 1, 0, 2, 1]);
}

#[test]
fn first_is_the_first_that_is_free() {
    play(Schedule::First, &[1; 7], 3, |naive, chosen, _, _| {
        assert_eq!(naive.free().first(), Some(&chosen));
    });
}

#[test]
fn round_robin_is_a_list_of_turns() {
    play(Schedule::RoundRobin, &[1; 5], 2, |naive, chosen, _, _| {
        assert_eq!(naive.turns.first(), Some(&chosen));
    });
}

#[test]
fn a_hash_gives_a_key_to_its_owner_and_nobody_more_than_its_bound() {
    let mut moved = 0;
    play(Schedule::Hash, &[1, 1, 2, 4, 1, 1], 8, |naive, chosen, _, choice| {
        let here = |at: &u32| naive.here[*at as usize];
        let all: u32 = naive.places().filter(here).map(|at| naive.in_use[at as usize]).sum();
        let weights: u32 = naive.places().filter(here).map(|at| naive.weights[at as usize]).sum();
        let bound = (5 * (all + 1) * naive.weights[chosen as usize]).div_ceil(4 * weights);
        if choice == Choice::Hashed {
            assert!(naive.in_use[chosen as usize] < bound, "beyond its bound");
        }
        moved += u32::from(choice == Choice::HashedOn);
    });
    assert!(moved > 0, "bounds were met");
}

#[test]
fn a_hash_without_load_sends_a_key_always_to_the_same_worker() {
    let naive = Naive::new(&[1; 20], 1000);
    let mut free = naive.schedule(Schedule::Hash);
    let mut random = Random::new(1);
    for key in 0..1000 {
        let first = free.next(&mut random, Some(key));
        assert_eq!(first.map(|(_, choice)| choice), Some(Choice::Hashed));
        assert_eq!(free.next(&mut random, Some(key)), first);
    }
}

/// Counts the choices over this number of turns. Each slot is released immediately.
fn shares(schedule: Schedule, weights: &[u32], turns: u32) -> Vec<u32> {
    let mut naive = Naive::new(weights, u32::MAX);
    let mut free = naive.schedule(schedule);
    let mut random = Random::new(5);
    let mut counts = vec![0; weights.len()];
    for _ in 0..turns {
        let (worker, _) = free.next(&mut random, None).unwrap();
        counts[worker as usize] += 1;
        naive.in_use[worker as usize] = 1;
        free.given(worker, &naive.eligibility(worker));
        naive.in_use[worker as usize] = 0;
        free.offer(worker, &naive.eligibility(worker));
    }
    counts
}

#[test]
fn weighted_round_robin_gives_each_exactly_its_weight_in_every_round() {
    for weights in [vec![1, 1], vec![5, 1, 1], vec![3, 7, 2, 256, 1], vec![2; 9]] {
        let round: u32 = weights.iter().sum();
        for rounds in [1, 2, 3, 100] {
            let due: Vec<u32> = weights.iter().map(|weight| weight * rounds).collect();
            assert_eq!(shares(Schedule::WeightedRoundRobin, &weights, round * rounds), due);
        }
    }
}

#[test]
fn weighted_round_robin_is_smooth_as_its_oracle() {
    // The oracle compares turns as fractions: the k-th turn of weight w is at (2k + 1) / 2w.
    let weights = [5_u64, 1, 3, 2, 7];
    let mut taken = [0_u64; 5];
    let small: Vec<u32> = weights.iter().map(|weight| u32::try_from(*weight).unwrap()).collect();
    let mut naive = Naive::new(&small, u32::MAX);
    let mut free = naive.schedule(Schedule::WeightedRoundRobin);
    let mut random = Random::new(1);
    for _ in 0..18 * 50 {
        let (chosen, _) = free.next(&mut random, None).unwrap();
        let at = chosen as usize;
        let mine = 2 * taken[at] + 1;
        for other in 0..5 {
            let theirs = 2 * taken[other] + 1;
            assert!(mine * weights[other] <= theirs * weights[at], "{other} before {chosen}");
        }
        taken[at] += 1;
        naive.in_use[at] += 1;
        free.given(chosen, &naive.eligibility(chosen));
        naive.check(&free);
    }
}

#[test]
fn random_and_two_choices_keep_to_weights_within_four_sigma() {
    let turns = 200_000;
    for (schedule, weights) in [
        (Schedule::Random, vec![1, 2, 3, 10]),
        (Schedule::Random, vec![1; 7]),
        (Schedule::PowerOfTwo, vec![1; 7]),
        (Schedule::PowerOfTwo, vec![1, 2, 3, 10]),
    ] {
        let sum: u32 = weights.iter().sum();
        for (count, weight) in shares(schedule, &weights, turns).into_iter().zip(&weights) {
            let due = f64::from(*weight) / f64::from(sum);
            let mean = f64::from(turns) * due;
            let sigma = (mean * (1.0 - due)).sqrt();
            assert!((f64::from(count) - mean).abs() <= 4.0 * sigma, "{schedule:?} {count} {mean}");
        }
    }
}

#[test]
fn idle_workers_are_equals_whatever_their_weight() {
    let naive = Naive::new(&[2, 1], 3);
    let mut free = naive.schedule(Schedule::LeastRequests);
    let mut random = Random::new(1);
    let mut turns = [0; 2];
    for _ in 0..10 {
        let (worker, _) = free.next(&mut random, None).unwrap();
        let mut busy = naive.eligibility(worker);
        busy.in_use = 1;
        free.given(worker, &busy);
        free.offer(worker, &naive.eligibility(worker));
        turns[worker as usize] += 1;
    }
    assert_eq!(turns, [5, 5], "one client that asks again and again sees both");
}

#[test]
fn two_choices_never_take_the_worst_while_others_have_less() {
    play(Schedule::PowerOfTwo, &[1, 2, 1, 4], 5, |naive, chosen, _, _| {
        let free = naive.free();
        let worst =
            |one: &u32| free.iter().all(|other| one == other || naive.lighter(*other, *one));
        assert!(free.len() < 2 || !worst(&chosen), "{chosen} has more to do than all others");
    });
}

#[test]
fn a_worker_that_was_full_is_not_owed_what_it_missed() {
    let mut naive = Naive::new(&[1, 1], 1);
    let mut free = naive.schedule(Schedule::WeightedRoundRobin);
    let mut random = Random::new(1);
    // Worker 0 is full for a hundred turns of worker 1.
    naive.in_use[0] = 1;
    free.given(0, &naive.eligibility(0));
    for _ in 0..100 {
        assert_eq!(free.next(&mut random, None).map(|next| next.0), Some(1));
        naive.in_use[1] = 1;
        free.given(1, &naive.eligibility(1));
        naive.in_use[1] = 0;
        free.offer(1, &naive.eligibility(1));
    }
    naive.in_use[0] = 0;
    free.offer(0, &naive.eligibility(0));
    let mut turns = Vec::new();
    for _ in 0..6 {
        let (worker, _) = free.next(&mut random, None).unwrap();
        naive.in_use[worker as usize] = 1;
        free.given(worker, &naive.eligibility(worker));
        naive.in_use[worker as usize] = 0;
        free.offer(worker, &naive.eligibility(worker));
        turns.push(worker);
    }
    assert_eq!(turns.iter().filter(|worker| **worker == 0).count(), 3, "{turns:?}");
}

#[test]
fn backup_workers_serve_when_nobody_else_could_ever_be_free() {
    for schedule in Schedule::ALL {
        let naive = Naive::new(&[1, 1, 1], 1);
        let mut free = naive.schedule(*schedule);
        let mut random = Random::new(1);
        free.offer(2, &Eligibility { backup: true, ..naive.eligibility(2) });
        let mut next = |free: &mut FreeWorkers| free.next(&mut random, Some(1)).map(|next| next.0);
        assert!(!free.is_on_backup() && free.candidates() == 2);
        for busy in 0..2 {
            assert_ne!(next(&mut free), Some(2));
            free.given(busy, &Eligibility { in_use: 1, ..naive.eligibility(busy) });
        }
        assert_eq!((next(&mut free), free.any()), (None, false), "busy is not gone");
        free.remove(0);
        free.remove(1);
        assert_eq!((next(&mut free), free.any(), free.is_on_backup()), (Some(2), true, true));
        free.offer(1, &naive.eligibility(1));
        assert_eq!(next(&mut free), Some(1));
    }
}
