//! The cost of a request of a bound client at a daemon, with and without `[cluster]`.

use std::thread;
use std::time::Duration;

use super::clients::{CONNECTIONS, origin, saturate};
use super::nats::Nats;
use crate::bench::child::{Child, wait_until};
use crate::bench::driver::Part;
use crate::bench::ground::Ground;
use crate::bench::page::{Template, row};
use crate::bench::server::Server;
use crate::bench::{process, system_calls};
use crate::shell::{Failure, command};
use serde_json::json;

pub(super) const NAMES: [&str; 2] = ["without `[cluster]`", "with `[cluster]`"];

fn serve(ground: &Ground, origin: &Server, nats: Option<&Nats>) -> Result<Server, Failure> {
    let cluster = nats.map_or_else(String::new, |nats| {
        let urls = nats.urls();
        format!("[cluster]\nnats = {urls:?}\nsecret = \"file:cluster-secret\"\n")
    });
    let shared = nats.is_some();
    let server = &origin.address;
    let text = format!(
        "{cluster}[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"web\"\n\
         [pool.web]\nservers = [\"{server}\"]\n\
         sticky = {{ key = \"header:x-client\", lifetime = \"1h\", shared = {shared} }}\n"
    );
    crate::shell::write(&ground.folder.join("cluster-secret"), "0123456789abcdef0123456789abcdef")?;
    ground.serve("requests", &text)
}

/// Counts the user-space instructions of these processes per unit of work. `None`: the processor counts none, as in
/// many virtual machines.
fn instructions(
    ground: &Ground,
    own: &[u32],
    work: impl FnOnce() -> Result<f64, Failure>,
) -> Result<Option<f64>, Failure> {
    let file = ground.folder.join("instructions.txt");
    // The file of an earlier run would be read as the result of this run.
    let _ = std::fs::remove_file(&file);
    let processes: Vec<String> = own.iter().map(u32::to_string).collect();
    let mut perf =
        command("perf", ["stat", "-x,", "-e", "instructions:u", "-p", &processes.join(",")]);
    perf.arg("-o").arg(&file);
    let mut perf = Child::start(perf, None)?;
    // It opens its file before its counters.
    if !wait_until(|| file.exists() || !perf.is_running()) {
        return Err(perf.failed("does not start"));
    }
    thread::sleep(Duration::from_millis(200));
    let units = work()?;
    perf.signal(rustix::process::Signal::INT);
    let _ = perf.wait();
    let said = std::fs::read_to_string(&file).unwrap_or_default();
    let count = said.lines().find_map(|line| line.split(',').next()?.parse::<f64>().ok());
    Ok(count.map(|count| count / units))
}

/// Measures CPU time, system calls and, where the processor counts them, instructions of a request.
pub(super) fn measure(ground: &Ground, text: Template) -> Result<Part, Failure> {
    let nats = Nats::start(ground)?;
    let origin = origin(ground)?;
    let trial = ground.rounds("requests", &NAMES, |_, at| {
        let server = serve(ground, &origin, (at == 1).then_some(&nats))?;
        let own = server.own(&[]);
        let address = &server.address;
        saturate(address, ground.window / 10)?;
        let (cpu_us, answered) = process::cpu_us(&own, || saturate(address, ground.window))?;
        let window = ground.window / 2;
        // What is called without requests is subtracted, because strace makes requests much slower.
        let (idle, ()) = system_calls::counted(&own, &ground.folder, || {
            thread::sleep(window);
            Ok(())
        })?;
        let idle = system_calls::all(&idle) as f64;
        let (calls, counted) =
            system_calls::counted(&own, &ground.folder, || saturate(address, window))?;
        let instructions = instructions(ground, &own, || saturate(address, window))?;
        server.stop()?;
        Ok(json!({
            "cpu_us": cpu_us / answered, "calls": (system_calls::all(&calls) as f64 - idle) / counted,
            "idle": idle / window.as_secs_f64(), "instructions": instructions,
        }))
    })?;
    origin.stop()?;
    nats.stop()?;
    const COLUMNS: [&str; 4] = ["cpu_us", "instructions", "calls", "idle"];
    let line = |name: &str| {
        let cells = COLUMNS.map(|what| trial.of(name, what).shown());
        row(&[&name, &cells[0], &cells[1], &cells[2], &cells[3]])
    };
    let ratios = COLUMNS.map(|what| trial.ratio(what, NAMES[1], NAMES[0]).shown());
    let ratios = row(&[&"ratio", &ratios[0], &ratios[1], &ratios[2], &""]);
    let rows = [NAMES.map(line).concat(), ratios].concat();
    let values: [(&str, &dyn std::fmt::Display); 2] =
        [("connections", &CONNECTIONS), ("rows", &rows)];
    Ok(Part { values: trial.to_json(), ..Part::text(text.fill("requests", &values)) })
}
