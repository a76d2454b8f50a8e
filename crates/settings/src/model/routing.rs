//! Parses routes from the result of the walk.
//!
//! What it is: for each part of a route its value, or the fault in it. What it depends on: the options of a route and
//! the parsers of `route`. What it must never depend on: a pool.

use std::fmt::Display;

use route::{
    Authenticator, Edits, FieldCondition, FieldRule, Host, Path, PathRule, Pattern, Rewrite, Rule,
    Template,
};

use crate::fault::Fault;
use crate::foreign;
use crate::model::{Authenticate, RespondBody, Route, RouteAccess, RouteAction, Secret};
use crate::options::{Group, Value};
use crate::values;

/// Statuses of redirects.
const REDIRECTS: [u64; 5] = [301, 302, 303, 307, 308];

/// Returns the routes of a listener, without those that have a fault.
pub(crate) fn routes(listener: &Group, faults: &mut Vec<Fault>) -> Vec<Route> {
    listener.groups("route").iter().filter_map(|group| route(group, faults)).collect()
}

fn route(group: &Group, faults: &mut Vec<Fault>) -> Option<Route> {
    let rule = rule(group, faults);
    let action = action(group, faults);
    let request = edits(group, "request_headers", faults);
    let reply = edits(group, "response_headers", faults);
    let own = authenticate(group, faults);
    let access = match (own, group.is("public", true)) {
        (Some(_), true) => {
            let message = "a route that is public lets everybody through";
            return fault(group, "public", message, "remove `public` or `authenticate`", faults);
        }
        (Some(own), _) => RouteAccess::Own(own),
        (None, true) => RouteAccess::Public,
        (None, _) => RouteAccess::Inherited,
    };
    let allow_upgrade = group.get("allow_upgrade");
    Some(Route { rule: rule?, action: action?, request, reply, access, allow_upgrade })
}

/// As [`report`], and returns `None`.
fn fault<T>(
    group: &Group,
    option: &str,
    message: impl Into<String>,
    suggestion: impl Into<String>,
    faults: &mut Vec<Fault>,
) -> Option<T> {
    report(group, option, message, suggestion, faults);
    None
}

/// Reports a fault at an option of a group, or at another option of the group if this one is missing.
fn report(
    group: &Group,
    option: &str,
    message: impl Into<String>,
    suggestion: impl Into<String>,
    faults: &mut Vec<Fault>,
) {
    let place = group.place(option).unwrap_or_default();
    faults.push(Fault::at(place, message).suggestion(suggestion));
}

fn wrong(option: &str, text: &str, why: impl Display) -> String {
    format!("`{text}` in `{option}` {why}")
}

fn rule(group: &Group, faults: &mut Vec<Fault>) -> Option<Rule> {
    let before = faults.len();
    let mut rule = Rule::default();
    for name in group.texts("host") {
        match Host::parse(name) {
            Ok(host) => rule.hosts.push(host),
            Err(why) => {
                let suggestion = "write a host like \"example.org\" or \"*.example.org\"";
                report(group, "host", wrong("host", name, why), suggestion, faults);
            }
        }
    }
    for method in group.texts("method") {
        let upper = method.to_ascii_uppercase();
        if method.is_empty()
            || !method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            let suggestion = "write one like \"GET\"";
            report(group, "method", wrong("method", method, "is no method"), suggestion, faults);
        } else if *method != upper {
            let why = "is not in capitals, and no client sends it so";
            let suggestion = format!("write \"{upper}\"");
            report(group, "method", wrong("method", method, why), suggestion, faults);
        }
        rule.methods.push(method.as_str().into());
    }
    rule.path = path_rule(group, faults);
    let headers = group.groups("header").iter();
    rule.fields = headers.filter_map(|header| field_rule(header, faults)).collect();
    (faults.len() == before).then_some(rule)
}

