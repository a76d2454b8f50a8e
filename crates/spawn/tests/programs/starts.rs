//! The environment of a program at its start, and the error if it cannot start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use spawn::{COMMAND_BYTES_MAX, Command, Socket, StartError};

use crate::support::{Daemon, command, descriptors, read_all, shell};

pub(crate) const ALL: &[crate::Test] = &[
    ("starts::a_missing_program_is_named_with_the_path_searched", missing),
    ("starts::a_file_that_is_no_program_is_told_from_one_that_may_not_run", unfit),
    ("starts::a_directory_is_no_program_by_path_nor_by_search", directory),
    ("starts::a_script_without_its_interpreter_says_which", interpreter),
    ("starts::a_missing_working_directory_is_named", no_directory),
    ("starts::a_nul_byte_is_refused_wherever_it_stands", nul),
    ("starts::what_cannot_be_handed_over_is_refused_with_both_lengths", too_long),
    ("starts::the_longest_command_arrives_whole", longest),
    ("starts::a_token_in_use_is_refused_and_the_first_program_goes_on", token_in_use),
    ("starts::a_failed_start_leaves_no_descriptor_and_no_child", failures_leave_nothing),
    ("starts::directory_variables_and_name_arrive", surroundings),
    ("starts::the_programs_own_path_is_searched_and_what_may_not_run_passed_over", search),
    ("starts::a_relative_path_counts_from_the_working_directory", relative),
    ("starts::the_three_pipes_are_wired_and_nothing_else_is_open", wiring),
    ("starts::a_socket_to_serve_on_is_inherited_and_named", inherited),
    ("starts::signals_session_and_limits_are_as_new", as_new),
];

fn script(at: &Path, text: &str, mode: u32) -> String {
    fs::write(at, text).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
    at.to_str().unwrap().to_owned()
}

fn missing() {
    let mut daemon = Daemon::new();
    let mut by_name = command("no-such-program", &[]);
    by_name.env = vec![("PATH".into(), "/usr/bin:/nowhere".into())];
    let error = daemon.start_error(by_name);
    assert_eq!(
        error.to_string(),
        "program `no-such-program` was not found in any directory of PATH=/usr/bin:/nowhere"
    );
    let error = daemon.start_error(command("/nowhere/program", &[]));
    assert_eq!(
        error.to_string(),
        "program `/nowhere/program` was not found: there is no such file"
    );
    let error = daemon.start_error(command("/bin/sh/program", &[]));
    assert_eq!(error, StartError::NotFound { program: "/bin/sh/program".into(), path: None });
    let error = daemon.start_error(command("", &[]));
    assert!(matches!(error, StartError::NotFound { program, path: Some(_) } if program.is_empty()));
}

fn unfit() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new();
    let file = script(&folder.path().join("a"), "#!/bin/sh\n", 0o644);
    let error = daemon.start_error(command(&file, &[]));
    assert_eq!(error, StartError::NotExecutable { file });
    assert!(error.to_string().contains("chmod +x"), "{error}");
    let file = script(&folder.path().join("b"), "echo no shell is asked\n", 0o755);
    let error = daemon.start_error(command(&file, &[]));
    assert_eq!(error, StartError::NotAProgram { file });
}

fn directory() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tool")).unwrap();
    let mut daemon = Daemon::new();
    let file = folder.path().join("tool").to_str().unwrap().to_owned();
    assert_eq!(daemon.start_error(command(&file, &[])), StartError::Directory { file });
    let path = folder.path().to_str().unwrap().to_owned();
    let by_name = Command { env: vec![("PATH".into(), path.clone())], ..command("tool", &[]) };
    let expected = StartError::NotFound { program: "tool".into(), path: Some(path) };
    assert_eq!(daemon.start_error(by_name), expected);
}

fn interpreter() {
    let folder = tempfile::tempdir().unwrap();
    let file = script(&folder.path().join("a"), "#!/nowhere/perl -w\n", 0o755);
    let error = Daemon::new().start_error(command(&file, &[]));
    assert_eq!(
        error.to_string(),
        format!(
            "program `{file}` is there, but its first line asks for `/nowhere/perl`, which is not"
        )
    );
}

