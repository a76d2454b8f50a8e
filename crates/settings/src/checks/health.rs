//! Rules between the options of `health_check`.

use super::identity;
use crate::fault::Fault;
use crate::model::{CheckKind, Dispatch, Statuses};
use crate::options::WorkerKind;
use crate::options::{Group, Value};
use crate::walk::Section;

/// Options that belong to exactly one kind of check.
const OWN: &[(&str, CheckKind)] = &[
    ("method", CheckKind::Http),
    ("path", CheckKind::Http),
    ("host", CheckKind::Http),
    ("status", CheckKind::Http),
    ("body", CheckKind::Http),
    ("send", CheckKind::Line),
    ("expect", CheckKind::Line),
    ("command", CheckKind::Program),
    ("user", CheckKind::Program),
    ("group", CheckKind::Program),
];

/// Options that belong to every kind of check.
const EVERY: &[&str] = &["interval", "timeout", "rise", "fall", "checked_first", "port"];

pub(super) fn check(pool: &Section, faults: &mut Vec<Fault>) {
    let Some(health) = pool.group.inner("health_check") else { return };
    identity::check(health, faults);
    of_errors(health, faults);
    unhealthy_status(pool, health, faults);
    let Some(kind) = health.get("check") else { return };
    without_a_check(health, kind, faults);
    of_another_check(health, kind, faults);
    missing(health, kind, faults);
    of_another_worker(pool, health, kind, faults);
    if super::http::serves(pool) && kind == CheckKind::Line {
        let place = health.place("check").unwrap_or(0..0);
        faults.push(
            Fault::at(place, "a program that serves HTTP does not read lines")
                .expected("expected `check = \"http\"`, `\"tcp\"` or `\"program\"`")
                .suggestion("write `check = \"http\"`"),
        );
        return;
    }
    if kind == CheckKind::Line {
        session_alone(pool, health, faults);
    }
    if kind == CheckKind::Http {
        head(health, faults);
        statuses(health, "status", faults);
    }
}

/// Checks the options of passive health checks: an option without effect is a fault.
fn of_errors(health: &Group, faults: &mut Vec<Fault>) {
    let rate = health.key("fail_rate");
    if let (Some(place), Some(Value::Number(0))) = (rate.clone(), health.value("fail_rate")) {
        faults.push(
            Fault::at(place, "`fail_rate` is 0%, which is always exceeded")
                .suggestion("write a percentage such as \"30%\", or remove it"),
        );
    }
    for name in ["fail_window", "fail_min_requests"] {
        if let (Some(place), None) = (health.key(name), &rate) {
            faults.push(
                Fault::at(place, format!("`{name}` requires `fail_rate`"))
                    .suggestion("add `fail_rate = \"30%\"`, or remove it"),
            );
        }
    }
    let in_a_row = matches!(health.value("max_fails"), Some(Value::Number(errors)) if *errors > 0);
    let counted = in_a_row || rate.is_some();
    for name in ["unhealthy_latency", "unhealthy_status"].into_iter().filter(|_| !counted) {
        if let Some(place) = health.key(name) {
            let message = format!("`{name}` has no effect: failed requests are not counted");
            faults.push(
                Fault::at(place, message)
                    .expected("`{name}` requires `max_fails` or `fail_rate`")
                    .suggestion("add `max_fails = 5`, or remove it"),
            );
        }
    }
}

/// Only workers that speak HTTP send a status.
fn unhealthy_status(pool: &Section, health: &Group, faults: &mut Vec<Fault>) {
    statuses(health, "unhealthy_status", faults);
    let speaks = pool.worker == Some(WorkerKind::Servers) || super::http::serves(pool);
    if let (Some(place), false) = (health.key("unhealthy_status"), speaks) {
        faults.push(
            Fault::at(place, "`unhealthy_status` requires workers that speak HTTP")
                .expected("expected in a pool of servers, or of programs that serve HTTP")
                .suggestion("remove it"),
        );
    }
}

/// A check of a program with `dispatch = "session"` is a session too. After it, a program without `reset` is replaced.
fn session_alone(pool: &Section, health: &Group, faults: &mut Vec<Fault>) {
    let session = pool.group.is("dispatch", Dispatch::Session);
    if session && pool.group.find("reset").is_none() {
        let place = health.place("check").unwrap_or(0..0);
        faults.push(
            Fault::at(
                place,
                "every check would end the program, because it serves sessions and has no `reset`",
            )
            .expected("expected `check = \"program\"`, or a `reset`")
            .suggestion("write `check = \"program\"`, or add `reset`"),
        );
    }
}

