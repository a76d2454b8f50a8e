//! The daemon, the supervisor or the watchdog is killed. No process may be left after three seconds.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;
use spawn::{Report, Spawn, StartError, Status};

use crate::support::{
    Daemon, GONE_WITHIN, PATIENCE, Process, Program, all_gone, command, shell, until,
};

/// The argument that makes this executable act as a daemon that will be killed.
pub(crate) const DAEMON: &str = "play-the-daemon";

pub(crate) const ALL: &[crate::Test] = &[
    ("losses::nothing_outlives_a_killed_daemon", daemon_killed),
    ("losses::nothing_outlives_a_daemon_that_just_returns", daemon_returns),
    ("losses::programs_of_a_killed_daemon_may_finish_and_are_asked_before_they_are_killed", grace),
    ("losses::nothing_outlives_daemon_and_guard_killed_together", daemon_and_guard),
    ("losses::nothing_outlives_daemon_and_supervisor_killed_together", daemon_and_supervisor),
    ("losses::no_program_outlives_daemon_supervisor_and_guard_killed_together", all_three),
    ("losses::a_killed_supervisor_is_replaced_and_its_programs_reported", supervisor_killed),
    ("losses::a_killed_guard_is_replaced_and_its_programs_reported", guard_killed),
    ("losses::the_supervisor_is_replaced_again_and_again", again),
    ("losses::starts_in_the_moment_of_the_loss_are_all_answered", starts_at_the_loss),
    ("losses::supervisor_and_guard_ignore_what_ends_the_daemon", signals),
    ("losses::nobody_becomes_the_supervisor_by_hand", by_hand),
];

/// Programs of every kind. Each writes the ids of its processes and then `-`.
fn kinds(token: u64) -> spawn::Command {
    shell(match token % 5 {
        0 => "echo $$; echo -; exec cat",
        1 => "trap '' TERM; echo $$; echo -; exec sleep 1000",
        2 => "sleep 1000 & echo $$; echo $!; echo -; wait",
        3 => "setsid sleep 1000 & echo $$; echo $!; echo -; read a",
        _ => {
            "(env -i setsid sh -c 'trap \"\" TERM; exec sleep 1000' & echo $!); \
              echo $$; echo -; exec sleep 1000"
        }
    })
}

fn start_all(daemon: &mut Daemon, count: u64) -> (Vec<Program>, Vec<Process>) {
    for token in 0..count {
        daemon.spawner().start(token, kinds(token));
    }
    let programs: Vec<_> = (0..count).map(|token| daemon.started(token)).collect();
    let lines = programs.iter().flat_map(|program| {
        std::iter::repeat_with(|| program.line()).take_while(|line| line != "-")
    });
    let family = lines.map(|line| Process::of(line.parse().unwrap())).collect();
    (programs, family)
}

/// Two programs that create a file in their working directory: one after the end of its input and a short cleanup, the
/// other on SIGTERM. Neither should be killed.
const LAST_WORDS: [&str; 2] = [
    "echo -; while read a; do :; done; sleep 0.3; echo > cleared",
    "trap 'echo > asked; exit' TERM; mkfifo hold; exec 3<> hold; echo -; read a <&3",
];

/// The child's side: starts twenty programs, reports them, and waits to be killed or for the end of its input.
pub(crate) fn play_the_daemon() -> ! {
    let mut daemon = Daemon::new();
    let (_programs, family) = start_all(&mut daemon, 20);
    let folder = std::env::args().nth(2).map(PathBuf::from);
    let speakers = LAST_WORDS.map(|script| spawn::Command { cwd: folder.clone(), ..shell(script) });
    let speakers: Vec<_> =
        (20..).zip(speakers).map(|(at, script)| daemon.start(at, script)).collect();
    assert!(speakers.iter().all(|speaker| speaker.line() == "-"));
    let supervisor = Process::of(daemon.supervisor());
    println!("{}\n{}", supervisor.pid, supervisor.parent());
    for process in family {
        println!("{}", process.pid);
    }
    println!("-");
    let _ = std::io::stdin().lines().next();
    // Without destructors, as in a daemon that panics or calls exit.
    std::process::exit(0)
}

struct Victim {
    child: Child,
    _output: BufReader<ChildStdout>,
    supervisor: Process,
    watchdog: Process,
    family: Vec<Process>,
    /// The working directory of the programs of [`LAST_WORDS`].
    folder: tempfile::TempDir,
}

impl Victim {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("/proc/self/exe")
            .arg(DAEMON)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            match line.trim() {
                "-" => break,
                pid => all.push(Process::of(pid.parse().expect("a process id"))),
            }
        }
        let (supervisor, watchdog) = (all.remove(0), all.remove(0));
        assert_eq!(all.len(), 20 + 4 * 3, "programs and their children");
        Self { child, _output: output, supervisor, watchdog, family: all, folder }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn all_gone(&self) {
        all_gone(GONE_WITHIN, &self.family);
        all_gone(PATIENCE, &[self.supervisor.clone(), self.watchdog.clone()]);
    }
}

fn daemon_killed() {
    let mut victim = Victim::start();
    victim.kill();
    victim.all_gone();
}

fn daemon_returns() {
    let mut victim = Victim::start();
    drop(victim.child.stdin.take());
    victim.child.wait().unwrap();
    victim.all_gone();
}

fn grace() {
    let mut victim = Victim::start();
    victim.kill();
    victim.all_gone();
    for word in ["cleared", "asked"] {
        assert!(victim.folder.path().join(word).exists(), "{word}");
    }
}