fn path_rule(group: &Group, faults: &mut Vec<Fault>) -> Option<PathRule> {
    let given: Vec<_> = ["path", "prefix", "pattern"]
        .into_iter()
        .filter_map(|option| Some((option, group.text(option)?)))
        .collect();
    let &(option, text) = given.first()?;
    if let Some((other, _)) = given.get(1) {
        let message = format!("a route has either `{option}` or `{other}`");
        return fault(group, other, message, "make two routes of it", faults);
    }
    let path = canonical(group, option, text, faults)?;
    match option {
        "path" => Some(PathRule::Exact(path.into_bytes().into())),
        "prefix" => Some(PathRule::Below(path.trim_end_matches('/').as_bytes().into())),
        _ => match Pattern::new(path.as_bytes()) {
            Ok(pattern) => Some(PathRule::Pattern(pattern)),
            Err(why) => {
                fault(group, option, wrong(option, text, why), "write a shorter one", faults)
            }
        },
    }
}

/// Returns the path in canonical form. A path in another form is a fault, because it would never match.
fn canonical(group: &Group, option: &str, text: &str, faults: &mut Vec<Fault>) -> Option<String> {
    let mut scratch = Vec::new();
    let (why, suggestion) = match Path::read(text.as_bytes(), &mut scratch) {
        _ if option != "pattern" && foreign::is_regex(text)
            || option == "pattern" && text.starts_with(['^', '~']) =>
        {
            let why = "is a regular expression, and there are none in routes".to_owned();
            (why, foreign::INSTEAD_OF_REGEX.to_owned())
        }
        _ if text.contains(['?', '#']) => {
            ("has a query, and only paths are compared".to_owned(), "remove it".to_owned())
        }
        Ok(path) if path.plain() == text.as_bytes() => return Some(text.to_owned()),
        Ok(path) => {
            let plain = String::from_utf8_lossy(path.plain()).into_owned();
            ("is not how paths are compared".to_owned(), format!("write \"{plain}\""))
        }
        Err(_) if !text.starts_with('/') => {
            ("does not begin with a slash".to_owned(), format!("write \"/{text}\""))
        }
        Err(why) => (
            format!("is no path: {}", why.message()),
            "write it as clients send it, with `%` and two digits for other characters".to_owned(),
        ),
    };
    fault(group, option, wrong(option, text, why), suggestion, faults)
}

fn field_rule(group: &Group, faults: &mut Vec<Fault>) -> Option<FieldRule> {
    let name = group.text("name")?;
    let wanted = match (group.text("equals"), group.text("pattern")) {
        (Some(_), Some(_)) => {
            let message = "a field has either `equals` or `pattern`";
            return fault(group, "pattern", message, "keep one of the two", faults);
        }
        (Some(text), None) => FieldCondition::Equal(text.as_bytes().into()),
        (None, Some(text)) => match Pattern::new(text.as_bytes()) {
            Ok(pattern) => FieldCondition::Pattern(pattern),
            Err(why) => {
                let suggestion = "write a shorter one";
                return fault(group, "pattern", wrong("pattern", text, why), suggestion, faults);
            }
        },
        (None, None) => FieldCondition::Present,
    };
    let rule = FieldRule::new(name, wanted);
    if rule.is_none() {
        let suggestion = "write one like \"x-beta\"";
        report(
            group,
            "name",
            wrong("name", name, "is not the name of a field"),
            suggestion,
            faults,
        );
    }
    rule
}

