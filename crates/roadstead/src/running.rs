//! Asks a running daemon how it would reload a configuration file that was checked.

use std::path::Path;
use std::time::Duration;

use exchange::visible;
use serde_json::Value;
use settings::{Address, Configuration};

use crate::ask::{self, AskError, Token};

/// How long the daemon may take for the comparison.
const WAIT: Duration = Duration::from_secs(5);

/// Asks the daemon at the admin address of a configuration, or at `admin`, whether it can reload the file. Returns a
/// message for the operator, or `None` if no daemon answers.
///
/// # Errors
/// `admin` was given, and no daemon answers or the daemon does not report the result.
pub fn compare(
    file: &Path,
    configuration: &Configuration,
    admin: Option<&str>,
) -> Result<Option<String>, String> {
    let configured = configuration.admin.as_ref().filter(|admin| is_known(&admin.listen));
    let listen = configured.map(|admin| admin.listen.to_string());
    let Some(address) = admin.map(str::to_owned).or(listen) else { return Ok(None) };
    // The file may belong to another user. Its secrets are not sent to an address in the same file, unless this user or
    // root listens there. For a Unix socket the credentials of the user are sufficient.
    let secret = configured.and_then(|admin| admin.token.as_ref());
    let secret = secret.filter(|_| !address.starts_with("unix:"));
    if admin.is_none() && secret.is_some() && !configured.is_some_and(|it| is_local(&it.listen)) {
        return Ok(Some(format!(
            "a running daemon at {address} was not asked: the token is not sent to an address of the file; \
             use --admin {address}"
        )));
    }
    let token = match secret.map(Token::read).transpose() {
        Ok(token) => token,
        Err(why) => {
            let text = format!("the running daemon ({address}) was not asked: its token: {why}");
            return if admin.is_some() { Err(text) } else { Ok(Some(text)) };
        }
    };
    let said = match ask::exchange_within(WAIT, &address, (token, None), ("GET", "/reload"), b"") {
        Ok(said) => said,
        Err(error) if admin.is_some() => return Err(error.to_string()),
        Err(error @ AskError::UntrustedUser(..)) => return Ok(Some(error.to_string())),
        Err(_) => return Ok(None),
    };
    let text = String::from_utf8_lossy(&said.body).trim_end().to_owned();
    if said.status != 200 {
        let unknown = format!(
            "the running daemon ({address}) did not describe the effect of a reload:{}",
            quoted(&text)
        );
        return if admin.is_some() { Err(unknown) } else { Ok(Some(unknown)) };
    }
    let answer: Value = serde_json::from_str(&text)
        .map_err(|_| format!("{address} is not the admin address of a roadstead"))?;
    Ok(Some(told(file, &address, &answer)))
}

/// Returns whether a daemon can be reached at this configured address.
fn is_known(listen: &Address) -> bool {
    match listen {
        Address::Internet(address) => address.port() != 0,
        Address::Unix(_) => true,
        Address::Named(_) | Address::Inherited(_) => false,
    }
}

/// Returns whether only this machine can answer at the address.
fn is_local(listen: &Address) -> bool {
    match listen {
        Address::Internet(address) => {
            let ip = address.ip().to_canonical();
            ip.is_loopback() || ip.is_unspecified()
        }
        Address::Unix(_) => true,
        Address::Named(_) | Address::Inherited(_) => false,
    }
}

/// Returns the answer of the daemon as a message for the operator.
fn told(file: &Path, address: &str, answer: &Value) -> String {
    let daemon = format!("the running daemon ({address})");
    let serves = answer["file"].as_str().unwrap_or_default();
    let asked = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if asked != Path::new(serves) {
        return format!("{daemon} serves another file:{}", quoted(serves));
    }
    let messages: Vec<&str> =
        answer["messages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let messages = quoted(&messages.join("\n"));
    match (messages.trim().is_empty(), answer["needs_restart"].as_bool()) {
        (true, _) => format!("a reload of {daemon} can take it over"),
        (false, Some(true)) => {
            format!("a reload of {daemon} would be rejected; restart it for:{messages}")
        }
        (false, _) => format!("a reload of {daemon} would be rejected:{messages}"),
    }
}

/// Returns a text of the daemon, to be appended to a line. Another user may have sent it: control characters and
/// invisible characters are escaped, and each of several lines is indented, so that none looks like one of this command.
fn quoted(text: &str) -> String {
    let text = visible(text.trim_end());
    match text.lines().count() {
        0 | 1 => format!(" {text}"),
        _ => text.lines().map(|line| format!("\n  {line}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_texts_of_another_daemon_are_escaped() {
        let folder = tempfile::tempdir().expect("a folder");
        let text =
            "[listener.main]\nlisten = \":7000\"\npool = \"a\"\n[pool.a]\nprogram = [\"cat\"]\n";
        let source = settings::Source { name: "x.toml".to_owned(), text: text.to_owned() };
        let configuration = settings::parse(&source, &|_| None).expect("it is right");
        let file = folder.path().join("x.toml");
        std::fs::write(&file, text).expect("it is written");
        let here = serde_json::json!(std::fs::canonicalize(&file).expect("it exists"));
        for (status, body) in [
            ("200 OK", r#"{"file":"/\u001b[2J"}"#.to_owned()),
            (
                "200 OK",
                format!(r#"{{"file":{here},"needs_restart":true,"messages":["\u001b[2J"]}}"#),
            ),
            ("200 OK", format!(r#"{{"file":{here},"messages":["\u202e"]}}"#)),
            ("500 No", "\u{1b}[2J\nx.toml: 9 pools, no errors\n".to_owned()),
            ("200 OK", r#"{"file":"/a\nx.toml: 9 pools, no errors\u001b"}"#.to_owned()),
            ("200 OK", format!(r#"{{"file":{here},"messages":["a\nx.toml: 9 pools\u001b","b"]}}"#)),
        ] {
            let path = folder.path().join("admin");
            let listener = UnixListener::bind(&path).expect("a socket");
            let reply = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let answers = std::thread::spawn(move || {
                let (mut client, _) = listener.accept().expect("a client");
                let mut head = [0; 1024];
                let _ = client.read(&mut head);
                let _ = client.write_all(reply.as_bytes());
            });
            let address = format!("unix:{}", path.display());
            let told = compare(&file, &configuration, Some(&address));
            answers.join().expect("it answered");
            std::fs::remove_file(&path).expect("it is removed");
            let told = told.map_or_else(|error| error, Option::unwrap_or_default);
            assert!(told.contains("\\u001b") || told.contains("\\u202e"), "{told}");
            assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told:?}");
            let is_marked = |line: &str| line.starts_with("  ");
            assert!(told.lines().skip(1).all(is_marked), "{told:?}");
        }
    }
}
