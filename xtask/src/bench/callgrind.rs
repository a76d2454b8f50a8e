//! Instructions of a program outside the kernel, counted by callgrind.

use crate::shell::Failure;
use std::process::{Command, Stdio};

/// What a program executes in all until it ends by itself.
pub(super) fn whole_run(command: Command) -> Result<f64, Failure> {
    let mut counting = Command::new("valgrind");
    counting.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    counting.arg(command.get_program()).args(command.get_args());
    let output = counting
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::new(format!("valgrind: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = said.split("Collected : ").nth(1).and_then(|rest| rest.split_whitespace().next());
    count
        .filter(|_| output.status.success())
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| Failure::new(format!("callgrind counted nothing\n{said}")))
}
