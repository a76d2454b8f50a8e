//! Why a pool has no program: how the last one ended, or why it could not be started.

use std::time::Duration;

use settings::ExitMessage;
use spawn::StartError;

use super::fault::last_line;
use flow::backend_event::Trouble;

/// Describes a program that could not be started.
pub(super) fn from_start(words: ExitMessage, error: &StartError) -> Trouble {
    Trouble { kind: shown(words, error.kind()), detail: error.to_string() }
}

/// Describes a program that ended: how long it ran, its exit status or why it was killed, and the end of its output.
pub(super) fn from_exit(
    words: ExitMessage,
    ran: Option<Duration>,
    (exit, killed_for): (&str, Option<&'static str>),
    tail: &str,
) -> Trouble {
    let after = ran.map(|ran| format!(" after {}", time(ran))).unwrap_or_default();
    let kind = match killed_for {
        Some(why) => format!("the program was killed{after} ({why})"),
        None => format!("the program ended{after} ({exit})"),
    };
    let detail = match last_line(tail) {
        Some(line) => format!("{kind}; it said last: {line}"),
        None => kind.clone(),
    };
    Trouble { kind: shown(words, &kind), detail }
}

fn shown(words: ExitMessage, kind: &str) -> String {
    match words {
        ExitMessage::Off => String::new(),
        ExitMessage::Auto | ExitMessage::Line | ExitMessage::Tail => kind.to_owned(),
    }
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_the_kind_and_operators_the_rest() {
        let path = Some("/home/me/bin".to_owned());
        let missing = StartError::NotFound { program: "tool".to_owned(), path };
        let trouble = from_start(ExitMessage::Tail, &missing);
        assert_eq!(trouble.kind, "the program was not found");
        assert!(trouble.detail.contains("tool") && trouble.detail.contains("/home/me/bin"));
        let said = "connected\npassword is \u{1b}secret\n";
        let ran = Some(Duration::from_millis(20));
        let ended = from_exit(ExitMessage::Auto, ran, ("exit code 3", None), said);
        assert_eq!(ended.kind, "the program ended after 20 ms (exit code 3)");
        assert_eq!(
            ended.detail,
            r"the program ended after 20 ms (exit code 3); it said last: password is \u{1b}secret"
        );
        let ran = Some(Duration::from_secs(75));
        let late = from_exit(ExitMessage::Line, ran, ("signal 9", Some("deadline")), "");
        assert_eq!(late.kind, "the program was killed after 75 s (deadline)");
        assert_eq!(late.detail, late.kind);
        let silent = from_exit(ExitMessage::Off, None, ("exit code 3", None), said);
        assert_eq!(silent.kind, "");
        assert!(silent.detail.starts_with("the program ended (exit code 3); it said last: "));
    }
}
