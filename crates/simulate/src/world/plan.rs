//! The worlds of servers and of programs that serve HTTP: their configuration and their actors.

use std::time::Duration;

use crate::http::distribution::Distribution;
use crate::http::hosts::{HostHistory, START_MAX};
use crate::http::servers::{Mode, Server};
use crate::http::speakers::{FIRST_PORT, Role, State};
use crate::scenario::{Finish, ListenerFacts};
use crate::scheduled_event::ScheduledEvent;
use crate::world::World;

/// The health check options of a pool.
const HEALTH: [&str; 5] = [
    "",
    "health_check = \"off\"\n",
    "health_check = { check = \"tcp\", interval = \"300ms\", fall = 2, rise = 1 }\n",
    "health_check = { check = \"http\", path = \"/r/0\", interval = \"500ms\", timeout = \"2s\" }\n",
    "health_check = { max_fails = 3, fail_duration = \"500ms\" }\n",
];

const FALLBACK_POOL: &str = "fallback = { pool = \"spare\", until = \"50%\" }\n";

const FALLBACK: &str = "fallback = { line = \"come again\", until = \"50%\" }\n";

impl World {
    /// Makes this world one of servers. Call it before any actor is added.
    pub(crate) fn turn_to_http(&mut self) {
        let servers = self.chance.between(1, 3);
        // In most worlds one server is always up, and then no request may fail.
        let steady = self.scenario.trouble == 0 || self.chance.in_1000(700);
        for place in 0..servers {
            let steady = self.scenario.trouble == 0 || (steady && place == 0);
            self.http.servers.push(Server::new(steady));
        }
        self.http.distribution = Distribution::draw(&mut self.chance, servers);
        self.http.is_gentle = self.scenario.trouble == 0 && self.chance.in_1000(700);
        self.http.is_alone = self.scenario.shards == 1;
        let distribution = &self.http.distribution;
        let addresses: Vec<String> = (0..servers)
            .map(|place| {
                let (port, weight) = (usize::from(FIRST_PORT) + place, distribution.weight(place));
                format!("{{ address = \"127.0.0.1:{port}\", weight = {weight} }}")
            })
            .collect();
        let options = distribution.options();
        self.http.slots = self.chance.pick(&[1, 2, 5, 1000]);
        let health = self.chance.pick(&HEALTH);
        self.http.is_checked = health.contains("check");
        self.http.may_be_out = self.http.is_checked || health.contains("max_fails");
        let pool = format!(
            "servers = [{}]\nconnect_timeout = \"2s\"\nresponse_timeout = \"20s\"\nread_timeout = \"20s\"\nkeepalive_timeout = \"{}\"\n\
             upstream.max_concurrent = {}\n{health}{options}",
            addresses.join(", "),
            self.chance.pick(&["30ms", "60s"]),
            self.http.slots,
        );
        self.stand_before(&pool);
        self.http.answers_twice = self.chance.in_1000(100);
    }

    /// Makes this world one of programs that serve HTTP.
    pub(crate) fn turn_to_hosts(&mut self) {
        self.http.slots = self.chance.pick(&[1, 2, 5, 64]);
        self.http.host_history = HostHistory::of_hosts(self.chance.pick(&[1, 5, 128, 128]));
        let (min, more) = (self.chance.between(1, 3), self.chance.below(3));
        let health = self.chance.pick(&[
            "",
            "",
            "health_check = { max_fails = 3, fail_duration = \"500ms\" }\n",
        ]);
        self.http.may_be_out = !health.is_empty();
        let recycle = self.chance.pick(&[
            "",
            "recycle = { max_requests = 2, jitter = \"50%\", share = \"100%\" }\n",
            "recycle = { max_requests = 7, jitter = \"0%\", share = \"50%\" }\n",
            "recycle = { max_age = \"1s\", share = \"50%\" }\n",
        ]);
        let pool = format!(
            "program = [\"app\", \"{{socket}}\", \"{{port}}\"]\nframing = \"http\"\nsocket = \"{}\"\n\
             pipeline = {}\nstart_timeout = \"{}s\"\nstop_timeout = \"{}ms\"\nmin_uptime = \"{}ms\"\n\
             workers = {{ min = {min}, max = {}, spare = {}, idle_timeout = \"{}ms\", grow_after = \"{}ms\" }}\n\
             response_timeout = \"{}s\"\n{recycle}{health}",
            self.chance.pick(&["inherited", "inherited", "path", "port"]),
            self.http.slots,
            START_MAX.as_secs(),
            self.chance.pick(&[50, 500, 2000]),
            self.chance.pick(&[0, 100, 1000]),
            min + more,
            more.min(1),
            self.chance.pick(&[100, 2000, 30_000]),
            self.chance.pick(&[1, 10, 100]),
            self.chance.pick(&[4, 20]),
        );
        let schedule = self.chance.pick(&["round-robin", "least-requests"]);
        self.stand_before(&format!("{pool}balance = \"{schedule}\"\n"));
        self.http.is_hosts = true;
    }

