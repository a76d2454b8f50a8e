//! What a seed determines: the configuration of the gateway, and the faults of the world.

use std::time::Duration;

use wire::{Framing, Width};

use crate::chance::Chance;

/// The task of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Programs answer.
    Programs,
    /// Programs read lines, and their replies become rows.
    Main,
    /// Lines become rows.
    Rows,
}

impl Job {
    /// Returns the pool to which clients send requests.
    pub(crate) const fn first_pool(self) -> &'static str {
        match self {
            Self::Programs | Self::Main => "work",
            Self::Rows => "store",
        }
    }
}

/// How the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// By a drain after all clients are done.
    Calm,
    /// By a drain in the middle of the work.
    Early(Duration),
    /// The daemon crashes in the middle of the work.
    Crash(Duration),
}

#[derive(Clone, Debug)]
pub(crate) struct ListenerFacts {
    pub(crate) line_max: usize,
    pub(crate) status: bool,
    pub(crate) accepts_last_line: bool,
    pub(crate) keeps_half_closed: bool,
    pub(crate) connections_max: usize,
}

/// Everything that is decided before a world begins.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The number of loops of the gateway.
    pub(crate) shards: usize,
    /// The owner shard of its pools.
    pub(crate) owner_shard: usize,
    pub(crate) job: Job,
    pub(crate) finish: Finish,
    pub(crate) text: String,
    pub(crate) listeners: Vec<ListenerFacts>,
    pub(crate) clients: usize,
    pub(crate) lines_max: usize,
    /// The amount of faults, from 0 to 10.
    pub(crate) trouble: u32,
    /// The number of programs, from the first on, that cannot be started.
    pub(crate) programs_absent: usize,
    /// Whether half of the programs print surplus lines, and clients compete for them.
    pub(crate) programs_stray: bool,
    /// Whether clients leave while replies are on their way, at the most difficult moment.
    pub(crate) leave_unread: bool,
    /// The option `send_max` of the listeners, if it is not drawn.
    send_max: Option<usize>,
    /// Per thousand: programs that misbehave, refusals, early reports, short calls, empty calls.
    pub(crate) faulty_programs: u32,
    pub(crate) refusals: u32,
    pub(crate) eager: u32,
    pub(crate) short: u32,
    pub(crate) again: u32,
    pub(crate) latency_max: Duration,
    pub(crate) work_max: Duration,
    pub(crate) commit_max: Duration,
    pub(crate) deadline: Duration,
    pub(crate) reply_max: usize,
    /// The framing of the programs.
    pub(crate) framing: Framing,
    /// The capacity of pipes and sockets, in bytes.
    pub(crate) pipe: usize,
    pub(crate) socket_receive: usize,
    pub(crate) socket_send: usize,
    pub(crate) cuts: usize,
    pub(crate) asks: usize,
    /// The delay after which a second drain is ordered, which ends the gateway immediately.
    pub(crate) drain_again: Option<Duration>,
    pub(crate) supervisor_lost: bool,
    /// The limits of the loop: events, accepts and mails per iteration, and bytes of one stream.
    pub(crate) budgets: [usize; 4],
    pub(crate) drain: Duration,
}

impl Scenario {
    pub(crate) fn new(seed: u64, shards: usize) -> Self {
        let chance = &mut Chance::new(seed);
        let job = chance.pick(&[Job::Programs, Job::Main, Job::Main, Job::Rows]);
        let trouble = chance.pick(&[0, 1, 5, 10]);
        let programs_stray = trouble > 0 && seed % 16 == 9;
        let job = if programs_stray { Job::Programs } else { job };
        let early = chance.time(Duration::from_millis(5), Duration::from_secs(15));
        let finish = chance.weighted(&[
            (70, Finish::Calm),
            (15, Finish::Early(early)),
            (15, Finish::Crash(early)),
        ]);
        let deadline = chance.time(Duration::from_millis(500), Duration::from_secs(4));
        let line_max = chance.pick(&[100, 300, 2000]);
        let listeners: Vec<_> =
            (0..chance.between(1, 2)).map(|_| listener(chance, line_max)).collect();
        let reply_max = line_max * 2 + 100;
        let drain = chance.time(Duration::from_millis(200), Duration::from_secs(60));
        let mut scenario = Self {
            shards,
            owner_shard: 0,
            job,
            finish,
            text: String::new(),
            listeners,
            clients: if programs_stray { 14 } else { chance.between(1, 14) },
            lines_max: chance.pick(&[2, 8, 30, 80]),
            trouble,
            // Not drawn, so that all other worlds remain unchanged.
            programs_absent: if trouble > 0 && seed % 16 == 5 { 12 } else { 0 },
            programs_stray,
            leave_unread: seed % 16 == 3,
            // More than one or two replies exceed the output limit.
            send_max: (seed % 16 == 3).then_some(reply_max * 2),
            faulty_programs: chance.pick(&[0, 200, 500]),
            refusals: chance.pick(&[0, 0, 60]),
            eager: chance.pick(&[0, 0, 300, 1000]),
            short: chance.pick(&[0, 50, 500, 950]),
            again: chance.pick(&[0, 20, 200]),
            latency_max: chance.pick(&[
                Duration::from_micros(100),
                Duration::from_millis(2),
                Duration::from_millis(80),
            ]),
            work_max: chance.pick(&[
                Duration::from_micros(200),
                Duration::from_millis(5),
                Duration::from_millis(100),
            ]),
            commit_max: chance.pick(&[Duration::from_millis(1), Duration::from_millis(60)]),
            deadline,
            reply_max,
            framing: chance.pick(&[
                Framing::Lines,
                Framing::Nul,
                Framing::Len(Width::Two),
                Framing::Len(Width::Four),
                Framing::Netstring,
            ]),
            pipe: chance.pick(&[64, 1000, 65_536]),
            socket_receive: chance.pick(&[50, 1000, 65_536]),
            socket_send: chance.pick(&[50, 1000, 65_536]),
            cuts: if trouble > 0 { chance.below(4) } else { 0 },
            supervisor_lost: trouble > 0 && chance.in_1000(60),
            budgets: [
                chance.pick(&[1, 4, 1024]),
                chance.pick(&[1, 64]),
                chance.pick(&[1, 3, 1024]),
                chance.pick(&[1, 600, 256 << 10]),
            ],
            asks: chance.pick(&[0, 0, 1, 6]),
            drain_again: chance
                .in_1000(100)
                .then(|| chance.time(Duration::from_millis(1), Duration::from_secs(3))),
            drain,
        };
        if scenario.latency_max > Duration::from_millis(10) {
            // A line must still arrive within the option `request_read_timeout` of its listener.
            scenario.socket_receive = scenario.socket_receive.max(1000);
            scenario.socket_send = scenario.socket_send.max(1000);
        }
        scenario.owner_shard = chance.below(shards);
        scenario.text = scenario.configuration(chance);
        scenario
    }

