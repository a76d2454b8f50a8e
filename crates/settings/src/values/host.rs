//! Host names.

use std::net::{IpAddr, Ipv4Addr};

use super::address::{Address, HostName};
use super::addresses::address_or;
use crate::quantities::Bad;

/// Parses an address, or a host name with a port such as `app.example:7000`: addresses to connect to may have a name.
pub(crate) fn server_address(text: &str) -> Result<Address, Bad> {
    // `:8000` means this machine.
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    address_or(text, any, no_server).or_else(|bad| {
        match text.rsplit_once(':').filter(|_| !text.contains("://")) {
            Some((host, port)) if is_host_name(host) && !matches!(host, "unix" | "fd") => {
                host_name(host, port).map(Address::Named)
            }
            _ => Err(bad),
        }
    })
}

fn host_name(host: &str, port: &str) -> Result<HostName, Bad> {
    match port.parse::<u16>() {
        Ok(port @ 1..) => Ok(HostName { host: host.to_ascii_lowercase(), port }),
        _ => Err(Bad::because(format!(
            "has the port `{port}`, which is not a number from 1 to 65535"
        ))),
    }
}

/// Whether the text is a name of the DNS or of `/etc/hosts` (RFC 1123 §2.1). Underscores are allowed, because some
/// networks use them. A name whose last label is a number is an invalid address.
fn is_host_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253
        && name.split('.').all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

fn no_server(host: &str, _port: &str) -> Bad {
    Bad::because(format!("has `{host}`, which is neither an IP address nor the name of a host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_have_a_name() {
        let long = format!("{}.example:1", "x".repeat(63));
        for (text, meant) in [
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("localhost:80", "127.0.0.1:80"),
            ("App.Example:8080", "app.example:8080"),
            ("backend:1", "backend:1"),
            ("app_1.x-y.example.:80", "app_1.x-y.example.:80"),
            (long.as_str(), long.as_str()),
        ] {
            let read = server_address(text).map(|address| address.to_string());
            assert_eq!(read, Ok(meant.to_owned()));
        }
        let port = "which is not a number from 1 to 65535";
        for (text, why) in [
            ("app.example", "is not an address".to_owned()),
            ("unix:", "has no path".to_owned()),
            ("app.example:0", format!("has the port `0`, {port}")),
            ("app.example:65536", format!("has the port `65536`, {port}")),
            ("app.example:http", format!("has the port `http`, {port}")),
        ] {
            assert_eq!(server_address(text).unwrap_err().why, why, "{text}");
        }
        let label = format!("{}.example:80", "x".repeat(64));
        let name = format!("{}x:80", "x.".repeat(127));
        for text in
            ["10.0.0.256:80", "a..b:80", ".a:80", "-a:80", "a-:80", "a b:80", "ü:80", &label, &name]
        {
            let why = server_address(text).unwrap_err().why;
            assert!(why.ends_with("neither an IP address nor the name of a host"), "{why}");
        }
    }
}
