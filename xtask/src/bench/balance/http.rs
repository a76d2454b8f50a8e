//! Stickiness, health and limits on a request of HTTP: the whole data plane with them and without.

use super::goals::{Goals, asked};
use crate::bench::http::{self, CONNECTIONS, Cost};
use crate::requirements;
use crate::shell::{Failure, Workspace};

const COOKIE: &str = "berth";

const STICKY: &str = "sticky = { cookie = \"berth\" }\n";
const HEALTH: &str =
    "health = { check = \"http\", path = \"/1\", errors = 5, slow = \"5s\", eject = \"10s\" }\n";
const LIMITS: &str = "slots_max = 500\nqueue = { length = 1000, wait = \"5s\" }\n\
                      sorry = { line = \"busy\", until = \"30%\" }\n";

/// Where they go.
const WHY: &str = "What a cookie adds is that it is found in the head, whose it is, and whether its client must be told \
                   again. A request that names its worker goes straight to it where nobody waits and it has a free \
                   slot. Of a request that ends well nothing is noted while nothing is held against its worker; the rest \
                   of health is the checks, which go by time and not by requests: below callgrind a second has few \
                   requests.\n\n";

/// More instructions than without, at most.
const INSTRUCTIONS_MAX: f64 = 1.03;
/// A check makes some calls each two seconds, and strace counts them with those of the requests.
const CALLS_OF_CHECKS: f64 = 0.01;

pub(super) fn measure(workspace: &Workspace) -> Result<(String, Goals), Failure> {
    requirements::provide(requirements::BENCH_BALANCE)?;
    let all = [STICKY, HEALTH, LIMITS].concat();
    let variants = [
        ("without", ""),
        ("`sticky` by a cookie", STICKY),
        ("`health`: checks by HTTP, and errors and time of requests", HEALTH),
        ("limits: `slots_max`, `queue`, `sorry`", LIMITS),
        ("all of them", &all),
    ];
    let costs = http::cost(workspace, &variants, COOKIE)?;
    let rows: Vec<(&str, Cost)> = variants.iter().map(|(name, _)| *name).zip(costs).collect();
    let goals = goals(&rows);
    Ok((section(&rows, &goals), goals))
}

fn goals(rows: &[(&str, Cost)]) -> Goals {
    let (Some((_, without)), Some((_, all))) = (rows.first(), rows.last()) else {
        return Goals::new();
    };
    let instructions = all.instructions / without.instructions;
    vec![
        (
            format!(
                "with all of them at most {INSTRUCTIONS_MAX} × the instructions outside the kernel \
                 ({instructions:.3})"
            ),
            instructions <= INSTRUCTIONS_MAX,
        ),
        (
            format!(
                "no more system calls than without ({:.3}, without {:.3})",
                all.calls, without.calls
            ),
            all.calls <= without.calls + CALLS_OF_CHECKS,
        ),
    ]
}

fn section(rows: &[(&str, Cost)], goals: &Goals) -> String {
    let mut text = format!(
        "## In a request of HTTP\n\nOne request and its reply of 128 bytes through the data plane, as `bench http` \
         counts them: {CONNECTIONS} connections that stay, one server, one shard, all of it but the keeper and the \
         admin address. Instructions outside the kernel by callgrind, what so many more requests add to a run; system \
         calls by strace, those that wait for events left out, whose number goes by how many requests come at once. \
         Each client bears the cookie, also where nothing is done with it; where it is `sticky`, it is bound from its \
         first reply on. Checks are made each two seconds meanwhile and are in the numbers.\n\n\
         | in the pool | instructions | ÷ without | system calls |\n|---|---|---|---|\n"
    );
    let without = rows.first().map_or(1.0, |(_, cost)| cost.instructions);
    for (name, Cost { instructions, calls }) in rows {
        let ratio = instructions / without;
        text.push_str(&format!("| {name} | {instructions:.0} | {ratio:.3} | {calls:.3} |\n"));
    }
    text.push('\n');
    text.push_str(WHY);
    text + &asked(goals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_a_hundred_more_instructions_and_no_more_calls_are_met() {
        let rows = |instructions, calls| {
            let without = Cost { instructions: 1000.0, calls: 4.0 };
            [("without", without), ("all", Cost { instructions, calls })]
        };
        assert!(goals(&rows(1030.0, 4.005)).iter().all(|(_, met)| *met));
        assert!(goals(&rows(1031.0, 4.1)).iter().all(|(_, met)| !met));
    }
}
