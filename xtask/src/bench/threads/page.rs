//! The page of `bench threads`: tables of the results, the goals, and the questions that the original left open.

use super::super::goals::{Goal, list};
use super::super::statistics::{Quartiles, thousands};
use super::super::template::Template;
use serde_json::Value;

const TEXT: Template = Template(include_str!("../../../pages/threads.md"));

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

/// All rounds of one server at one size.
struct Cell {
    rate: Vec<f64>,
    cpu: Vec<f64>,
}

/// Selects one number of each round.
type What = fn(&Cell) -> &[f64];

/// The stored results of all parts.
pub(super) struct Measured {
    /// By size, then in the order of the names.
    sizes: Vec<(usize, Vec<Cell>)>,
    stored: Value,
}

impl Measured {
    pub(super) fn read(stored: &Value) -> Self {
        let cells = |part: &str, size: usize| {
            let of = &stored[part][size.to_string()];
            let numbers = |name: &str, what: &str| numbers(&of[name][what]);
            let cell = |name| Cell { rate: numbers(name, "rate"), cpu: numbers(name, "cpu") };
            (size, NAMES.map(cell).into())
        };
        let small = SMALL.iter().map(|size| cells("small", *size));
        let large = LARGE.iter().map(|size| cells("large", *size));
        Self { sizes: small.chain(large).collect(), stored: stored.clone() }
    }

    /// Returns the results of the example `submit`.
    fn submit(&self, kind: &str, who: &str) -> Vec<f64> {
        numbers(&self.stored["submit"][format!("{kind}_{who}")])
    }
}

/// Returns quartiles of the ratio of `what` between two servers, round by round.
fn ratio(cells: &[Cell], of: &str, over: &str, what: What) -> Quartiles {
    let cell = |name: &str| cells.iter().zip(NAMES).find(|(_, it)| *it == name);
    let samples = |name| cell(name).map(|(cell, _)| what(cell)).unwrap_or_default();
    Quartiles::ratio(samples(of), samples(over))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn rate(cell: &Cell) -> &[f64] {
    &cell.rate
}

fn cpu(cell: &Cell) -> &[f64] {
    &cell.cpu
}

/// Returns the lines of a table, one for each size.
fn rows(measured: &Measured, cells: impl Fn(&[Cell]) -> Vec<Quartiles>, digits: usize) -> String {
    let line = |(size, all): &(usize, Vec<Cell>)| {
        let size = std::iter::once(thousands(*size as f64));
        let cells = size.chain(cells(all).into_iter().map(|it| it.digits(digits)));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    measured.sizes.iter().map(line).collect()
}

/// Returns a table of one number of all servers, multiplied by `scale`.
fn table(measured: &Measured, what: What, scale: f64) -> String {
    let cell = |cell: &Cell| Quartiles::of_each(what(cell), |value| value * scale);
    rows(measured, |cells| cells.iter().map(cell).collect(), 1)
}

/// Returns the goals, and whether they were met.
pub(super) fn goals(measured: &Measured) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (size, cells) in measured.sizes.iter().filter(|(size, _)| *size <= 16 << 10) {
        let mut most = |of: &str, over: &str, limit: f64| {
            let median = ratio(cells, of, over, cpu).median;
            let text = format!("{size} B: CPU of {of} at most {limit} × {over} ({median:.2})");
            goals.push((text, median <= limit));
        };
        for ours in [HANDLER, POOL] {
            most(ours, CONNECTION, 0.75);
            most(ours, PYTHON_POOL, 0.8);
        }
        most(LOOP, BARE, 1.15);
        for ours in [HANDLER, POOL] {
            let median = ratio(cells, ours, CONNECTION, rate).median;
            let text =
                format!("{size} B: replies/s of {ours} at least 0.97 × {CONNECTION} ({median:.2})");
            goals.push((text, median >= 0.97));
        }
    }
    let single = submit(measured, "single")[2].median;
    let text = format!("from submit to run at most 1.2 × a bare channel ({single:.2})");
    goals.push((text, single <= 1.2));
    for name in [HANDLER, POOL] {
        let of = &measured.stored["idle"][name];
        let count = |key: &str| of[key].as_u64().unwrap_or(u64::MAX);
        let (switches, calls) = (count("switches"), count("calls"));
        let text =
            format!("{name} at rest: no wake-ups ({switches} switches, {calls} system calls)");
        goals.push((text, switches == 0 && calls == 0));
    }
    goals
}

/// Returns the time from a submit to the start of its job, for the pool and for a bare channel, and their ratio.
fn submit(measured: &Measured, kind: &str) -> [Quartiles; 3] {
    let [pool, bare] = ["pool", "bare"].map(|who| measured.submit(kind, who));
    [Quartiles::of(&pool), Quartiles::of(&bare), Quartiles::ratio(&pool, &bare)]
}

/// The columns of the ratios.
const RATIOS: [(&str, &str, What); 6] = [
    (HANDLER, CONNECTION, cpu),
    (HANDLER, PYTHON_POOL, cpu),
    (POOL, CONNECTION, cpu),
    (LOOP, BARE, cpu),
    (HANDLER, CONNECTION, rate),
    (POOL, CONNECTION, rate),
];

/// The ratios that answer the question of the original: both pools against a thread for each request.
const ORIGINAL: [(&str, &str, What); 2] = [(PYTHON_POOL, MIXIN, rate), (POOL, CONNECTION, rate)];

fn ratios(measured: &Measured, columns: &[(&str, &str, What)]) -> String {
    let all = |cells: &[Cell]| {
        columns.iter().map(|(of, over, what)| ratio(cells, of, over, *what)).collect()
    };
    rows(measured, all, 2)
}

pub(super) fn page(command: &str, measured: &Measured) -> String {
    let [single, burst] = ["single", "burst"].map(|kind| submit(measured, kind));
    let tick = |name: &str| {
        let of = numbers(&measured.stored["ticks"][name]);
        match of[..] {
            [low, median, high] => Quartiles { low, median, high }.digits(1),
            _ => "–".to_owned(),
        }
    };
    TEXT.fill(
        "page",
        &[
            ("command", &command),
            ("cpu", &table(measured, cpu, 1.0)),
            ("rates", &table(measured, rate, 0.001)),
            ("ratios", &ratios(measured, &RATIOS)),
            ("single_pool", &single[0].digits(0)),
            ("single_bare", &single[1].digits(0)),
            ("single", &single[2].digits(2)),
            ("burst_pool", &burst[0].digits(0)),
            ("burst_bare", &burst[1].digits(0)),
            ("burst", &burst[2].digits(2)),
            ("original", &ratios(measured, &ORIGINAL)),
            ("meeting", &meeting(measured)),
            ("tick0", &tick("0")),
            ("tick2", &tick("2")),
            ("tick4", &tick("4")),
            ("goals", &list(&goals(measured))),
        ],
    )
}

/// Returns the size from which Python's pool serves at most 10 % more.
fn meeting(measured: &Measured) -> String {
    let is_same =
        |(_, cells): &&(usize, Vec<Cell>)| ratio(cells, PYTHON_POOL, MIXIN, rate).median <= 1.1;
    match measured.sizes.iter().rev().take_while(is_same).last() {
        Some((size, _)) => format!(
            "They meet at {} bytes: from there on the pool's rate is within a tenth of the mix-in's.",
            thousands(*size as f64)
        ),
        None => "They do not meet up to the largest: there the pool still serves more than a tenth more.".to_owned(),
    }
}
