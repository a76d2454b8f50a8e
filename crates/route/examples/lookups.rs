//! The pure part of a routed request, for counting its instructions: its path is read, its route
//! found, its target rewritten.
//!
//! `lookups HOSTS REQUESTS [TARGET]`: every host has three routes, and the request is for the last of
//! the last host. `valgrind --tool=callgrind` counts; the difference between two numbers of requests is
//! theirs alone, without the making of the table.

use fields::Fields;
use route::{Asked, Filling, Host, Path, PathRule, Rewrite, Rule, Table};

fn rules(hosts: usize) -> Vec<Rule> {
    let of_host = |number: usize| {
        let host = Host::parse(&format!("www.site-{number}.example")).expect("it is a name");
        ["/static", "/admin", "/api"].map(|prefix| Rule {
            hosts: vec![host.clone()],
            path: Some(PathRule::Below(prefix.as_bytes().into())),
            ..Rule::default()
        })
    };
    (0..hosts).flat_map(of_host).collect()
}

fn main() {
    #[expect(clippy::disallowed_methods, reason = "an example has a command line of its own")]
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<usize>().ok());
    let (hosts, requests) = (number().unwrap_or(1), number().unwrap_or(1000));
    let target = arguments.next().unwrap_or_else(|| "/api/v1/users/42".to_owned());
    let table = Table::new(rules(hosts));
    let host = format!("www.site-{}.example:8080", hosts.saturating_sub(1));
    let mut fields = Fields::headers();
    for (name, value) in [("Host", host.as_str()), ("User-Agent", "x"), ("Accept", "*/*")] {
        fields.append(name, value);
    }
    let rewrite = Rewrite::Prefix { add: Box::default(), strip: b"/api".as_slice().into() };
    let (mut scratch, mut out, mut found) = (Vec::new(), Vec::new(), 0);
    for _ in 0..requests {
        let target = std::hint::black_box(target.as_bytes());
        let Ok(path) = Path::read(target, &mut scratch) else { continue };
        let host = std::hint::black_box(host.as_bytes());
        let asked = Asked { host, method: b"GET", path: Some(path.plain()), fields: &fields };
        let place = table.find(&asked);
        found += usize::from(place.is_some());
        let filling = Filling { host, path: path.bytes(), rest: b"", query: None };
        out.clear();
        let Ok(()) = rewrite.write(&path, &filling, &mut out) else { continue };
        std::hint::black_box(&out);
    }
    println!("{found} of {requests} found a route");
}
