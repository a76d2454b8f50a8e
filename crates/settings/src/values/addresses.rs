//! Parsers of addresses and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use super::address::{Address, Network};
use crate::quantities::Bad;

/// The kernel's limit for the path of a Unix socket, in bytes (`sun_path` has 108 bytes including its NUL).
const UNIX_PATH_MAX: usize = 107;

/// Parses `10.0.0.0/8`, `2001:db8::/32`, or one address.
pub(crate) fn network(text: &str) -> Result<Network, Bad> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(Bad::because("is not an address or network")
            .suggestion("write for example \"10.0.0.0/8\""));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), str::parse);
    match bits {
        Ok(bits) if bits <= most => {
            let network = Network { address, bits }.canonical();
            match (network.address, network.address.to_canonical()) {
                // It would not contain IPv4 clients, and there are no others.
                (IpAddr::V6(_), IpAddr::V4(v4)) => Err(Bad::because(
                    "is a network of IPv4-mapped addresses with a prefix shorter than 96 bits",
                )
                .suggestion(format!("write it as IPv4, for example \"{v4}/8\""))),
                _ => Ok(network),
            }
        }
        _ => Err(Bad::because(format!("has no prefix length from 0 to {most} after its slash"))),
    }
}

/// Parses `127.0.0.1:7000`, `[::1]:7000`, `:7000`, `localhost:7000`, `unix:/path` or `fd:NAME`. Without a host it means
/// every address of the machine: a socket on `[::]` accepts IPv6 and IPv4.
pub(crate) fn address(text: &str) -> Result<Address, Bad> {
    address_or(text, IpAddr::V6(Ipv6Addr::UNSPECIFIED), no_host)
}

/// As [`address`]. `any` is the address for a text without a host. `no_host` returns the error for a host, and its
/// port, that is not an address.
pub(super) fn address_or(
    text: &str,
    any: IpAddr,
    no_host: fn(&str, &str) -> Bad,
) -> Result<Address, Bad> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix(path);
    }
    if let Some(name) = text.strip_prefix("fd:") {
        return inherited(name);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Address::Internet(address));
    }
    if let Some(bad) = url(text) {
        return Err(bad);
    }
    if text.starts_with('/') || text.starts_with("./") {
        return Err(Bad::because("is not an address").suggestion(format!("write \"unix:{text}\"")));
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let with_port = SocketAddr::new(ip, 7000);
        return Err(Bad::because("has no port").suggestion(format!("write \"{with_port}\"")));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(without_port(text));
    };
    let ip = match host {
        "" => any,
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => host.trim_matches(['[', ']']).parse().map_err(|_| no_host(host, port))?,
    };
    let port = port.parse::<u16>().map_err(|_| {
        Bad::because(format!("has the port `{port}`, which is not a number from 0 to 65535"))
    })?;
    Ok(Address::Internet(SocketAddr::new(ip, port)))
}

/// Returns the error for a URL in place of an address.
fn url(text: &str) -> Option<Bad> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme == "https" {
        return Some(Bad::because("is a URL with TLS, which is not supported yet"));
    }
    let address = rest.split('/').next().unwrap_or_default();
    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if has_port { "" } else { ":80" };
    let bad = Bad::because("is a URL, not an address");
    Some(bad.suggestion(format!("write \"{address}{port}\"")))
}

/// Parses the name of an inherited socket. systemd allows names of up to 255 printable characters without a colon.
fn inherited(name: &str) -> Result<Address, Bad> {
    if name.is_empty() {
        return Err(
            Bad::because("has no name").suggestion("write \"fd:NAME\", as in LISTEN_FDNAMES")
        );
    }
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    if !printable || name.len() > 255 {
        return Err(Bad::because("has a name that a service manager cannot use"));
    }
    Ok(Address::Inherited(name.to_owned()))
}

fn without_port(text: &str) -> Bad {
    if text.parse::<u16>().is_ok() {
        return Bad::because("is a port without an address")
            .suggestion(format!("write \":{text}\""));
    }
    match text {
        "" => Bad::because("is empty"),
        "localhost" => Bad::because("has no port").suggestion("write \"localhost:7000\""),
        _ => Bad::because("is not an address"),
    }
}

fn no_host(host: &str, port: &str) -> Bad {
    Bad::because(format!("has `{host}`, which is not an IP address; host names are not looked up"))
        .suggestion(format!(
            "write \"127.0.0.1:{port}\" for this machine only, \":{port}\" for everybody"
        ))
}

fn unix(path: &str) -> Result<Address, Bad> {
    if path.is_empty() {
        return Err(Bad::because("has no path").suggestion("write \"unix:/run/roadstead.sock\""));
    }
    if path.contains('\0') {
        return Err(Bad::because("contains a NULs path"));
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
        assert_eq!(bad.suggestion.as_deref(), Some("write it as IPv4, for example \"10.0.0.0/8\""));
    }

    #[test]
    fn every_way_to_write_an_address_is_read() {
        let cases = [
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            (":7000", "[::]:7000"),
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
}