    /// Returns the configuration as an operator would write it.
    fn configuration(&self, chance: &mut Chance) -> String {
        let job = match self.job {
            Job::Programs => self.programs(chance, None),
            Job::Main => self.programs(chance, Some("store")) + &self.store(chance),
            Job::Rows => self.store(chance),
        };
        let first = self.job.first_pool();
        let job = self.aside() + &job;
        let mut text = format!("[daemon]\ndrain_timeout = \"{}ms\"\n", self.drain.as_millis());
        for (place, facts) in self.listeners.iter().enumerate() {
            let in_flight_max = chance.pick(&[1, 2, 7, 64]);
            let reply_held_max = chance.pick(&[300, 1000, 1 << 20]);
            let send_max = chance.pick(&[64 << 10, 1 << 20]);
            text += &format!(
                "\n[listener.l{place}]\nlisten = \"127.0.0.1:{}\"\npool = \"{first}\"\n\
                 reply = \"{}\"\nlast_line = \"{}\"\nhalf_close = \"{}\"\n\
                 connections_max = {}\nframe_max = {}\nin_flight_max = {}\n\
                 reply_held_max = {}\nsend_max = {}\nidle_timeout = \"{}s\"\nrequest_read_timeout = \"{}s\"\n\
                 send_timeout = \"{}s\"\nsend_rate_min = \"64B\"\n",
                7000 + place,
                if facts.status { "status" } else { "plain" },
                if facts.accepts_last_line { "accept" } else { "refuse" },
                if facts.keeps_half_closed { "keep" } else { "left" },
                facts.connections_max,
                facts.line_max,
                in_flight_max,
                reply_held_max,
                self.send_max.unwrap_or(send_max),
                chance.between(10, 30),
                chance.between(5, 20),
                chance.between(8, 30),
            );
        }
        text + &job
    }

    /// Returns unused pools, so that `owner_shard` becomes the owner shard of the other pools.
    pub(crate) fn aside(&self) -> String {
        (0..self.owner_shard)
            .map(|place| format!("\n[pool.aside{place}]\nprogram = [\"idler\"]\nworkers = 1\n"))
            .collect()
    }

    fn programs(&self, chance: &mut Chance, then: Option<&str>) -> String {
        let mut text = format!(
            "\n[pool.work]\nprogram = [\"worker\"]\nframing = \"{}\"\npipeline = {}\nreply_max = {}\nstop_timeout = \"{}ms\"\n\
             min_uptime = \"{}ms\"\n",
            self.framing.as_str(),
            if self.programs_stray { 1 } else { chance.pick(&[1, 1, 2, 8]) },
            self.reply_max,
            chance.pick(&[50, 500, 2000]),
            chance.pick(&[0, 100, 1000]),
        );
        if let Some(then) = then {
            text += &format!("then = \"{then}\"\n");
        }
        text + &self.pool(chance)
    }

    fn store(&self, chance: &mut Chance) -> String {
        let text = format!(
            "\n[pool.store]\ndatabase = \"sqlite:rows.db\"\norder = \"any\"\nack = \"ok {{id}}\"\n\
             insert = {{ table = \"rows\", columns = [\"id\"] }}\n\
             batch = {{ rows = {}, timeout = \"{}ms\" }}\n",
            chance.pick(&[1, 3, 1000]),
            chance.pick(&[0, 0, 2, 50]),
        );
        text + &self.pool(chance)
    }

    fn pool(&self, chance: &mut Chance) -> String {
        let min = chance.between(1, 3);
        let max = min + chance.below(4);
        format!(
            "workers = {{ min = {min}, max = {max}, spare = {}, idle_timeout = \"{}ms\", grow_after = \
             \"{}ms\" }}\nqueue = {{ max_requests = {}, timeout = \"{}ms\" }}\nbalance = \"{}\"\n\
             response_timeout = \"{}ms\"\n",
            chance.below(max.min(2)),
            chance.pick(&[100, 2000, 30_000]),
            chance.pick(&[1, 10, 100]),
            chance.pick(&[1, 5, 1000]),
            chance.between(500, 4000),
            chance.pick(&["round-robin", "least-requests"]),
            self.deadline.as_millis(),
        )
    }
}

fn listener(chance: &mut Chance, line_max: usize) -> ListenerFacts {
    ListenerFacts {
        line_max,
        status: chance.in_1000(500),
        accepts_last_line: chance.in_1000(300),
        keeps_half_closed: chance.in_1000(850),
        connections_max: chance.pick(&[2, 1000, 1000]),
    }
}
