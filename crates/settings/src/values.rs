//! Single values read from their texts.
//!
//! What it is: readers of durations, sizes, addresses and the like, and how such values are
//! written. What it knows: text. What it must never know: a tree, an option's name.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

mod host;

pub(crate) use host::server_address;

use crate::{Address, DatabaseHost, Key, Network, Processors, Secret, ServerTarget, Target};

/// The kernel's limit for the path of a Unix socket (`sun_path` is 108 bytes with its NUL).
const UNIX_PATH_MAX: usize = 107;

/// The longest name of a listener or a pool.
pub(crate) const NAME_LENGTH_MAX: usize = 64;

/// Why a text is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// What is wrong with it; follows the text in a sentence.
    pub(crate) why: String,
    /// What to write instead.
    pub(crate) mend: Option<String>,
}

impl Bad {
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), mend: None }
    }

    pub(crate) fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }
}

const TIMES: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// `500ms`, `2s`, `5m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, Bad> {
    let (digits, unit) = split_number(text);
    let Ok(number) = digits.parse::<u64>() else {
        return Err(not_a_number(text, digits, "a duration"));
    };
    if unit.is_empty() {
        return Err(Bad::because("has no unit").mend(format!("write \"{digits}s\" for seconds")));
    }
    let Some((_, milliseconds)) = TIMES.iter().find(|(name, _)| *name == unit) else {
        let guess = match unit.trim() {
            "sec" | "secs" | "second" | "seconds" | "S" => "s",
            "min" | "mins" | "minute" | "minutes" | "M" => "m",
            "hour" | "hours" | "H" => "h",
            "msec" | "millis" | "milliseconds" => "ms",
            other => TIMES.iter().find(|(name, _)| *name == other).map_or("s", |(name, _)| name),
        };
        let bad = Bad::because(format!("has the unknown unit `{unit}`"));
        return Err(bad.mend(format!("write \"{digits}{guess}\"")));
    };
    number
        .checked_mul(*milliseconds)
        .map(Duration::from_millis)
        .ok_or_else(|| Bad::because("is too long"))
}

const SIZES: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// `512B`, `64KiB`, `1MiB`, `2GiB`.
pub(crate) fn size(text: &str) -> Result<u64, Bad> {
    let (digits, unit) = split_number(text);
    let Ok(number) = digits.parse::<u64>() else {
        return Err(not_a_number(text, digits, "a size"));
    };
    if unit.is_empty() {
        return Err(Bad::because("has no unit")
            .mend(format!("write {digits} without quotes for bytes, or \"{digits}KiB\"")));
    }
    let Some((_, bytes)) = SIZES.iter().find(|(name, _)| *name == unit) else {
        let guess = match unit.trim().to_lowercase().as_str() {
            "m" | "mb" | "mib" => "MiB",
            "g" | "gb" | "gib" => "GiB",
            "b" | "bytes" => "B",
            _ => "KiB",
        };
        let bad = Bad::because(format!("has the unknown unit `{unit}`"));
        return Err(bad.mend(format!("write \"{digits}{guess}\"")));
    };
    number.checked_mul(*bytes).ok_or_else(|| Bad::because("is too large"))
}

/// The digits that a text begins with, and the rest.
fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Why a duration or a size does not begin with a whole number.
fn not_a_number(text: &str, digits: &str, what: &str) -> Bad {
    if !digits.is_empty() {
        return Bad::because("is too large");
    }
    match text.chars().next() {
        None => Bad::because("is empty"),
        Some('-') => Bad::because("is negative"),
        Some(_) => Bad::because(format!("is not {what}")),
    }
}

/// `10.0.0.0/8`, `2001:db8::/32`, or one address.
pub(crate) fn network(text: &str) -> Result<Network, Bad> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(Bad::because("is no address or network").mend("write one like \"10.0.0.0/8\""));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), str::parse);
    match bits {
        Ok(bits) if bits <= most => {
            let network = Network { address, bits }.canonical();
            match (network.address, network.address.to_canonical()) {
                // Clients of IPv4 would not be in it, and no others are.
                (IpAddr::V6(_), IpAddr::V4(v4)) => Err(Bad::because(
                    "is a network of IPv4-mapped addresses with fewer than 96 bits behind its slash",
                )
                .mend(format!("write it as one of IPv4, like \"{v4}/8\""))),
                _ => Ok(network),
            }
        }
        _ => Err(Bad::because(format!("has no number of bits from 0 to {most} behind its slash"))),
    }
}

/// Processors that the kernel's sets have numbers for.
pub(crate) const PROCESSORS_MAX: usize = 1024;

