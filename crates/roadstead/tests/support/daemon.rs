//! A real daemon for a test: with a configuration of the test, on ports that the system chooses, in a folder that is
//! removed after the test.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;

/// The maximum time for any wait. It matters only for failing tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_roadstead");

pub(crate) struct Daemon {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    pub(crate) listeners: BTreeMap<String, String>,
    pub(crate) admin: String,
}

/// A folder for the files of a test.
pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new().prefix("roadstead-test-").tempdir().unwrap()
}

/// Returns a pool of the built-in worker program. `arguments` are TOML strings after `worker`.
pub(crate) fn worker_program(arguments: &[&str]) -> String {
    let words: Vec<String> = [BINARY, "worker"]
        .iter()
        .chain(arguments)
        .map(|word| Value::from(*word).to_string())
        .collect();
    format!("program = [{}]\n", words.join(", "))
}

/// Returns one `lines` listener called `main` with a pool called `main` with these options.
pub(crate) fn one_pool(listener: &str, pool: &str) -> String {
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"lines\"\npool = \"main\"\n{listener}\n[pool.main]\n{pool}\n"
    )
}

/// Returns the main job: lines, the built-in worker, rows in `hits.db`, an acknowledgement with the id.
pub(crate) fn main_job(folder: &Path, parse: &str, store: &str) -> String {
    let database = Value::from(format!("sqlite:{}", folder.join("hits.db").display()));
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\n\
         protocol = \"lines\"\npool = \"parse\"\n[pool.parse]\n{parse}\nthen = \"store\"\n\
         [pool.store]\ndatabase = {database}\n\
         create = \"create table if not exists hits (id integer, at integer, path text, status integer)\"\n\
         insert = {{ table = \"hits\", columns = [\"id\", \"at\", \"path\", \"status\"] }}\n\
         input_format = \"json\"\nack = \"ok {{id}}\"\n{store}\n"
    )
}

/// Returns the same configuration with the number of shards in the variable `ROADSTEAD_TEST_SHARDS`, so that every test
/// can run with several shards.
fn on_shards(configuration: &str) -> String {
    let shards = std::env::var("ROADSTEAD_TEST_SHARDS").unwrap_or_default();
    if shards.is_empty() || configuration.contains("shards =") {
        return configuration.to_owned();
    }
    let shards = format!("[daemon]\nshards = {shards}\n");
    match configuration.split_once("[daemon]\n") {
        Some((before, after)) => [before, &shards, after].concat(),
        None => format!("{shards}{configuration}"),
    }
}

/// Replaces the default admin address of a test by a socket in its folder, which this user may control without a token.
/// Each daemon of a folder has its own socket; `rewrite` uses that of the last one.
fn with_admin_socket(configuration: &str, folder: &Path, name: &str) -> String {
    let socket = Value::from(format!("unix:{}", folder.join(name).display()));
    let (any, own) =
        ("[admin]\nlisten = \"127.0.0.1:0\"\n", format!("[admin]\nlisten = {socket}\n"));
    configuration.replacen(any, &own, 1)
}

/// The file with the name of the socket.
const ADMIN_NAME: &str = "admin.name";

static SOCKETS: AtomicU32 = AtomicU32::new(0);

impl Daemon {
    pub(crate) fn serve(folder: &Path, configuration: &str) -> Self {
        Self::serve_with(folder, configuration, &[])
    }

    /// Starts the daemon with these variables and waits until it is ready.
    pub(crate) fn serve_with(
        folder: &Path,
        configuration: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let file = folder.join("roadstead.toml");
        let name = format!("admin-{}.sock", SOCKETS.fetch_add(1, Ordering::Relaxed));
        fs::write(&file, with_admin_socket(&on_shards(configuration), folder, &name)).unwrap();
        fs::write(folder.join(ADMIN_NAME), &name).unwrap();
        let mut command = Command::new(BINARY);
        command.arg("serve").arg(&file).current_dir(folder).envs(environment.iter().copied());
        match Self::start(&mut command, folder) {
            Ok(daemon) => daemon,
            Err(told) => panic!("the daemon did not start:\n{told}\n{configuration}"),
        }
    }

