//! `demo`: runs the main use case, from a thousand clients to one database, and checks the result.
//!
//! The daemon is a separate process, because otherwise its CPU time could not be separated from that of the load. Its
//! workers run this binary, so no interpreter is needed.

use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::load::{self, Lines, LoadSettings, Progress, ReplyCheck, Summary};
use crate::private_folder::private_folder;
use crate::{ask, cpu};

/// Demonstrate the main use case: a thousand clients, a few programs, one database.
///
/// Starts a daemon with the built-in worker program and an SQLite database in a temporary folder, sends lines on a
/// fixed schedule, and counts the rows through a new connection. The exit code is 0 if every line was acknowledged and
/// every acknowledged row is in the database.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// The number of client connections.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub connections: usize,
    /// Lines per second on each connection.
    #[arg(long, default_value_t = 1.0, value_name = "LINES")]
    pub rate: f64,
    /// How long to send lines, for example 10s or 1m.
    #[arg(long = "for", default_value = "10s", value_parser = load::cli::duration, value_name = "TIME")]
    pub time: Duration,
    /// Keep the folder with the configuration, the database and the log of the daemon.
    #[arg(long)]
    pub keep: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub json: bool,
}

/// The results of a run.
#[derive(Debug)]
struct Account {
    load: Summary,
    rows: u64,
    programs: u64,
    cpu: Duration,
    window: Duration,
    /// Whether the daemon ended without cutting off requests.
    clean_end: bool,
}

