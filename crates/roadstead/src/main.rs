//! The `roadstead` program.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use roadstead::cli::{Cli, Command, Page};
#[cfg(all(feature = "admin", feature = "databases"))]
use roadstead::demo;
use roadstead::error_log::{self, ErrorLog};
#[cfg(feature = "admin")]
use roadstead::{ask, ctl, running};
#[cfg(feature = "databases")]
use roadstead::{connect, ledger};
use roadstead::{daemon, doctor, exposure, files, load, missing, outcomes, server_sockets, worker};
use settings::{Configuration, Diagnostics};
use tracing_subscriber::EnvFilter;

/// The exit code for an error in the configuration or the command line.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    // This must be the first call, while the process has one thread. In the supervisor process it never returns.
    if needs_supervisor()
        && let Err(error) = spawn::init()
    {
        print_error(&error);
        return ExitCode::FAILURE;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return told(&error),
    };
    match cli.command {
        Command::Serve { file } => serve_file(&file),
        Command::Check {
            file,
            #[cfg(feature = "databases")]
            connect,
            #[cfg(feature = "admin")]
            admin,
        } => {
            #[cfg(not(feature = "databases"))]
            let connect = false;
            #[cfg(not(feature = "admin"))]
            let admin: Option<String> = None;
            check(&file, connect, admin.as_deref())
        }
        Command::Run(arguments) => run(settings::from_flags(&arguments.flags())),
        #[cfg(feature = "admin")]
        Command::Ask { pool, line, admin } => ask::main(&admin, &pool, &line),
        #[cfg(feature = "admin")]
        Command::Ctl(arguments) => ctl::main(&arguments),
        Command::Load(arguments) => load::cli::main(&arguments),
        #[cfg(feature = "databases")]
        Command::Ledger(command) => ledger::main(&command),
        #[cfg(all(feature = "admin", feature = "databases"))]
        Command::Demo(arguments) => demo::main(&arguments),
        Command::Doctor(arguments) => doctor::main(&arguments),
        Command::Worker(arguments) => worker::main(&arguments),
        Command::Reference { page: Page::Reference } => print(&settings::reference()),
        Command::Reference { page: Page::Outcomes } => print(&outcomes::page()),
    }
}

/// Returns whether this process will start programs and needs a supervisor, or is a supervisor. A supervisor is started
/// without arguments.
fn needs_supervisor() -> bool {
    std::env::args_os()
        .nth(1)
        .is_none_or(|word| word == "serve" || word == "run" || word == "doctor")
}

/// Prints an error to standard error. It may contain arguments, so control characters are escaped.
fn print_error(error: &dyn std::fmt::Display) {
    let text = error.to_string();
    error_log::print(&format!("roadstead: {}", exchange::visible(&error_log::masked(&text))));
}

/// Returns whether an argument contains characters that a terminal would interpret.
fn has_hidden_arguments() -> bool {
    let mut arguments = std::env::args_os();
    arguments.any(|it| it.to_string_lossy().chars().any(exchange::is_hidden))
}

/// Prints a command-line error or the help. Adds a hint for the most frequent mistake, because clap's message is too
/// short.
fn told(error: &clap::Error) -> ExitCode {
    let shown = match has_hidden_arguments() {
        // The text is rendered without colours, because colours are escape sequences too.
        true => {
            let text = error.render().to_string();
            std::io::stderr().write_all(exchange::visible(&text).as_bytes())
        }
        false => error.print(),
    };
    if error.use_stderr() && lacks_dashes() {
        eprintln!("put `--` before the program: roadstead run -- PROGRAM ARGUMENT …");
    }
    match (shown, error.use_stderr()) {
        (Ok(()), false) => ExitCode::SUCCESS,
        (Ok(()), true) => ExitCode::from(EXIT_USAGE),
        (Err(_), _) => ExitCode::FAILURE,
    }
}

/// Returns whether a program follows `run` or `doctor` without `--`.
fn lacks_dashes() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().is_some_and(|word| word == "run" || word == "doctor");
    command && arguments.all(|word| word != "--")
}

/// Serves one program. If the program does not exist, this is reported immediately instead of retrying.
fn run(configuration: Result<Configuration, Diagnostics>) -> ExitCode {
    let missing = configuration.iter().flat_map(missing::programs).next();
    if let Some(settings::Remark { message, .. }) = missing {
        print_error(&message);
        return ExitCode::from(EXIT_USAGE);
    }
    serve(configuration, None)
}