/// `any`, `near`, `spread`.
pub(crate) fn processors(text: &str) -> Result<Processors, Bad> {
    match text {
        "any" => Ok(Processors::Any),
        "near" => Ok(Processors::Near),
        "spread" => Ok(Processors::Spread),
        _ => {
            let bad = Bad::because("is neither \"any\", \"near\" nor \"spread\"");
            Err(match text.parse::<usize>() {
                Ok(number) => bad.mend(format!("write [{number}]")),
                Err(_) => bad.mend("write one of these, or a list of numbers like [0, 2]"),
            })
        }
    }
}

/// `127.0.0.1:7000`, `[::1]:7000`, `:7000`, `localhost:7000`, `unix:/path`, `fd:NAME`.
pub(crate) fn address(text: &str) -> Result<Address, Bad> {
    address_or(text, no_host)
}

/// The same; `no_host` says what is wrong with a host, and its port, that is no address.
fn address_or(text: &str, no_host: fn(&str, &str) -> Bad) -> Result<Address, Bad> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix(path);
    }
    if let Some(name) = text.strip_prefix("fd:") {
        return inherited(name);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Address::Internet(address));
    }
    if text.starts_with('/') || text.starts_with("./") {
        return Err(Bad::because("is not an address").mend(format!("write \"unix:{text}\"")));
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let with_port = SocketAddr::new(ip, 7000);
        return Err(Bad::because("has no port").mend(format!("write \"{with_port}\"")));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(without_port(text));
    };
    let ip = match host {
        "" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => host.trim_matches(['[', ']']).parse().map_err(|_| no_host(host, port))?,
    };
    let port = port.parse::<u16>().map_err(|_| {
        Bad::because(format!("has the port `{port}`, which is not a number from 0 to 65535"))
    })?;
    Ok(Address::Internet(SocketAddr::new(ip, port)))
}

/// systemd allows names of up to 255 printable characters without a colon.
fn inherited(name: &str) -> Result<Address, Bad> {
    if name.is_empty() {
        return Err(Bad::because("has no name").mend("write \"fd:NAME\", as in LISTEN_FDNAMES"));
    }
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    if !printable || name.len() > 255 {
        return Err(Bad::because("has a name that nothing can be handed over by"));
    }
    Ok(Address::Inherited(name.to_owned()))
}

fn without_port(text: &str) -> Bad {
    if text.parse::<u16>().is_ok() {
        return Bad::because("is a port without an address").mend(format!("write \":{text}\""));
    }
    match text {
        "" => Bad::because("is empty"),
        "localhost" => Bad::because("has no port").mend("write \"localhost:7000\""),
        _ => Bad::because("is not an address"),
    }
}

fn no_host(host: &str, port: &str) -> Bad {
    Bad::because(format!("has `{host}`, which is not an IP address; host names are not looked up"))
        .mend(format!(
            "write \"127.0.0.1:{port}\" for this machine only, \":{port}\" for everybody"
        ))
}

fn unix(path: &str) -> Result<Address, Bad> {
    if path.is_empty() {
        return Err(Bad::because("has no path").mend("write \"unix:/run/roadstead.sock\""));
    }
    if path.contains('\0') {
        return Err(Bad::because("has a NUL in its path"));
    }
    if path.len() > UNIX_PATH_MAX {
        let why = format!(
            "has a path of {} bytes; the system allows {UNIX_PATH_MAX} for a socket",
            path.len()
        );
        return Err(Bad::because(why));
    }
    Ok(Address::Unix(PathBuf::from(path)))
}

