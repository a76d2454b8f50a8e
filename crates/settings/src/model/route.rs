//! Routes, as they are configured.

use route::{Edits, Rewrite, Rule, Template};

use super::secret::Secret;

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
            RouteAction::Redirect { .. } | RouteAction::Fixed { .. } => None,
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
    Fixed {
        /// 200 to 599.
        status: u16,
        /// The body.
        body: FixedBody,
        /// What the body is.
        content_type: String,
    },
}

/// The body of an answer that is always the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixedBody {
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

/// Who is let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate {
    /// Where tokens are.
    pub bearer: Vec<Secret>,
    /// Where users and digests of their passwords are.
    pub basic: Option<Secret>,
    /// What people are shown when they are asked.
    pub realm: String,
    /// The server gets what the client brought.
    pub forward: bool,
}
