//! Generates figures for the documentation from the output of examples.

use crate::shell::{self, Failure, Workspace};
use clap::Args;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::Command;

#[derive(Args, Debug)]
pub(crate) struct PlotArguments {
    /// The figure to draw: the number of workers and the queue, against the load
    #[arg(value_parser = ["elastic"])]
    what: String,
}

/// The folder of the figures and of the page that shows them.
const FOLDER: &str = "docs/design";
const PAGE: &str = "docs/design/elastic.md";
/// The text between these marks is generated here.
const MADE: [&str; 2] = ["<!-- made by `cargo xtask plot elastic` -->", "<!-- to here -->"];

const COLOURS: [RGBColor; 5] = [
    RGBColor(31, 119, 180),
    RGBColor(140, 140, 140),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
];

/// The size of a figure in pixels, and the share of its height for the workers.
const SIZE: (u32, u32) = (900, 540);
const WORKERS_HEIGHT: u32 = 340;
/// Seconds of a run.
const RUN: f64 = 60.0;
const NEEDED: RGBColor = RGBColor(225, 225, 225);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One curve: seconds, and workers or requests.
type Curve = Vec<(f64, f64)>;

/// All simulations of one shape.
#[derive(Debug, Default, PartialEq)]
struct Shape {
    needed: Curve,
    /// By preset, in the order of their runs.
    runs: Vec<Run>,
    /// By preset: waits, starts, worker-seconds.
    sums: Vec<[String; 6]>,
}

/// The result of one preset.
#[derive(Debug, Default, PartialEq)]
struct Run {
    preset: String,
    workers: Curve,
    /// Requests in the queue.
    waiting: Curve,
}

pub(crate) fn run(workspace: &Workspace, arguments: &PlotArguments) -> Result<String, Failure> {
    debug_assert_eq!(arguments.what, "elastic");
    let said = shell::output(Command::new(workspace.example("roadstead-elastic", "load_shapes")?))?;
    let shapes = read(&said)?;
    for (name, shape) in &shapes {
        let path = workspace.root.join(FOLDER).join(format!("elastic-{name}.svg"));
        draw(&path, name, shape)?;
    }
    let path = workspace.root.join(PAGE);
    let page = filled(&shell::read(&path)?, &tables(&shapes));
    shell::write(
        &path,
        &page.ok_or_else(|| Failure::new(format!("{PAGE} has no `{}`", MADE[0])))?,
    )?;
    Ok(format!("wrote {PAGE} and {} pictures", shapes.len()))
}

fn read(said: &str) -> Result<BTreeMap<String, Shape>, Failure> {
    let mut shapes: BTreeMap<String, Shape> = BTreeMap::new();
    for line in said.lines() {
        let broken = || Failure::new(format!("a line that cannot be read: {line}"));
        if let Some(sums) = line.strip_prefix('#') {
            let mut words = sums.split(',').map(str::to_owned);
            let shape = shapes.entry(words.next().ok_or_else(broken)?).or_default();
            let words: Vec<String> = words.collect();
            shape.sums.push(words.try_into().map_err(|_| broken())?);
            continue;
        }
        let words: Vec<&str> = line.split(',').collect();
        let [shape, preset, second, needed, workers, waiting] = words[..] else {
            return Err(broken());
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| broken());
        let (second, needed) = (number(second)?, number(needed)?);
        let (workers, waiting) = (number(workers)?, number(waiting)?);
        let shape = shapes.entry(shape.to_owned()).or_default();
        if shape.runs.last().is_none_or(|run| run.preset != preset) {
            shape.runs.push(Run { preset: preset.to_owned(), ..Run::default() });
        }
        if shape.runs.len() == 1 {
            shape.needed.push((second, needed));
        }
        if let Some(run) = shape.runs.last_mut() {
            run.workers.push((second, workers));
            run.waiting.push((second, waiting));
        }
    }
    Ok(shapes)
}

