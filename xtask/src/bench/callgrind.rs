//! Instructions of a program outside the kernel, counted by callgrind.

use crate::shell::Failure;
use std::process::{Command, Stdio};

/// What one more of something adds: the difference of two runs that do it so many times.
pub(super) fn of_one(
    [few, many]: [u32; 2],
    command: impl Fn(u32) -> Command,
) -> Result<f64, Failure> {
    Ok((whole_run(command(many))? - whole_run(command(few))?) / f64::from(many - few))
}

/// What a program executes in all until it ends by itself.
fn whole_run(command: Command) -> Result<f64, Failure> {
    let mut counting = Command::new("valgrind");
    counting.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    counting.arg(command.get_program()).args(command.get_args());
    let output = counting.stdin(Stdio::null()).output().map_err(Failure::at("valgrind"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = said.split("Collected : ").nth(1).and_then(|rest| rest.split_whitespace().next());
    count
        .filter(|_| output.status.success())
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| Failure::new(format!("callgrind counted nothing\n{said}")))
}
