//! The pure part of routing a request, for counting its instructions: the path is read, the route is found, and the
//! target is rewritten.
//!
//! Usage: `lookups hosts|paths ROUTES REQUESTS [TARGET]`. With `hosts`, every host has three routes. With `paths`, all
//! routes match every host, and each has a different prefix. The request matches the last route, which is the most
//! expensive. Count with `perf stat -e instructions:u`. The difference between two runs with different numbers of
//! requests excludes building the table.

use fields::Fields;
use route::{Host, Path, PathRule, Rewrite, RouteRequest, Rule, Table, TemplateValues};

/// Routes for hosts. The last one is for `/api` of host 0.
fn of_hosts(routes: usize) -> Vec<Rule> {
    let rule = |left: usize| Rule {
        hosts: vec![Host::parse(&host(left / 3)).expect("it is a name")],
        path: Some(PathRule::Below(["/api", "/admin", "/static"][left % 3].as_bytes().into())),
        ..Rule::default()
    };
    (0..routes).rev().map(rule).collect()
}

/// Routes for paths. The last one is for `/api`.
fn of_paths(routes: usize) -> Vec<Rule> {
    let rule = |left: usize| Rule {
        path: Some(PathRule::Below(match left {
            0 => b"/api".as_slice().into(),
            _ => format!("/app-{left}").into_bytes().into(),
        })),
        ..Rule::default()
    };
    (0..routes).rev().map(rule).collect()
}

fn host(number: usize) -> String {
    format!("www.site-{number}.example")
}

fn main() {
    #[expect(clippy::disallowed_methods, reason = "an example has a command line of its own")]
    let mut arguments = std::env::args().skip(1);
    let rules = match arguments.next().as_deref() {
        Some("paths") => of_paths,
        _ => of_hosts,
    };
    let mut number = || arguments.next().and_then(|text| text.parse::<usize>().ok());
    let (routes, requests) = (number().unwrap_or(1), number().unwrap_or(1000));
    let target = arguments.next().unwrap_or_else(|| "/api/v1/users/42".to_owned());
    let table = Table::new(rules(routes));
    let host = host(0) + ":8080";
    let mut fields = Fields::headers();
    for (name, value) in [("Host", host.as_str()), ("User-Agent", "x"), ("Accept", "*/*")] {
        fields.append(name, value).expect("the fields of a request are within the limits");
    }
    let rewrite = Rewrite::Prefix { add: Box::default(), strip: b"/api".as_slice().into() };
    let (mut scratch, mut out, mut found) = (Vec::new(), Vec::new(), 0);
    for _ in 0..requests {
        let target = std::hint::black_box(target.as_bytes());
        let Ok(path) = Path::read(target, &mut scratch) else { continue };
        let host = std::hint::black_box(host.as_bytes());
        let asked =
            RouteRequest { host, method: b"GET", path: Some(path.plain()), fields: &fields };
        let place = table.find(&asked);
        found += usize::from(place.is_some());
        let filling = TemplateValues { host, path: path.bytes(), rest: b"", query: None };
        out.clear();
        let Ok(()) = rewrite.write(&path, &filling, &mut out) else { continue };
        std::hint::black_box(&out);
    }
    println!("{found} of {requests} found a route");
}
