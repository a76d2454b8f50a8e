use axum::Router;
use axum::routing::any;

use super::*;
use crate::protected;
use crate::routes::ROUTES;

const TOKEN: &str = "0123456789abcdef";

fn gate(anonymous: bool) -> Arc<Gate> {
    let mut token = Authenticator::new("roadstead").expect("a realm");
    token.token(TOKEN).expect("a token");
    Arc::new(Gate {
        hosts: vec!["admin.example".to_owned()],
        token: Some(token),
        anonymous,
        user: 1000,
        group_has_access: false,
        own_process: Some(77),
        bodies: Semaphore::new(BODIES_MAX),
        audit: Arc::default(),
    })
}

fn loopback() -> Peer {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    Peer::Internet { from: address(5), to: address(7070) }
}

/// Every route with handlers that report that they were reached, with the checks.
fn all(gate: Arc<Gate>) -> Router {
    let routes = ROUTES.iter().map(|route| route.path);
    let mut paths: Vec<_> = routes.collect();
    paths.dedup();
    let empty = Router::new();
    protected(
        paths.iter().fold(empty, |router, path| router.route(path, any(|| async { "reached" }))),
        gate,
    )
}

/// Returns a path that matches this pattern.
fn example(path: &str) -> String {
    let mut parts = path.split(['{', '}']);
    let mut made = parts.next().unwrap_or_default().to_owned();
    while let (Some(_), Some(rest)) = (parts.next(), parts.next()) {
        made.push('7');
        made.push_str(rest);
    }
    made
}

/// Returns the status of one request.
fn ask(router: &Router, peer: Peer, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    send(router, peer, (method, path), headers, Body::empty())
}

fn send(
    router: &Router,
    peer: Peer,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: Body,
) -> u16 {
    let mut request = Request::builder().method(method).uri(path).extension(peer);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body).expect("a request");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        use hyper_util::service::TowerToHyperService;
        let service = TowerToHyperService::new(router.clone());
        hyper::service::Service::call(&service, request)
            .await
            .expect("infallible")
            .status()
            .as_u16()
    })
}

#[test]
fn every_route_passes_the_same_checks() {
    let (host, token) = (("host", "localhost"), format!("Bearer {TOKEN}"));
    let (token, own) = (("authorization", token.as_str()), (REQUEST_HEADER, "1"));
    let (local, remote) = (all(gate(true)), all(gate(false)));
    assert!(ROUTES.len() > 10);
    let unknown = [
        ("GET", "/nothing".to_owned()),
        ("POST", "/nothing".to_owned()),
        ("DELETE", "/status".to_owned()),
    ];
    let known = ROUTES.iter().map(|route| (route.method.as_str(), example(route.path)));
    for (method, path) in known.chain(unknown) {
        let role = match ROUTES.iter().find(|it| it.method == method && example(it.path) == path) {
            Some(route) => route.role,
            None => Role::Admin,
        };
        let ask = |router, peer, headers: &[_]| ask(router, peer, method, &path, headers);
        let name = format!("{method} {path}");
        // The order of the checks: if two fail, the first is reported.
        assert_eq!(ask(&local, loopback(), &[]), 400, "{name}");
        assert_eq!(
            ask(&local, loopback(), &[("host", "evil"), ("origin", "http://evil"), token, own]),
            403,
            "{name}"
        );
        assert_eq!(
            ask(&local, loopback(), &[host, ("origin", "http://evil"), token, own]),
            403,
            "{name}"
        );
        assert_eq!(ask(&local, loopback(), &[host, ("origin", "null"), token, own]), 403, "{name}");
        assert_eq!(
            ask(&local, loopback(), &[host, ("sec-fetch-site", "cross-site"), token, own]),
            403,
            "{name}"
        );
        assert_eq!(
            ask(&local, loopback(), &[host, ("authorization", "Bearer 0"), own]),
            401,
            "{name}"
        );
        let anonymous = if role == Role::Viewer { 200 } else { 403 };
        assert_eq!(ask(&local, loopback(), &[host, own]), anonymous, "{name}");
        assert_eq!(ask(&remote, loopback(), &[host, own]), 401, "{name}");
        let far =
            Peer::Internet { from: ([10, 0, 0, 1], 5).into(), to: ([10, 0, 0, 2], 7070).into() };
        assert_eq!(ask(&local, far, &[host, own]), 401, "{name}");
        for (uid, expected) in
            [(Some(0), true), (Some(1000), true), (Some(1001), false), (None, false)]
        {
            for (pid, expected) in [(None, expected), (Some(76), expected), (Some(77), false)] {
                let status = ask(&local, Peer::Unix { uid, pid }, &[host, own]);
                assert_eq!(status != 403, expected, "{name} {uid:?} {pid:?}");
            }
        }
        let simple = ask(&local, loopback(), &[host, token, ("content-type", "text/plain")]);
        assert_eq!(simple == 415, method != "GET", "{name}");
        let reached = ask(&local, loopback(), &[host, token, own]);
        let exists = path != "/nothing";
        assert_eq!(reached, if exists { 200 } else { 404 }, "{name}");
    }
}