fn action(group: &Group, faults: &mut Vec<Fault>) -> Option<RouteAction> {
    let given: Vec<&str> = ["pool", "redirect", "respond"]
        .into_iter()
        .filter(|one| group.find(one).is_some())
        .collect();
    match given[..] {
        ["pool"] => {}
        [_] if group.find("rewrite").is_some() => {
            let message = "only what a pool answers is rewritten";
            return fault(group, "rewrite", message, "remove it", faults);
        }
        [_] => {}
        [one, other, ..] => {
            let message = format!("a route has either `{one}` or `{other}`");
            return fault(group, other, message, "keep one of the two", faults);
        }
        [] => {
            let message = "a route says what becomes of its requests";
            let suggestion = "add `pool`, `redirect` or `respond`";
            faults.push(Fault::at(group.header(), message).suggestion(suggestion));
            return None;
        }
    }
    match (group.value("pool"), group.value("redirect"), group.value("respond")) {
        (Some(Value::Text(pool)), ..) => {
            let rewrite = match group.value("rewrite") {
                Some(Value::Group(inner)) => Some(rewrite(group, inner, faults)?),
                _ => None,
            };
            Some(RouteAction::Pool { pool: pool.clone(), rewrite })
        }
        (_, Some(Value::Group(inner)), _) => redirect(group, inner, faults),
        (.., Some(Value::Group(inner))) => respond(inner, faults),
        _ => None,
    }
}

fn rewrite(route: &Group, group: &Group, faults: &mut Vec<Fault>) -> Option<Rewrite> {
    if let Some(to) = group.text("to") {
        if group.find("strip").is_some() || group.find("add").is_some() {
            let message = "a rewrite has either `to`, or `strip` and `add`";
            return fault(group, "to", message, "keep one of them", faults);
        }
        let template = template(route, group, to, faults)?;
        if !template.begins_with_slash() {
            let why = "does not always begin with a slash";
            return fault(
                group,
                "to",
                wrong("to", to, why),
                "begin it with `/` or `{path}`",
                faults,
            );
        }
        if template.names_query() {
            let why = "has a query, which stays as it was asked";
            return fault(group, "to", wrong("to", to, why), "remove it", faults);
        }
        return Some(Rewrite::To(template));
    }
    let part = |option: &str, faults: &mut Vec<Fault>| match group.text(option) {
        None => Some(Box::default()),
        Some(text) => {
            let path = canonical(group, option, text, faults)?;
            Some(path.trim_end_matches('/').as_bytes().into())
        }
    };
    let (strip, add): (Box<[u8]>, Box<[u8]>) = (part("strip", faults)?, part("add", faults)?);
    if strip.is_empty() && add.is_empty() {
        return fault(
            route,
            "rewrite",
            "this rewrites nothing",
            "give `strip`, `add` or `to`",
            faults,
        );
    }
    let own = route.text("prefix").or_else(|| route.text("path"));
    let mut scratch = Vec::new();
    if let Some(own) = own
        && let Ok(path) = Path::read(own.trim_end_matches('/').as_bytes(), &mut scratch)
        && !path.is_below(&strip)
    {
        let strip = group.text("strip").unwrap_or_default();
        let why = format!("is no part of `{own}`, so it would never be stripped");
        return fault(
            group,
            "strip",
            wrong("strip", strip, why),
            format!("write \"{own}\""),
            faults,
        );
    }
    Some(Rewrite::Prefix { add, strip })
}

fn template(route: &Group, group: &Group, to: &str, faults: &mut Vec<Fault>) -> Option<Template> {
    match Template::parse(to) {
        Err(why) => {
            let suggestion = "parts are `{host}`, `{path}`, `{rest}` and `{query}`";
            fault(group, "to", wrong("to", to, why), suggestion, faults)
        }
        Ok(template) if template.names_rest() && route.find("prefix").is_none() => {
            let why = "has `{rest}`, what lies behind a prefix, and the route has none";
            let suggestion = "write `{path}`, or give the route a `prefix`";
            fault(group, "to", wrong("to", to, why), suggestion, faults)
        }
        Ok(template) => Some(template),
    }
}

