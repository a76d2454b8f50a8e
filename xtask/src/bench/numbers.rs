//! Numbers that programs print.

use crate::shell::{self, Failure};
use serde_json::Value;
use std::process::Command;

/// Runs a program that prints one JSON object.
pub(super) fn object(command: Command) -> Result<Value, Failure> {
    let shown = shell::show(&command);
    let said = shell::output(command)?;
    serde_json::from_str(said.trim()).map_err(Failure::at(format!("{shown}: {said}")))
}

/// Returns a number of such an object.
pub(super) fn number(object: &Value, key: &str) -> Result<f64, Failure> {
    object[key].as_f64().ok_or_else(|| Failure::new(format!("no `{key}` in {object}")))
}

/// Runs a program whose last line ends with its number.
pub(super) fn last(command: Command) -> Result<f64, Failure> {
    let shown = shell::show(&command);
    let said = shell::output(command)?;
    last_of(&said).ok_or_else(|| Failure::new(format!("{shown}: no number in {said:?}")))
}

/// Parses the last number of the last line; words may follow it, such as a unit.
fn last_of(said: &str) -> Option<f64> {
    said.lines().last()?.split_whitespace().rev().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_gives_its_number() {
        let said = "ring 1: 10 programs in 4.4 ms\n80000 messages over 80 programs in 1.517 s: 52740 \
                    messages/s, 18.96 us each\n";
        assert_eq!(last_of(said), Some(18.96));
        assert_eq!(last_of("1\n2.5\n"), Some(2.5));
        assert_eq!(last_of("none\n"), None);
    }
}
