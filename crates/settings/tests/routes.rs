//! Routes: their meaning, and routes that no request can reach.

use settings::{
    Configuration, Diagnostic, RespondBody, RouteAccess, RouteAction, Secret, Source, parse,
};

fn file(listener: &str) -> Source {
    let text = format!(
        "[pool.main]\nservers = [\"127.0.0.1:1\"]\n[pool]\n\
         echo = {{ program = [\"cat\"], framing = \"jsonrpc\" }}\n[listener.web]\nlisten = \":0\"\nprotocol = \"http\"\n{listener}\n"
    );
    Source { name: "roadstead.toml".into(), text }
}

fn read(listener: &str) -> Configuration {
    parse(&file(listener), &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn routes_stand_one_below_the_other_or_in_a_list() {
    let one = read("route = [\"main\", { path = \"/x\", respond = { status = 204 } }]");
    let other = read(
        "[[listener.web.route]]\npool = \"main\"\n[[listener.web.route]]\npath = \"/x\"\n\
         respond.status = 204",
    );
    assert_eq!(one.listeners, other.listeners);
    let web = &one.listeners[0];
    assert_eq!(web.pool, None);
    assert_eq!(web.http.routes[0].pool(), Some("main"));
    assert_eq!(web.http.routes[0].access, RouteAccess::Inherited);
    let body = RespondBody::Text(String::new());
    let content_type = "text/plain; charset=utf-8".to_owned();
    assert_eq!(web.http.routes[1].action, RouteAction::Respond { status: 204, body, content_type });
}

#[test]
fn who_is_let_through_is_said_by_places_of_secrets() {
    let web = read(
        "pool = \"main\"\nauthenticate = { bearer = [\"env:A\"], basic = \"file:users\" }\n\
         route = [{ pool = \"main\", public = true }]",
    );
    let http = &web.listeners[0].http;
    let said = http.authenticate.as_ref().expect("it was said");
    assert_eq!(said.bearer, [Secret::Environment("A".into())]);
    assert_eq!(said.basic, Some(Secret::File("users".into())));
    assert_eq!((said.realm.as_str(), said.forward), ("roadstead", false));
    assert_eq!(http.routes[0].access, RouteAccess::Public);
}

#[test]
fn a_route_that_can_never_match_is_found_at_its_place() {
    let listener = "[[listener.web.route]]\nprefix = \"/a\"\npool = \"main\"\n\
                    [[listener.web.route]]\npath = \"/a/b\"\nrespond = {}";
    let (source, configuration) = (file(listener), read(listener));
    let remarks = settings::warnings(&configuration);
    let placed = settings::placed(&source, &remarks);
    let list: Vec<&Diagnostic> = placed.iter().collect();
    assert_eq!(list.len(), 1, "{placed}");
    assert_eq!(list[0].line, 11, "{placed}");
    assert!(
        list[0]
            .message
            .starts_with("route 2 of `[listener.web]` can never match, because route 1 matches")
    );
    assert_eq!(settings::warnings(&read("pool = \"main\"")), []);
}