/// `source`, `connection`, `line`, `word:2`, `field:NAME`, `member:NAME`.
pub(crate) fn key(text: &str) -> Result<Key, Bad> {
    const NUMBER_MAX: u32 = 1000;
    let numbered = |number: &str, kind: &str, key: fn(u32) -> Key| match number.parse() {
        Ok(number @ 1..=NUMBER_MAX) => Ok(key(number)),
        _ => Err(Bad::because(format!("has no number from 1 to {NUMBER_MAX} behind its colon"))
            .mend(format!("write \"{kind}:1\" for the first"))),
    };
    let named = |name: &str, key: fn(String) -> Key| match name {
        "" => Err(Bad::because("has no name behind its colon")),
        _ => Ok(key(name.to_owned())),
    };
    match text.split_once(':') {
        None if text == "source" => Ok(Key::Source),
        None if text == "connection" => Ok(Key::Connection),
        None if text == "line" => Ok(Key::Line),
        Some(("word", number)) => numbered(number, "word", Key::Word),
        Some(("segment", number)) => numbered(number, "segment", Key::Segment),
        Some(("field", name)) => named(name, Key::Field),
        Some(("member", name)) => named(name, Key::Member),
        None if text == "path" => Ok(Key::Path),
        Some(("header", name)) => named(name, Key::Header),
        Some(("cookie", name)) => named(name, Key::Cookie),
        Some(("query", name)) => named(name, Key::Query),
        None if ["word", "segment"].contains(&text) => {
            Err(Bad::because("does not say which")
                .mend(format!("write \"{text}:1\" for the first")))
        }
        None if ["field", "member", "header", "cookie", "query"].contains(&text) => {
            Err(Bad::because("does not say which").mend(format!("write \"{text}:NAME\"")))
        }
        _ => {
            let kinds = [
                "source",
                "connection",
                "line",
                "word",
                "field",
                "member",
                "header",
                "cookie",
                "path",
                "segment",
                "query",
            ];
            let kind = text.split(':').next().unwrap_or_default();
            let bad = Bad::because("is not a key");
            Err(match crate::nearest::nearest(kind, kinds) {
                Some(nearest) => bad.mend(format!("did you mean \"{nearest}\"?")),
                None => bad,
            })
        }
    }
}

/// `30%`.
pub(crate) fn percent(text: &str) -> Result<u64, Bad> {
    let (digits, unit) = split_number(text);
    match (digits.parse::<u64>(), unit) {
        (Ok(number @ 0..=100), "%") => Ok(number),
        (Ok(0..=100), "") => Err(Bad::because("has no unit").mend(format!("write \"{digits}%\""))),
        (Ok(_), "%") => Err(Bad::because("is more than the whole").mend("write \"100%\"")),
        _ => Err(Bad::because("is not a part of a whole").mend("write \"50%\" for half")),
    }
}

/// The kinds of databases, as their targets begin.
const DATABASES: [&str; 3] = ["sqlite", "postgres", "mysql"];

/// `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE`, `mysql://USER@HOST:PORT/DATABASE`.
pub(crate) fn target(text: &str) -> Result<Target, Bad> {
    if text.contains('\0') {
        return Err(Bad::because("has a NUL in it"));
    }
    match text.split_once(':') {
        Some(("sqlite", "")) => Err(Bad::because("has no path").mend("write \"sqlite:hits.db\"")),
        Some(("sqlite", path)) => Ok(Target::Sqlite(PathBuf::from(path))),
        Some(("postgres", rest)) => server("postgres", rest, 5432).map(Target::Postgres),
        Some(("mysql", rest)) => server("mysql", rest, 3306).map(Target::Mysql),
        Some((scheme, rest)) => {
            let bad = Bad::because(format!("names the unknown database `{scheme}`"));
            let known = match scheme {
                "postgresql" | "pg" => Some("postgres"),
                "mariadb" => Some("mysql"),
                _ => crate::nearest::nearest(scheme, DATABASES),
            };
            Err(match known {
                Some(known) => bad.mend(format!("write \"{known}:{rest}\"")),
                None => bad,
            })
        }
        None if text.is_empty() => Err(Bad::because("is empty")),
        None => Err(Bad::because("does not say which database it is")
            .mend(format!("write \"sqlite:{text}\""))),
    }
}

/// `//USER@HOST:PORT/DATABASE`, or `//USER@/DATABASE?socket=PATH`.
fn server(scheme: &str, text: &str, default_port: u16) -> Result<ServerTarget, Bad> {
    let whole = || format!("write \"{scheme}://USER@HOST/DATABASE\"");
    let rest = text
        .strip_prefix("//")
        .ok_or_else(|| Bad::because("does not say where the server is").mend(whole()))?;
    let (rest, socket) = match rest.split_once('?') {
        None => (rest, None),
        Some((rest, option)) => match option.strip_prefix("socket=") {
            Some(path) if path.starts_with('/') => (rest, Some(path)),
            _ => {
                let why = format!("has the unknown option `?{option}`");
                let mend = "only \"?socket=/path\" is known; others stand beside `database`";
                return Err(Bad::because(why).mend(mend));
            }
        },
    };
    let Some((place, database)) = rest.split_once('/').filter(|(_, database)| !database.is_empty())
    else {
        return Err(Bad::because("names no database of the server").mend(whole()));
    };
    let Some((user, place)) = place.rsplit_once('@').filter(|(user, _)| !user.is_empty()) else {
        return Err(Bad::because("names no user").mend(whole()));
    };
    if let Some((user, _)) = user.split_once(':') {
        let why = "has a password in it, which does not belong into a configuration";
        let mend = format!(
            "write \"{scheme}://{user}@{place}/{database}\" and `password = \"env:NAME\"` or \
             `\"file:PATH\"`"
        );
        return Err(Bad::because(why).mend(mend));
    }
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let number = port.parse::<u16>().ok().filter(|port| *port > 0);
            let why = || format!("has the port `{port}`, which is not a number from 1 to 65535");
            (host, number.ok_or_else(|| Bad::because(why()))?)
        }
        _ => (place, default_port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = match socket {
        Some(path) => DatabaseHost::Socket(PathBuf::from(path), port),
        None if host.is_empty() => {
            return Err(Bad::because("does not say where the server is").mend(whole()));
        }
        None => DatabaseHost::Internet(host.to_owned(), port),
    };
    Ok(ServerTarget { host, user: user.to_owned(), database: database.to_owned() })
}

