//! `roadstead load`: arguments, the live line, and the table at the end.

use std::io::{self, IsTerminal, Write};
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use event::Address;
use serde_json::{Value, json};

use super::run::run_until;
use super::settings::{Lines, LoadSettings, ReplyCheck};
use super::summary::{Progress, Quantiles, Summary};

/// How often the live line is written if standard error is not a terminal.
const LOGGED_EVERY: Duration = Duration::from_secs(1);

/// Send lines of work over many connections and account for each line.
///
/// Every connection sends its lines on an absolute schedule, whether or not replies arrive, so a slow listener cannot
/// slow down its own measurement. The latency of a line counts from the time when it was due. The delay of the load
/// generator itself is reported as lateness. With --saturate there is no schedule: each connection keeps --in-flight
/// lines in flight.
///
/// A line is acknowledged, refused (it had no effect and may be sent again), failed (it was attempted without effect)
/// or unknown (it may or may not have had an effect, for example because the connection was lost; such a line is never
/// sent again). A reply that belongs to another line is misdirected; then the exit code is 1, as if the run could not
/// be made. Ctrl-C stops sending, and the report is still printed.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct LoadArgs {
    /// The listener: HOST:PORT, or unix:PATH
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub to: Address,

    /// The number of connections
    #[arg(long, default_value_t = 1000, value_name = "COUNT")]
    pub connections: usize,

    /// Lines per second on each connection
    #[arg(long, default_value_t = 1.0, value_name = "LINES", conflicts_with = "saturate")]
    pub rate: f64,

    /// Send as fast as replies arrive, with --in-flight lines in flight on each connection
    #[arg(long)]
    pub saturate: bool,

    /// The maximum number of lines in flight per connection
    #[arg(long, default_value_t = 20, value_name = "LINES")]
    pub in_flight: u32,

    /// How long to send: 500ms, 10s, 2m
    #[arg(long = "for", default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub time: Duration,

    /// The format of the lines
    #[arg(long, value_enum, default_value_t = Lines::Work)]
    pub lines: Lines,

    /// Which reply acknowledges a line
    #[arg(long, value_enum, default_value_t = ReplyCheck::AckWithId)]
    pub reply: ReplyCheck,

    /// Record each sent line and its outcome in this file, for `roadstead ledger check`
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,

    /// The seed for the contents of the lines. The same seed generates the same contents
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,

    /// Reopen a connection after it was lost
    #[arg(long)]
    pub reconnect: bool,

    /// Send a line again after it was refused
    #[arg(long)]
    pub resend_refused: bool,

    /// Print one JSON object, with times in milliseconds
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  roadstead load --to 127.0.0.1:7000 --connections 1000 --rate 1 --for 10s
      a thousand clients with one line a second each
  roadstead load --to 127.0.0.1:7000 --connections 100 --saturate --in-flight 20
      as much as the listener takes
  roadstead load --to 127.0.0.1:7000 --ledger run.ledger --reconnect
  roadstead ledger check --ledger run.ledger --database hits.db --table hits
      is every acknowledged line in the database, once?";

impl LoadArgs {
    /// Returns the settings for these arguments.
    #[must_use]
    pub fn settings(&self) -> LoadSettings {
        LoadSettings {
            to: self.to.clone(),
            connections: self.connections,
            rate: (!self.saturate).then_some(self.rate),
            in_flight: self.in_flight,
            duration: self.time,
            lines: self.lines,
            reply: self.reply,
            ledger: self.ledger.clone(),
            seed: self.seed,
            reconnect: self.reconnect,
            resend_refused: self.resend_refused,
        }
    }
}

