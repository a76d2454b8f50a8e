//! Limits of what passes between the daemon and its keeper.

use std::time::Duration;

/// The longest command that can be handed to the keeper: program, arguments, directory, variables, the
/// names of variables that are withheld, and four bytes for the length of each.
pub const COMMAND_BYTES_MAX: usize = 128 * 1024;

/// How long a keeper may take to report itself, and a guard to end after its keeper.
pub const KEEPER_START_MAX: Duration = Duration::from_secs(10);
