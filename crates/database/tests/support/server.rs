//! Real database servers for tests: in a temporary directory, on a free port, ended together with the process that
//! started them, however that process ends.
//!
//! They come from the Debian packages `postgresql` and `mariadb-server`. Neither runs as root: started by root, they
//! run as the users that the packages create.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The maximum time for any operation of a server. It only affects tests that fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a program, prints its process id, and ends it with the signal `$1` when standard input is closed: then the
/// process that started it has ended. A signal to the whole process group ends it as well. Then removes the directory
/// `$2`, if one is given.
const SUPERVISOR: &str = r#"
trap : HUP INT TERM
signal=$1; folder=$2; shift 2
"$@" </dev/null &
echo $!
cat >/dev/null
kill -"$signal" $! 2>/dev/null
wait $!
[ -z "$folder" ] || rm -rf "$folder"
"#;

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    Mariadb,
}

/// A server with all its files.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    pub(crate) port: u16,
    folder: PathBuf,
    /// The directory is removed when this is dropped, if it is temporary.
    _owned: Option<TempDir>,
    /// The server is never dropped, and the supervising shell removes its directory.
    forever: bool,
    settings: Vec<String>,
    running: Option<Running>,
}

struct Running {
    supervisor: Child,
    /// The server ends when this is closed.
    stdin: Option<ChildStdin>,
    pid: u32,
}

impl Server {
    /// Starts a fresh server with these settings in addition to its defaults, written `name=value`.
    pub(crate) fn start(kind: Kind, settings: &[&str]) -> Self {
        let owned = Self::own_folder();
        let folder = owned.path().to_owned();
        Self::start_in(kind, settings, folder, Some(owned), false)
    }

    /// Starts a fresh server that runs until this process ends.
    pub(crate) fn start_forever(kind: Kind) -> Self {
        Self::start_in(kind, &[], Self::own_folder().keep(), None, true)
    }

    /// Prepares a server without starting it, for tests that must add files and settings first.
    pub(crate) fn prepare_forever(kind: Kind) -> Self {
        Self::prepare(kind, &[], Self::own_folder().keep(), None, true)
    }

    /// Starts a fresh server with its files in a directory that the caller removes.
    pub(crate) fn start_on(kind: Kind, settings: &[&str], folder: &Path) -> Self {
        Self::start_in(kind, settings, folder.to_owned(), None, false)
    }

    fn own_folder() -> TempDir {
        tempfile::Builder::new().prefix("roadstead-server-").tempdir().unwrap()
    }

    fn start_in(
        kind: Kind,
        settings: &[&str],
        folder: PathBuf,
        owned: Option<TempDir>,
        forever: bool,
    ) -> Self {
        let mut server = Self::prepare(kind, settings, folder, owned, forever);
        server.restart();
        server
    }

    fn prepare(
        kind: Kind,
        settings: &[&str],
        folder: PathBuf,
        owned: Option<TempDir>,
        forever: bool,
    ) -> Self {
        let settings = settings.iter().map(|&it| it.to_owned()).collect();
        let running = None;
        let server = Self { kind, port: 0, folder, _owned: owned, forever, settings, running };
        server.initialize();
        server
    }

    /// Writes a file that no other user may read into the server's directory. Returns its path.
    pub(crate) fn give(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        as_user(self.user(), Path::new("true"), &[&path]);
        path
    }

