//! Messages of PostgreSQL that may cite values that a client did not send.

use crate::withheld::WITHHELD;

/// Whether a message contains only values that the client sent. Any other message may cite values of other rows and
/// tables, which functions, rules, views and policies read. `in_text`: the error is at a position in the text of the
/// statement. The text that a function raises is chosen by the operator and not checked here.
#[must_use]
pub fn postgres_text_is_for_clients(
    state: &str,
    message: &str,
    context: Option<&str>,
    in_text: bool,
) -> bool {
    if is_plain(state) {
        return true;
    }
    match context {
        Some(context) => is_of_a_parameter(context),
        None => in_text || cites_nothing(state, message),
    }
}

/// Whether the server was parsing a parameter. It does so before it runs the statement, so it had read no other value.
/// The innermost context comes first: the context of a function that a domain calls precedes this one. Messages in
/// another language than English prove nothing.
fn is_of_a_parameter(context: &str) -> bool {
    let outer = match context.split_once('\n') {
        Some((inner, outer)) if inner.starts_with("JSON data, line ") => outer,
        _ => context,
    };
    outer.starts_with("unnamed portal parameter $")
}

/// Whether the messages of this state contain only names of tables, columns and constraints, also inside functions:
/// connections, constraints, transactions, conflicts, check options, resources, limits of the server, locks,
/// cancellation, and errors that a function raises.
fn is_plain(state: &str) -> bool {
    // `dblink` cites the name of a connection, which may be any value.
    let is_of_class = matches!(
        state.get(..2),
        Some("08" | "23" | "25" | "40" | "44" | "53" | "54" | "55" | "57" | "P0")
    );
    is_of_class && state != "08003"
}

/// Whether the message outside a function contains no value, in any language: text that is too long for its type, NULL,
/// a division by zero, a number out of the range of a type, a subquery of several rows, and a missing right to a table.
fn cites_nothing(state: &str, message: &str) -> bool {
    matches!(state, "21000" | "22001" | "22004" | "22012" | "42501")
        || state == "22003"
            && !message.contains(|letter: char| letter.is_ascii_digit() || letter == '"')
}

/// Returns what clients receive in place of a message that may cite values.
#[must_use]
pub fn postgres_text_instead(state: &str, context: Option<&str>) -> &'static str {
    match (state.starts_with("22"), context) {
        (true, None) => "invalid data within the statement",
        (true, Some(_)) => "invalid data within a function of the database",
        (false, None) => WITHHELD,
        (false, Some(_)) => "an error within a function of the database",
    }
}