/// `env:NAME` or `file:PATH`.
pub(crate) fn secret(text: &str) -> Result<Secret, Bad> {
    match text.split_once(':') {
        Some(("env", name)) if !name.is_empty() && !name.contains(['=', '\0']) => {
            Ok(Secret::Environment(name.to_owned()))
        }
        Some(("file", path)) if !path.is_empty() && !path.contains('\0') => {
            Ok(Secret::File(PathBuf::from(path)))
        }
        _ => Err(Bad::because("does not say where the secret is")
            .mend("write \"env:NAME\" for a variable, \"file:PATH\" for a file")),
    }
}

/// A name of a listener or a pool: `[a-z][a-z0-9_-]*`, up to 64.
pub(crate) fn name(text: &str) -> Result<(), Bad> {
    if text.is_empty() {
        return Err(Bad::because("is empty"));
    }
    if text.len() > NAME_LENGTH_MAX {
        return Err(Bad::because(format!("is longer than {NAME_LENGTH_MAX} characters")));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        let bad = Bad::because(format!("has the character `{}` in it", c.escape_debug()));
        let mended: String =
            text.to_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
        return Err(if name(&mended).is_ok() {
            bad.mend(format!("write `{mended}`"))
        } else {
            bad
        });
    }
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(Bad::because("does not begin with a letter"));
    }
    Ok(())
}

/// An acknowledgement: one line in which `{name}` stands for a value.
pub(crate) fn template(text: &str) -> Result<(), Bad> {
    if text.contains(['\n', '\r']) {
        return Err(Bad::because("has a line end in it; a reply is one line"));
    }
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (brace, inner) = rest[at..].split_at(1);
        if let Some(behind) = inner.strip_prefix(brace) {
            rest = behind;
            continue;
        }
        if brace == "}" {
            return Err(Bad::because("has a `}` without a `{` before it")
                .mend("write `}}` for the brace itself"));
        }
        match inner.find(['{', '}']) {
            Some(0) => {
                return Err(Bad::because("has `{}` without a name in it")
                    .mend("name a value of the record, as in \"ok {id}\""));
            }
            Some(close) if inner[close..].starts_with('}') => rest = &inner[close + 1..],
            _ => {
                return Err(Bad::because("has a `{` that is never closed")
                    .mend("close it, as in \"ok {id}\", or write `{{` for the brace itself"));
            }
        }
    }
    Ok(())
}

/// `MIN..MAX`, or one number for both.
pub(crate) fn span(text: &str) -> Result<(u64, u64), Bad> {
    let bad = || Bad::because("is not a range").mend("write \"2..20\", or 4 for exactly four");
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| bad());
    match text.split_once("..") {
        Some((min, max)) => Ok((number(min)?, number(max)?)),
        None => number(text).map(|number| (number, number)),
    }
}

/// A time as it is written in a file.
pub(crate) fn duration_text(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    TIMES
        .iter()
        .rev()
        .find(|(_, unit)| milliseconds.is_multiple_of(u128::from(*unit)))
        .map(|(name, unit)| format!("{}{name}", milliseconds / u128::from(*unit)))
        .expect("every time is a whole number of milliseconds")
}