fn daemon_and_guard() {
    let mut victim = Victim::start();
    // The supervisor is stopped, so that it detects the end of the daemon first.
    victim.supervisor.signal(Signal::STOP);
    victim.kill();
    victim.supervisor.signal(Signal::CONT);
    victim.watchdog.signal(Signal::KILL);
    victim.all_gone();
}

fn daemon_and_supervisor() {
    let mut victim = Victim::start();
    victim.supervisor.signal(Signal::STOP);
    victim.kill();
    victim.supervisor.signal(Signal::KILL);
    victim.all_gone();
}

fn all_three() {
    let mut victim = Victim::start();
    // A program leads its session and is a child of the supervisor. So is the orphan that called setsid, but its
    // environment has no mark.
    let (programs, rest): (Vec<_>, Vec<_>) = victim
        .family
        .iter()
        .cloned()
        .partition(|process| process.parent() == victim.supervisor.pid && process.is_marked());
    victim.watchdog.signal(Signal::STOP);
    victim.supervisor.signal(Signal::STOP);
    victim.kill();
    victim.supervisor.signal(Signal::KILL);
    victim.watchdog.signal(Signal::KILL);
    all_gone(GONE_WITHIN, &programs);
    // The documentation states which processes escape. The test must end them.
    for process in rest.iter().filter(|process| process.runs()) {
        process.signal(Signal::KILL);
    }
}

/// Waits for the loss, and checks the reports and that they are true when they arrive.
fn lost_and_back(daemon: &Daemon, tokens: u64, family: &[Process]) {
    let killed = Instant::now();
    daemon.report(|report| match report {
        Report::SupervisorLost => Ok(()),
        other => Err(other),
    });
    for token in 0..tokens {
        assert!(matches!(daemon.exit(token).status, Status::Lost | Status::Signal(9)));
    }
    assert!(family.iter().all(|process| !process.runs()), "{family:?}");
    assert!(killed.elapsed() < GONE_WITHIN, "{:?}", killed.elapsed());
    daemon.report(|report| match report {
        Report::SupervisorReplaced => Ok(()),
        other => Err(other),
    });
}

fn supervisor_killed() {
    let mut daemon = Daemon::new();
    let (_programs, family) = start_all(&mut daemon, 20);
    let supervisor = Process::of(daemon.supervisor());
    supervisor.signal(Signal::KILL);
    lost_and_back(&daemon, 20, &family);
    assert_ne!(daemon.supervisor(), supervisor.pid);
    assert_eq!(daemon.output(shell("echo on")), "on\n");
}

fn guard_killed() {
    let mut daemon = Daemon::new();
    let (_programs, family) = start_all(&mut daemon, 20);
    let supervisor = Process::of(daemon.supervisor());
    let watchdog = Process::of(supervisor.parent());
    watchdog.signal(Signal::KILL);
    lost_and_back(&daemon, 20, &family);
    all_gone(PATIENCE, &[supervisor]);
    assert_eq!(daemon.output(shell("echo on")), "on\n");
}

fn again() {
    let mut daemon = Daemon::new();
    let before = crate::support::descriptors();
    for _ in 0..10 {
        let program = daemon.start(0, command("cat", &[]));
        Process::of(daemon.supervisor()).signal(Signal::KILL);
        lost_and_back(&daemon, 1, &[]);
        drop(program);
    }
    assert_eq!(crate::support::descriptors(), before);
}

fn starts_at_the_loss() {
    let mut daemon = Daemon::new();
    let supervisor = Process::of(daemon.supervisor());
    for token in 0..50 {
        daemon.spawner().start(token, command("cat", &[]));
        if token == 25 {
            supervisor.signal(Signal::KILL);
        }
    }
    for token in 0..50 {
        let started = daemon.report(|report| match report {
            Report::Started { token: of, pid, .. } if of == token => Ok(Some(pid)),
            Report::StartFailed { token: of, error } if of == token => {
                assert_eq!(error, StartError::SupervisorLost);
                Ok(None)
            }
            other => Err(other),
        });
        if started.is_some() {
            daemon.spawner().stop(token, spawn::Stop::Kill);
            daemon.exit(token);
        }
    }
    daemon.report(|report| match report {
        Report::SupervisorReplaced => Ok(()),
        other => Err(other),
    });
    let new = daemon.supervisor();
    let children = || std::fs::read_to_string(format!("/proc/{new}/task/{new}/children")).unwrap();
    // The reader of the supervisor is no program.
    let is_reader = |pid: &str| {
        std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"reader\n")
    };
    until(PATIENCE, "no program without a token", || {
        children().split_ascii_whitespace().all(is_reader)
    });
}

fn signals() {
    let mut daemon = Daemon::new();
    let program = daemon.start(0, command("cat", &[]));
    let supervisor = Process::of(daemon.supervisor());
    let watchdog = Process::of(supervisor.parent());
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::PIPE, Signal::USR1]
    {
        supervisor.signal(signal);
        if signal != Signal::USR1 {
            watchdog.signal(signal);
        }
    }
    assert_eq!(daemon.output(shell("echo on")), "on\n");
    assert!(program.process().runs());
    assert!(supervisor.runs());
    assert!(watchdog.runs());
    assert_eq!(supervisor.parent(), watchdog.pid);
}

fn by_hand() {
    let output = Command::new("/proc/self/exe")
        .arg0("roadstead-supervisor")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "roadstead supervisor: the supervisor is started by the daemon, never by hand\n"
    );
}
