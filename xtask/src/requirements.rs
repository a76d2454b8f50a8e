//! Tools of the system that tests and benchmarks need. Missing tools are installed if permitted, and otherwise
//! reported. A missing tool is a failure and never skips a test.

use crate::shell::{self, Failure};
use rustix::process::geteuid;
use std::path::Path;
use std::process::{Command, Stdio};

/// One tool, and its Debian package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirement {
    name: &'static str,
    package: &'static str,
    probe: Probe,
}

/// How a tool is detected.
#[derive(Clone, Copy, Debug)]
enum Probe {
    /// A program on the search path.
    Program,
    /// A program of PostgreSQL, which Debian installs outside the search path.
    Postgres,
    /// A Perl module that can be loaded.
    PerlModule,
    /// A C header.
    Header,
    /// OpenBSD's netcat: the traditional one has no `-N`.
    Netcat,
}

const fn program(name: &'static str, package: &'static str) -> Requirement {
    Requirement { name, package, probe: Probe::Program }
}

const fn perl_module(name: &'static str, package: &'static str) -> Requirement {
    Requirement { name, package, probe: Probe::PerlModule }
}

const POSTGRES: Requirement =
    Requirement { name: "postgres", package: "postgresql", probe: Probe::Postgres };

/// The tools for `cargo xtask test` and `faults`.
pub(crate) const TESTS: &[Requirement] = &[
    program("perl", "perl"),
    // Debian's smallest perl is installed without its core modules.
    perl_module("JSON::PP", "perl"),
    perl_module("DBD::SQLite", "libdbd-sqlite3-perl"),
    program("sqlite3", "sqlite3"),
    POSTGRES,
    program("psql", "postgresql-client"),
    program("mariadbd", "mariadb-server"),
    program("mariadb", "mariadb-client"),
    program("openssl", "openssl"),
    program("setpriv", "util-linux"),
    program("strace", "strace"),
    program("python3", "python3"),
    program("awk", "mawk"),
    program("cc", "gcc"),
    program("node", "nodejs"),
    program("npm", "npm"),
    program("nginx", "nginx-light"),
    program("apache2", "apache2-bin"),
    Requirement { name: "nc", package: "netcat-openbsd", probe: Probe::Netcat },
];

/// The tools for `cargo xtask bench main`.
pub(crate) const BENCH: &[Requirement] = &[
    program("perl", "perl"),
    perl_module("IO::Multiplex", "libio-multiplex-perl"),
    program("sqlite3", "sqlite3"),
    program("strace", "strace"),
    program("perf", "linux-perf"),
];

/// The tools for counting instructions.
pub(crate) const COUNTING: &[Requirement] = &[program("valgrind", "valgrind")];

/// The tools for `cargo xtask bench balance --only http`.
pub(crate) const BENCH_BALANCE: &[Requirement] = &[
    program("strace", "strace"),
    program("taskset", "util-linux"),
    program("valgrind", "valgrind"),
];

/// The tools for `cargo xtask bench balance --only trial`.
pub(crate) const BENCH_TRIAL: &[Requirement] =
    &[program("haproxy", "haproxy"), program("nginx", "nginx-light")];

/// The tools for `cargo xtask bench http`.
pub(crate) const BENCH_HTTP: &[Requirement] = &[
    program("haproxy", "haproxy"),
    program("nginx", "nginx-light"),
    program("strace", "strace"),
    program("taskset", "util-linux"),
    program("valgrind", "valgrind"),
];

/// The tools for `cargo xtask bench cluster`.
pub(crate) const BENCH_CLUSTER: &[Requirement] =
    &[program("haproxy", "haproxy"), program("strace", "strace"), program("perf", "linux-perf")];

/// The tools for `cargo xtask bench threads`.
pub(crate) const BENCH_THREADS: &[Requirement] =
    &[program("python3", "python3"), program("taskset", "util-linux"), program("strace", "strace")];

/// The tools for `cargo xtask bench ring`.
pub(crate) const BENCH_RING: &[Requirement] = &[
    program("erl", "erlang-base"),
    program("erlc", "erlang-base"),
    program("taskset", "util-linux"),
    program("perf", "linux-perf"),
];

/// The tools for `cargo xtask bench loop`.
pub(crate) const BENCH_LOOP: &[Requirement] = &[
    program("perl", "perl"),
    perl_module("IO::Multiplex", "libio-multiplex-perl"),
    program("strace", "strace"),
    program("cc", "gcc"),
    program("valgrind", "valgrind"),
    Requirement { name: "event2/event.h", package: "libevent-dev", probe: Probe::Header },
];

