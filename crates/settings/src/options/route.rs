// tidy: table
//! The options of routes, and of what a listener of HTTP does with heads.

use super::declare::{any, count};
use super::shape::{Default, Kind, Opt, Short};

use Default::{Is, None as Nothing, Required};

/// Which way a request goes.
pub(super) const ROUTE: &[Opt] = &[
    any(
        "host",
        Kind::Names,
        Nothing,
        "Hosts that it is for, like `example.org`, or `*.example.org` for all below it.",
    ),
    any("path", Kind::Text, Nothing, "The one path that it is for."),
    any(
        "prefix",
        Kind::Text,
        Nothing,
        "The path that it is for with all below it: `/api` and `/api/x`, but not `/apis`.",
    ),
    any(
        "pattern",
        Kind::Text,
        Nothing,
        "Paths that it is for: `*` stands for any characters but slashes, `**` for any.",
    ),
    any("method", Kind::Names, Nothing, "Methods that it is for; HEAD goes where GET goes."),
    any(
        "header",
        Kind::List(HEADER, "name"),
        Nothing,
        "Fields that a request must have, all of them.",
    ),
    any("pool", Kind::Pool, Nothing, "The pool that answers."),
    any(
        "rewrite",
        Kind::Group(REWRITE, Short::None),
        Nothing,
        "What a server is asked for in place of the path; the query stays.",
    ),
    any(
        "redirect",
        Kind::Group(REDIRECT, Short::None),
        Nothing,
        "In place of a pool: sends the client elsewhere.",
    ),
    any(
        "fixed",
        Kind::Group(FIXED, Short::None),
        Nothing,
        "In place of a pool: answers with this.",
    ),
    any(
        "allow_upgrade",
        Kind::Switch,
        Nothing,
        "Whether its requests may ask for another protocol; without it, as the listener says.",
    ),
    any(
        "request_headers",
        Kind::Group(EDITS, Short::None),
        Nothing,
        "What is changed in the head of its requests, after what the listener changes.",
    ),
    any(
        "response_headers",
        Kind::Group(EDITS, Short::None),
        Nothing,
        "What is changed in the head of its replies, after what the listener changes.",
    ),
    any(
        "authenticate",
        Kind::Group(AUTHENTICATE, Short::None),
        Nothing,
        "Who is let through, in place of what the listener says.",
    ),
    any(
        "public",
        Kind::Switch,
        Is("false"),
        "Everybody is let through, whatever the listener says.",
    ),
];

const HEADER: &[Opt] = &[
    any("name", Kind::Text, Required, "The name of the field."),
    any("equals", Kind::Text, Nothing, "One of its name has this value."),
    any(
        "pattern",
        Kind::Text,
        Nothing,
        "One of its name has a value that fits: `*` stands for any characters but slashes, `**` for \
         any.",
    ),
];

const REWRITE: &[Opt] = &[
    any("strip", Kind::Text, Nothing, "This prefix goes."),
    any("add", Kind::Text, Nothing, "This comes in its place, or before the path."),
    any(
        "to",
        Kind::Text,
        Nothing,
        "This takes the place of the path; `{path}`, `{host}` and, with `prefix`, `{rest}` stand for \
         parts of the request.",
    ),
];

const REDIRECT: &[Opt] = &[
    any(
        "to",
        Kind::Text,
        Required,
        "Where to; `{host}`, `{path}`, `{query}` (with its question mark) and, with `prefix`, \
         `{rest}` stand for parts of the request.",
    ),
    any("status", count(301, 308), Is("302"), "301, 302, 303, 307 or 308."),
];

const FIXED: &[Opt] = &[
    any("status", count(200, 599), Is("200"), "Its status."),
    any("body", Kind::Text, Nothing, "Its body."),
    any("file", Kind::Text, Nothing, "Its body is what is in this file, read at start."),
    any("type", Kind::Text, Is("text/plain; charset=utf-8"), "What its body is."),
];

/// What is changed in a head.
pub(super) const EDITS: &[Opt] = &[
    any("remove", Kind::Names, Nothing, "Fields of these names go, before anything else."),
    any("set", Kind::Variables, Nothing, "Each is the one field of its name from now on."),
    any("append", Kind::Variables, Nothing, "Each is added, whether its name is there or not."),
];

/// Who is let through.
pub(super) const AUTHENTICATE: &[Opt] = &[
    any(
        "bearer",
        Kind::Names,
        Nothing,
        "Where tokens are, as `env:NAME` or `file:PATH`; one a line, of 16 characters at least.",
    ),
    any(
        "basic",
        Kind::Secret,
        Nothing,
        "Where users are; a line for each, `USER:DIGEST`: the SHA-256 of `USER:PASSWORD` in \
         hexadecimal.",
    ),
    any("realm", Kind::Text, Is("roadstead"), "What people are shown when they are asked."),
    any(
        "forward",
        Kind::Switch,
        Is("false"),
        "The server gets the `Authorization` too; else it is removed.",
    ),
];
