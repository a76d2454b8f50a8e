//! Finds programs that a configuration names and that do not exist.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use settings::{Configuration, Probe, Program, Remark};

/// Where programs are searched if `PATH` is not set, as when they are started.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the reasons why programs could not be started, each at the option that names the program.
#[must_use]
pub fn programs(configuration: &Configuration) -> Vec<Remark> {
    let mut missing = Vec::new();
    for pool in &configuration.pools {
        let program = pool.program();
        let mut look = |command: &[String], path: &[&str]| {
            if let Some(message) = command.first().and_then(|name| start_error(name, program)) {
                let path = [&["pool", &pool.name], path].concat();
                let path = path.into_iter().map(str::to_owned).collect();
                missing.push(Remark { path, message });
            }
        };
        if let Some(program) = program {
            look(&program.command, &["program"]);
        }
        let check = pool.balancing.health_check.check.as_ref();
        if let Some(Probe::Program { command, .. }) = check.map(|check| &check.probe) {
            look(command, &["health_check", "command"]);
        }
    }
    missing
}

/// Returns why a program cannot be started, with the working directory and the variables of `program` if it is given.
fn start_error(name: &str, program: Option<&Program>) -> Option<String> {
    let variables = program.map(|program| program.env.as_slice()).unwrap_or_default();
    let own = variables.iter().find(|(variable, _)| variable == "PATH");
    let path = own.map(|(_, value)| value.clone()).or_else(|| std::env::var("PATH").ok());
    let path = path.unwrap_or_else(|| PATH_DEFAULT.to_owned());
    let cwd = program.and_then(|program| program.cwd.as_deref()).unwrap_or_else(|| Path::new("."));
    let why = if name.contains('/') {
        let file = cwd.join(name);
        match file.metadata() {
            Ok(data) if data.is_dir() => format!("program `{name}` is a directory"),
            Ok(data) if data.permissions().mode() & 0o111 == 0 => {
                format!("program `{name}` may not be executed: chmod +x is missing")
            }
            Ok(_) => return None,
            Err(error) => format!("program `{name}` is not there: {error}"),
        }
    } else if path.split(':').any(|folder| is_program(&Path::new(folder).join(name))) {
        return None;
    } else {
        format!("program `{name}` was not found in any directory of PATH={path}")
    };
    let mut words = name.split_whitespace();
    Some(match (words.next(), words.next()) {
        (Some(first), Some(_)) => format!(
            "{why}. `{name}` is one word: write the program and each argument as a word of its own, \
             without quotes around all of them (`{first}` is then the program)"
        ),
        _ => why,
    })
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
