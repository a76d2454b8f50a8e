//! The page of `bench threads`: tables of the results, the goals, and the questions that the original left open.

use crate::bench::goals::{Goal, at_least, at_most};
use crate::bench::page::Template;
use crate::bench::statistics::{Quartiles, thousands};
use crate::bench::trial::Trial;
use serde_json::Value;

pub(super) const TEXT: Template = Template(include_str!("../../../pages/threads.md"));

pub(super) const BARE: &str = "bare loop";
pub(super) const LOOP: &str = "our loop alone";
pub(super) const HANDLER: &str = "Roadstead, a Handler";
pub(super) const POOL: &str = "our ThreadPool";
pub(super) const CONNECTION: &str = "thread per connection";
pub(super) const MIXIN: &str = "Python, ThreadingMixIn";
pub(super) const PYTHON_POOL: &str = "Python, pool";

/// All servers, in the order of the columns of the page.
pub(super) const NAMES: [&str; 9] =
    [BARE, LOOP, HANDLER, POOL, CONNECTION, "threadpool", "rayon", MIXIN, PYTHON_POOL];

/// Up to these sizes the connection dominates the cost, and above them the bytes.
pub(super) const SMALL: &[usize] = &[0, 1024, 3072, 7168, 15_360];
pub(super) const LARGE: &[usize] =
    &[31_744, 64_512, 130_048, 261_120, 523_264, 1_047_552, 2_096_128];

/// The ticks in milliseconds to which the mix-in sleeps.
pub(super) const TICKS: [&str; 3] = ["0", "2", "4"];

/// The stored results of all parts.
pub(super) struct Measured {
    sizes: Vec<(usize, Trial)>,
    stored: Value,
}

impl Measured {
    pub(super) fn read(stored: Value) -> Self {
        let sizes = [("small", SMALL), ("large", LARGE)];
        let sizes = sizes.iter().flat_map(|(part, all)| all.iter().map(move |size| (*part, *size)));
        let trial =
            |(part, size): (&str, usize)| (size, Trial::read(&stored[part][size.to_string()]));
        Self { sizes: sizes.map(trial).collect(), stored }
    }

    /// Returns the time from a submit to the start of its job, for the pool and for a bare channel, and their ratio.
    fn submit(&self, kind: &str) -> [Quartiles; 3] {
        let [pool, bare] = ["pool", "bare"].map(|who| {
            let samples = self.stored["submit"][format!("{kind}_{who}")].as_array();
            samples.into_iter().flatten().filter_map(Value::as_f64).collect::<Vec<_>>()
        });
        [Quartiles::of(&pool), Quartiles::of(&bare), Quartiles::ratio(&pool, &bare)]
    }

    /// Returns the lines of a table, one for each size.
    fn rows(&self, cells: impl Fn(&Trial) -> Vec<String>) -> String {
        let line = |(size, trial): &(usize, Trial)| {
            format!("| {} | {} |\n", thousands(*size as f64), cells(trial).join(" | "))
        };
        self.sizes.iter().map(line).collect()
    }

    /// Returns a table of one number of all servers, multiplied by `scale`.
    fn table(&self, what: &str, scale: f64) -> String {
        let cell = |trial: &Trial, name| trial.of(name, what).map(|value| value * scale).digits(1);
        self.rows(|trial| NAMES.map(|name| cell(trial, name)).into())
    }

    fn ratios(&self, columns: &[(&str, &str, &str)]) -> String {
        let ratio = |trial: &Trial, &(of, over, what): &(&str, &str, &str)| {
            trial.ratio(what, of, over).digits(2)
        };
        self.rows(|trial| columns.iter().map(|column| ratio(trial, column)).collect())
    }
}

/// Returns the goals.
pub(super) fn goals(measured: &Measured) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (size, trial) in measured.sizes.iter().filter(|(size, _)| *size <= 16 << 10) {
        let mut cpu = |of: &str, over: &str, limit: f64| {
            let text = format!("{size} B: CPU of {of} at most {limit} × {over}");
            goals.push(at_most(text, trial.ratio("cpu", of, over).median, limit));
        };
        for ours in [HANDLER, POOL] {
            cpu(ours, CONNECTION, 0.75);
            cpu(ours, PYTHON_POOL, 0.8);
        }
        cpu(LOOP, BARE, 1.15);
        for ours in [HANDLER, POOL] {
            let text = format!("{size} B: replies/s of {ours} at least 0.97 × {CONNECTION}");
            goals.push(at_least(text, trial.ratio("rate", ours, CONNECTION).median, 0.97));
        }
    }
    let single = measured.submit("single")[2].median;
    goals.push(at_most("from submit to run at most 1.2 × a bare channel", single, 1.2));
    for name in [HANDLER, POOL] {
        let of = &measured.stored["idle"][name];
        let count = |key: &str| of[key].as_u64().unwrap_or(u64::MAX);
        let (switches, calls) = (count("switches"), count("calls"));
        let value = format!("{switches} switches, {calls} system calls");
        goals.push((format!("{name} at rest: no wake-ups"), value, switches == 0 && calls == 0));
    }
    goals
}

/// The columns of the ratios.
const RATIOS: [(&str, &str, &str); 6] = [
    (HANDLER, CONNECTION, "cpu"),
    (HANDLER, PYTHON_POOL, "cpu"),
    (POOL, CONNECTION, "cpu"),
    (LOOP, BARE, "cpu"),
    (HANDLER, CONNECTION, "rate"),
    (POOL, CONNECTION, "rate"),
];

/// The ratios that answer the question of the original: both pools against a thread for each request.
const ORIGINAL: [(&str, &str, &str); 2] =
    [(PYTHON_POOL, MIXIN, "rate"), (POOL, CONNECTION, "rate")];

/// Returns the values of the page.
pub(super) fn values(measured: &Measured) -> Vec<(&'static str, String)> {
    let [single, burst] = ["single", "burst"].map(|kind| measured.submit(kind));
    let ticks = Trial::read(&measured.stored["ticks"]);
    let [tick0, tick2, tick4] = TICKS.map(|tick| ticks.of(tick, "rate").digits(1));
    vec![
        ("cpu", measured.table("cpu", 1.0)),
        ("rates", measured.table("rate", 0.001)),
        ("ratios", measured.ratios(&RATIOS)),
        ("single_pool", single[0].digits(0)),
        ("single_bare", single[1].digits(0)),
        ("single", single[2].digits(2)),
        ("burst_pool", burst[0].digits(0)),
        ("burst_bare", burst[1].digits(0)),
        ("burst", burst[2].digits(2)),
        ("original", measured.ratios(&ORIGINAL)),
        ("meeting", meeting(measured)),
        ("tick0", tick0),
        ("tick2", tick2),
        ("tick4", tick4),
    ]
}

/// Returns the size from which Python's pool serves at most 10 % more.
fn meeting(measured: &Measured) -> String {
    let is_same =
        |(_, trial): &&(usize, Trial)| trial.ratio("rate", PYTHON_POOL, MIXIN).median <= 1.1;
    match measured.sizes.iter().rev().take_while(is_same).last() {
        Some((size, _)) => format!(
            "They meet at {} bytes: from there on the pool's rate is within a tenth of the mix-in's.",
            thousands(*size as f64)
        ),
        None => "They do not meet up to the largest: there the pool still serves more than a tenth more.".to_owned(),
    }
}
