use super::*;
use crate::{FieldCondition, FieldRule, PathRule, Pattern};
use fields::Fields;
use proptest::prelude::*;

fn rule(hosts: &[&str], path: Option<PathRule>) -> Rule {
    let hosts = hosts.iter().map(|host| Host::parse(host).unwrap()).collect();
    Rule { hosts, path, ..Rule::default() }
}

fn below(prefix: &str) -> Option<PathRule> {
    Some(PathRule::Below(prefix.as_bytes().into()))
}

fn exact(path: &str) -> Option<PathRule> {
    Some(PathRule::Exact(path.as_bytes().into()))
}

fn pattern(text: &str) -> Option<PathRule> {
    Some(PathRule::Pattern(Pattern::new(text.as_bytes()).unwrap()))
}

fn ask(
    table: &Table,
    host: &str,
    method: &str,
    path: &str,
    lines: &[(&str, &str)],
) -> Option<usize> {
    let mut fields = Fields::headers();
    for (name, value) in lines {
        fields.append(*name, *value).unwrap();
    }
    let path = (path != "*").then_some(path.as_bytes());
    table.find(&RouteRequest {
        host: host.as_bytes(),
        method: method.as_bytes(),
        path,
        fields: &fields,
    })
}

#[test]
fn the_first_that_fits_wins_whatever_its_host() {
    let table = Table::new(vec![
        rule(&["*.example.org"], below("/a")),
        rule(&["www.example.org", "example.org"], None),
        rule(&[], below("/b")),
        rule(&["*.org"], None),
    ]);
    let get = |host: &str, path: &str| ask(&table, host, "GET", path, &[]);
    assert_eq!(get("www.example.org", "/a/x"), Some(0));
    assert_eq!(get("WWW.Example.org.:8080", "/b"), Some(1));
    assert_eq!(get("example.org", "/a"), Some(1), "a name is not below itself");
    assert_eq!(get("x.y.example.org", "/a"), Some(0));
    assert_eq!(get("x.y.example.org", "/b"), Some(2));
    assert_eq!(get("x.y.example.org", "/c"), Some(3));
    assert_eq!(get("org", "/c"), None);
    assert_eq!(get("", "/b"), Some(2));
    assert_eq!(get(&format!("{}.org", "a.".repeat(200)), "/c"), None, "no name is so long");
}

#[test]
fn an_address_is_the_same_host_in_every_spelling() {
    let table = Table::new(vec![rule(&["[2001:db8::0:1]"], None), rule(&["[::1]"], None)]);
    let get = |host: &str| ask(&table, host, "GET", "/", &[]);
    assert_eq!(get("[2001:DB8:0:0:0:0:0:1]:8080"), Some(0));
    assert_eq!(get("[2001:db8::1]"), Some(0));
    assert_eq!(get("[0::0:1]"), Some(1));
    assert_eq!(get("[::2]"), None);
    assert_eq!(get("[::1"), None);
}

#[test]
fn methods_and_fields_are_asked_for() {
    let field = |name: &str, wanted| vec![FieldRule::new(name, wanted).unwrap()];
    let equal = FieldCondition::Equal(b"1".as_slice().into());
    let like = FieldCondition::Pattern(Pattern::new(b"text/*").unwrap());
    let table = Table::new(vec![
        Rule { methods: vec!["PUT".into()], ..Rule::default() },
        Rule { fields: field("X-Beta", equal), ..Rule::default() },
        Rule { fields: field("Accept", like), methods: vec!["GET".into()], ..Rule::default() },
        Rule { fields: field("x-any", FieldCondition::Present), ..Rule::default() },
    ]);
    assert_eq!(ask(&table, "", "PUT", "/", &[]), Some(0));
    assert_eq!(ask(&table, "", "put", "/", &[("x-beta", "1")]), Some(1));
    assert_eq!(ask(&table, "", "GET", "/", &[("x-beta", "2"), ("X-BETA", "1")]), Some(1));
    assert_eq!(ask(&table, "", "GET", "/", &[("accept", "text/html")]), Some(2));
    assert_eq!(ask(&table, "", "HEAD", "/", &[("accept", "text/html")]), Some(2));
    assert_eq!(ask(&table, "", "POST", "/", &[("accept", "text/html")]), None);
    assert_eq!(ask(&table, "", "POST", "*", &[("X-Any", "")]), Some(3));
}

