//! Routes.

use route::{Edits, Rewrite, Rule, Template};

use crate::options::{Opt, Options, Setting, Value, options, read_as, settings};
use crate::values::Secret;

/// One route of an HTTP listener (`[[listener.NAME.route]]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The rule that requests must match.
    pub rule: Rule,
    /// The action for these requests.
    pub action: RouteAction,
    /// Changes to the heads of requests.
    pub request: Edits,
    /// Changes to the heads of their replies.
    pub reply: Edits,
    /// Which clients are accepted.
    pub access: RouteAccess,
    /// Whether requests may upgrade to another protocol. `None`: the setting of the listener applies.
    pub allow_upgrade: Option<bool>,
}

impl Route {
    /// The pool that answers, if the action is a pool.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        match &self.action {
            RouteAction::Pool { pool, rewrite: _ } => Some(pool),
            RouteAction::Redirect { .. } | RouteAction::Respond { .. } => None,
        }
    }
}

/// The action for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteAction {
    /// A pool answers.
    Pool {
        /// The name of the pool.
        pool: String,
        /// The changes to the path before the request is forwarded.
        rewrite: Option<Rewrite>,
    },
    /// The client is redirected.
    Redirect {
        /// The status: 301, 302, 303, 307 or 308.
        status: u16,
        /// The location.
        to: Template,
    },
    /// The route answers with a fixed response.
    Respond {
        /// The status: 200 to 599.
        status: u16,
        /// The body.
        body: RespondBody,
        /// The content type of the body.
        content_type: String,
    },
}

/// The body of a fixed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespondBody {
    /// This text.
    Text(String),
    /// The content of the file of this name.
    File(String),
}

/// Which clients a route accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// The clients that the listener accepts.
    Inherited,
    /// All clients.
    Public,
    /// Clients that pass this authentication.
    Own(Authenticate),
}

options! {
    /// Authentication of clients.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Authenticate of Any reload Live {
        /// Places of bearer tokens, as `env:NAME` or `file:PATH`; one token per line, at least 16 characters each.
        bearer: Vec<Secret> as places;
        /// Place of the users for basic authentication; one line `USER:DIGEST` per user, with the SHA-256 of
        /// `USER:PASSWORD` in hexadecimal.
        basic: Option<Secret> as secret;
        /// Realm that browsers show in the login dialogue.
        realm: String as text = "roadstead";
        /// Whether the `Authorization` field is forwarded to the server. Otherwise it is removed.
        forward: bool as switch = "false";
    }
}

settings! {
    Vec<Secret>, read_as::Texts: Some(Value::Texts(texts)) => {
        texts.iter().filter_map(|text| crate::values::secret(text).ok()).collect()
    }, None => Self::new();
}

options! {
    /// The options of a route, from which `routes` makes a [`Route`].
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RouteRows of Any reload Live {
        /// Hosts to match, like `example.org`, or `*.example.org` for all subdomains.
        host: Vec<String> as names;
        /// Path to match exactly.
        path: Option<String> as path;
        /// Path prefix to match, by whole segments: `/api` matches `/api` and `/api/x`, but not `/apis`.
        prefix: Option<String> as path;
        /// Path pattern to match: `*` matches any characters except slashes, `**` matches any characters.
        pattern: Option<String> as text;
        /// Methods to match. GET also matches HEAD.
        method: Vec<String> as names;
        /// Header fields to match. A request must match all of them.
        header: Vec<HeaderRows> as list("name");
        /// The pool that answers.
        pool: Option<String> as pool;
        /// Changes to the path before the request is forwarded. The query is kept.
        rewrite: Option<RewriteRows> as table;
        /// In place of a pool: redirects the client.
        redirect: Option<RedirectRows> as table;
        /// In place of a pool: answers with a fixed response.
        respond: Option<RespondRows> as table, former(&["fixed"]);
        /// Whether requests may upgrade to another protocol. Default: the value of the listener.
        allow_upgrade: Option<bool> as switch;
        /// Changes to the head of requests, after the changes of the listener.
        request_headers: Option<HeaderEdits> as table;
        /// Changes to the head of replies, after the changes of the listener.
        response_headers: Option<HeaderEdits> as table;
        /// Authentication of clients, in place of that of the listener.
        authenticate: Option<Authenticate> as table;
        /// Whether all clients are accepted, even if the listener has `authenticate`.
        public: bool as switch = "false";
    }
}

options! {
    /// A header field that a request must have.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct HeaderRows of Any reload Live {
        /// Name of the field.
        name: String as name = required;
        /// Value that a field of this name must have.
        equals: Option<String> as text;
        /// Pattern that the value of a field of this name must match: `*` matches any characters except slashes, `**`
        /// matches any characters.
        pattern: Option<String> as text;
    }
}

options! {
    /// Changes to the path before the request is forwarded.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RewriteRows of Any reload Live {
        /// Prefix to remove from the path.
        strip: Option<String> as path;
        /// Prefix to add, in place of the removed one or before the path.
        add: Option<String> as path;
        /// New path. `{path}`, `{host}` and, with `prefix`, `{rest}` are replaced by these parts of the request.
        to: Option<String> as path;
    }
}

options! {
    /// A redirect.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RedirectRows of Any reload Live {
        /// Location. `{host}`, `{path}`, `{query}` (with its question mark) and, with `prefix`, `{rest}` are replaced
        /// by these parts of the request.
        to: String as path = required;
        /// Status: 301, 302, 303, 307 or 308.
        status: u16 as count(301, 308) = "302";
    }
}

options! {
    /// A fixed response.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RespondRows of Any reload Live {
        /// Status of the response.
        status: u16 as count(200, 599) = "200";
        /// Body of the response.
        body: Option<String> as text;
        /// File with the body of the response, read at startup and at each reload. No other user may be able to change a
        /// symbolic link in its path.
        file: Option<String> as name;
        /// `Content-Type` of the response.
        content_type("type"): String as name = "text/plain; charset=utf-8";
    }
}

options! {
    /// Changes to a head.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct HeaderEdits of Any reload Live {
        /// Names of fields to remove, before the other changes.
        remove: Vec<String> as names;
        /// Fields to set. Each replaces all fields of its name.
        set: Vec<(String, String)> as variables;
        /// Fields to add, also if fields of the same name exist.
        append: Vec<(String, String)> as variables;
    }
}

/// Implements [`Setting`] for lists of tables.
macro_rules! lists {
    ($($row:ident),+) => {$(
        impl Setting for Vec<$row> {
            type As = read_as::Tables;
            const OPTIONS: &'static [Opt] = $row::OPTIONS;

            fn of(value: Option<&Value>) -> Self {
                match value {
                    Some(Value::Groups(groups)) => groups.iter().map($row::fill).collect(),
                    _ => Self::new(),
                }
            }
        }
    )+};
}

lists!(RouteRows, HeaderRows);