    /// Configures a listener in front of a pool of such workers.
    pub(super) fn stand_before(&mut self, workers: &str) {
        let aside = self.scenario.aside();
        self.http.may_fall_back = self.chance.in_1000(250);
        let queue = if self.http.may_fall_back { 2 } else { 10_000 };
        // Then a fallback pool with its own server may answer.
        let has_spare =
            self.http.may_fall_back && !self.http.servers.is_empty() && self.chance.in_1000(500);
        let fallback = match (self.http.may_fall_back, has_spare) {
            (true, true) => FALLBACK_POOL,
            (true, false) => FALLBACK,
            (false, _) => "",
        };
        self.http.body_max = self.chance.pick(&[1 << 20, 1 << 20, 60_000, 5000]);
        let (body_max, log) = (self.http.body_max, crate::http::log::FORMAT);
        let spare = if has_spare { self.add_spare() } else { String::new() };
        self.scenario.text = format!(
            "[daemon]\ndrain_timeout = \"60s\"\n\n[listener.l0]\nlisten = \"127.0.0.1:8000\"\n\
             protocol = \"http\"\npool = \"web\"\nidle_timeout = \"300s\"\nrequest_read_timeout = \"8s\"\nsend_timeout = \"60s\"\n\
             body_max = {body_max}\nsend_max = {}\n{log}{aside}\n[pool.web]\n{workers}{fallback}\
             queue = {{ max_requests = {queue}, timeout = \"90s\" }}\n{spare}",
            self.chance.pick(&[64 << 10, 1 << 20]),
        );
        self.scenario.finish = Finish::Calm;
        self.scenario.drain = Duration::from_secs(60);
        self.scenario.drain_again = None;
        self.scenario.lines_max = self.scenario.lines_max.min(20);
        self.scenario.socket_receive = self.scenario.socket_receive.max(1000);
        self.scenario.socket_send = self.scenario.socket_send.max(1000);
        self.scenario.listeners = vec![ListenerFacts {
            line_max: 0,
            status: false,
            accepts_last_line: false,
            keeps_half_closed: false,
            connections_max: 10_000,
        }];
    }

    /// Adds a server and the fallback pool that uses it.
    pub(super) fn add_spare(&mut self) -> String {
        let port = usize::from(FIRST_PORT) + self.http.servers.len();
        let steady = self.scenario.trouble == 0;
        self.http.distribution.spare = steady.then_some(self.http.servers.len());
        self.http.servers.push(Server::new(steady));
        format!(
            "\n[pool.spare]\nservers = [\"127.0.0.1:{port}\"]\nconnect_timeout = \"2s\"\nresponse_timeout = \"20s\"\n\
             read_timeout = \"20s\"\nqueue = {{ max_requests = 10000, timeout = \"90s\" }}\nupstream.max_concurrent = {}\n",
            self.http.slots
        )
    }

    /// Schedules all visitors and faults.
    pub(crate) fn populate_http(&mut self) {
        for _ in 0..self.scenario.clients {
            let after = self.chance.time(Duration::from_micros(100), Duration::from_secs(5));
            self.add_visitor(after, false);
        }
        for _ in 0..self.scenario.cuts {
            let after = self.chance.time(Duration::from_millis(1), Duration::from_secs(10));
            self.after(after, ScheduledEvent::Cut);
        }
        if self.http.is_hosts && self.scenario.supervisor_lost {
            let after = self.chance.time(Duration::from_millis(1), Duration::from_secs(10));
            self.after(after, ScheduledEvent::SupervisorLost);
        }
        let servers = if self.http.is_hosts { 0 } else { self.http.servers.len() };
        for server in 0..servers {
            let after = self.chance.time(Duration::from_millis(1), Duration::from_secs(3));
            self.after(after, ScheduledEvent::ServerTurns(server));
        }
    }

    /// Ends all faults and adds a visitor that must be answered. Returns its number.
    pub(crate) fn visit_calmly(&mut self) -> usize {
        for server in self.http.servers.iter_mut().filter(|server| server.host.is_none()) {
            server.mode = Mode::Serves;
        }
        self.add_visitor(Duration::from_millis(1), true)
    }

    /// Whether a visitor was answered; `None` while it is not done.
    pub(crate) fn was_answered(&self, number: usize) -> Option<bool> {
        let speaker = &self.http.speakers[number];
        let Role::Visitor(visitor) = &speaker.role else { return None };
        let answered = || visitor.answers.iter().any(|reply| reply.status == 200);
        (speaker.state == State::Done).then(answered)
    }
}
