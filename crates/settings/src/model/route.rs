//! Routes, as they are configured.

use route::{Edits, Rewrite, Rule, Template};

use crate::options::{Opt, Options, Setting, Value, options, read_as, settings};
use crate::values::Secret;

/// One route of a listener of HTTP (`[[listener.NAME.route]]`).
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Which requests it is for.
    pub rule: Rule,
    /// What becomes of them.
    pub action: RouteAction,
    /// What is changed in their heads.
    pub request: Edits,
    /// What is changed in the heads of their replies.
    pub reply: Edits,
    /// Who is let through.
    pub access: RouteAccess,
    /// Its requests may ask for another protocol; none: as the listener says.
    pub allow_upgrade: Option<bool>,
}

impl Route {
    /// The pool that answers, if one does.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        match &self.action {
            RouteAction::Pool { pool, rewrite: _ } => Some(pool),
            RouteAction::Redirect { .. } | RouteAction::Respond { .. } => None,
        }
    }
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteAction {
    /// A pool answers.
    Pool {
        /// Its name.
        pool: String,
        /// What its server is asked for in place of the path.
        rewrite: Option<Rewrite>,
    },
    /// The client is sent elsewhere.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Where to.
        to: Template,
    },
    /// It is answered with this.
    Respond {
        /// 200 to 599.
        status: u16,
        /// The body.
        body: RespondBody,
        /// What the body is.
        content_type: String,
    },
}

/// The body of an answer that is always the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespondBody {
    /// This text.
    Text(String),
    /// What is in the file of this name.
    File(String),
}

/// Who is let through on a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Those whom the listener lets through.
    Inherited,
    /// Everybody.
    Public,
    /// These.
    Own(Authenticate),
}

options! {
    /// Who is let through.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Authenticate of Any reload Live {
        /// Where tokens are, as `env:NAME` or `file:PATH`; one a line, of 16 characters at least.
        bearer: Vec<Secret> as places;
        /// Where users are; a line for each, `USER:DIGEST`: the SHA-256 of `USER:PASSWORD` in hexadecimal.
        basic: Option<Secret> as secret;
        /// What people are shown when they are asked.
        realm: String as text = "roadstead";
        /// The server gets the `Authorization` too; else it is removed.
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
        /// Hosts that it is for, like `example.org`, or `*.example.org` for all below it.
        host: Vec<String> as names;
        /// The one path that it is for.
        path: Option<String> as path;
        /// The path that it is for with all below it: `/api` and `/api/x`, but not `/apis`.
        prefix: Option<String> as path;
        /// Paths that it is for: `*` stands for any characters but slashes, `**` for any.
        pattern: Option<String> as text;
        /// Methods that it is for; HEAD goes where GET goes.
        method: Vec<String> as names;
        /// Fields that a request must have, all of them.
        header: Vec<HeaderRows> as list("name");
        /// The pool that answers.
        pool: Option<String> as pool;
        /// What a server is asked for in place of the path; the query stays.
        rewrite: Option<RewriteRows> as table;
        /// In place of a pool: sends the client elsewhere.
        redirect: Option<RedirectRows> as table;
        /// In place of a pool: answers with this.
        respond: Option<RespondRows> as table;
        /// Whether its requests may ask for another protocol; without it, as the listener says.
        allow_upgrade: Option<bool> as switch;
        /// What is changed in the head of its requests, after what the listener changes.
        request_headers: Option<Edited> as table;
        /// What is changed in the head of its replies, after what the listener changes.
        response_headers: Option<Edited> as table;
        /// Who is let through, in place of what the listener says.
        authenticate: Option<Authenticate> as table;
        /// Everybody is let through, whatever the listener says.
        public: bool as switch = "false";
    }
}

options! {
    /// A field that a request must have.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct HeaderRows of Any reload Live {
        /// The name of the field.
        name: String as name = required;
        /// One of its name has this value.
        equals: Option<String> as text;
        /// One of its name has a value that fits: `*` stands for any characters but slashes, `**` for any.
        pattern: Option<String> as text;
    }
}

options! {
    /// What a server is asked for in place of the path.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RewriteRows of Any reload Live {
        /// This prefix goes.
        strip: Option<String> as path;
        /// This comes in its place, or before the path.
        add: Option<String> as path;
        /// This takes the place of the path; `{path}`, `{host}` and, with `prefix`, `{rest}` stand for parts of the
        /// request.
        to: Option<String> as path;
    }
}

options! {
    /// Where a client is sent.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RedirectRows of Any reload Live {
        /// Where to; `{host}`, `{path}`, `{query}` (with its question mark) and, with `prefix`, `{rest}` stand for
        /// parts of the request.
        to: String as path = required;
        /// 301, 302, 303, 307 or 308.
        status: u16 as count(301, 308) = "302";
    }
}

options! {
    /// An answer that is always the same.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct RespondRows of Any reload Live {
        /// Its status.
        status: u16 as count(200, 599) = "200";
        /// Its body.
        body: Option<String> as text;
        /// Its body is what is in this file, read at start. No other user may be able to change a symbolic link in
        /// its path.
        file: Option<String> as name;
        /// What its body is.
        content_type("type"): String as name = "text/plain; charset=utf-8";
    }
}

options! {
    /// What is changed in a head.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct Edited of Any reload Live {
        /// Fields of these names go, before anything else.
        remove: Vec<String> as names;
        /// Each is the one field of its name from now on.
        set: Vec<(String, String)> as variables;
        /// Each is added, whether its name is there or not.
        append: Vec<(String, String)> as variables;
    }
}

/// Lists of tables.
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