    /// Starts any command of the binary that prints the ready line.
    pub(crate) fn start(command: &mut Command, folder: &Path) -> Result<Self, String> {
        let log = fs::OpenOptions::new().create(true).append(true).open(log_path(folder)).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = loop {
            match command.spawn() {
                // Another test has started a process while this one wrote a copy of the binary.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                child => break child.expect("the binary under test can be started"),
            }
        };
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Some(ready) = line.strip_prefix("ready ") else {
            let status = child.wait().unwrap();
            return Err(format!("{status}\n{}", fs::read_to_string(log_path(folder)).unwrap()));
        };
        let ready: Value = serde_json::from_str(ready).unwrap();
        let listeners = ready["listeners"].as_object().unwrap().iter();
        let listeners = listeners.map(|(name, it)| (name.clone(), it.as_str().unwrap().to_owned()));
        let admin = ready["admin"].as_str().unwrap_or_default().to_owned();
        Ok(Self { child, _stdout: stdout, listeners: listeners.collect(), admin })
    }

    /// Replaces its configuration file.
    pub(crate) fn rewrite(folder: &Path, configuration: &str) {
        // The file is replaced by a rename, so that it is never incomplete.
        let (file, new) = (folder.join("roadstead.toml"), folder.join("roadstead.toml.new"));
        let name = fs::read_to_string(folder.join(ADMIN_NAME)).unwrap();
        let configuration = on_shards(configuration);
        fs::write(&new, with_admin_socket(&configuration, folder, &name)).unwrap();
        fs::rename(new, file).unwrap();
    }

    /// Makes the daemon reload its file. Returns the message, as `Ok` if the file was applied.
    pub(crate) fn reload(&self) -> Result<String, String> {
        let said = roadstead::ask::request(&self.admin, "POST", "/reload", b"").unwrap();
        let text = String::from_utf8(said.body).unwrap();
        if said.status == 200 { Ok(text) } else { Err(text) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> &str {
        &self.listeners["main"]
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// Returns a page of the admin address.
    pub(crate) fn page(&self, path: &str) -> String {
        let said = roadstead::ask::request(&self.admin, "GET", path, b"").unwrap();
        String::from_utf8(said.body).unwrap()
    }

    /// Returns the sum of all samples of a metric whose labels contain each of `labels`.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let page = self.page("/metrics");
        let lines = page.lines().filter_map(|line| line.strip_prefix(name));
        lines
            .filter(|rest| rest.starts_with('{') || rest.starts_with(' '))
            .filter(|rest| labels.iter().all(|label| rest.contains(label)))
            .map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.page("/status")).unwrap()
    }

    /// Returns the processes of the programs of all pools.
    pub(crate) fn programs(&self) -> Vec<u32> {
        let status = self.status();
        let pools = status["pools"].as_array().unwrap().iter();
        let workers = pools.flat_map(|pool| pool["workers"].as_array().unwrap());
        workers.filter_map(|it| it["pid"].as_u64()).map(|pid| u32::try_from(pid).unwrap()).collect()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
    }

    /// Stops the daemon while `act` runs, so that everything `act` sends has arrived when the daemon continues.
    pub(crate) fn stopped<R>(&self, act: impl FnOnce() -> R) -> R {
        self.signal(rustix::process::Signal::STOP);
        until("the daemon stands still", || stands_still(self.pid()));
        let result = act();
        self.signal(rustix::process::Signal::CONT);
        result
    }

    /// Drains the daemon and returns its exit status.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        until("the daemon ends", || !matches!(self.child.try_wait(), Ok(None)));
        self.child.wait().unwrap()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("daemon.log")
}

/// Returns the standard error of the daemon.
pub(crate) fn read_log(folder: &Path) -> String {
    fs::read_to_string(log_path(folder)).unwrap_or_default()
}

/// Polls until `seen` is true, and fails after [`PATIENCE`].
pub(crate) fn until(what: &str, seen: impl FnMut() -> bool) {
    assert!(becomes(PATIENCE, seen), "this did not happen: {what}");
}

/// Returns whether `seen` becomes true within `limit`.
pub(crate) fn becomes(limit: Duration, mut seen: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if seen() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with('Z')))
}

/// Returns whether all threads of a stopped process have stopped. The signal takes effect on one thread first, and then
/// on the others.
pub(crate) fn stands_still(process: u32) -> bool {
    fs::read_dir(format!("/proc/{process}/task")).unwrap().all(|thread| {
        // A thread that has ended meanwhile counts as stopped.
        let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('T'))
    })
}

/// Returns all processes whose environment or command line contains this mark.
pub(crate) fn processes_with(mark: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| is_alive(pid))
        .filter(|pid| {
            let has = |file: &str| {
                fs::read(format!("/proc/{pid}/{file}"))
                    .is_ok_and(|bytes| bytes.windows(mark.len()).any(|it| it == mark.as_bytes()))
            };
            has("cmdline") || has("environ")
        })
        .collect()
}