/// Runs the demo. The exit code is 0 if every sent line was acknowledged and is in the database.
#[must_use]
pub fn main(arguments: &DemoArgs) -> ExitCode {
    match run(arguments) {
        Ok(account) => {
            let text = if arguments.json { account.json() } else { account.table() };
            let _ = writeln!(io::stdout().lock(), "{text}");
            ExitCode::from(u8::from(!account.is_clean()))
        }
        Err(error) => {
            eprintln!("roadstead: the demo could not run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &DemoArgs) -> io::Result<Account> {
    let folder = private_folder("roadstead-demo-")?;
    let mut daemon = Daemon::start(folder.path())?;
    if !arguments.json {
        eprintln!(
            "daemon {} on {}, programs on pipes, rows into SQLite",
            daemon.pid(),
            daemon.listen
        );
    }
    let account = measure(arguments, &mut daemon);
    let clean_end = daemon.stop()?;
    let mut account = account?;
    account.rows = count_rows(&folder.path().join("hits.db"))?;
    account.clean_end = clean_end;
    keep(folder, arguments.keep || !account.is_clean());
    Ok(account)
}

fn measure(arguments: &DemoArgs, daemon: &mut Daemon) -> io::Result<Account> {
    let to = daemon.listen.parse().map_err(io::Error::other)?;
    let settings = LoadSettings {
        to: event::Address::Internet(to),
        connections: arguments.connections,
        rate: Some(arguments.rate),
        in_flight: 20,
        duration: arguments.time,
        lines: Lines::Work,
        reply: ReplyCheck::AckWithId,
        ledger: None,
        seed: 1,
        reconnect: true,
        resend_refused: false,
    };
    let mut clock = Window::new(daemon.pid());
    let mut live = LiveLine::new(!arguments.json && io::stderr().is_terminal());
    let load = load::run(&settings, &mut |progress| {
        clock.progress(progress);
        live.show(progress, &clock);
    })?;
    live.clear();
    let (cpu, window) = clock.end();
    let programs = daemon.programs_started()?;
    Ok(Account { load, rows: 0, programs, cpu, window, clean_end: false })
}

/// Measures the CPU time of the daemon from the first sent line to the last reply.
struct Window {
    pid: u32,
    begun: Option<(Instant, Duration)>,
}

impl Window {
    const fn new(pid: u32) -> Self {
        Self { pid, begun: None }
    }

    fn used(&self) -> Duration {
        cpu::of_daemon(self.pid).unwrap_or_default()
    }

    /// Starts the clock when all connections are open.
    fn progress(&mut self, progress: &Progress) {
        if self.begun.is_none() && progress.opened >= progress.connections {
            self.begun = Some((Instant::now(), self.used()));
        }
    }

    fn end(&self) -> (Duration, Duration) {
        let Some((begun, before)) = self.begun else { return Default::default() };
        (self.used().saturating_sub(before), begun.elapsed())
    }
}

struct LiveLine {
    shown: bool,
    wanted: bool,
}

impl LiveLine {
    const fn new(wanted: bool) -> Self {
        Self { shown: false, wanted }
    }

    fn show(&mut self, progress: &Progress, clock: &Window) {
        if !self.wanted {
            return;
        }
        let (cpu, window) = clock.end();
        let share = percent(cpu, window);
        eprint!(
            "\r\x1b[K{:>5.1}s  {} of {} connections  sent {}  acknowledged {}  daemon {share:.1} % CPU",
            window.as_secs_f64(),
            progress.opened,
            progress.connections,
            progress.sent,
            progress.acknowledged,
        );
        self.shown = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
        }
    }
}

fn percent(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { 100.0 * part.as_secs_f64() / whole.as_secs_f64() }
}

fn count_rows(database: &Path) -> io::Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let counted = Connection::open_with_flags(database, flags)
        .and_then(|it| it.query_row("select count(*) from hits", [], |row| row.get(0)));
    let rows: i64 = counted.map_err(io::Error::other)?;
    Ok(rows.unsigned_abs())
}

fn keep(folder: TempDir, keep: bool) {
    if keep {
        let path = folder.keep();
        eprintln!("kept: {}", path.display());
    }
}

/// The daemon as a child process.
struct Daemon {
    child: Child,
    /// Kept open while the daemon runs, so that the daemon can write to it.
    _stdout: BufReader<ChildStdout>,
    listen: String,
    admin: String,
    log: PathBuf,
}

impl Daemon {
    fn start(folder: &Path) -> io::Result<Self> {
        let file = folder.join("demo.toml");
        fs::write(&file, configuration(&folder.join("hits.db"), &std::env::current_exe()?))?;
        let log = folder.join("daemon.log");
        let mut child = Command::new("/proc/self/exe")
            .arg0("roadstead")
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let stdout =
            child.stdout.take().ok_or_else(|| io::Error::other("no pipe to the daemon"))?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let ready: Option<Value> =
            line.strip_prefix("ready ").and_then(|text| serde_json::from_str(text).ok());
        let said = |pointer: &str| {
            let found = ready.as_ref()?.pointer(pointer)?;
            found.as_str().map(str::to_owned)
        };
        let (Some(listen), Some(admin)) = (said("/listeners/hits"), said("/admin")) else {
            let _ = child.wait();
            let told = fs::read_to_string(&log).unwrap_or_default();
            return Err(io::Error::other(format!("the daemon did not start:\n{told}")));
        };
        Ok(Self { child, _stdout: stdout, listen, admin, log })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn programs_started(&self) -> io::Result<u64> {
        let page = ask::request(&self.admin, "GET", "/metrics", b"").map_err(io::Error::other)?;
        let text = String::from_utf8_lossy(&page.body).into_owned();
        let line = text.lines().find_map(|line| {
            line.strip_prefix("roadstead_worker_starts_total{pool=\"parse\"} ")?.parse().ok()
        });
        line.ok_or_else(|| io::Error::other("the metrics do not tell how many programs ran"))
    }

    /// Drains the daemon. Returns `true` if no request was cut off.
    fn stop(&mut self) -> io::Result<bool> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            let told = fs::read_to_string(&self.log).unwrap_or_default();
            let last: Vec<&str> = told.lines().rev().take(5).collect();
            eprintln!("the daemon ended with {status}; its last words:");
            for line in last.into_iter().rev() {
                eprintln!("  {line}");
            }
        }
        Ok(status.success())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // This happens only if the daemon was not stopped. Otherwise it has been reaped already.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns the configuration of the demo. With `--keep` it remains for reading and changing.
fn configuration(database: &Path, binary: &Path) -> String {
    format!(
        r#"# The main job: lines in, programs behind, rows committed, then the acknowledgement.

[admin]
listen = {admin}

[listener.hits]
listen = "127.0.0.1:0"
protocol = "lines"
pool = "parse"

[pool.parse]
program = [{binary}, "worker"]
workers = {{ min = 2, max = 20, spare = 2, idle_timeout = "30s" }}
then = "store"

[pool.store]
database = {database}
create = "create table if not exists hits (id integer, at integer, path text, status integer)"
insert = {{ table = "hits", columns = ["id", "at", "path", "status"] }}
input_format = "json"
ack = "ok {{id}}"
"#,
        admin = quoted(&format!("unix:{}", database.with_file_name("admin.sock").display())),
        binary = quoted(&binary.display().to_string()),
        database = quoted(&format!("sqlite:{}", database.display())),
    )
}

/// Returns a TOML string. All escapes of JSON are valid in TOML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Account {
    fn is_clean(&self) -> bool {
        self.clean_end
            && self.load.sent == self.load.acknowledged
            && self.load.misdirected == 0
            && self.rows == self.load.acknowledged
    }

    fn cpu_us_per_request(&self) -> f64 {
        let requests = self.load.acknowledged.max(1);
        #[expect(clippy::cast_precision_loss, reason = "a quotient for people")]
        let per = self.cpu.as_secs_f64() * 1e6 / requests as f64;
        per
    }

    fn lost(&self) -> u64 {
        self.load.acknowledged.saturating_sub(self.rows)
    }

    fn json(&self) -> String {
        json!({
            "sent": self.load.sent,
            "acknowledged": self.load.acknowledged,
            "refused": self.load.refused,
            "failed": self.load.failed,
            "unknown": self.load.unknown,
            "misdirected": self.load.misdirected,
            "rows": self.rows,
            "lost": self.lost(),
            "latency_ms": {
                "p50": ms(self.load.latency.p50),
                "p99": ms(self.load.latency.p99),
                "max": ms(self.load.latency.max),
            },
            "lateness_ms": {
                "p50": ms(self.load.lateness.p50),
                "p99": ms(self.load.lateness.p99),
                "max": ms(self.load.lateness.max),
            },
            "cpu_percent": rounded(percent(self.cpu, self.window)),
            "cpu_us_per_request": rounded(self.cpu_us_per_request()),
            "programs_started": self.programs,
            "seconds": rounded(self.window.as_secs_f64()),
        })
        .to_string()
    }

    fn table(&self) -> String {
        let load = &self.load;
        let times = |it: &load::Quantiles| {
            format!(
                "p50 {:.2} ms   p99 {:.2} ms   max {:.2} ms",
                ms(it.p50),
                ms(it.p99),
                ms(it.max)
            )
        };
        let verdict = match (self.is_clean(), self.lost()) {
            (true, _) => "every acknowledged row is there".to_owned(),
            (false, 0) => "not every line was acknowledged".to_owned(),
            (false, lost) => format!("{lost} ACKNOWLEDGED ROWS ARE MISSING"),
        };
        format!(
            "lines sent           {}\n\
             acknowledged         {}\n\
             refused              {}\n\
             failed or unknown    {}\n\
             rows in the database {}   ({verdict})\n\
             latency              {}\n\
             load was late by     {}\n\
             daemon CPU           {:.1} %   {:.1} µs a request\n\
             programs started     {}",
            load.sent,
            load.acknowledged,
            load.refused,
            load.failed + load.unknown,
            self.rows,
            times(&load.latency),
            times(&load.lateness),
            percent(self.cpu, self.window),
            self.cpu_us_per_request(),
            self.programs,
        )
    }
}

/// Returns milliseconds, rounded to the microsecond.
fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
