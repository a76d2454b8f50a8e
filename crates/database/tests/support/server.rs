//! Real database servers for tests: in a folder of their own, on a port that was free, gone with the
//! process that started them, however that ends.
//!
//! They come from the Debian packages `postgresql` and `mariadb-server`, and neither runs as root:
//! then they run as the users that the packages make.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take for anything. It decides no test but those that fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a program, says its process id, and ends it with the signal `$1` as soon as nobody holds
/// our standard input open: then whoever wanted it is gone.
/// A signal to the whole group of processes ends it as well. Then removes the folder `$2`, if one is named.
const KEEPER: &str = r#"
trap : HUP INT TERM
signal=$1; folder=$2; shift 2
"$@" </dev/null &
echo $!
cat >/dev/null
kill -"$signal" $! 2>/dev/null
wait $!
[ -z "$folder" ] || rm -rf "$folder"
"#;

/// Which server.
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
    /// Removed with it, where it is its own.
    _owned: Option<TempDir>,
    /// It is never dropped, and the keeper removes its folder.
    forever: bool,
    settings: Vec<String>,
    running: Option<Running>,
}

struct Running {
    keeper: Child,
    /// The server ends when this is closed.
    stdin: Option<ChildStdin>,
    pid: u32,
}

impl Server {
    /// A fresh server with these settings besides its defaults, written `name=value`.
    pub(crate) fn start(kind: Kind, settings: &[&str]) -> Self {
        let owned = Self::own_folder();
        let folder = owned.path().to_owned();
        Self::start_in(kind, settings, folder, Some(owned), false)
    }

    /// A fresh server that lives as long as this process.
    pub(crate) fn start_forever(kind: Kind) -> Self {
        Self::start_in(kind, &[], Self::own_folder().keep(), None, true)
    }

    /// One that is not started yet, for those who have to give it files and settings first.
    pub(crate) fn prepare_forever(kind: Kind) -> Self {
        Self::prepare(kind, &[], Self::own_folder().keep(), None, true)
    }

    /// A fresh server with its files in a folder that somebody else removes.
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

    /// Gives it a file that nobody else may read, under its folder, and says where that is.
    pub(crate) fn give(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        as_user(self.user(), Path::new("true"), &[&path]);
        path
    }

    /// Settings that hold from its next start on.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.settings.extend(settings.iter().map(|&it| it.to_owned()));
    }

    /// Whom it runs as where we are root.
    fn user(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mysql",
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of its files.
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
                // Else two that are made at once meet in the system's folder.
                command.arg(format!("--tmpdir={}", self.folder.display()));
                command
            }
        };
        succeed(&mut command);
    }

    /// Starts it where it does not run, and waits until it answers.
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
            // Its port was taken meanwhile, or what a killed one left is not gone yet.
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
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh", signal]);
        keeper.arg(if self.forever { self.folder.as_os_str() } else { "".as_ref() });
        keeper.arg(server.get_program());
        keeper.args(server.get_args());
        // Neither may hold a folder that is about to go.
        keeper.current_dir("/");
        let mut keeper = keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("a shell can be started");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().expect("the shell says which process it started");
        let stdin = keeper.stdin.take();
        Running { keeper, stdin, pid }
    }

    /// Its main process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").pid
    }

    fn is_alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|it| !it.starts_with('Z')))
    }

    /// Whether it answers, or has given up.
    pub(crate) fn answers_or_is_gone(&self) -> bool {
        !self.is_alive() || self.answers()
    }

    /// Starts it again where it has given up.
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

    /// What it wrote.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Ends it like a machine that loses its power.
    pub(crate) fn kill(&mut self) {
        self.end("KILL");
    }

    /// Ends it at once, cutting off what runs.
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
        let _ = running.keeper.wait();
    }

    /// The database that is always there.
    fn base(&self) -> &'static str {
        match self.kind {
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mysql",
        }
    }

    /// The server's own client, which has nothing to do with ours.
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

    /// Runs statements in a database and returns the lines that they give, values with `|` between.
    pub(crate) fn run(&self, database: &str, sql: &str) -> Vec<String> {
        let output = succeed(&mut self.client(database, sql));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| line.replace('\t', "|")).collect()
    }

    /// Starts statements in a session of their own, which ends with it.
    pub(crate) fn session(&self, database: &str, sql: &str) -> Child {
        self.client(database, sql).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Makes a database, and gives the words that the settings use for it.
    pub(crate) fn database(&self, name: &str) -> String {
        let letters = match self.kind {
            Kind::Postgres => "",
            Kind::Mariadb => " character set utf8mb4",
        };
        self.run(self.base(), &format!("create database {name}{letters}"));
        self.target(name)
    }

    /// The words that the settings use for a database.
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

/// Waits until this holds, and fails where it never does.
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

/// Debian keeps PostgreSQL's own programs beside the search path.
fn postgres_program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|it| it.path().join("bin").join(name)).filter(|it| it.exists()).collect();
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}

/// A command as that user where we are root, who then owns these files.
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
