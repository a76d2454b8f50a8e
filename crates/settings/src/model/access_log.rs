//! The access log: its target and the format of its lines.

use std::path::PathBuf;

pub use exchange::{LogFormat, LogPiece, LogValue};

use crate::nearest::nearest;
use crate::options::{Group, Value, options, read_as, settings};
use crate::quantities::Bad;

options! {
    /// The access log (`[access_log]`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AccessLog of Any reload Restart {
        /// Target of the access log: `file:PATH`, `stdout` or `stderr`. SIGHUP reopens the file. The file must not
        /// belong to another user if the daemon runs as root or every user can write to its directory.
        to: LogTarget as path = required;
        /// The format of its lines.
        format: LogFormat => format {
            /// Format of a line: `json`, `combined`, or a template with placeholders such as `{client}`.
            format: String as template = "json";
        };
        /// Names of the HTTP request fields that are kept for the log, in lower case. No other field is kept.
        fields: Vec<String> => fields {
            /// HTTP request fields that `json` shows. No other field is kept, so a secret is logged only if its field
            /// is named here.
            fields: Vec<String> as names;
        };
    }
}

/// The target of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// A file, to which lines are appended. It is created if it does not exist.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

settings! {
    LogTarget, read_as::Text:
        Some(Value::Text(text)) => log_target(text).expect("the checks have read it once");
}

fn format(group: &Group) -> LogFormat {
    read(group).0
}

fn fields(group: &Group) -> Vec<String> {
    read(group).1
}

/// Returns the format, and the fields that it or `fields` names.
fn read(group: &Group) -> (LogFormat, Vec<String>) {
    let mut fields = group.texts("fields").iter().map(|name| name.to_ascii_lowercase()).collect();
    let format = group.text("format").expect("a format has a default");
    let format = log_format(format, &mut fields).expect("the checks have read it once");
    (format, fields)
}

/// The prefix of the name of a request field in a template.
const FIELD: &str = "field:";

/// Parses `file:PATH`, `stdout` or `stderr`.
pub(crate) fn log_target(text: &str) -> Result<LogTarget, Bad> {
    match text {
        "stdout" => Ok(LogTarget::Stdout),
        "stderr" => Ok(LogTarget::Stderr),
        _ => match text.strip_prefix("file:") {
            Some(path) if !path.is_empty() => Ok(LogTarget::File(path.into())),
            _ => Err(Bad::because("is no place for a log")
                .suggestion("write \"file:access.log\", \"stdout\" or \"stderr\"")),
        },
    }
}

/// Parses `json`, `combined`, or a template. Fields that a template names are added to `fields`.
pub(crate) fn log_format(text: &str, fields: &mut Vec<String>) -> Result<LogFormat, Bad> {
    match text {
        "json" => return Ok(LogFormat::Json),
        "combined" => {
            // The two fields that the format shows are placed first.
            fields.retain(|name| !COMBINED.contains(&name.as_str()));
            fields.splice(0..0, COMBINED.map(str::to_owned));
            return Ok(LogFormat::Combined);
        }
        _ if !text.contains('{') => {
            return Err(Bad::because("is no format").suggestion(
                "write \"json\", \"combined\", or a template like \"{client} {status}\"",
            ));
        }
        _ => {}
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else {
            return Err(Bad::because("has a `{` that is never closed"));
        };
        if !before.is_empty() {
            pieces.push(LogPiece::Text(before.to_owned()));
        }
        pieces.push(piece(name, fields)?);
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(LogPiece::Text(rest.to_owned()));
    }
    Ok(LogFormat::Template(pieces))
}

/// Fields that the combined format shows, in their order.
const COMBINED: [&str; 2] = ["referer", "user-agent"];

fn piece(name: &str, fields: &mut Vec<String>) -> Result<LogPiece, Bad> {
    if let Some(field) = name.strip_prefix(FIELD) {
        let field = field.to_ascii_lowercase();
        let known = fields.iter().position(|other| *other == field);
        return Ok(LogPiece::Field(known.unwrap_or_else(|| {
            fields.push(field);
            fields.len() - 1
        })));
    }
    let words = || LogValue::ALL.iter().map(|value| value.as_str());
    match LogValue::ALL.iter().find(|value| value.as_str() == name) {
        Some(value) => Ok(LogPiece::Value(*value)),
        None => {
            let bad = Bad::because(format!("names `{{{name}}}`, which no request has"));
            Err(match nearest(name, words()) {
                Some(nearest) => bad.suggestion(format!("write `{{{nearest}}}`")),
                None => {
                    let words: Vec<&str> = words().collect();
                    bad.suggestion(format!("use `{{field:NAME}}` or one of {}", words.join(", ")))
                }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_read_into_its_pieces_and_names_its_fields() {
        let mut fields = vec!["host".to_owned()];
        let read = log_format("a {client}{field:Host} {field:user-agent}!", &mut fields).unwrap();
        let text = |text: &str| LogPiece::Text(text.into());
        let pieces = vec![
            text("a "),
            LogPiece::Value(LogValue::Client),
            LogPiece::Field(0),
            text(" "),
            LogPiece::Field(1),
            text("!"),
        ];
        assert_eq!(read, LogFormat::Template(pieces));
        assert_eq!(fields, ["host", "user-agent"]);
    }

    #[test]
    fn the_combined_format_brings_its_fields() {
        let mut fields = vec!["host".to_owned(), "referer".to_owned()];
        assert_eq!(log_format("combined", &mut fields).unwrap(), LogFormat::Combined);
        assert_eq!(fields, ["referer", "user-agent", "host"]);
    }
}
