//! A daemon whose standard error does not accept its log.

use std::process::Command;

use crate::daemon::{BINARY, Daemon, folder};

/// Starts the daemon with this redirection of its standard error. `$P` is a pipe with a name.
fn serve(before: &str, redirection: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    let configuration = "[listener.main]\nlisten = \"127.0.0.1:0\"\npool = \"main\"\n\
         [pool.main]\nprogram = [\"sh\", \"-c\", \"read a; echo $a; read b; exit 3\"]\nworkers = 1\n";
    std::fs::write(folder.path().join("roadstead.toml"), configuration).unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let script = format!("{before}\nexec {redirection}\nexec \"$0\" serve roadstead.toml");
    let mut command = Command::new("sh");
    command.args(["-c", &script, BINARY]).env("P", pipe).current_dir(folder.path());
    let daemon = Daemon::start(&mut command, folder.path()).unwrap();
    (folder, daemon)
}

#[test]
fn a_daemon_whose_log_cannot_be_written_serves() {
    for (what, before, redirection) in [
        ("a full disk", "", "2>/dev/full"),
        ("a reader that has ended", "(exec <\"$P\") &", "2>\"$P\""),
        // Its other end is open in the daemon itself, and 64 KiB are all that it can hold.
        ("a reader that does not read", "", "2<>\"$P\"; head -c 65536 /dev/zero >&2"),
    ] {
        let (_folder, daemon) = serve(before, redirection);
        for _ in 0..2 {
            let mut client = daemon.connect();
            assert_eq!(client.ask("a"), "a", "{what}");
            assert!(client.ask("b").starts_with("!unknown died "), "{what}");
        }
        assert!(daemon.stop().success(), "{what}");
    }
}