fn no_directory() {
    let error =
        Daemon::new().start_error(Command { cwd: Some("/nowhere/at/all".into()), ..shell("exit") });
    assert_eq!(
        error.to_string(),
        "cannot enter the working directory `/nowhere/at/all`: No such file or directory (os \
         error 2)"
    );
}

fn nul() {
    let mut daemon = Daemon::new();
    let with = |text: &str| text.to_owned() + "\0";
    let env = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    for command in [
        Command { program: with("cat"), ..shell("") },
        shell("\0"),
        Command { cwd: Some(with("/").into()), ..shell("") },
        Command { env: env("A\0", "b"), ..shell("") },
        Command { env: env("A", "b\0"), ..shell("") },
        Command { name: with("name"), ..shell("") },
    ] {
        assert_eq!(daemon.start_error(command), StartError::Nul);
    }
}

fn too_long() {
    let mut daemon = Daemon::new();
    let error = daemon.start_error(shell(&" ".repeat(10 * COMMAND_BYTES_MAX)));
    let StartError::TooLong { bytes } = error else { panic!("{error}") };
    assert!(bytes > 10 * COMMAND_BYTES_MAX);
    let said = error.to_string();
    assert!(said.contains(&bytes.to_string()), "{said}");
    assert!(said.contains(&COMMAND_BYTES_MAX.to_string()), "{said}");
    assert_eq!(daemon.output(shell("echo on")), "on\n");
}

fn longest() {
    let mut daemon = Daemon::new();
    let mut longest = command("/bin/sh", &["-c", "echo $# ${#1} ${#2}", "sh"]);
    let half = COMMAND_BYTES_MAX / 2 - 100;
    longest.arguments.extend([" ".repeat(half), "x".repeat(half)]);
    assert_eq!(daemon.output(longest), format!("2 {half} {half}\n"));
}

fn token_in_use() {
    let mut daemon = Daemon::new();
    let program = daemon.start(0, command("cat", &[]));
    assert_eq!(daemon.start_error(command("cat", &[])), StartError::TokenInUse);
    rustix::io::write(&program.pipes.stdin, b"still\n").unwrap();
    assert_eq!(program.line(), "still");
    daemon.kill(&program);
    assert_eq!(daemon.output(shell("echo again")), "again\n");
}

fn failures_leave_nothing() {
    let mut daemon = Daemon::new();
    let supervisor = daemon.supervisor();
    daemon.start_error(command("/nowhere", &[]));
    let before = descriptors();
    for _ in 0..100 {
        daemon.start_error(command("/nowhere", &[]));
    }
    assert_eq!(descriptors(), before);
    assert_eq!(daemon.unread(), 0, "a failed start is reported once, and no end of it");
    crate::support::until(crate::support::PATIENCE, "no child but the reader is left", || {
        children(supervisor).split_ascii_whitespace().count() <= 1
    });
    // Standard input, output and error, the two sockets of the daemon and the reader, and the signals.
    crate::support::until(crate::support::PATIENCE, "the supervisor leaks nothing", || {
        open_in(supervisor) == 6
    });
}

fn children(of: i32) -> String {
    fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap()
}

fn open_in(process: i32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

fn surroundings() {
    let mut daemon = Daemon::new();
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let mut asked = shell("pwd; echo \"$ADDED|$ROADSTEAD_WORKER|$0|$1\"; test -n \"$PATH\"");
    asked.arguments.extend(["zero".into(), "a  b'\"$HOME\n".into()]);
    asked.cwd = Some(cwd.clone());
    asked.env = vec![("ADDED".into(), "first".into()), ("ADDED".into(), "a=b c".into())];
    asked.name = "parse/3".into();
    let expected = format!("{}\na=b c|parse/3|zero|a  b'\"$HOME\n\n", cwd.display());
    assert_eq!(daemon.output(asked), expected);
}

fn search() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    script(&first.join("tool"), "#!/bin/sh\necho first\n", 0o600);
    script(&second.join("tool"), "#!/bin/sh\necho second\n", 0o700);
    let path = |path: String| Command { env: vec![("PATH".into(), path)], ..command("tool", &[]) };
    let mut daemon = Daemon::new();
    let both = format!("/nowhere:{}:{}", first.display(), second.display());
    assert_eq!(daemon.output(path(both)), "second\n");
    let error = daemon.start_error(path(format!("{}:/nowhere", first.display())));
    let file = first.join("tool").to_str().unwrap().to_owned();
    assert_eq!(error, StartError::NotExecutable { file });
}