fn redirect(route: &Group, group: &Group, faults: &mut Vec<Fault>) -> Option<RouteAction> {
    let (to, status) = (group.text("to")?, group.number("status")?);
    if !REDIRECTS.contains(&status) {
        let message = format!("a redirect has no status {status}");
        return fault(group, "status", message, "write 301, 302, 303, 307 or 308", faults);
    }
    let template = template(route, group, to, faults)?;
    let is_target =
        ["/", "http://", "https://", "{path}"].iter().any(|front| to.starts_with(front));
    if !is_target {
        let suggestion = "begin it with `/` or `https://`";
        return fault(group, "to", wrong("to", to, "leads nowhere"), suggestion, faults);
    }
    Some(RouteAction::Redirect { status: u16::try_from(status).ok()?, to: template })
}

fn respond(group: &Group, faults: &mut Vec<Fault>) -> Option<RouteAction> {
    let status = u16::try_from(group.number("status")?).ok()?;
    let content_type = group.text("type")?;
    if content_type.bytes().any(|byte| !(32..127).contains(&byte)) {
        let suggestion = "write one like \"text/html\"";
        return fault(group, "type", wrong("type", content_type, "is no type"), suggestion, faults);
    }
    let body = match (group.text("body"), group.text("file")) {
        (Some(_), Some(_)) => {
            let message = "an answer has either `body` or `file`";
            return fault(group, "file", message, "keep one of the two", faults);
        }
        (None, Some(file)) => RespondBody::File(file.to_owned()),
        (body, None) => RespondBody::Text(body.unwrap_or_default().to_owned()),
    };
    if let (204 | 205 | 304, Some(option)) =
        (status, ["body", "file"].into_iter().find(|option| group.find(option).is_some()))
    {
        let message = format!("an answer with status {status} has no body");
        return fault(group, option, message, "remove it, or write another `status`", faults);
    }
    Some(RouteAction::Respond { status, body, content_type: content_type.to_owned() })
}

/// Returns the changes to a head, without those that are not allowed.
pub(crate) fn edits(group: &Group, option: &str, faults: &mut Vec<Fault>) -> Edits {
    let mut edits = Edits::none();
    let Some(inner) = group.inner(option) else { return edits };
    let suggestion = "see docs/routes.md for what can be changed";
    for name in inner.texts("remove") {
        if let Err(why) = edits.remove(name) {
            report(inner, "remove", wrong("remove", name, why), suggestion, faults);
        }
    }
    for (option, add) in [
        ("set", Edits::set as fn(&mut Edits, &str, &str) -> Result<(), route::EditFault>),
        ("append", Edits::append),
    ] {
        let Some(Value::Variables(fields)) = inner.value(option) else { continue };
        for (name, value) in fields {
            if let Err(why) = add(&mut edits, name, value) {
                report(inner, option, wrong(option, name, why), suggestion, faults);
            }
        }
    }
    edits
}

/// Returns the authentication, if it is configured.
pub(crate) fn authenticate(group: &Group, faults: &mut Vec<Fault>) -> Option<Authenticate> {
    let inner = group.inner("authenticate")?;
    let realm = inner.text("realm")?;
    if let Err(why) = Authenticator::new(realm) {
        return fault(inner, "realm", wrong("realm", realm, why), "write plain words", faults);
    }
    let mut bearer = Vec::new();
    for text in inner.texts("bearer") {
        match values::secret(text) {
            Ok(secret) => bearer.push(secret),
            // The entry may be the secret itself, so it is not shown.
            Err(bad) => {
                let message = format!("an entry of `bearer` {}", bad.why);
                report(inner, "bearer", message, bad.suggestion.unwrap_or_default(), faults);
            }
        }
    }
    let basic: Option<Secret> = inner.get("basic");
    if bearer.is_empty() && inner.find("bearer").is_none() && inner.find("basic").is_none() {
        let message = "nobody would be let through";
        return fault(group, "authenticate", message, "give `bearer` or `basic`", faults);
    }
    let forward = inner.is("forward", true);
    Some(Authenticate { bearer, basic, realm: realm.to_owned(), forward })
}
