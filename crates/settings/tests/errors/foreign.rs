//! Options of other servers: the error gives their name here or says that they do not exist, exactly once, without
//! consequential errors.

use super::{LISTENER, POOL, in_listener, only};

const SERVERS: &str = "[pool.echo]\nservers = [\"10.0.0.1:80\"]\n";
const HTTP: &str = "[listener.main]\nlisten = \":7000\"\nprotocol = \"http\"\npool = \"echo\"\n";

/// Returns the fix of the only error of a pool of servers with this line, behind an HTTP listener.
fn in_servers(line: &str) -> String {
    only(&format!("{HTTP}{SERVERS}{line}\n")).suggestion.unwrap_or_default()
}

#[test]
fn an_unknown_protocol_is_one_error_however_many_routes_there_are() {
    let text = format!(
        "{}{}response_headers = {{ remove = [\"a\"] }}\n{SERVERS}sticky = {{ cookie = \"c\" }}\n\
         health_check = {{ check = \"http\" }}\n",
        HTTP.replace("\"http\"", "\"https\""),
        "route = [{ prefix = \"/a\", pool = \"echo\" }, { prefix = \"/b\", pool = \"echo\" }]\n",
    );
    let error = only(&text);
    assert_eq!(error.message, "`protocol` = \"https\" is not a known value");
    let suggestion = error.suggestion.unwrap();
    assert!(
        suggestion.contains("TLS and HTTP/2") && suggestion.contains("\"http\""),
        "{suggestion}"
    );
    let (error, _) = in_listener("protocol = \"tcp\"");
    assert!(error.suggestion.unwrap().contains("\"raw\""));
}

#[test]
fn options_of_other_servers_are_named_as_they_are_called_here() {
    for (line, expected) in [
        ("tls = true", "TLS is not supported"),
        ("timeout = \"5s\"", "`request_read_timeout`"),
        ("maxconn = 5", "`connections_max`"),
        ("max-connections = 5", "`connections_max`"),
        ("requests_per = 5", "`per_address = { requests = N }`"),
        ("per_address = { requests_per = 5 }", "`requests`"),
        ("bind = \":80\"", "`listen`"),
    ] {
        let (error, _) = in_listener(line);
        let suggestion = error.suggestion.unwrap();
        assert!(suggestion.contains(expected), "{line}: {suggestion}");
        assert_eq!(error.expected.as_deref(), Some("unknown option"), "{line}");
    }
    for (line, expected) in [
        ("timeout = \"5s\"", "`response_timeout`"),
        ("lb_policy = \"leastconn\"", "`balance`"),
        ("balance = \"leastconn\"", "\"least-requests\""),
        ("balance = \"ip_hash\"", "\"hash\""),
        ("leastconn = true", "\"least-requests\""),
        ("maxconn = 100", "`max_concurrent`"),
        ("retries = 3", "`retries = { tries = 4 }`"),
        ("requests_per = 3", "no rate limit"),
        ("tls = \"on\"", "no TLS"),
        ("queue = { max_wait = \"1s\" }", "`timeout`"),
        ("httpchk = \"/\"", "`health_check`"),
        ("outlier_detection = 3", "`health_check`"),
    ] {
        let suggestion = in_servers(line);
        assert!(suggestion.contains(expected), "{line}: {suggestion}");
    }
    let servers = "[pool.echo]\nservers = [{ address = \"10.0.0.1:80\", maxconn = 5 }]\n";
    let suggestion = only(&format!("{HTTP}{servers}")).suggestion.unwrap();
    assert!(suggestion.contains("`max_concurrent`"), "{suggestion}");
}

#[test]
fn a_regular_expression_in_a_route_is_said_not_to_exist() {
    for route in [
        "path = \"^/api/.*$\"",
        "prefix = \"/api/.*\"",
        "pattern = \"~ ^/x\"",
        "path = \"/x/[0-9]+\"",
        "regex = \"^/api\", path = \"/\"",
    ] {
        let text = format!("{HTTP}route = [{{ {route}, pool = \"echo\" }}]\n{SERVERS}");
        let error = only(&text);
        let said = format!("{} {}", error.message, error.suggestion.unwrap());
        assert!(said.contains("regular expression") && said.contains("`pattern`"), "{said}");
    }
    let glob = format!("{HTTP}route = [{{ pattern = \"/a/*.*\", pool = \"echo\" }}]\n{SERVERS}");
    let source = settings::Source { name: "a.toml".into(), text: glob };
    assert!(settings::parse(&source, &|_| None).is_ok());
    // A typing error is still reported as one.
    let (error, _) = in_listener("conections_max = 5");
    assert_eq!(error.expected.as_deref(), Some("did you mean `connections_max`?"));
    assert!(
        only(&format!("{LISTENER}{POOL}pipelin = 2\n")).suggestion.unwrap().contains("pipeline")
    );
}
