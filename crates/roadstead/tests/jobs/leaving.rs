//! Clients that reset their connections while they are not read, because they have `in_flight_max` requests.

use std::path::Path;

use crate::daemon::{Daemon, folder, one_pool, read_log, until};

/// Records each line, waits with the reply to `wait` until `go` has arrived, and then sends long replies, which one
/// turn may write together.
const WRITES: &str = r#"$| = 1; $long = "x" x 40000; while (<STDIN>) { chomp; open(F, ">>", "lines"); print F "$_\n"; close(F);
if ($_ eq "wait") { select(undef, undef, undef, 0.002) until -e "go" } print $_ eq "short" ? "short\n" : "$long\n" }"#;

/// Output over 16 KiB exceeds the high-water mark.
const LISTENER: &str = "in_flight_max = 4\nsend_max = \"64KiB\"\n";

fn writing(folder: &Path, framing: &str, pool: &str) -> Daemon {
    let program = serde_json::json!(["perl", "-e", WRITES]);
    let pool = format!("program = {program}\nworkers = 1\n{pool}");
    let text = one_pool(LISTENER, &pool).replace("\"lines\"", &format!("\"{framing}\""));
    Daemon::serve(folder, &text)
}

fn written(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("lines")).unwrap_or_default().lines().count()
}

fn connections(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_connections", &["main"])
}

/// A client that is no longer read, and then resets its connection. Afterwards, more of its replies than the high-water
/// mark allows arrive together.
fn leave_unread(daemon: &Daemon, folder: &Path, lines: usize) {
    let _ = std::fs::remove_file(folder.join("go"));
    let mut client = daemon.connect();
    let before = written(folder);
    client.send("wait\n".to_owned() + &"a\n".repeat(lines - 1));
    until("its first line is with the program", || written(folder) > before);
    client.reset();
    // When the daemon has served another request, it has seen the reset.
    assert_eq!(connections(daemon), 1);
    std::fs::write(folder.join("go"), "").unwrap();
}

#[test]
fn a_client_that_resets_while_it_is_not_read_leaves_no_connection() {
    let folder = folder();
    let daemon = writing(folder.path(), "lines", "");
    leave_unread(&daemon, folder.path(), 4);
    until("nobody is connected", || connections(&daemon) == 0);
    assert!(daemon.stop().success());
}

#[test]
fn the_own_program_of_a_client_that_resets_while_it_is_not_read_is_free() {
    let folder = folder();
    let daemon = writing(folder.path(), "lines", "dispatch = \"session\"\nmin_uptime = \"0s\"\n");
    for _ in 0..2 {
        leave_unread(&daemon, folder.path(), 6);
        until("nobody is connected", || connections(&daemon) == 0);
    }
    assert_eq!(daemon.connect().ask("short"), "short");
}

/// The replies arrive together, and each exceeds the high-water mark. None of them can be sent, so none causes the next
/// one to be checked.
#[test]
fn replies_that_come_together_for_a_client_that_is_gone_are_dropped_together() {
    const TOGETHER: &str = r#"$| = 1; while (<STDIN>) { open(F, ">>", "lines"); print F $_; close(F); $n++; $all .= "x" x 2100 . "\n";
if ($n == 32) { select(undef, undef, undef, 0.002) until -e "go" } if ($n >= 32) { print $all; $all = "" } }"#;
    let folder = folder();
    let program = serde_json::json!(["perl", "-e", TOGETHER]);
    let pool = format!("program = {program}\nworkers = 1\npipeline = 32\n");
    let listener = "in_flight_max = 32\nsend_max = \"8KiB\"\n";
    let daemon = Daemon::serve(folder.path(), &one_pool(listener, &pool));
    leave_unread(&daemon, folder.path(), 40);
    until("nobody is connected", || connections(&daemon) == 0);
}

/// It reads no replies: all requests except the last that it may have in flight are sent, independent of the replies.
#[test]
fn what_a_client_sent_before_it_left_is_read_to_its_end() {
    let folder = folder();
    let daemon = writing(folder.path(), "lines", "");
    leave_unread(&daemon, folder.path(), 40);
    until("nobody is connected", || connections(&daemon) == 0);
    assert!(written(folder.path()) >= 36, "{} lines", written(folder.path()));
    assert!(!read_log(folder.path()).contains("panicked"));
}