fn serve_file(file: &Path) -> ExitCode {
    let source = match settings::source(file) {
        Ok(source) => source,
        Err(diagnostics) => return serve(Err(diagnostics), None),
    };
    let configuration = settings::parse(&source, &|variable| std::env::var(variable).ok());
    serve(configuration, Some((file, &source)))
}

fn serve(
    configuration: Result<Configuration, Diagnostics>,
    file: Option<(&Path, &settings::Sources)>,
) -> ExitCode {
    spawn::return_large_blocks();
    // The client of NATS would repeat at each attempt to connect what the cluster reports once.
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info,async_nats=off"));
    let coloured = std::io::stderr().is_terminal();
    let (queue, log) = match error_log::start(std::io::stderr()) {
        Ok(started) => started,
        Err(error) => {
            print_error(&format!("no thread can be started for the log: {error}"));
            return ExitCode::FAILURE;
        }
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || ErrorLog::new(queue.clone(), coloured))
        // It would report errors of standard error to standard error.
        .log_internal_errors(false)
        .with_ansi(coloured)
        .with_target(false)
        .init();
    let configuration = match configuration {
        Ok(configuration) => configuration,
        Err(diagnostics) => return refused(&diagnostics),
    };
    let (path, source) = file.unzip();
    let served = daemon::serve(configuration, path);
    log.finish();
    match served {
        Ok(code) => code,
        Err(error) => {
            match (error.remark(), source) {
                (Some(remark), Some(source)) => {
                    let placed = settings::placed(source, &[remark]).to_string();
                    error_log::print(&error_log::masked(&placed));
                }
                _ => print_error(&error),
            }
            ExitCode::FAILURE
        }
    }
}

fn check(file: &Path, connected: bool, admin: Option<&str>) -> ExitCode {
    // The file is read only once: a pipe has no more data, and a file may change between two reads.
    let checked = settings::source(file).and_then(|source| {
        let configuration = settings::parse(&source, &|variable| std::env::var(variable).ok())?;
        error_log::hide(&configuration);
        files::check(&source, &configuration)?;
        let database_remarks = database_remarks(&source, &configuration, connected)?;
        Ok((source, configuration, database_remarks))
    });
    match checked {
        Ok((source, configuration, database_remarks)) => {
            let missing = missing::programs(&configuration);
            let as_root = exposure::checks_as_root(&configuration);
            let unintended = settings::warnings(&configuration);
            let sockets = server_sockets::refused(&configuration, connected);
            let remarks = [unintended, missing, as_root, sockets, database_remarks];
            let remarks = remarks.concat();
            warn(&source, &remarks);
            let summary = format!("{}: {}, no errors\n", file.display(), configuration.summary());
            match compared(file, &configuration, admin) {
                Ok(None) => print(&summary),
                Ok(Some(told)) => print(&format!("{summary}{told}\n")),
                Err(error) => {
                    print(&summary);
                    print_error(&error);
                    ExitCode::FAILURE
                }
            }
        }
        Err(diagnostics) => refused(&diagnostics),
    }
}

/// Returns the remarks of the databases about the configuration, if connecting was requested.
#[cfg(feature = "databases")]
fn database_remarks(
    source: &settings::Sources,
    configuration: &Configuration,
    connected: bool,
) -> Result<Vec<settings::Remark>, Diagnostics> {
    if connected { connect::check(source, configuration) } else { Ok(Vec::new()) }
}

#[cfg(not(feature = "databases"))]
fn database_remarks(
    _: &settings::Sources,
    _: &Configuration,
    _: bool,
) -> Result<Vec<settings::Remark>, Diagnostics> {
    Ok(Vec::new())
}

/// Returns what a reload of the running daemon would do.
#[cfg(feature = "admin")]
fn compared(
    file: &Path,
    configuration: &Configuration,
    admin: Option<&str>,
) -> Result<Option<String>, String> {
    running::compare(file, configuration, admin)
}

#[cfg(not(feature = "admin"))]
fn compared(_: &Path, _: &Configuration, _: Option<&str>) -> Result<Option<String>, String> {
    Ok(None)
}

/// Prints warnings about settings that are valid but probably not intended, each with its location.
fn warn(source: &settings::Sources, remarks: &[settings::Remark]) {
    for remark in settings::placed(source, remarks).iter() {
        let message = error_log::masked(&remark.message);
        error_log::print(&format!("warning: {}:{}: {message}", remark.file, remark.line));
    }
}

fn refused(diagnostics: &Diagnostics) -> ExitCode {
    error_log::print(&error_log::masked(&diagnostics.to_string()));
    ExitCode::from(EXIT_USAGE)
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
