//! Mutants: each property that the tests claim fails when its defect is enabled.
//!
//! | mutant | what it breaks | how it is seen |
//! |---|---|---|
//! | `ack-before-commit` | an acknowledged row is committed | a row missing after `kill -9` |
//! | `stale-id` | no reply reaches another client | a late reply of a client that left |
//! | `early-ok` | an acknowledgement is the worker's | an answer that no worker gave |
//! | `shifted-reply` | replies are in the order of the requests | a neighbour's reply |
//! | `unchecked` | a program out of step answers no other client | a neighbour's reply |

use std::path::Path;

use exchange::mutant::Mutant;

use crate::daemon::{Daemon, folder, main_job, one_pool, until, worker_program};

/// Returns the violation that a scenario saw.
type Scenario = fn(&[(&str, &str)]) -> Result<(), String>;

const TABLE: &[(Mutant, Scenario)] = &[
    (Mutant::AckBeforeCommit, acknowledged_rows_survive_a_kill),
    (Mutant::StaleId, a_late_reply_reaches_nobody),
    (Mutant::EarlyOk, every_reply_is_the_worker_s),
    (Mutant::ShiftedReply, replies_belong_to_their_requests),
    (Mutant::Unchecked, a_stray_line_gives_no_client_another_s_reply),
];

#[test]
fn every_property_holds_without_a_plant_and_fails_under_its_own() {
    assert_eq!(TABLE.len(), Mutant::ALL.len(), "every plant has its scenario");
    for (mutant, scenario) in TABLE {
        assert_eq!(scenario(&[]), Ok(()), "without a plant: {mutant:?}");
        let seen = scenario(&[("ROADSTEAD_PLANT", mutant.as_str())]);
        assert!(seen.is_err(), "{mutant:?} went unnoticed");
        eprintln!("{:<20} seen as: {}", mutant.as_str(), seen.unwrap_err());
    }
}

/// Kills the daemon as soon as an acknowledgement was read, repeatedly.
fn acknowledged_rows_survive_a_kill(environment: &[(&str, &str)]) -> Result<(), String> {
    let folder = folder();
    let configuration = main_job(folder.path(), &worker_program(&[]), "");
    for round in 0..40 {
        let mut daemon = Daemon::serve_with(folder.path(), &configuration, environment);
        let mut client = daemon.connect();
        let lines: String = (0..500).map(|it| format!("{} 1 /a 200\n", round * 500 + it)).collect();
        client.send(lines);
        let first = client.line();
        daemon.kill();
        let acknowledged = std::iter::once(first).chain(client.rest());
        let acknowledged: Vec<i64> =
            acknowledged.filter_map(|line| line.strip_prefix("ok ")?.parse().ok()).collect();
        let lost = missing(folder.path(), &acknowledged);
        if lost > 0 {
            return Err(format!("{lost} acknowledged rows are not in the database"));
        }
    }
    Ok(())
}

fn missing(folder: &Path, acknowledged: &[i64]) -> usize {
    let database = rusqlite::Connection::open(folder.join("hits.db")).unwrap();
    let mut statement = database.prepare("select 1 from hits where id = ?").unwrap();
    acknowledged.iter().filter(|id| !statement.exists([id]).unwrap()).count()
}

/// A client disconnects while its request is in flight; the next request takes its place.
fn a_late_reply_reaches_nobody(environment: &[(&str, &str)]) -> Result<(), String> {
    let folder = folder();
    let program = worker_program(&["--echo", "--misbehave", "slow=200"]);
    let configuration = one_pool("", &format!("{program}workers = 1\n"));
    let daemon = Daemon::serve_with(folder.path(), &configuration, environment);
    let mut leaves = daemon.connect();
    leaves.send("of the one that left\n");
    until("it is with the worker", || daemon.metric("roadstead_workers", &["busy"]) == 1);
    // A zero linger time makes the close a reset, which the daemon sees immediately.
    rustix::net::sockopt::set_socket_linger(leaves.stream(), Some(std::time::Duration::ZERO))
        .unwrap();
    drop(leaves);
    until("it has left", || daemon.metric("roadstead_connections", &["main"]) == 0);
    let reply = daemon.connect().ask("of the one that stays");
    if reply == "of the one that stays" { Ok(()) } else { Err(format!("a reply \"{reply}\"")) }
}

/// Two clients wait for each reply of a program that prints a line before it.
fn a_stray_line_gives_no_client_another_s_reply(
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let folder = folder();
    let daemon = crate::alignment::stray_with(folder.path(), (1, 2), "", "", environment);
    match crate::alignment::ask_in_turn(&daemon, 2, 50).misdirected {
        0 => Ok(()),
        count => Err(format!("{count} of 100 replies were the other client's")),
    }
}

fn every_reply_is_the_worker_s(environment: &[(&str, &str)]) -> Result<(), String> {
    let folder = folder();
    let configuration = one_pool("", &worker_program(&["--echo"]));
    let daemon = Daemon::serve_with(folder.path(), &configuration, environment);
    let reply = daemon.connect().ask("hello");
    if reply == "hello" { Ok(()) } else { Err(format!("an answer \"{reply}\" to \"hello\"")) }
}

fn replies_belong_to_their_requests(environment: &[(&str, &str)]) -> Result<(), String> {
    let folder = folder();
    let program = worker_program(&["--echo"]);
    let configuration = one_pool("", &format!("{program}workers = 1\npipeline = 4\n"));
    let daemon = Daemon::serve_with(folder.path(), &configuration, environment);
    let mut client = daemon.connect();
    client.send("1\n2\n3\n4\n");
    let replies: Vec<String> = (0..4).map(|_| client.line()).collect();
    if replies == ["1", "2", "3", "4"] { Ok(()) } else { Err(format!("replies {replies:?}")) }
}