    /// Adds settings that apply from the next start on.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.settings.extend(settings.iter().map(|&it| it.to_owned()));
    }

    /// Returns the user that the server runs as if this process is root.
    fn user(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mysql",
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns the directory of its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn initialize(&self) {
        fs::create_dir(self.data()).unwrap();
        let data = self.data().display().to_string();
        let mut command = match self.kind {
            Kind::Postgres => {
                let program = postgres_program("initdb");
                let mut command = as_user(self.user(), &program, &[&self.folder, &self.data()]);
                command.args(["--no-sync", "--auth=trust", "--username=roadstead", "-D", &data]);
                command
            }
            Kind::Mariadb => {
                let program = PathBuf::from("mariadb-install-db");
                let mut command = as_user(self.user(), &program, &[&self.folder, &self.data()]);
                command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
                command.args(["--skip-test-db", &format!("--datadir={data}")]);
                // Otherwise two servers that are created at the same time would conflict in the system's temporary
                // directory.
                command.arg(format!("--tmpdir={}", self.folder.display()));
                command
            }
        };
        succeed(&mut command);
    }

    /// Starts the server, which must not be running, and waits until it answers.
    pub(crate) fn restart(&mut self) {
        assert!(self.running.is_none(), "it runs");
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if self.port == 0 {
                self.port = free_port();
            }
            self.running = Some(self.launch());
            while self.is_alive() {
                if self.answers() {
                    return;
                }
                assert!(since.elapsed() < PATIENCE, "it does not answer:\n{}", self.log());
                pause();
            }
            // Its port was taken in between, or the remains of a killed server still exist.
            self.running = None;
            pause();
        }
        panic!("it does not start:\n{}", self.log());
    }

    fn launch(&self) -> Running {
        let data = self.data().display().to_string();
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        let (signal, program) = match self.kind {
            Kind::Postgres => ("QUIT", postgres_program("postgres")),
            Kind::Mariadb => ("KILL", PathBuf::from("mariadbd")),
        };
        let mut server = as_user(self.user(), &program, &[]);
        match self.kind {
            Kind::Postgres => {
                server.args(["-D", &data, "-c", "listen_addresses=127.0.0.1"]);
                server.args(["-c", "unix_socket_directories=", "-p", &self.port.to_string()]);
                for setting in &self.settings {
                    server.args(["-c", setting]);
                }
            }
            Kind::Mariadb => {
                server.args(["--no-defaults", "--bind-address=127.0.0.1"]);
                server.arg(format!("--datadir={data}"));
                server.arg(format!("--socket={}", self.folder.join("socket").display()));
                server.arg(format!("--pid-file={}", self.folder.join("pid").display()));
                server.arg(format!("--port={}", self.port));
                server.arg(format!("--tmpdir={}", self.folder.display()));
                server.args(self.settings.iter().map(|setting| format!("--{setting}")));
            }
        }
        let mut supervisor = Command::new("sh");
        supervisor.args(["-c", SUPERVISOR, "sh", signal]);
        supervisor.arg(if self.forever { self.folder.as_os_str() } else { "".as_ref() });
        supervisor.arg(server.get_program());
        supervisor.args(server.get_args());
        // Neither process may stay in a directory that is about to be removed.
        supervisor.current_dir("/");
        let mut supervisor = supervisor
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("a shell can be started");
        let mut line = String::new();
        BufReader::new(supervisor.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().expect("the shell says which process it started");
        let stdin = supervisor.stdin.take();
        Running { supervisor, stdin, pid }
    }

    /// Returns the id of its main process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").pid
    }

    fn is_alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|it| !it.starts_with('Z')))
    }

    /// Whether the server answers, or has ended.
    pub(crate) fn answers_or_is_gone(&self) -> bool {
        !self.is_alive() || self.answers()
    }

    /// Starts the server again if it has ended.
    pub(crate) fn revive(&mut self) {
        if !self.is_alive() {
            self.kill();
            self.restart();
        }
    }

    fn answers(&self) -> bool {
        self.client(self.base(), "select 1").output().is_ok_and(|output| output.status.success())
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Returns the content of its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Ends the server as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.end("KILL");
    }

    /// Ends the server immediately, together with the running statements.
    pub(crate) fn stop_at_once(&mut self) {
        self.end(if self.kind == Kind::Postgres { "QUIT" } else { "TERM" });
    }

    fn end(&mut self, signal: &str) {
        let Some(mut running) = self.running.take() else { return };
        let pid = running.pid.to_string();
        let _ = Command::new("kill").args(["-s", signal, &pid]).status();
        let since = Instant::now();
        while since.elapsed() < PATIENCE && Path::new(&format!("/proc/{pid}/status")).exists() {
            if is_zombie(running.pid) {
                break;
            }
            pause();
        }
        drop(running.stdin.take());
        let _ = running.supervisor.wait();
    }

    /// Returns the name of the database that always exists.
    fn base(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mysql",
        }
    }

    /// Returns a command of the server's client program, which is independent of the code under test.
    fn client(&self, database: &str, sql: &str) -> Command {
        let port = self.port.to_string();
        let mut command;
        match self.kind {
            Kind::Postgres => {
                command = Command::new("psql");
                command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
                command.args(["-p", &port, "-U", "roadstead", "-d", database, "-c", sql]);
                command.env("PGCONNECT_TIMEOUT", "10");
            }
            Kind::Mariadb => {
                command = Command::new("mariadb");
                command.args(["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "root"]);
                command.args([
                    "-N",
                    "-B",
                    "--skip-ssl",
                    "--delimiter=;;",
                    "-D",
                    database,
                    "-e",
                    sql,
                ]);
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs statements in a database and returns the lines of their results, with values separated by `|`.
    pub(crate) fn run(&self, database: &str, sql: &str) -> Vec<String> {
        let output = succeed(&mut self.client(database, sql));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| line.replace('\t', "|")).collect()
    }

    /// Starts statements in a separate session, which ends after them.
    pub(crate) fn session(&self, database: &str, sql: &str) -> Child {
        self.client(database, sql).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Creates a database, and returns its target for the settings.
    pub(crate) fn database(&self, name: &str) -> String {
        let letters = match self.kind {
            Kind::Postgres => "",
            Kind::Mariadb => " character set utf8mb4",
        };
        self.run(self.base(), &format!("create database {name}{letters}"));
        self.target(name)
    }

    /// Returns the target of a database for the settings.
    pub(crate) fn target(&self, name: &str) -> String {
        match self.kind {
            Kind::Postgres => format!("postgres://roadstead@127.0.0.1:{}/{name}", self.port),
            Kind::Mariadb => format!("mysql://root@127.0.0.1:{}/{name}", self.port),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_zombie(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

fn pause() {
    std::thread::park_timeout(Duration::from_millis(20));
}

/// Waits until this holds, and fails if it never does.
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        pause();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the path of a program of PostgreSQL. Debian keeps these outside the search path.
fn postgres_program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|it| it.path().join("bin").join(name)).filter(|it| it.exists()).collect();
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}

/// Returns a command that runs as this user if this process is root. The user then owns these files.
fn as_user(user: &str, program: &Path, owned: &[&Path]) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut chown = Command::new("chown");
    if !owned.is_empty() {
        succeed(chown.arg(user).args(owned));
    }
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).arg(format!("--regid={user}"));
    command.args(["--clear-groups", "--"]).arg(program);
    command.current_dir("/");
    command
}

fn succeed(command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| {
        panic!(
            "{shown}: {error}\nthis test needs a database server: apt-get install \
             --no-install-recommends postgresql mariadb-server"
        )
    });
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}: {}\n{said}", output.status);
    output
}