/// Runs `roadstead load`.
#[must_use]
pub fn main(args: &LoadArgs) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // A second signal ends the process with the default action.
        let flags = signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        if let Err(error) = flags {
            eprintln!("roadstead load: signals cannot be awaited: {error}");
        }
    }
    let mut live = LiveLine::new();
    let result = run_until(&args.settings(), &stop, &mut |progress| live.show(progress));
    live.clear();
    match result {
        Ok(summary) => {
            if args.json {
                println!("{}", to_json(&summary));
            } else {
                print!("{}", to_table(&summary));
            }
            ExitCode::from(u8::from(summary.misdirected > 0))
        }
        Err(error) => {
            eprintln!("roadstead load: {}", exchange::visible(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Parses `HOST:PORT`, `:PORT` (on this machine), or `unix:PATH`.
///
/// # Errors
/// The reason why the text is not an address, in words.
pub fn address(text: &str) -> Result<Address, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(Address::Unix(PathBuf::from(path)));
    }
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let mut found = whole
        .to_socket_addrs()
        .map_err(|error| format!("expected HOST:PORT or unix:PATH ({error})"))?;
    let address = found.next().ok_or("this host has no address")?;
    if address.port() == 0 {
        Err("port 0 cannot be connected to".to_owned())
    } else {
        Ok(Address::Internet(address))
    }
}

/// Parses `500ms`, `10s`, `2m`, `1h`.
///
/// # Errors
/// The reason why the text is not a duration, in words.
pub fn duration(text: &str) -> Result<Duration, String> {
    let why = || format!("`{text}` is not a time such as 500ms, 10s or 2m");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(why)?;
    let (number, unit) = text.split_at(unit_at);
    let second = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(why()),
    };
    let number: f64 = number.parse().map_err(|_| why())?;
    Duration::try_from_secs_f64(number * second).map_err(|_| why())
}

/// The live line on standard error. It is overwritten on a terminal, and written once per second elsewhere.
struct LiveLine {
    terminal: bool,
    next: Instant,
}

impl LiveLine {
    fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), next: Instant::now() + LOGGED_EVERY }
    }

    fn show(&mut self, progress: &Progress) {
        let now = Instant::now();
        let mut error = io::stderr().lock();
        // Errors are ignored: standard error may be closed.
        let _ = if self.terminal {
            write!(error, "\r\x1b[K{}", live(progress)).and_then(|()| error.flush())
        } else if now >= self.next {
            self.next = now + LOGGED_EVERY;
            writeln!(error, "{}", live(progress))
        } else {
            Ok(())
        };
    }

    fn clear(&self) {
        if self.terminal {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn live(progress: &Progress) -> String {
    if progress.elapsed.is_zero() {
        return format!("opened {} of {}", progress.opened, progress.connections);
    }
    let mut line = format!(
        "{:.1} s  sent {}  acknowledged {}  on their way {}",
        progress.elapsed.as_secs_f64(),
        progress.sent,
        progress.acknowledged,
        progress.outstanding,
    );
    let rest = [
        ("refused", progress.refused),
        ("failed or unknown", progress.failed_or_unknown),
        ("reconnects", progress.reconnects),
    ];
    for (name, count) in rest.into_iter().filter(|&(_, count)| count > 0) {
        line.push_str(&format!("  {name} {count}"));
    }
    line
}

/// Returns milliseconds, exact to a microsecond, so that no meaningless digits are printed.
fn ms(duration: Duration) -> f64 {
    f64::from(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)) / 1e3
}

fn per_second(summary: &Summary) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a quotient for people")]
    let acknowledged = summary.acknowledged as f64;
    if summary.seconds > 0.0 { acknowledged / summary.seconds } else { 0.0 }
}

/// Returns the summary as one object, with times in milliseconds.
#[must_use]
pub fn to_json(summary: &Summary) -> Value {
    let times = |it: &Quantiles| json!({"p50": ms(it.p50), "p99": ms(it.p99), "max": ms(it.max)});
    let codes: serde_json::Map<_, _> =
        summary.codes.iter().map(|&(code, count)| (code.to_owned(), json!(count))).collect();
    json!({
        "connections": summary.connections,
        "sent": summary.sent,
        "acknowledged": summary.acknowledged,
        "refused": summary.refused,
        "failed": summary.failed,
        "unknown": summary.unknown,
        "misdirected": summary.misdirected,
        "unasked": summary.unasked,
        "resent": summary.resent,
        "unsent": summary.unsent,
        "reconnects": summary.reconnects,
        "codes": codes,
        "latency_ms": times(&summary.latency),
        "lateness_ms": times(&summary.lateness),
        "seconds": summary.seconds,
        "acknowledged_per_second": per_second(summary),
    })
}