fn relative() {
    let folder = tempfile::tempdir().unwrap();
    script(&folder.path().join("app"), "#!/bin/sh\necho here\n", 0o700);
    let asked = Command { cwd: Some(folder.path().into()), ..command("./app", &[]) };
    assert_eq!(Daemon::new().output(asked), "here\n");
}

fn wiring() {
    let mut daemon = Daemon::new();
    let program =
        daemon.start(1, shell("read a; echo out $a; echo err $a >&2; read b || echo end"));
    rustix::io::write(&program.pipes.stdin, b"word\n").unwrap();
    assert_eq!(program.line(), "out word");
    let crate::support::Program { pipes, .. } = program;
    drop(pipes.stdin);
    assert_eq!(read_all(&pipes.stdout), "end\n");
    assert_eq!(read_all(&pipes.stderr), "err word\n");
    daemon.exit(1);
    // A second program must not inherit the pipes of the first. 3 is the folder that `ls` reads.
    let first = daemon.start(2, command("cat", &[]));
    assert_eq!(daemon.output(command("ls", &["/proc/self/fd"])), "0\n1\n2\n3\n");
    for ours in [&first.pipes.stdin, &first.pipes.stdout, &first.pipes.stderr] {
        let flags = rustix::io::fcntl_getfd(ours).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        let flags = rustix::fs::fcntl_getfl(ours).unwrap();
        assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    }
    let flags = daemon.output(shell("grep ^flags: /proc/self/fdinfo/0 | cut -f 2"));
    let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
    assert_eq!(flags & rustix::fs::OFlags::NONBLOCK.bits(), 0, "most programs expect to block");
    daemon.kill(&first);
}

fn inherited() {
    let mut daemon = Daemon::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = Socket::bind(&path).unwrap();
    let script = "echo $LISTEN_FDS $LISTEN_FDNAMES $$ $LISTEN_PID; readlink /proc/self/fd/3 | cut -c 1-6; \
                  ls /proc/self/fd | wc -l; [ -e /proc/self/fd/4 ] || echo none";
    let asked = Command { socket: Some(socket.clone()), ..shell(script) };
    let program = daemon.start(1, asked);
    let said = program.rest();
    let lines: Vec<&str> = said.lines().collect();
    // 5 is the folder that `ls` reads.
    let (pid, rest) = (program.pid, ["socket", "5", "none"]);
    assert_eq!(lines[0], format!("1 http {pid} {pid}"), "{said}");
    assert_eq!(lines[1..], rest, "{said}");
    daemon.exit(1);
    drop(socket);
    let error = std::os::unix::net::UnixStream::connect(&path).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "nobody holds it any more");
    assert_eq!(daemon.output(shell("echo none$LISTEN_FDS")), "none\n");
}

fn as_new() {
    let mut daemon = Daemon::new();
    // Not through a shell, which blocks signals while it forks.
    let signals = daemon.output(command("grep", &["-E", "^Sig(Blk|Ign)", "/proc/self/status"]));
    let none = "0000000000000000";
    assert_eq!(signals, format!("SigBlk:\t{none}\nSigIgn:\t{none}\n"));
    // In this process, in contrast, a write to a file that reaches its limit fails with an error.
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let ignored = u64::from_str_radix(own, 16).unwrap();
    assert_ne!(ignored & 1 << (libc::SIGXFSZ - 1), 0, "{own}");
    let program = daemon.start(1, shell("ulimit -Sn; cut -d ' ' -f 5,6 /proc/$$/stat"));
    let (limit, pid) = (crate::DESCRIPTORS, program.pid);
    assert_eq!(program.rest(), format!("{limit}\n{pid} {pid}\n"));
    let raised = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    assert_eq!(raised.current, raised.maximum, "our own limit is the hard one");
    daemon.exit(1);
}