fn without_a_check(health: &Group, kind: CheckKind, faults: &mut Vec<Fault>) {
    if kind != CheckKind::Off {
        return;
    }
    for name in EVERY {
        if let Some(place) = health.key(name) {
            faults.push(
                Fault::at(place, format!("`{name}` has no effect: there are no health checks"))
                    .expected("`{name}` requires `check`")
                    .suggestion("add `check = \"tcp\"`, or remove it"),
            );
        }
    }
}

fn of_another_check(health: &Group, kind: CheckKind, faults: &mut Vec<Fault>) {
    for (name, of) in OWN {
        if let (Some(place), true) = (health.key(name), *of != kind) {
            let word = word(*of);
            faults.push(
                Fault::at(place, format!("`{name}` requires `check = \"{word}\"`"))
                    .expected("does not belong here")
                    .suggestion(format!("write `check = \"{word}\"`, or remove it")),
            );
        }
    }
}

fn missing(health: &Group, kind: CheckKind, faults: &mut Vec<Fault>) {
    let needed = match kind {
        CheckKind::Line => ("send", "send = \"ping\""),
        CheckKind::Program => ("command", "command = [\"./check.sh\"]"),
        CheckKind::Off | CheckKind::Tcp | CheckKind::Http => return,
    };
    if let (Some(place), None) = (health.place("check"), health.find(needed.0)) {
        faults.push(
            Fault::at(place, format!("`check = \"{}\"` needs `{}`", word(kind), needed.0))
                .suggestion(format!("add `{}`", needed.1)),
        );
    }
}

/// Programs on pipes have no address, and databases and handlers cannot be checked from outside this process.
fn of_another_worker(pool: &Section, health: &Group, kind: CheckKind, faults: &mut Vec<Fault>) {
    let (Some(worker), Some(place)) = (pool.worker, health.place("check")) else { return };
    let fits = match worker {
        WorkerKind::Servers | WorkerKind::Any => true,
        WorkerKind::Program if super::http::serves(pool) => true,
        WorkerKind::Program => !matches!(kind, CheckKind::Tcp | CheckKind::Http),
        WorkerKind::Database | WorkerKind::Handler => kind == CheckKind::Off,
    };
    if !fits {
        let message = format!("`check = \"{}\"` cannot check a {}", word(kind), worker.title());
        let fault = Fault::at(place, message);
        faults.push(match worker {
            WorkerKind::Program => {
                fault.suggestion("write `check = \"line\"` or `check = \"program\"`")
            }
            _ => fault
                .suggestion("remove it; `max_fails` and `unhealthy_latency` count failed requests"),
        });
    }
    if let (Some(place), CheckKind::Program) = (health.key("port"), kind) {
        faults.push(
            Fault::at(place, "`port` has no effect: the `command` does not receive an address")
                .suggestion("remove it, or write `check = \"tcp\"` or `\"http\"`"),
        );
    } else if let (Some(place), true) = (health.key("port"), worker == WorkerKind::Program) {
        faults.push(
            Fault::at(place, "`port` has no effect: programs have no address")
                .suggestion("remove it"),
        );
    }
}

/// Text that is written into a request must not end the line.
fn head(health: &Group, faults: &mut Vec<Fault>) {
    for name in ["method", "path", "host"] {
        let Some((text, place)) = health.given_text(name) else {
            continue;
        };
        let wrong = match name {
            "method" => !text.bytes().all(|byte| byte.is_ascii_uppercase()),
            "path" => !text.starts_with('/') || !text.bytes().all(|byte| byte.is_ascii_graphic()),
            _ => !text.bytes().all(|byte| byte.is_ascii_graphic()),
        };
        if wrong {
            let fault = Fault::at(place, format!("`{text}` is not a valid {name} of a request"));
            faults.push(match name {
                "method" => fault.suggestion("write \"GET\" or \"HEAD\""),
                "path" => fault.suggestion("begin it with `/` and do not use spaces"),
                _ => fault.suggestion("write a name like \"app.example\""),
            });
        }
    }
}

fn statuses(health: &Group, name: &str, faults: &mut Vec<Fault>) {
    let Some((text, place)) = health.given_text(name) else { return };
    if Statuses::read(text).is_none() {
        faults.push(
            Fault::at(place, format!("`{text}` is not a range of statuses"))
                .expected("expected two numbers from 100 to 599")
                .suggestion("write \"200..399\", or \"200\" for one status"),
        );
    }
}

const fn word(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::Off => "off",
        CheckKind::Tcp => "tcp",
        CheckKind::Http => "http",
        CheckKind::Line => "line",
        CheckKind::Program => "program",
    }
}
