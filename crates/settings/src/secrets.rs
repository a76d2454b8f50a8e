//! Which variables of the daemon hold secrets.

use std::collections::BTreeSet;

use crate::model::{Configuration, KnownBy, Pool, RouteAccess, Secret};

/// The prefix of a program's variable whose value is that of another variable.
const FROM_ENVIRONMENT: &str = "env:";

/// Returns the variable of the daemon that a program's variable takes its value from, if it is written `env:NAME`.
#[must_use]
pub fn passed_variable(value: &str) -> Option<&str> {
    value.strip_prefix(FROM_ENVIRONMENT).filter(|name| !name.is_empty())
}

impl Configuration {
    /// Returns the names of all variables that this configuration reads, each written `env:NAME` in it. Programs do not
    /// inherit them.
    #[must_use]
    pub fn secret_variables(&self) -> BTreeSet<String> {
        let admin = self.admin.iter().filter_map(|admin| admin.token.as_ref());
        let listeners = self.listeners.iter().flat_map(|listener| {
            let http = &listener.http;
            let routes = http.routes.iter().filter_map(|route| match &route.access {
                RouteAccess::Own(authenticate) => Some(authenticate),
                RouteAccess::Inherited | RouteAccess::Public => None,
            });
            let all = http.authenticate.iter().chain(routes);
            all.flat_map(|it| it.bearer.iter().chain(&it.basic))
        });
        let cluster = self.cluster.iter().map(|cluster| &cluster.secret);
        let pools = self.pools.iter().flat_map(of_pool);
        let named =
            admin.chain(cluster).chain(listeners).chain(pools).filter_map(|secret| match secret {
                Secret::Environment(name) => Some(name.clone()),
                Secret::File(_) => None,
            });
        let passed = self.pools.iter().filter_map(Pool::program).flat_map(|program| &program.env);
        let passed = passed.filter_map(|(_, value)| passed_variable(value).map(str::to_owned));
        named.chain(passed).chain(self.variables.iter().cloned()).collect()
    }
}

fn of_pool(pool: &Pool) -> impl Iterator<Item = &Secret> {
    let password = pool.database().and_then(|database| database.password.as_ref());
    let cookie = match pool.balancing.sticky.as_ref().map(|sticky| &sticky.by) {
        Some(KnownBy::Cookie(cookie)) => cookie.secret.as_ref(),
        Some(KnownBy::Key(_)) | None => None,
    };
    password.into_iter().chain(cookie)
}

#[cfg(test)]
mod tests {
    use crate::options::{Kind, Opt, Shows};
    use crate::parse::parse;
    use crate::source::Source;
    use crate::table::SECTIONS;

    #[test]
    fn every_option_that_names_a_secret_is_known() {
        fn count(options: &[Opt]) -> usize {
            options
                .iter()
                .map(|option| match option.kind {
                    Kind::Text(form) if form.shows == Shows::Place => 1,
                    Kind::Group(inner, _) | Kind::List(inner, _) => count(inner),
                    _ => 0,
                })
                .sum()
        }
        let all: usize = SECTIONS.iter().map(|section| count(section.options)).sum();
        let places = "[admin] token, [cluster] secret, password, sticky.secret, authenticate.basic of listeners and of routes";
        assert_eq!(all, 6, "the test below has: {places}");
    }

    #[test]
    fn variables_are_found_wherever_they_are_named() {
        let text = r#"
            [admin]
            listen = "127.0.0.1:7070"
            token = "env:ADMIN"
            [cluster]
            nats = ["nats://127.0.0.1:4222"]
            secret = "env:CLUSTER"
            [listener.web]
            listen = "127.0.0.1:7000"
            protocol = "http"
            pool = "api"
            send_max = "env:SIZE"
            authenticate = { bearer = ["env:BEARER", "file:/tokens"], basic = "env:BASIC" }
            [[listener.web.route]]
            prefix = "/x"
            pool = "api"
            authenticate = { bearer = ["env:ROUTE_BEARER"], basic = "env:ROUTE_BASIC" }
            [[listener.web.route]]
            prefix = "/y"
            respond = { body = "env:BODY" }
            [pool.api]
            servers = ["127.0.0.1:8000"]
            sticky = { cookie = "server", secret = "env:COOKIE" }
            [pool.store]
            database = "postgres://app@127.0.0.1/app"
            password = "env:PASSWORD"
            statement = "select 1"
            [pool.run]
            program = ["cat"]
            cwd = "env:FOLDER"
            env = { PASSED = "env:GIVEN", PLAIN = "environment", EMPTY = "env:" }
        "#;
        let environment = |name: &str| match name {
            "FOLDER" => Some("/srv".to_owned()),
            "BODY" => Some("x".to_owned()),
            "SIZE" => Some("64KiB".to_owned()),
            _ => None,
        };
        let source = Source { name: "test".into(), text: text.into() };
        let configuration =
            parse(&source, &environment).unwrap_or_else(|errors| panic!("{errors}"));
        let expected = [
            "ADMIN",
            "BASIC",
            "BEARER",
            "BODY",
            "CLUSTER",
            "COOKIE",
            "FOLDER",
            "GIVEN",
            "PASSWORD",
            "ROUTE_BASIC",
            "ROUTE_BEARER",
            "SIZE",
        ];
        assert_eq!(configuration.secret_variables().iter().collect::<Vec<_>>(), expected);
    }
}
