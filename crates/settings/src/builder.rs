//! Configurations that a program builds: options by their documented names, without TOML syntax.
//!
//! What it is: the values of options in the order in which they were set, written as a document that the parser reads.
//! So a built configuration has the same defaults, checks and errors as a file. What it must never depend on: which
//! options there are. The few methods with a name of their own set the option of that name.
//!
//! ```
//! use settings::{Builder, ListenerBuilder, PoolBuilder, RouteBuilder};
//!
//! let configuration = Builder::new()
//!     .listener(
//!         "web",
//!         ListenerBuilder::http("127.0.0.1:0")
//!             .route(RouteBuilder::prefix("/api").pool("api"))
//!             .pool("pages"),
//!     )
//!     .pool("api", PoolBuilder::handler("api").workers(2..=20).queue_requests_max(100))
//!     .pool("pages", PoolBuilder::servers(["127.0.0.1:8001", "127.0.0.1:8002"]))
//!     .set("daemon.shards", 1)
//!     .build()
//!     .expect("it is valid");
//! assert_eq!(configuration.pools[0].workers.max, 20);
//!
//! let error = Builder::new().listener("web", ListenerBuilder::lines(":0")).build().unwrap_err();
//! assert!(error.to_string().contains("pool"), "{error}");
//! ```

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diagnostics::Diagnostics;
use crate::model::Configuration;
use crate::parse::parse;
use crate::source::Source;

/// The name of a built configuration in an error.
const NAME: &str = "built configuration";

/// The value of an option, for [`Builder::set`] and similar methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionValue(String);

impl OptionValue {
    /// A value in the syntax of a configuration file, such as `{ min = 2, max = 20 }`. An error of the syntax is an
    /// error of [`Builder::build`].
    #[must_use]
    pub fn of_syntax(text: &str) -> Self {
        // In one line, so that it cannot set another option.
        Self(text.replace(['\n', '\r'], " "))
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        let mut out = String::new();
        quote(text, &mut out);
        Self(out)
    }
}

impl From<String> for OptionValue {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<bool> for OptionValue {
    fn from(value: bool) -> Self {
        Self(value.to_string())
    }
}

macro_rules! from_numbers {
    ($($number:ty),+) => {
        $(impl From<$number> for OptionValue {
            fn from(number: $number) -> Self {
                Self(number.to_string())
            }
        })+
    };
}

from_numbers!(i32, i64, u8, u16, u32, u64, usize);

/// A duration is written in whole nanoseconds, microseconds, milliseconds or seconds.
impl From<Duration> for OptionValue {
    fn from(duration: Duration) -> Self {
        let units = [(1, "s"), (1_000, "ms"), (1_000_000, "us")];
        let nanos = duration.as_nanos();
        let exact = units.iter().find(|(parts, _)| nanos.is_multiple_of(1_000_000_000 / parts));
        match exact {
            Some((parts, unit)) => format!("{}{unit}", nanos / (1_000_000_000 / parts)).into(),
            // The parser reports the unit, if the option is not that exact.
            None => format!("{nanos}ns").into(),
        }
    }
}

impl<T: Into<Self>, const COUNT: usize> From<[T; COUNT]> for OptionValue {
    fn from(items: [T; COUNT]) -> Self {
        Self::from_iter(items)
    }
}

impl<T: Into<Self>> From<Vec<T>> for OptionValue {
    fn from(items: Vec<T>) -> Self {
        Self::from_iter(items)
    }
}

impl<T: Into<Self>> FromIterator<T> for OptionValue {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: Vec<String> = items.into_iter().map(|item| item.into().0).collect();
        Self(format!("[{}]", items.join(", ")))
    }
}

/// The options of one section, in the order in which they were set.
#[derive(Clone, Debug, Default)]
struct Options(Vec<(String, OptionValue)>);

impl Options {
    fn set(&mut self, name: &str, value: impl Into<OptionValue>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn write(&self, out: &mut String) {
        for (name, OptionValue(value)) in &self.0 {
            key(name.split('.'), out);
            out.push_str(" = ");
            out.push_str(value);
            out.push('\n');
        }
    }
}

macro_rules! setters {
    ($builder:ident) => {
        impl $builder {
            /// Sets an option by the name in the reference, relative to this section: `"queue.max_requests"`.
            #[must_use]
            pub fn set(mut self, name: &str, value: impl Into<OptionValue>) -> Self {
                self.options.set(name, value);
                self
            }
        }
    };
}

/// Builds a [`Configuration`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    options: Options,
    listeners: Vec<(String, ListenerBuilder)>,
    pools: Vec<(String, PoolBuilder)>,
}

impl Builder {
    /// Creates a builder without listeners and pools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the listener with this name.
    #[must_use]
    pub fn listener(mut self, name: &str, listener: ListenerBuilder) -> Self {
        self.listeners.push((name.to_owned(), listener));
        self
    }

