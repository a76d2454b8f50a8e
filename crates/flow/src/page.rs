//! An HTTP response with a fixed body or a body template.

use exchange::{Cause, RequestId, Slice};

/// A configured HTTP response.
#[derive(Debug)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: String,
    /// Additional header lines, each ending in CRLF.
    pub lines: Vec<u8>,
    body: Body,
}

/// The body of a page.
#[derive(Debug)]
enum Body {
    Fixed(Slice),
    /// Text and variables, in order.
    Template(Vec<Piece>),
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Variable(Variable),
}

/// A variable of a body template.
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
    /// Parses a body. Braces around other text are literal, since pages contain styles and scripts.
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
    /// A response whose `body` may contain `{request_id}`, `{cause}` and `{pool}`. `lines`: additional header lines,
    /// each ending in CRLF.
    pub fn new(status: u16, content_type: String, lines: Vec<u8>, body: Slice) -> Self {
        Self { status, content_type, lines, body: Body::read(body) }
    }

    /// The body for one request: its id, the cause of its rejection and the name of its pool replace the variables.
    pub fn fill(&self, id: RequestId, cause: Cause, pool: &str) -> Slice {
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
                Piece::Variable(Variable::Cause) => {
                    out.extend_from_slice(cause.as_str().as_bytes());
                }
                Piece::Variable(Variable::Pool) => out.extend_from_slice(pool.as_bytes()),
            }
        }
        Slice::from(&out[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let page = Page::new(503, "text/html".to_owned(), Vec::new(), Slice::from(text));
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
