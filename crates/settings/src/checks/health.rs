//! Rules between the options of `health_check`.

use super::identity;
use crate::fault::{Fault, reject};
use crate::model::{self, CheckKind, Dispatch, HealthCheck};
use crate::options::{Group, Needs, Setting, Value, WorkerKind};
use crate::walk::Section;

pub(super) fn check(pool: &Section, faults: &mut Vec<Fault>) {
    let Some(health) = pool.group.inner("health_check") else { return };
    identity::check(health, faults);
    of_errors(health, faults);
    unhealthy_status(pool, health, faults);
    let Some(Value::Word(word)) = health.value("check") else { return };
    let kind = CheckKind::of(health.value("check"));
    of_another_check(health, word, faults);
    missing(health, kind, faults);
    of_another_worker(pool, health, (kind, word), faults);
    let at = || health.place("check").or(Some(0..0));
    let serves = super::http::serves(pool);
    // A check of a program with `dispatch = "session"` is a session too. After it, a program without `reset` is
    // replaced.
    let is_session = pool.group.is("dispatch", Dispatch::Session);
    reject! { faults;
        at(), if kind == CheckKind::Line && serves
            => "a program that serves HTTP does not read lines",
            expected "expected `check = \"http\"`, `\"tcp\"` or `\"program\"`",
            help "write `check = \"http\"`";
        at(), if kind == CheckKind::Line && !serves && is_session && pool.group.find("reset").is_none()
            => "every check would end the program, because it serves sessions and has no `reset`",
            expected "expected `check = \"program\"`, or a `reset`",
            help "write `check = \"program\"`, or add `reset`";
    }
    if kind == CheckKind::Http {
        head(health, faults);
        statuses(health, "status", faults);
    }
}

/// Checks the options of passive health checks: an option without effect is a fault.
fn of_errors(health: &Group, faults: &mut Vec<Fault>) {
    let rate = health.key("fail_rate");
    reject! { faults;
        rate.clone(), if health.number("fail_rate") == Some(0)
            => "`fail_rate` is 0%, which is always exceeded",
            help "write a percentage such as \"30%\", or remove it";
    }
    for name in ["fail_window", "fail_min_requests"] {
        reject! { faults;
            health.key(name), if rate.is_none() => format!("`{name}` requires `fail_rate`"),
                help "add `fail_rate = \"30%\"`, or remove it";
        }
    }
    let is_counted = rate.is_some() || health.number("max_fails").is_some_and(|errors| errors > 0);
    for name in ["unhealthy_latency", "unhealthy_status"] {
        reject! { faults;
            health.key(name), if !is_counted
                => format!("`{name}` has no effect: failed requests are not counted"),
                expected format!("`{name}` requires `max_fails` or `fail_rate`"),
                help "add `max_fails = 5`, or remove it";
        }
    }
}

/// Only workers that speak HTTP send a status.
fn unhealthy_status(pool: &Section, health: &Group, faults: &mut Vec<Fault>) {
    statuses(health, "unhealthy_status", faults);
    let speaks = pool.worker == Some(WorkerKind::Servers) || super::http::serves(pool);
    reject! { faults;
        health.key("unhealthy_status"), if !speaks
            => "`unhealthy_status` requires workers that speak HTTP",
            expected "expected in a pool of servers, or of programs that serve HTTP",
            help "remove it";
    }
}

/// Checks the options that require a check, or one kind of it.
fn of_another_check(health: &Group, kind: &str, faults: &mut Vec<Fault>) {
    for (name, place) in health.needing(HealthCheck::OPTIONS, Needs::AnyCheck) {
        reject! { faults;
            Some(place), if kind == "off"
                => format!("`{name}` has no effect: there are no health checks"),
                expected format!("`{name}` requires `check`"),
                help "add `check = \"tcp\"`, or remove it";
        }
    }
    for word in ["http", "line", "program"].into_iter().filter(|word| *word != kind) {
        for (name, place) in health.needing(HealthCheck::OPTIONS, Needs::Check(word)) {
            reject! { faults;
                Some(place) => format!("`{name}` requires `check = \"{word}\"`"),
                    expected "does not belong here",
                    help format!("write `check = \"{word}\"`, or remove it");
            }
        }
    }
}

fn missing(health: &Group, kind: CheckKind, faults: &mut Vec<Fault>) {
    let at = |name| health.place("check").filter(|_| health.find(name).is_none());
    reject! { faults;
        at("send"), if kind == CheckKind::Line => "`check = \"line\"` needs `send`",
            help "add `send = \"ping\"`";
        at("command"), if kind == CheckKind::Program => "`check = \"program\"` needs `command`",
            help "add `command = [\"./check.sh\"]`";
    }
}

/// Programs on pipes have no address, and databases and handlers cannot be checked from outside this process.
fn of_another_worker(
    pool: &Section,
    health: &Group,
    (kind, word): (CheckKind, &str),
    faults: &mut Vec<Fault>,
) {
    let Some(worker) = pool.worker.filter(|_| health.place("check").is_some()) else { return };
    let is_program = worker == WorkerKind::Program;
    let fits = match worker {
        WorkerKind::Servers | WorkerKind::Any => true,
        WorkerKind::Program if super::http::serves(pool) => true,
        WorkerKind::Program => !matches!(kind, CheckKind::Tcp | CheckKind::Http),
        WorkerKind::Database | WorkerKind::Handler => kind == CheckKind::Off,
    };
    let instead = if is_program {
        "write `check = \"line\"` or `check = \"program\"`"
    } else {
        "remove it; `max_fails` and `unhealthy_latency` count failed requests"
    };
    reject! { faults;
        health.place("check"), if !fits
            => format!("`check = \"{word}\"` cannot check a {}", worker.title()), help instead;
        health.key("port"), if kind == CheckKind::Program
            => "`port` has no effect: the `command` does not receive an address",
            help "remove it, or write `check = \"tcp\"` or `\"http\"`";
        health.key("port"), if kind != CheckKind::Program && is_program
            => "`port` has no effect: programs have no address", help "remove it";
    }
}

/// Text that is written into a request must not end the line.
fn head(health: &Group, faults: &mut Vec<Fault>) {
    let is_graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    for (name, suggestion) in [
        ("method", "write \"GET\" or \"HEAD\""),
        ("path", "begin it with `/` and do not use spaces"),
        ("host", "write a name like \"app.example\""),
    ] {
        let Some((text, place)) = health.given_text(name) else { continue };
        let is_valid = match name {
            "method" => text.bytes().all(|byte| byte.is_ascii_uppercase()),
            "path" => text.starts_with('/') && is_graphic(text),
            _ => is_graphic(text),
        };
        reject! { faults;
            Some(place), if !is_valid
                => format!("`{text}` is not a valid {name} of a request"), help suggestion;
        }
    }
}

fn statuses(health: &Group, name: &str, faults: &mut Vec<Fault>) {
    let Some((text, place)) = health.given_text(name) else { return };
    reject! { faults;
        Some(place), if model::statuses(text).is_none()
            => format!("`{text}` is not a range of statuses"),
            expected "expected two numbers from 100 to 599",
            help "write \"200..399\", or \"200\" for one status";
    }
}