/// Checks that all tools exist, and installs missing ones. Returns a note about what was installed.
pub(crate) fn provide(list: &[Requirement]) -> Result<String, Failure> {
    let missing: Vec<Requirement> = list.iter().copied().filter(|one| !one.is_there()).collect();
    if missing.is_empty() {
        return Ok(format!("{} there", list.len()));
    }
    let packages = packages(&missing);
    if !geteuid().is_root() || !on_path("apt-get") {
        return Err(Failure::new(refusal(&missing, &packages)));
    }
    install(&packages)?;
    match missing.iter().find(|one| !one.is_there()) {
        None => Ok(format!("installed {}", packages.join(" "))),
        Some(still) => Err(Failure::new(format!(
            "{} is still missing after {} was installed",
            still.name, still.package
        ))),
    }
}

/// An npm package that tests run, with its version.
const MCP_SERVER: (&str, &str) = ("@modelcontextprotocol/server-memory", "2026.8.31");

/// Installs public programs that tests run and that no Debian package contains, under `target`.
pub(crate) fn provide_node(root: &Path) -> Result<String, Failure> {
    let (name, version) = MCP_SERVER;
    let folder = shell::folder(root.join("target/tools"))?;
    if folder.join("node_modules").join(name).join("package.json").exists() {
        return Ok(format!("{name} there"));
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix"])
        .arg(&folder)
        .arg(format!("{name}@{version}"));
    shell::run(npm).map(|_| format!("installed {name}")).map_err(|mut failure| {
        failure.output.push_str("\nnpm could not install what a test runs; is there a registry?");
        failure
    })
}

/// A Go module that tests run, with its version.
const NATS_SERVER: (&str, &str) = ("github.com/nats-io/nats-server/v2", "v2.14.9");

/// Installs the NATS server under `target`. Without Go, tests that need it report that they could not run.
pub(crate) fn provide_go(root: &Path) -> Result<String, Failure> {
    let (module, version) = NATS_SERVER;
    let folder = shell::folder(root.join("target/tools/bin"))?;
    if is_program(&folder.join("nats-server")) {
        return Ok("nats-server there".to_owned());
    }
    if !on_path("go") {
        return Ok("no nats-server, because there is no Go".to_owned());
    }
    let mut go = Command::new("go");
    go.env("GOBIN", &folder).arg("install").arg(format!("{module}@{version}"));
    shell::run(go).map(|_| "installed nats-server".to_owned()).map_err(|mut failure| {
        failure.output.push_str("\nGo could not install what tests run; is there a module proxy?");
        failure
    })
}

impl Requirement {
    fn is_there(self) -> bool {
        match self.probe {
            Probe::Program => on_path(self.name),
            Probe::Postgres => {
                let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
                let beside = |name: &str| {
                    let mut folders = versions.flatten().map(|it| it.path().join("bin").join(name));
                    folders.any(|path| is_program(&path))
                };
                on_path(self.name) || beside(self.name)
            }
            Probe::PerlModule => Command::new("perl")
                .args([&format!("-M{}", self.name), "-e", "1"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
            Probe::Header => Path::new("/usr/include").join(self.name).exists(),
            Probe::Netcat => Command::new(self.name).arg("-h").output().is_ok_and(|output| {
                [output.stdout, output.stderr]
                    .iter()
                    .any(|said| String::from_utf8_lossy(said).contains("OpenBSD"))
            }),
        }
    }
}

fn on_path(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_program(&folder.join(name)))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Returns the packages of the missing tools, each once, in the order of the list.
fn packages(missing: &[Requirement]) -> Vec<&'static str> {
    let mut packages = Vec::new();
    for one in missing {
        if !packages.contains(&one.package) {
            packages.push(one.package);
        }
    }
    packages
}

fn refusal(missing: &[Requirement], packages: &[&str]) -> String {
    let mut text = String::new();
    for one in missing {
        text.push_str(&format!("missing: {} (Debian package {})\n", one.name, one.package));
    }
    text.push_str(&format!(
        "install with: sudo apt-get install --no-install-recommends {}\n",
        packages.join(" ")
    ));
    text
}

fn install(packages: &[&str]) -> Result<(), Failure> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
        shell::run(command)
    };
    // If the package lists cannot be refreshed, the old ones may be sufficient. So the installation decides, and its
    // failure shows both outputs.
    let update = apt(&["update", "--quiet"]);
    let mut args = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    args.extend(packages);
    apt(&args).map(drop).map_err(|failure| match update {
        Ok(_) => failure,
        Err(update) => {
            Failure { output: format!("{}\n{}", update.output, failure.output), ..failure }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_not_there_is_seen() {
        assert!(program("sh", "dash").is_there());
        assert!(!program("no-such-tool-here", "nothing").is_there());
        assert!(!perl_module("No::Such::Module", "nothing").is_there());
    }

    #[test]
    fn a_refusal_names_every_tool_and_one_command() {
        let missing = [TESTS[0], TESTS[1], TESTS[3]];
        let packages = packages(&missing);
        assert_eq!(packages, ["perl", "sqlite3"]);
        let text = refusal(&missing, &packages);
        assert!(text.contains("missing: JSON::PP (Debian package perl)"), "{text}");
        assert!(text.ends_with("--no-install-recommends perl sqlite3\n"), "{text}");
    }
}