/// A size as it is written in a file.
pub(crate) fn size_text(bytes: u64) -> String {
    let (name, unit) = SIZES
        .iter()
        .rev()
        .find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .unwrap_or(&SIZES[0]);
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv4_mapped_addresses_is_one_of_ipv4() {
        let holds = |text: &str, address: &str| {
            network(text).expect("a network").contains(address.parse().expect("an address"))
        };
        for text in ["10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:a00:0/104"] {
            for within in ["10.9.8.7", "::ffff:10.9.8.7"] {
                assert!(holds(text, within), "{text} {within}");
            }
            for without in ["11.0.0.1", "::ffff:11.0.0.1", "a00::1", "::10.0.0.1", "::1"] {
                assert!(!holds(text, without), "{text} {without}");
            }
        }
        assert!(holds("::ffff:10.0.0.1", "10.0.0.1") && !holds("::ffff:10.0.0.1", "10.0.0.2"));
        assert!(holds("::ffff:0:0/96", "192.0.2.1") && !holds("::ffff:0:0/96", "2001:db8::1"));
        assert!(holds("::/0", "2001:db8::1"));
        let bad = network("::ffff:10.0.0.0/95").expect_err("it is of neither kind");
        assert_eq!(bad.mend.as_deref(), Some("write it as one of IPv4, like \"10.0.0.0/8\""));
    }

    #[test]
    fn what_is_written_of_a_value_reads_as_that_value() {
        for milliseconds in [0, 1, 999, 1000, 1500, 59_999, 60_000, 90_000, 3_600_000, 86_400_000] {
            let time = Duration::from_millis(milliseconds);
            assert_eq!(duration(&duration_text(time)), Ok(time));
        }
        for bytes in [1, 1023, 1024, 1536, 1 << 20, 3 << 30, (1 << 30) + 1] {
            assert_eq!(size(&size_text(bytes)), Ok(bytes));
        }
        assert_eq!(duration_text(Duration::from_secs(90)), "90s");
        assert_eq!(size_text(64 << 10), "64KiB");
    }

    #[test]
    fn every_way_to_write_an_address_is_read() {
        let cases = [
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            (":7000", "0.0.0.0:7000"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:7000", "[::1]:7000"),
            ("[::]:65535", "[::]:65535"),
            ("unix:/run/x.sock", "unix:/run/x.sock"),
            ("unix:x:1", "unix:x:1"),
            ("fd:web", "fd:web"),
        ];
        for (text, meant) in cases {
            assert_eq!(address(text).map(|address| address.to_string()), Ok(meant.to_owned()));
        }
    }

    #[test]
    fn a_path_is_kept_as_it_is_written() {
        for path in ["hits.db", "/var/lib/a b.db", ":memory:"] {
            let read = target(&format!("sqlite:{path}"));
            assert_eq!(read, Ok(Target::Sqlite(PathBuf::from(path))));
        }
    }

    #[test]
    fn servers_are_named_with_user_place_and_database() {
        let shown = |text: &str| match target(text) {
            Ok(Target::Postgres(it) | Target::Mysql(it)) => {
                format!("{:?} {} {}", it.host, it.user, it.database)
            }
            other => format!("{other:?}"),
        };
        for (text, meant) in [
            ("postgres://me@db.example/hits", r#"Internet("db.example", 5432) me hits"#),
            ("mysql://me@10.0.0.1:3307/hits", r#"Internet("10.0.0.1", 3307) me hits"#),
            ("postgres://me@[::1]:1/hits", r#"Internet("::1", 1) me hits"#),
            ("postgres://me@[::1]/hits", r#"Internet("::1", 5432) me hits"#),
            ("postgres://me@/hits?socket=/run/pg", r#"Socket("/run/pg", 5432) me hits"#),
        ] {
            assert_eq!(shown(text), meant, "{text}");
        }
        for (text, why) in [
            ("postgres:hits", "does not say where the server is"),
            ("postgres://me@/hits", "does not say where the server is"),
            ("postgres://me@host", "names no database of the server"),
            ("mysql://host/hits", "names no user"),
            ("mysql://me@host:0/hits", "has the port `0`, which is not a number from 1 to 65535"),
            ("mysql://me@host/hits?ssl=1", "has the unknown option `?ssl=1`"),
        ] {
            assert_eq!(target(text).unwrap_err().why, why, "{text}");
        }
        let bad = target("postgres://me:secret@host/hits").unwrap_err();
        assert!(bad.why.starts_with("has a password in it"));
        assert!(!bad.mend.unwrap_or_default().contains("secret@"));
    }

    #[test]
    fn a_template_may_name_values_and_hold_anything_else() {
        for text in
            ["ok", "", "{id}", "ok {id} {at}", "100 % ü", "{{}}", "{{\"id\":{id}}}", "{{{id}}}"]
        {
            assert_eq!(template(text), Ok(()), "{text}");
        }
        for text in ["}", "{", "{}", "{id", "{id}}", "{{id}", "{a{b}", "{a{{b}", "ok\n"] {
            assert!(template(text).is_err(), "{text}");
        }
    }
}
