//! What a pool answers with when it is sorry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exchange::{Cause, PoolId, RequestId, Slice};
use wire::http1::Answer;

use super::PlanError;

/// What a pool answers with when it is sorry.
#[derive(Clone, Debug)]
pub(crate) enum SorryPlan {
    /// The body alone to clients that read no head.
    Page(Arc<Page>),
    /// The place of another pool.
    Pool(PoolId),
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    content_type: String,
    /// Further lines of the head, each with its end.
    lines: Vec<u8>,
    body: Body,
}

/// The body of a page.
#[derive(Debug)]
enum Body {
    Fixed(Slice),
    /// Text between variables.
    Template(Vec<Piece>),
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Variable(Variable),
}

/// What a page may say of the request that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    RequestId,
    Cause,
    Pool,
}

impl Variable {
    const ALL: [(&'static str, Self); 3] =
        [("{request_id}", Self::RequestId), ("{cause}", Self::Cause), ("{pool}", Self::Pool)];
}

impl Body {
    /// Braces around anything else are text: pages have styles and scripts.
    fn read(text: Slice) -> Self {
        let pieces = pieces(&text);
        match pieces.iter().any(|piece| matches!(piece, Piece::Variable(_))) {
            true => Self::Template(pieces),
            false => Self::Fixed(text),
        }
    }
}

fn pieces(mut text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let found = Variable::ALL.iter().filter_map(|(name, variable)| {
            let at = text.windows(name.len()).position(|window| window == name.as_bytes())?;
            Some((at, name.len(), *variable))
        });
        let Some((at, length, variable)) = found.min_by_key(|(at, ..)| *at) else {
            pieces.push(Piece::Text(text.to_vec()));
            break;
        };
        if at > 0 {
            pieces.push(Piece::Text(text[..at].to_vec()));
        }
        pieces.push(Piece::Variable(variable));
        text = &text[at + length..];
    }
    pieces
}

impl Page {
    /// The response with a body that [`Self::fill`] has made.
    pub(crate) fn answer<'a>(&'a self, body: &'a [u8], keep_alive: bool) -> Answer<'a> {
        Answer {
            status: self.status,
            content_type: &self.content_type,
            lines: &self.lines,
            body,
            keep_alive,
        }
    }

    /// The body for a request: with its id, why its pool did not serve it, and the name of the pool.
    pub(crate) fn fill(&self, id: RequestId, cause: Cause, pool: &str) -> Slice {
        let pieces = match &self.body {
            Body::Fixed(body) => return body.clone(),
            Body::Template(pieces) => pieces,
        };
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Variable(Variable::RequestId) => {
                    out.extend_from_slice(id.to_string().as_bytes());
                }
                Piece::Variable(Variable::Cause) => out.extend_from_slice(cause.word().as_bytes()),
                Piece::Variable(Variable::Pool) => out.extend_from_slice(pool.as_bytes()),
            }
        }
        Slice::from(&out[..])
    }
}

pub(super) fn answer(
    pool: &str,
    answer: settings::SorryAnswer,
    http: settings::SorryHttp,
    places: &BTreeMap<String, PoolId>,
) -> Result<SorryPlan, PlanError> {
    let page = |body, ending: &str, location: Option<&str>| {
        SorryPlan::Page(Arc::new(page(&http, body, ending, location)))
    };
    match answer {
        settings::SorryAnswer::Line(line) => Ok(page(Slice::from(line.as_str()), "", None)),
        settings::SorryAnswer::Redirect(to) => Ok(page(Slice::default(), "", Some(&to))),
        settings::SorryAnswer::Pool(name) => {
            places.get(&name).copied().map(SorryPlan::Pool).ok_or(PlanError::NoPool(name))
        }
        settings::SorryAnswer::File(path) => {
            let bytes = read(pool, &path)?;
            let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
            Ok(page(Slice::from(body), ending, None))
        }
    }
}

/// What is in the file that a pool answers with.
pub(super) fn read(pool: &str, path: &str) -> Result<Vec<u8>, PlanError> {
    settings::read_named(Path::new(path)).map_err(|error| PlanError::Sorry {
        pool: pool.to_owned(),
        why: format!("its answer `{path}` cannot be read: {error}"),
    })
}

fn page(http: &settings::SorryHttp, body: Slice, ending: &str, location: Option<&str>) -> Page {
    let settings::SorryHttp { status, content_type, retry_after } = http;
    let by_ending = match ending {
        "html" | "htm" => "text/html; charset=utf-8",
        "json" => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    // What it says is true for the moment only.
    let mut lines = String::from("Cache-Control: no-store\r\n");
    if let Some(to) = location {
        lines.push_str(&format!("Location: {to}\r\n"));
    }
    let seconds = retry_after.saturating_add(Duration::from_millis(999)).as_secs();
    if seconds > 0 {
        lines.push_str(&format!("Retry-After: {seconds}\r\n"));
    }
    Page {
        status: status.unwrap_or(if location.is_some() { 302 } else { 503 }),
        content_type: content_type.clone().unwrap_or_else(|| by_ending.to_owned()),
        lines: lines.into_bytes(),
        body: Body::read(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let http =
            settings::SorryHttp { status: None, content_type: None, retry_after: Duration::ZERO };
        let page = page(&http, Slice::from(text), "html", None);
        let body = page.fill(RequestId::new(7), Cause::Full, "api");
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn variables_are_replaced_and_other_braces_are_text() {
        assert_eq!(filled("{request_id}: {pool} is {cause}, {cause}"), "7: api is full, full");
        for text in ["p { color: red }", "{id}", "{", "{cause", "", "{request_id", "{{}}"] {
            assert_eq!(filled(text), text);
        }
        assert_eq!(filled("p{x}{{pool}}"), "p{x}{api}");
    }
}
