//! Clients that are paused because the queue of their pool is full: each is served within a bounded time.

use std::time::Duration;

use crate::programs::SCRIPTED;
use crate::script::Script;

const SECOND: Duration = Duration::from_secs(1);

/// Clients of one program, which answers one request in each step.
struct Ring {
    script: Script,
    /// Each client with the number of its requests. The first ones send their next request without waiting for replies.
    clients: Vec<(u32, usize)>,
    greedy: usize,
    answered: usize,
}

impl Ring {
    fn new(shards: usize, count: usize, greedy: usize, pool: &str) -> Self {
        let text = format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"main\"\n\
             first_request_timeout = \"10s\"\n[pool.main]\nprogram = [\"{SCRIPTED}\"]\nworkers = 1\n\
             alignment = \"off\"\nresponse_timeout = \"900s\"\n{pool}\n"
        );
        let mut script = Script::on_shards(&text, shards);
        let clients =
            (0..count).map(|client| (script.connect_to(client % shards, 1 << 30), 0)).collect();
        let mut ring = Self { script, clients, greedy, answered: 0 };
        // Clients that wait for their replies come last, when the queue is full.
        (0..count).for_each(|client| ring.ask(client));
        ring
    }

    fn replies(&self, client: usize) -> usize {
        self.script.taken(self.clients[client].0).matches('\n').count()
    }

    fn ask(&mut self, client: usize) {
        let (peer, sent) = self.clients[client];
        let count = match client < self.greedy {
            true if self.script.unreceived(peer) < 100 => 200,
            false if self.replies(client) == sent => 1,
            _ => return,
        };
        self.clients[client].1 += count;
        self.script.say(peer, "x\n".repeat(count).as_bytes());
    }

    fn step(&mut self) {
        let program = self.script.programs()[0];
        if self.script.taken(program.stdin).matches('\n').count() > self.answered {
            self.answered += 1;
            self.script.say(program.stdout, b"x\n");
        }
        (0..self.clients.len()).for_each(|client| self.ask(client));
    }

    /// Returns the maximum number of steps that a client that waits for its replies waited for one of them.
    fn longest_wait(&mut self, steps: usize) -> usize {
        let clients = self.greedy..self.clients.len();
        let mut last: Vec<_> = clients.clone().map(|client| (0, self.replies(client))).collect();
        let mut longest = 0;
        for step in 1..=steps {
            self.step();
            for (client, last) in clients.clone().zip(&mut last) {
                let replies = self.replies(client);
                if replies > last.1 {
                    *last = (step, replies);
                }
                longest = longest.max(step - last.0);
            }
        }
        assert!(self.answered + 1 >= steps, "the program has always one to answer");
        longest
    }
}

#[test]
fn every_client_is_served_while_others_fill_the_queue() {
    for shards in [1, 2, 4] {
        for count in [2, 3, 4, 5, 6, 8, 10] {
            for greedy in [1, count / 2, count - 1] {
                let mut ring = Ring::new(
                    shards,
                    count,
                    greedy,
                    "queue = { max_requests = 4, timeout = \"900s\" }",
                );
                let longest = ring.longest_wait(120);
                let most = 10 + 4 * count;
                assert!(longest <= most, "{longest} steps: {greedy} of {count} on {shards} shards");
            }
        }
    }
}

#[test]
fn a_client_whose_first_request_waits_for_room_is_not_silent() {
    let mut ring = Ring::new(1, 3, 1, "queue = { max_requests = 1, timeout = \"900s\" }");
    ring.script.pass(30 * SECOND);
    let last = ring.clients[2].0;
    assert!(!ring.script.is_closed(last), "it has sent a request");
    assert!(ring.longest_wait(30) <= 20);
}

/// The program of the second pool answers nothing for a while.
#[test]
fn clients_on_each_shard_are_paused_when_a_later_pool_of_the_chain_is_full() {
    for shards in [1, 2] {
        let pool = format!(
            "program = [\"{SCRIPTED}\"]\nworkers = 1\nalignment = \"off\"\nresponse_timeout = \"900s\"\n\
             queue = {{ max_requests = 4, timeout = \"900s\" }}\n"
        );
        let text = format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"main\"\n\
             [pool.main]\n{pool}then = \"next\"\n[pool.next]\n{pool}"
        );
        let mut script = Script::on_shards(&text, shards);
        let client = script.connect_to(shards - 1, 1 << 30);
        script.say(client, &b"x\n".repeat(100));
        let programs = script.programs();
        let mut answered = [0; 2];
        for step in 0..300 {
            for (place, program) in programs.iter().enumerate() {
                let given = script.taken(program.stdin).matches('\n').count();
                if given > answered[place] && (place == 0 || step > 50) {
                    answered[place] += 1;
                    script.say(program.stdout, b"x\n");
                }
            }
            assert!(step != 50 || answered[0] <= 5, "the first pool answered {}", answered[0]);
        }
        assert_eq!(script.taken(client), "x\n".repeat(100), "on {shards} shards");
    }
}
