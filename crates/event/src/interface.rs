//! The types in the interface of the loop: ids, addresses, limits, and the reason why a stream ended.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::KernelError;

/// The owner of a stream or timer: four words that the [`EventHandler`](crate::EventHandler) sets
/// ([`set_key`](crate::Context::set_key), [`timer_of`](crate::Context::timer_of)). Every event about the stream or
/// timer carries its key, so the handler need not look up which part of it is responsible. The loop does not interpret
/// the words. The default is [`Self::NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnerKey(pub [u32; 4]);

impl OwnerKey {
    /// The key of a stream or timer without an owner.
    pub const NONE: Self = Self([0; 4]);
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Both directions ended, or `finish` completed.
    Clean,
    /// After `finish`, `linger` passed without progress: the peer accepted no output, or did not end.
    Lingered,
    /// The peer reset the connection, or a write found no reader.
    Reset,
    /// A `connect` failed; its error is `QuotaExceeded` if no descriptor was left.
    ConnectFailed(KernelError),
    /// Received bytes were neither consumed nor was the stream paused until `recv_buffer_max` was full.
    RecvBufferFull,
    /// More than `send_max` bytes were waiting to be sent.
    SendBufferFull,
    /// The peer had sent bytes that the handler had not received when output was due that [expects
    /// silence](crate::Context::expect_silence). Those bytes are discarded.
    NotSilent,
    /// The kernel reported another error.
    Failed(KernelError),
}

/// One of the deadlines of a stream; the handler defines the meaning of each number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeadlineName(pub u8);

/// The maximum number of deadlines of a stream: names 0 to 3.
pub const DEADLINES_MAX: usize = 4;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A host on the network.
    Internet(SocketAddr),
    /// A process on this machine, through a Unix socket.
    Local,
}

/// An address to listen on or to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IPv4 or IPv6 address with a port; with port 0 the system chooses one.
    Internet(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// In which directions bytes flow through an adopted descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only to us, for example from the output of a program.
    In,
    /// Only from us, for example to the input of a program.
    Out,
    /// In both directions, as on a socket.
    Both,
}

/// Limits of one stream. Limits in bytes bound the memory that a stream occupies: if waiting bytes do not fill their
/// blocks and the blocks exceed a limit, the bytes are copied into smaller blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// The maximum number of received bytes that may wait unconsumed. Above it the stream ends with `RecvBufferFull`.
    pub recv_buffer_max: usize,
    /// The high-water mark of the output in bytes. The return value of [`crate::Context::send`] shows when the output
    /// exceeds it; `Drained` follows later.
    pub send_high: usize,
    /// The low-water mark: `Drained` is delivered when the output falls to this number of bytes.
    pub send_low: usize,
    /// If the output exceeds this number of bytes, the stream ends with `SendBufferFull`.
    pub send_max: usize,
    /// When output has waited for this time, the loop asks the kernel how much the peer has acknowledged, and
    /// [`OutputWait`] counts acknowledged bytes from then on. The time should be long enough for the peer to
    /// acknowledge the bytes that its kernel accepts without reading. `None`: only the bytes that our kernel accepts
    /// count.
    pub progress_after: Option<Duration>,
}

/// How long, and how slowly, a peer has been accepting output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputWait {
    /// How long output has waited without interruption because the kernel had no room for it. If acknowledged bytes
    /// count: the time since the kernel was first asked for them.
    pub lasted: Duration,
    /// The number of bytes that the peer acknowledged in this time, as known when its last deadline was delivered; or
    /// the number of bytes that the kernel accepted, if that is larger.
    pub taken: u64,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            recv_buffer_max: 1 << 20,
            send_high: 256 << 10,
            send_low: 64 << 10,
            send_max: 16 << 20,
            progress_after: None,
        }
    }
}

/// Settings of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopSettings {
    /// The maximum number of kernel events per turn. Output leaves at the end of the turn, so a batch should be small
    /// enough that the kernel still has the stream in its cache by then.
    pub events_max: usize,
    /// The maximum number of bytes read from one stream per turn, so that a busy stream cannot starve the others.
    pub read_budget: usize,
    /// The maximum number of connections accepted from one listener per turn.
    pub accept_budget: usize,
    /// The maximum number of messages taken from the mailbox per turn.
    pub mail_budget: usize,
    /// The capacity of the mailbox, in messages.
    pub mail_max: usize,
    /// How long `finish` waits for the peer's end if no other time is given.
    pub linger: Duration,
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self {
            events_max: 256,
            read_budget: 256 << 10,
            accept_budget: 64,
            mail_budget: 1024,
            mail_max: 65_536,
            linger: Duration::from_secs(5),
        }
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            pub(crate) index: u32,
            pub(crate) generation: u32,
        }

        impl $name {
            /// The index in the loop's table; it is reused by later ids.
            #[must_use]
            pub const fn index(self) -> usize {
                self.index as usize
            }

            /// How many ids had this index before.
            #[must_use]
            pub const fn generation(self) -> u32 {
                self.generation
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index, self.generation)
            }
        }
    };
}

id! {
    /// One stream, from its creation until `Closed`.
    StreamId
}
id! {
    /// One listener.
    ListenerId
}
id! {
    /// One datagram socket.
    SocketId
}
id! {
    /// One timer that belongs to no stream.
    TimerId
}