#[test]
fn a_request_without_a_path_fits_where_none_is_asked_for() {
    let table = Table::new(vec![rule(&[], below("")), rule(&[], None)]);
    assert_eq!(ask(&table, "", "OPTIONS", "*", &[]), Some(1));
    assert_eq!(ask(&table, "", "OPTIONS", "/", &[]), Some(0));
}

#[test]
fn what_an_earlier_route_takes_is_never_reached() {
    let table = Table::new(vec![
        rule(&["*.example.org"], below("/api")),
        rule(&["a.example.org"], exact("/api/x")),
        rule(&["a.example.org", "b.org"], exact("/api/x")),
        rule(&["*.x.example.org"], pattern("/api/*/y")),
        rule(&[], pattern("/apis*")),
        rule(&[], below("/api")),
        rule(&["b.org"], exact("/apisx")),
    ]);
    assert_eq!(table.shadowed(), [(1, 0), (3, 0), (6, 4)]);
}

const HOSTS: [&str; 6] = ["a.b", "b", "*.b", "*.a.b", "c.a.b", "x"];
const PATHS: [&str; 6] = ["/", "/a", "/a/b", "/a/bc", "/b", "/a/"];

fn rules() -> impl Strategy<Value = Rule> {
    let path = prop_oneof![
        Just(None),
        prop::sample::select(PATHS.to_vec()).prop_map(exact),
        prop::sample::select(vec!["", "/a", "/a/b", "/b"]).prop_map(below),
        prop::sample::select(vec!["/*", "/a/*", "/a/**", "/a/b*", "**"]).prop_map(pattern),
    ];
    let wanted = prop_oneof![
        Just(FieldCondition::Present),
        Just(FieldCondition::Equal(b"1".as_slice().into())),
        Just(FieldCondition::Pattern(Pattern::new(b"1*").unwrap())),
    ];
    let field = (prop::sample::select(vec!["x", "Y"]), wanted)
        .prop_map(|(name, wanted)| FieldRule::new(name, wanted).unwrap());
    let hosts = prop::collection::vec(prop::sample::select(HOSTS.to_vec()), 0..3);
    let methods = prop::collection::vec(prop::sample::select(vec!["GET", "HEAD", "PUT"]), 0..2);
    (hosts, path, methods, prop::collection::vec(field, 0..2)).prop_map(
        |(hosts, path, methods, fields)| {
            let methods = methods.into_iter().map(Into::into).collect();
            Rule { methods, fields, ..rule(&hosts, path) }
        },
    )
}

/// Whether a route matches a host, by the definition.
fn is_for(rule: &Rule, host: &str) -> bool {
    rule.hosts.is_empty()
        || rule.hosts.iter().any(|one| match one {
            Host::Exact(name) => **name == *host,
            Host::Below(name) => host.ends_with(&format!(".{name}")),
        })
}

proptest! {
    #[test]
    fn the_table_finds_what_a_walk_over_all_routes_finds(
        rules in prop::collection::vec(rules(), 0..8),
        host in prop::sample::select(vec!["a.b", "b", "c.a.b", "d.c.a.b", "x", "y", ""]),
        method in prop::sample::select(vec!["GET", "HEAD", "PUT", "POST"]),
        path in prop::sample::select(PATHS.to_vec()),
        lines in prop::collection::vec((prop::sample::select(vec!["X", "y"]), prop::sample::select(vec!["1", "12", "2"])), 0..3),
    ) {
        let mut fields = Fields::headers();
        for (name, value) in lines {
            fields.append(name, value).unwrap();
        }
        let asked = RouteRequest { host: host.as_bytes(), method: method.as_bytes(), path: Some(path.as_bytes()), fields: &fields };
        let fitting: Vec<usize> =
            (0..rules.len()).filter(|&place| is_for(&rules[place], host) && rules[place].fits(&asked)).collect();
        let table = Table::new(rules);
        prop_assert_eq!(table.find(&asked), fitting.first().copied());
        for (late, early) in table.shadowed() {
            prop_assert!(early < late);
            prop_assert!(!fitting.contains(&late) || fitting.contains(&early), "{} hides {}", early, late);
        }
    }
}