    /// Adds the pool with this name.
    #[must_use]
    pub fn pool(mut self, name: &str, pool: PoolBuilder) -> Self {
        self.pools.push((name.to_owned(), pool));
        self
    }

    /// Sets an option of another section by its whole name, such as `"daemon.drain_timeout"`.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<OptionValue>) -> Self {
        self.options.set(name, value);
        self
    }

    /// Returns the configuration as a document, in the syntax of a file.
    #[must_use]
    pub fn document(&self) -> String {
        let mut out = String::new();
        self.options.write(&mut out);
        for (name, ListenerBuilder { options, routes }) in &self.listeners {
            header("[", ["listener", name], "]", &mut out);
            options.write(&mut out);
            for RouteBuilder { options } in routes {
                header("[[", ["listener", name, "route"], "]]", &mut out);
                options.write(&mut out);
            }
        }
        for (name, PoolBuilder { options }) in &self.pools {
            header("[", ["pool", name], "]", &mut out);
            options.write(&mut out);
        }
        out
    }

    /// Validates the options as those of a file. Values `env:NAME` are read from the environment of the process.
    ///
    /// # Errors
    /// Every error, with the option and a suggested fix. The location is a line of [`Self::document`].
    pub fn build(&self) -> Result<Configuration, Diagnostics> {
        let source = Source { name: NAME.to_owned(), text: self.document() };
        parse(&source, &|variable| std::env::var(variable).ok())
    }
}

impl Configuration {
    /// Starts a configuration without a file.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// Builds a listener: `[listener.NAME]`.
#[derive(Clone, Debug)]
pub struct ListenerBuilder {
    options: Options,
    routes: Vec<RouteBuilder>,
}

impl ListenerBuilder {
    /// Creates a listener at an address, as the option `listen`, for clients of a protocol, as the option `protocol`.
    #[must_use]
    pub fn new(listen: &str, protocol: &str) -> Self {
        let mut options = Options::default();
        options.set("listen", listen);
        options.set("protocol", protocol);
        Self { options, routes: Vec::new() }
    }

    /// A listener for HTTP.
    #[must_use]
    pub fn http(listen: &str) -> Self {
        Self::new(listen, "http")
    }

    /// A listener for one message per line.
    #[must_use]
    pub fn lines(listen: &str) -> Self {
        Self::new(listen, "lines")
    }

    /// A listener on which each connection is one request.
    #[must_use]
    pub fn connect(listen: &str) -> Self {
        Self::new(listen, "connect")
    }

    /// A listener on which each datagram is one request.
    #[must_use]
    pub fn datagrams(listen: &str) -> Self {
        Self::new(listen, "datagrams")
    }

    /// The pool for all requests, or for those that no route takes.
    #[must_use]
    pub fn pool(self, name: &str) -> Self {
        self.set("pool", name)
    }

    /// Adds a route of HTTP requests. The first route that fits is taken.
    #[must_use]
    pub fn route(mut self, route: RouteBuilder) -> Self {
        self.routes.push(route);
        self
    }
}

setters!(ListenerBuilder);

/// Builds a route: `[[listener.NAME.route]]`.
#[derive(Clone, Debug, Default)]
pub struct RouteBuilder {
    options: Options,
}

impl RouteBuilder {
    /// A route for every request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A route for one path.
    #[must_use]
    pub fn path(path: &str) -> Self {
        Self::new().set("path", path)
    }

    /// A route for a path and everything below it.
    #[must_use]
    pub fn prefix(prefix: &str) -> Self {
        Self::new().set("prefix", prefix)
    }

    /// The pool for the requests.
    #[must_use]
    pub fn pool(self, name: &str) -> Self {
        self.set("pool", name)
    }
}

setters!(RouteBuilder);

/// Builds a pool: `[pool.NAME]`.
#[derive(Clone, Debug)]
pub struct PoolBuilder {
    options: Options,
}

impl PoolBuilder {
    fn of(kind: &str, value: impl Into<OptionValue>) -> Self {
        let mut options = Options::default();
        options.set(kind, value);
        Self { options }
    }

    /// A pool of handlers of the embedding program, by the name under which they are registered.
    #[must_use]
    pub fn handler(name: &str) -> Self {
        Self::of("handler", name)
    }

    /// A pool of programs: the program and its arguments.
    #[must_use]
    pub fn program<T: Into<OptionValue>>(command: impl IntoIterator<Item = T>) -> Self {
        Self::of("program", OptionValue::from_iter(command))
    }

    /// A pool of HTTP servers, by their addresses.
    #[must_use]
    pub fn servers<T: Into<OptionValue>>(servers: impl IntoIterator<Item = T>) -> Self {
        Self::of("servers", OptionValue::from_iter(servers))
    }

    /// The minimum and the maximum number of workers.
    #[must_use]
    pub fn workers(self, count: RangeInclusive<u32>) -> Self {
        self.set("workers.min", *count.start()).set("workers.max", *count.end())
    }

    /// The maximum number of requests that wait in the queue.
    #[must_use]
    pub fn queue_requests_max(self, max: usize) -> Self {
        self.set("queue.max_requests", max)
    }

