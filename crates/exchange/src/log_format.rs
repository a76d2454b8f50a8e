//! The format of a line of the access log.

use std::fmt;

/// The format of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object.
    Json,
    /// The combined log format of web servers.
    Combined,
    /// A template of the operator.
    Template(Vec<LogPiece>),
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPiece {
    /// Literal text.
    Text(String),
    /// A property of the request.
    Value(LogValue),
    /// The request header field at this index of the list of fields to record.
    Field(usize),
}

macro_rules! values {
    ($($(#[doc = $about:literal])+ $name:ident $word:literal),+ $(,)?) => {
        /// A property of a request that a line can contain.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LogValue {
            $($(#[doc = $about])+ $name),+
        }

        impl LogValue {
            /// All values, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in a template. It is also the key in JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// The key in JSON, with the comma before it and the colon after it.
            #[must_use]
            pub const fn json_key(self) -> &'static str {
                match self { $(Self::$name => concat!(",\"", $word, "\":")),+ }
            }
        }
    };
}

values! {
    /// The time of receipt, in UTC.
    At "at",
    /// The id of the request.
    Id "id",
    /// The listener.
    Listener "listener",
    /// The client's address.
    Client "client",
    /// The last pool that answered.
    Pool "pool",
    /// The last worker that served the request.
    Worker "worker",
    /// The HTTP request line.
    Request "request",
    /// The HTTP status.
    Status "status",
    /// The length of the request body, in bytes.
    In "in",
    /// The length of the reply body, in bytes.
    Out "out",
    /// The time in the queue, in microseconds.
    Queue "queue_us",
    /// The time until a new connection to the server was established, in microseconds.
    Connect "connect_us",
    /// The time from the receipt to the first byte of the reply, in microseconds.
    First "first_us",
    /// The time from the receipt to the end, in microseconds.
    Total "total_us",
    /// The number of retries on another worker.
    Retries "retries",
    /// The verdict.
    Verdict "verdict",
    /// The cause of the end.
    Cause "cause",
    /// The rule that the request violated, if it was rejected while it was parsed.
    Reason "reason",
    /// The phase in which it ended.
    Phase "phase",
    /// How the request ended for the client.
    ClientEnd "client_end",
    /// How the request ended for the worker.
    WorkerEnd "worker_end",
}

impl fmt::Display for LogValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