#[test]
fn what_changes_something_requires_an_administrator() {
    for route in ROUTES {
        assert!(is_read(&route.method) || route.role == Role::Admin, "{}", route.path);
        assert_eq!(routes::role(&route.method, route.path), route.role, "{}", route.path);
    }
    assert_eq!(routes::role(&Method::GET, "/nothing"), Role::Admin);
    assert_eq!(routes::role(&Method::PUT, "/status"), Role::Admin);
    assert_eq!(routes::role(&Method::HEAD, "/status"), Role::Viewer);
}

#[test]
fn a_host_is_a_loopback_name_the_address_connected_to_or_one_that_is_allowed() {
    let gate = gate(true);
    let to = |text: &str| Peer::Internet {
        from: ([127, 0, 0, 1], 5).into(),
        to: text.parse().expect("an address"),
    };
    for (host, to) in [
        ("localhost", to("127.0.0.1:7070")),
        ("LocalHost.:80", to("127.0.0.1:7070")),
        ("127.0.0.1:7070", to("127.0.0.1:7070")),
        ("127.9.9.9", to("127.0.0.1:7070")),
        ("[::1]:7070", to("[::1]:7070")),
        ("[::1]", to("[::1]:7070")),
        ("10.0.0.2:7070", to("10.0.0.2:7070")),
        ("[::ffff:10.0.0.2]:7070", to("10.0.0.2:7070")),
        ("Admin.Example:443", to("127.0.0.1:7070")),
        ("localhost", Peer::Unix { uid: None, pid: None }),
    ] {
        assert!(gate.is_allowed(host, to), "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.3",
        "]127.0.0.1[",
        "[127.0.0.1]",
        "127.0.0.1]",
        "[::1",
        "",
        ":7070",
        "localhost:x",
        "localhost@evil.example",
        "admin.example.evil",
        "xadmin.example",
        "[::2]",
    ] {
        assert!(!gate.is_allowed(host, to("10.0.0.2:7070")), "{host}");
    }
}

#[test]
fn a_path_in_the_log_is_bounded_and_printable() {
    assert_eq!(shown("/a\u{1b}[31m\n\u{202e}"), "/a\\u{1b}[31m\\n\\u{202e}");
    assert_eq!(shown(&"a".repeat(5000)).len(), PATH_SHOWN);
}

/// A body that is announced and never arrives.
struct Announced(u64);

impl hyper::body::Body for Announced {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.0)
    }
}

#[test]
fn the_body_of_an_anonymous_request_is_not_waited_for() {
    let router = all(gate(true));
    let token = format!("Bearer {TOKEN}");
    let (host, token) = (("host", "localhost"), ("authorization", token.as_str()));
    let send = |headers: &[_], bytes| {
        send(&router, loopback(), ("GET", "/health"), headers, Body::new(Announced(bytes)))
    };
    assert_eq!(send(&[host], 5), 413);
    assert_eq!(send(&[host, token], 5), 408, "that of an administrator is");
    assert_eq!(send(&[host, token], 1 + (1 << 20)), 413, "unless it is too long");
    assert_eq!(ask(&router, loopback(), "GET", "/health", &[host]), 200);
}

#[test]
fn all_bodies_together_have_a_limit() {
    let gate = gate(true);
    let router = all(Arc::clone(&gate));
    let token = format!("Bearer {TOKEN}");
    let headers = [("host", "localhost"), ("authorization", token.as_str())];
    let send = |bytes| {
        let body = Body::from(vec![b'x'; bytes]);
        send(&router, loopback(), ("GET", "/health"), &headers, body)
    };
    let others = gate.bodies.try_acquire_many(u32::try_from(BODIES_MAX - 5).expect("it is small"));
    let others = others.expect("nobody has any");
    assert_eq!((send(5), send(6)), (200, 503));
    drop(others);
    assert_eq!(send(6), 200);
    assert_eq!(gate.bodies.available_permits(), BODIES_MAX, "they are given back");
}