    /// The maximum time that a request waits in the queue.
    #[must_use]
    pub fn queue_timeout(self, timeout: Duration) -> Self {
        self.set("queue.timeout", timeout)
    }

    /// The maximum time for a response of a worker.
    #[must_use]
    pub fn response_timeout(self, timeout: Duration) -> Self {
        self.set("response_timeout", timeout)
    }
}

setters!(PoolBuilder);

fn header<'a>(open: &str, path: impl IntoIterator<Item = &'a str>, close: &str, out: &mut String) {
    out.push_str(open);
    key(path, out);
    out.push_str(close);
    out.push('\n');
}

/// Writes a dotted key. Parts that are not bare keys are quoted.
fn key<'a>(parts: impl IntoIterator<Item = &'a str>, out: &mut String) {
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push('.');
        }
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !part.is_empty() && part.bytes().all(is_bare) {
            out.push_str(part);
        } else {
            quote(part, out);
        }
    }
}

/// Writes a basic string of TOML.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to memory cannot fail.
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Worker;

    fn listener() -> ListenerBuilder {
        ListenerBuilder::lines("127.0.0.1:0").pool("a")
    }

    #[test]
    fn what_is_built_equals_the_file() {
        let built = Builder::new()
            .set("daemon.drain_timeout", Duration::from_millis(1500))
            .listener(
                "web",
                ListenerBuilder::http("127.0.0.1:0")
                    .set("connections_max", 100)
                    .route(RouteBuilder::path("/a").set("method", ["GET", "POST"]).pool("a"))
                    .route(RouteBuilder::prefix("/b").pool("b"))
                    .pool("c"),
            )
            .pool(
                "a",
                PoolBuilder::handler("h")
                    .workers(2..=20)
                    .set("workers.spare", 3)
                    .queue_requests_max(7)
                    .queue_timeout(Duration::from_secs(9))
                    .response_timeout(Duration::from_millis(250)),
            )
            .pool("b", PoolBuilder::program(["cat", "a \"b\"\\\n"]))
            .pool("c", PoolBuilder::servers(["127.0.0.1:1", "127.0.0.1:2"]));
        let text = r#"
            [daemon]
            drain_timeout = "1500ms"
            [listener.web]
            listen = "127.0.0.1:0"
            protocol = "http"
            connections_max = 100
            pool = "c"
            [[listener.web.route]]
            path = "/a"
            method = ["GET", "POST"]
            pool = "a"
            [[listener.web.route]]
            prefix = "/b"
            pool = "b"
            [pool.a]
            handler = "h"
            workers = { min = 2, max = 20, spare = 3 }
            queue = { max_requests = 7, timeout = "9s" }
            response_timeout = "250ms"
            [pool.b]
            program = ["cat", "a \"b\"\\\n"]
            [pool.c]
            servers = ["127.0.0.1:1", "127.0.0.1:2"]
        "#;
        let source = Source { name: "file".to_owned(), text: text.to_owned() };
        let file = parse(&source, &|_| None).unwrap();
        assert_eq!(format!("{:?}", built.build().unwrap()), format!("{file:?}"));
    }

    #[test]
    fn an_error_names_its_option() {
        let pool = || PoolBuilder::handler("h");
        let error = |pool| {
            Builder::new()
                .listener("l", listener())
                .pool("a", pool)
                .build()
                .unwrap_err()
                .to_string()
        };
        for (pool, option) in [
            (pool().set("queue.max_request", 7), "max_request"),
            (pool().set("queue.max_requests", "many"), "queue.max_requests"),
            (pool().workers(RangeInclusive::new(3, 2)), "workers"),
            (pool().set("workers", 2).set("workers.min", 1), "workers"),
            (pool().set("nothing", true), "nothing"),
            (pool().set("workers", OptionValue::of_syntax("{ min = 2")), "workers"),
        ] {
            let error = error(pool);
            assert!(error.contains(option), "{option} in {error}");
        }
    }

    #[test]
    fn a_value_cannot_set_another_option() {
        let names = ["a", "b.c", "d\"]\nlisten = \"x", "é", ""];
        for name in names {
            let built = Builder::new()
                .listener("l", ListenerBuilder::lines("127.0.0.1:0").pool(name))
                .pool(name, PoolBuilder::handler(name));
            match built.build() {
                Ok(configuration) => {
                    assert_eq!(configuration.pools.len(), 1);
                    assert_eq!(configuration.pools[0].worker, Worker::Handler(name.to_owned()));
                    assert_eq!(configuration.pools[0].name, name);
                }
                Err(error) => assert!(error.to_string().contains("pool"), "{name}: {error}"),
            }
        }
        let syntax = OptionValue::of_syntax("2\nhandler = \"other\"");
        let built = PoolBuilder::handler("h").set("workers", syntax);
        assert!(Builder::new().listener("l", listener()).pool("a", built).build().is_err());
    }
}