/// Returns the summary as a table for people. Rows that are zero and have no meaning then are omitted.
fn to_table(summary: &Summary) -> String {
    let counts = [
        ("sent", summary.sent, true),
        ("acknowledged", summary.acknowledged, true),
        ("refused", summary.refused, true),
        ("failed", summary.failed, true),
        ("unknown", summary.unknown, true),
        ("MISDIRECTED", summary.misdirected, false),
        ("sent again", summary.resent, false),
        ("due, not sent", summary.unsent, false),
        ("reconnects", summary.reconnects, false),
    ];
    let mut table = String::new();
    for (name, count, _) in counts.into_iter().filter(|&(_, count, always)| always || count > 0) {
        table.push_str(&format!("{name:<14}{count:>10}\n"));
    }
    for (code, count) in &summary.codes {
        table.push_str(&format!("  !{code:<11}{count:>10}\n"));
    }
    for (name, times) in [("latency", &summary.latency), ("lateness", &summary.lateness)] {
        table.push_str(&format!(
            "{name:<14}p50 {:.2} ms   p99 {:.2} ms   max {:.2} ms\n",
            ms(times.p50),
            ms(times.p99),
            ms(times.max)
        ));
    }
    let (rate, seconds) = (per_second(summary), summary.seconds);
    table.push_str(&format!("{rate:.0} acknowledged a second over {seconds:.2} s\n"));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn parsed(args: &str) -> Result<LoadSettings, clap::Error> {
        let words = ["load"].into_iter().chain(args.split_whitespace());
        Program::try_parse_from(words).map(|program| program.load.settings())
    }

    #[test]
    fn every_argument_reaches_the_settings() {
        let settings = parsed(
            "--to 127.0.0.1:7000 --connections 30 --rate 50 --for 500ms --in-flight 7 \
             --ledger file --lines json --reply echo --seed 4 --reconnect --resend-refused --json",
        )
        .unwrap();
        assert_eq!(settings.to, Address::Internet("127.0.0.1:7000".parse().unwrap()));
        assert_eq!((settings.connections, settings.rate), (30, Some(50.0)));
        assert_eq!((settings.in_flight, settings.duration), (7, Duration::from_millis(500)));
        assert_eq!((settings.lines, settings.reply), (Lines::Json, ReplyCheck::Echo));
        assert!(settings.reconnect && settings.resend_refused);
    }

    #[test]
    fn saturation_and_a_rate_exclude_each_other() {
        assert_eq!(parsed("--to :7000 --saturate").unwrap().rate, None);
        assert_eq!(parsed("--to unix:/run/x").unwrap().to, Address::Unix("/run/x".into()));
        assert!(parsed("--to :7000 --saturate --rate 2").is_err());
        assert!(parsed("--to nowhere").is_err());
        assert!(parsed("--to :0").is_err());
        assert!(parsed("").is_err());
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "10", "s", "-1s", "1d", "1 s x", "infs", "NaNs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_report_has_every_count() {
        let summary = Summary {
            sent: 5,
            acknowledged: 3,
            unknown: 1,
            misdirected: 1,
            codes: vec![("died", 1)],
            seconds: 2.0,
            ..Summary::default()
        };
        let value = to_json(&summary);
        assert_eq!((&value["sent"], &value["codes"]["died"]), (&json!(5), &json!(1)));
        assert_eq!(value["acknowledged_per_second"], json!(1.5));
        let table = to_table(&summary);
        assert!(table.contains("MISDIRECTED") && table.contains("!died"), "{table}");
        assert!(!table.contains("reconnects"), "{table}");
    }
}