/// Draws the workers above and the queue below, over the same seconds.
fn draw(path: &Path, name: &str, shape: &Shape) -> Result<(), Failure> {
    let drawn = || -> Result<(), Box<dyn Error>> {
        let root = SVGBackend::new(path, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (above, below) = root.split_vertically(WORKERS_HEIGHT);
        draw_workers(&above, name, shape)?;
        draw_waiting(&below, shape)?;
        Ok(root.present()?)
    };
    drawn().map_err(Failure::at(path.display()))
}

fn draw_workers(area: &Area<'_>, name: &str, shape: &Shape) -> Result<(), Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{name}: workers, and how many the load needs"), ("sans-serif", 18))
        .margin(8)
        .x_label_area_size(20)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..RUN, 0.0..44.0)?;
    chart.configure_mesh().y_desc("workers").light_line_style(TRANSPARENT).draw()?;
    let needed = AreaSeries::new(shape.needed.iter().copied(), 0.0, NEEDED);
    chart
        .draw_series(needed)?
        .label("needed")
        .legend(|(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], NEEDED.filled()));
    for (run, colour) in shape.runs.iter().zip(COLOURS) {
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(run.workers.iter().copied(), style))?
            .label(&run.preset)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}

fn draw_waiting(area: &Area<'_>, shape: &Shape) -> Result<(), Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..RUN, 0.0..longest_queue(shape) * 1.1)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc("requests that wait")
        .y_labels(5)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (run, colour) in shape.runs.iter().zip(COLOURS) {
        let curve = run.waiting.iter().copied();
        chart.draw_series(LineSeries::new(curve, colour.stroke_width(2)))?;
    }
    Ok(())
}

/// Returns the longest queue of all presets; at least 1, because the axis needs a length.
fn longest_queue(shape: &Shape) -> f64 {
    let waiting = shape.runs.iter().flat_map(|run| &run.waiting);
    waiting.fold(1.0, |most, (_, waiting)| waiting.max(most))
}

fn tables(shapes: &BTreeMap<String, Shape>) -> String {
    let mut text = String::new();
    for (name, shape) in shapes {
        text.push_str(&format!(
            "\n### {name}\n\n![{name}](elastic-{name}.svg)\n\n\
             | preset | median wait, ms | 99 % wait at most, ms | longest, ms | started | worker-seconds |\n\
             |---|---|---|---|---|---|\n"
        ));
        for sums in &shape.sums {
            text.push_str(&format!("| {} |\n", sums.join(" | ")));
        }
    }
    text.push('\n');
    text
}

/// Returns the page with the generated text between its marks, or `None` if the marks are missing.
fn filled(page: &str, made: &str) -> Option<String> {
    let (before, rest) = page.split_once(MADE[0])?;
    let (_, after) = rest.split_once(MADE[1])?;
    Some(format!("{before}{}\n{made}{}{after}", MADE[0], MADE[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_and_sums_are_told_apart() {
        let said =
            "step,a,0.0,3.0,2,0\nstep,a,0.1,4.0,3,1\n#step,a,1,2,3,4,5\nstep,b,0.0,3.0,9,0\n";
        let shapes = read(said).unwrap();
        let shape = &shapes["step"];
        assert_eq!(shape.needed, [(0.0, 3.0), (0.1, 4.0)]);
        assert_eq!(shape.runs.len(), 2);
        assert_eq!(shape.runs[1].workers, [(0.0, 9.0)]);
        assert_eq!(shape.runs[0].waiting, [(0.0, 0.0), (0.1, 1.0)]);
        assert_eq!(longest_queue(shape), 1.0);
        assert_eq!(shape.sums, [["a", "1", "2", "3", "4", "5"].map(str::to_owned)]);
        assert!(read("step,a\n").is_err());
    }

    #[test]
    fn a_page_is_filled_between_its_marks() {
        let page = format!("a\n{}\nold\n{}\nb\n", MADE[0], MADE[1]);
        assert_eq!(
            filled(&page, "new\n").unwrap(),
            format!("a\n{}\nnew\n{}\nb\n", MADE[0], MADE[1])
        );
        assert_eq!(filled("a\n", "new"), None);
    }
}
