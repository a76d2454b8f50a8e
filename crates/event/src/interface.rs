//! What a user of the loop names and receives: ids, addresses, limits, and why a stream ended.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Whose a stream or a timer is: four words that the [`EventHandler`](crate::EventHandler) gives it
/// ([`set_key`](crate::Context::set_key), [`timer_of`](crate::Context::timer_of)) and that every event about it
/// carries, so that the owner need not look for the part of it that is concerned. The loop does not read them.
/// One that was given none has [`Self::NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnerKey(pub [u32; 4]);

impl OwnerKey {
    /// The key of a stream or timer that was given none.
    pub const NONE: Self = Self([0; 4]);
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Both directions came to their end, or `finish` was done.
    Clean,
    /// After `finish`, its `linger` passed while the peer took no output, or before its end came.
    Lingered,
    /// The peer reset the connection, or a write found nobody to read.
    Reset,
    /// A `connect` did not succeed.
    ConnectFailed(io::ErrorKind),
    /// Received bytes were neither consumed nor paused until `recv_buffer_max` was full.
    HoldFull,
    /// More than `send_max` bytes waited to be sent.
    Overrun,
    /// The peer had sent bytes that the owner had not received when it was to be sent something that
    /// [expects silence](crate::Context::expect_silence). Those bytes are discarded.
    NotSilent,
    /// The kernel reported another error.
    Failed(io::ErrorKind),
}

/// One of the deadlines of a stream; the owner gives the numbers their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeadlineName(pub u8);

/// Deadlines that a stream can have at once: names 0 to 3.
pub const DEADLINES_MAX: usize = 4;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A host on the network.
    Internet(SocketAddr),
    /// A process on this machine, through a Unix socket.
    Local,
}

/// Where to listen or to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IPv4 or IPv6 address with a port; port 0 lets the system choose.
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

/// Which ways bytes flow through an adopted descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Only to us, as from the output of a program.
    In,
    /// Only from us, as to the input of a program.
    Out,
    /// Both ways, as on a socket.
    Both,
}

/// Limits of one stream. Those in bytes bound the memory that a stream holds: where what waits
/// does not fill its blocks and these exceed a limit, it is copied into smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Received bytes that may wait unconsumed. Over it the stream ends with `HoldFull`.
    pub recv_buffer_max: usize,
    /// Above this, which the owner sees by what [`crate::Context::send`] returns, `Drained` will come.
    pub send_high: usize,
    /// `Drained` comes when output falls to this.
    pub send_low: usize,
    /// Output above this ends the stream with `Overrun`.
    pub send_max: usize,
    /// When output has waited for this long, the kernel is asked what the peer has acknowledged, and
    /// [`OutputWait`] counts that from then on. By then it should have acknowledged what it takes
    /// without reading. None: only what the kernel accepts counts.
    pub progress_after: Option<Duration>,
}

/// How long a peer has not taken all that was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputWait {
    /// The time for which output waited without a break, because the kernel had no room for it; where
    /// acknowledged bytes count, since the kernel was asked for them first.
    pub lasted: Duration,
    /// Bytes that the peer acknowledged in this time, as known when its last deadline was told, or that
    /// the kernel accepted, if those are more.
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
    /// Events taken from the kernel at once. What a stream sends leaves at the end of the turn, so a
    /// batch should be small enough for the kernel to still have the stream in its cache by then.
    pub events_max: usize,
    /// Bytes read from one stream in one turn, so that a busy one cannot starve the others.
    pub read_budget: usize,
    /// Connections accepted from one listener in one turn.
    pub accept_budget: usize,
    /// Messages taken from the mailbox in one turn.
    pub mail_budget: usize,
    /// Messages that the mailbox holds.
    pub mail_max: usize,
    /// How long `finish` waits for the peer's end when no other time is given.
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
            /// The place in the loop's table; reused by later ids.
            #[must_use]
            pub const fn index(self) -> usize {
                self.index as usize
            }

            /// How many ids had this place before.
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
    /// One stream from its beginning to its `Closed`.
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
