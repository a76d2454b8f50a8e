//! The cost of stickiness, health checks and limits per HTTP request: the complete data plane with and without them.

use crate::bench::driver::Part;
use crate::bench::goals::Goal;
use crate::bench::http::{self, CONNECTIONS, Cost};
use crate::bench::page::Template;
use crate::requirements;
use crate::shell::{Failure, Workspace};

const TEXT: Template = Template(include_str!("../../../pages/balance.md"));

const COOKIE: &str = "worker";

const STICKY: &str = "sticky = { cookie = \"worker\" }\n";
const HEALTH: &str = "health_check = { check = \"http\", path = \"/1\", max_fails = 5, unhealthy_latency = \"5s\", fail_duration = \"10s\" }\n";
const LIMITS: &str = "max_concurrent = 500\nqueue = { max_requests = 1000, timeout = \"5s\" }\n\
                      fallback = { line = \"busy\", until = \"30%\" }\n";

/// The maximum ratio of instructions with and without these features.
const INSTRUCTIONS_MAX: f64 = 1.03;
/// A health check makes a few calls every two seconds, and strace counts them together with those of the requests.
const CALLS_OF_CHECKS: f64 = 0.01;

pub(super) fn measure(workspace: &Workspace) -> Result<Part, Failure> {
    requirements::provide(requirements::BENCH_BALANCE)?;
    let all = [STICKY, HEALTH, LIMITS].concat();
    let variants = [
        ("without", ""),
        ("`sticky` by a cookie", STICKY),
        ("`health_check`: checks by HTTP, and errors and time of requests", HEALTH),
        ("limits: `max_concurrent`, `queue`, `fallback`", LIMITS),
        ("all of them", &all),
    ];
    let costs = http::cost(workspace, &variants, COOKIE)?;
    let rows: Vec<(&str, Cost)> = variants.iter().map(|(name, _)| *name).zip(costs).collect();
    let without = rows.first().map_or(1.0, |(_, cost)| cost.instructions);
    let line = |(name, cost): &(&str, Cost)| {
        let Cost { instructions, calls } = cost;
        let ratio = instructions / without;
        format!("| {name} | {instructions:.0} | {ratio:.3} | {calls:.3} |\n")
    };
    let lines: String = rows.iter().map(line).collect();
    let text = TEXT.fill("http", &[("connections", &CONNECTIONS), ("rows", &lines)]);
    Ok(Part { goals: goals(&rows), ..Part::text(text) })
}

fn goals(rows: &[(&str, Cost)]) -> Vec<Goal> {
    let (Some((_, without)), Some((_, all))) = (rows.first(), rows.last()) else {
        return Vec::new();
    };
    let instructions = all.instructions / without.instructions;
    vec![
        (
            format!(
                "with all of them at most {INSTRUCTIONS_MAX} × the instructions outside the kernel"
            ),
            format!("{instructions:.3}"),
            instructions <= INSTRUCTIONS_MAX,
        ),
        (
            "no more system calls than without".to_owned(),
            format!("{:.3}, without {:.3}", all.calls, without.calls),
            all.calls <= without.calls + CALLS_OF_CHECKS,
        ),
    ]
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
        assert!(goals(&rows(1030.0, 4.005)).iter().all(|(.., met)| *met));
        assert!(goals(&rows(1031.0, 4.1)).iter().all(|(.., met)| !met));
    }
}
