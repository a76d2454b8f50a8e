//! What a line of the access log consists of.

use std::fmt;

/// How lines look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object.
    Json,
    /// What web servers call the combined format.
    Combined,
    /// What the operator wrote.
    Template(Vec<LogPiece>),
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPiece {
    /// As it was written.
    Text(String),
    /// Something of the request.
    Value(LogValue),
    /// The field of the request at this index of the list of fields to keep.
    Field(usize),
}

macro_rules! values {
    ($($(#[doc = $about:literal])+ $name:ident $word:literal),+ $(,)?) => {
        /// What a line can say of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LogValue {
            $($(#[doc = $about])+ $name),+
        }

        impl LogValue {
            /// All of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in a template, and the key in JSON.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// The key in JSON, with a comma before it and a colon behind.
            #[must_use]
            pub const fn json_key(self) -> &'static str {
                match self { $(Self::$name => concat!(",\"", $word, "\":")),+ }
            }
        }
    };
}

values! {
    /// When it was received, in UTC.
    At "at",
    /// Its id.
    Id "id",
    /// The listener.
    Listener "listener",
    /// The client's address.
    Client "client",
    /// The pool that answered last.
    Pool "pool",
    /// The worker that had it last.
    Worker "worker",
    /// The request line of HTTP.
    Request "request",
    /// The status of HTTP.
    Status "status",
    /// Bytes of its body.
    In "in",
    /// Bytes of the reply's body.
    Out "out",
    /// Microseconds in the queue.
    Queue "queue_us",
    /// Microseconds until a new connection to the server was made.
    Connect "connect_us",
    /// Microseconds from its receipt to the first byte of the reply.
    First "first_us",
    /// Microseconds from its receipt to its end.
    Total "total_us",
    /// How often it was given to another worker.
    Retries "retries",
    /// The verdict.
    Verdict "verdict",
    /// Why it ended.
    Cause "cause",
    /// The rule that it broke, where it was rejected while it was read.
    Reason "reason",
    /// How far it had come.
    Phase "phase",
    /// How it ended for the client.
    ClientEnd "client_end",
    /// How it ended for the worker.
    WorkerEnd "worker_end",
}

impl fmt::Display for LogValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
