//! Writes the daemon's log in such a way that no text in an event can look like another event.
//!
//! Events contain texts of programs, clients, servers and databases. A line end within an event becomes the start of a
//! continuation line, which begins with `  | `. Other control characters and invisible characters (such as those that
//! change the direction of text) are escaped as `\\u{1b}`. So a program or a terminal that reads the log gets only
//! lines of the daemon. An event has a maximum size. Values of variables that the configuration uses for options are
//! replaced by stars, because any of them may be a secret.

mod queue;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{PoisonError, RwLock};

use exchange::is_hidden;
use settings::Configuration;

pub use queue::{LogQueue, LogThread, start};

/// Maximum size of an event, in bytes. Configuration errors have several lines. Foreign texts are limited where they
/// are logged.
const EVENT_MAX: usize = 64 << 10;
/// Minimum length in bytes of a hidden value. Shorter values would match by chance in unrelated texts.
const HIDDEN_MIN: usize = 8;
/// The beginning of a continuation line.
const CONTINUATION: &str = "\n  | ";
/// The end of a truncated event.
const CUT: &str = " … (cut)";

/// The values that are removed from all events.
static HIDDEN: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// Hides the values of the variables that options of a configuration use, in all following events and errors. Secrets are not
/// values of options.
pub fn hide(configuration: &Configuration) {
    let values = configuration.variables.iter().filter_map(|name| std::env::var(name).ok());
    let values = values.filter(|value| value.len() >= HIDDEN_MIN);
    HIDDEN.write().unwrap_or_else(PoisonError::into_inner).extend(values);
}

/// Returns the text with all hidden values replaced.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    mask(text, &HIDDEN.read().unwrap_or_else(PoisonError::into_inner))
}

/// Prints a line to standard error. Errors are ignored, because there is no other place for them.
pub fn print(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn mask<'a>(text: &'a str, hidden: &BTreeSet<String>) -> Cow<'a, str> {
    let mut masked = Cow::Borrowed(text);
    // A value may contain another one.
    let mut longest_first: Vec<&String> = hidden.iter().collect();
    longest_first.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in longest_first {
        if masked.contains(value.as_str()) {
            masked = Cow::Owned(masked.replace(value.as_str(), "****"));
        }
    }
    masked
}

/// Writes events to `inner`. Each event is passed whole.
#[derive(Debug)]
pub struct ErrorLog<W> {
    inner: W,
    /// Whether the formatter colours its events. Then escape sequences are from the formatter, which escapes those in
    /// texts itself.
    coloured: bool,
}

impl<W: Write> ErrorLog<W> {
    /// Returns a writer of events. `coloured`: their formatter uses escape sequences.
    pub const fn new(inner: W, coloured: bool) -> Self {
        Self { inner, coloured }
    }
}

impl<W: Write> Write for ErrorLog<W> {
    /// Writes one event, in one call of the inner writer.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.inner.write_all(printable(event, self.coloured).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn printable(event: &[u8], coloured: bool) -> String {
    let text = String::from_utf8_lossy(event);
    let text = masked(&text);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if line.len() >= EVENT_MAX {
            line.push_str(CUT);
            break;
        }
        match c {
            '\n' => line.push_str(CONTINUATION),
            '\t' => line.push(c),
            '\u{1b}' if coloured => line.push(c),
            c if is_hidden(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_an_event_cannot_end_its_line_or_speak_to_a_terminal() {
        let forged =
            "INFO stderr: a\r2026 ERROR b\x1b[2K\x1b[31m\x07\u{9b}c\0\u{202e}d\u{2028}e\tf\n";
        let line = printable(forged.as_bytes(), false);
        let expected = "INFO stderr: a\\u{d}2026 ERROR b\\u{1b}[2K\\u{1b}[31m\\u{7}\\u{9b}c\\u{0}\\u{202e}d\\u{2028}e\tf\n";
        assert_eq!(line, expected);
        assert_eq!(printable(b"one\n2026 ERROR two\n\n", false), "one\n  | 2026 ERROR two\n  | \n");
        assert_eq!(printable("größe\n".as_bytes(), false), "größe\n");
        let hidden = "\u{61c}\u{feff}\u{2066}\u{e0041}\n";
        let escaped = "\\u{61c}\\u{feff}\\u{2066}\\u{e0041}\n";
        assert_eq!(printable(hidden.as_bytes(), false), escaped);
        assert_eq!(printable(b"\xff\n", false), "\u{fffd}\n");
        assert_eq!(printable(b"\x1b[32mINFO\x1b[0m \x07\n", true), "\x1b[32mINFO\x1b[0m \\u{7}\n");
    }

    #[test]
    fn an_event_does_not_show_the_values_of_variables() {
        let hidden = BTreeSet::from(["/srv/HUNTER2".to_owned()]);
        let masked = mask("cannot enter `/srv/HUNTER2`: no such file", &hidden);
        assert_eq!(masked, "cannot enter `****`: no such file");
        assert!(matches!(mask("nothing of it", &hidden), Cow::Borrowed("nothing of it")));
        let nested = BTreeSet::from(["/srv/dir1".to_owned(), "/srv/dir1/HUNTER2/a".to_owned()]);
        assert_eq!(mask("`/srv/dir1/HUNTER2/a` `/srv/dir1/b`", &nested), "`****` `****/b`");
        // The `PATH` of the test is long enough, and events of other tests do not contain it.
        let text = "[pool.p]\nprogram = [\"cat\"]\ncwd = \"env:PATH\"\n[listener.l]\nlisten = \":1\"\npool = \"p\"";
        let source = settings::Source { name: "test".into(), text: text.to_owned() };
        let environment = |name: &str| std::env::var(name).ok();
        hide(&settings::parse(&source, &environment).unwrap());
        let path = std::env::var("PATH").unwrap();
        assert_eq!(printable(format!("a {path} b").as_bytes(), false), "a **** b\n");
    }

    #[test]
    fn an_event_has_a_maximum_size() {
        let line = printable(&b"x".repeat(10 * EVENT_MAX), false);
        assert!(line.len() < EVENT_MAX + 100 && line.ends_with("(cut)\n"), "{}", line.len());
    }

    /// Uses the formatter of the daemon.
    #[test]
    fn events_are_one_line_each_in_colour_too() {
        use std::sync::{Arc, Mutex};

        #[derive(Clone, Default)]
        struct Kept(Arc<Mutex<Vec<u8>>>);
        impl Write for Kept {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for coloured in [false, true] {
            let kept = Kept::default();
            let to = kept.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_writer(move || ErrorLog::new(to.clone(), coloured))
                .with_ansi(coloured)
                .with_target(false)
                .finish();
            tracing::subscriber::with_default(subscriber, || {
                let text = "a\nERROR forged\x1b]0;title\x07\x1b[1A\r";
                tracing::info!(worker = text, "stderr: {text}");
                tracing::info!("next");
            });
            let log = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            let own = log.lines().filter(|line| !line.starts_with("  | "));
            assert_eq!(own.count(), 2, "{log:?}");
            assert!(
                !log.contains(['\r', '\x07'])
                    && !log.contains("\x1b]0")
                    && !log.contains("\x1b[1A"),
                "{log:?}"
            );
        }
    }
}
