//! Limits of the communication between the daemon and the supervisor.

use std::time::Duration;

/// The maximum size of a command for the supervisor, in bytes: program, arguments, directory, variables, names of
/// withheld variables, and four bytes for the length of each.
pub const COMMAND_BYTES_MAX: usize = 128 * 1024;

/// The maximum time in which a new supervisor must report, and in which a watchdog must end after its supervisor.
pub const SUPERVISOR_START_MAX: Duration = Duration::from_secs(10);
