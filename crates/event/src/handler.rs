//! What the user of the loop is: the trait that receives its events.

use std::io;

use crate::context::Context;
use crate::data::Data;
use crate::datagram::Origin;
use crate::interface::{
    DeadlineName, ListenerId, OwnerKey, Peer, Reason, SocketId, StreamId, TimerId,
};

/// Receives the events of a loop.
///
/// Order is law: of one stream, all `Data` before the one `Eof` before the one `Closed`, and
/// nothing after `Closed` or after the owner's own `close`, not even for an event that the kernel
/// had reported before. `Hangup`, `EndAhead` and `Broken` alone may overtake `Data`.
pub trait EventHandler {
    /// What other threads send to this loop.
    type Mail: Send + 'static;

    /// One event. System calls that `io` asks for happen at the end of the turn.
    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, Self::Mail>);

    /// All that the turn has brought was told. Mail that is there afterwards, such as what the owner
    /// posted to its own loop meanwhile, is told in the same turn, and then this is called again; at
    /// most twice in a turn.
    fn on_events_done(&mut self, io: &mut Context<'_>) {
        let _ = io;
    }

    /// The end of a turn, after its events and before its output is sent.
    fn on_iteration_end(&mut self, io: &mut Context<'_>) {
        let _ = io;
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event<'a, M> {
    /// A listener has a new connection, which is already a stream of the loop.
    Accepted {
        /// Which listener.
        listener: ListenerId,
        /// The new stream.
        stream: StreamId,
        /// Who connected.
        peer: Peer,
    },
    /// A listener could not accept: a limit of the process or the system was reached. It is set
    /// aside for a tenth of a second and tried again by itself, and told each time.
    AcceptFailed {
        /// Which listener.
        listener: ListenerId,
        /// What the kernel said; `QuotaExceeded` when no descriptor is left.
        error: io::ErrorKind,
    },
    /// A `connect` succeeded.
    Connected {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// Bytes came in. What is neither consumed nor taken is offered again when bytes were added,
    /// after `resume`, and once more, marked last, before `Eof`.
    Data {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
        /// The bytes on loan.
        data: Data<'a>,
    },
    /// The peer will send no more. The stream can still be written to.
    Eof {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// The output that was above the high mark is below the low mark.
    Drained {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// The peer is gone for both directions. At most once, not final, may overtake `Data`; a
    /// paused stream reports it too, a paused pipe as well, for which it means that its writer is
    /// gone.
    Hangup {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// The peer of a stream that is paused will send no more. What was received waits for `resume`, and so
    /// does `Eof`, which follows behind it. At most once. `poll` and `select` may report it only when all was received.
    EndAhead {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// Nothing can be sent any more to the peer of a stream that is paused. What was received waits for
    /// `resume`, and so does `Closed`, which follows behind it. At most once.
    Broken {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// The stream has ended and its id is not used again.
    Closed {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
        /// Why.
        reason: Reason,
    },
    /// A named deadline of a stream passed. It is not armed any more.
    Deadline {
        /// Which stream.
        stream: StreamId,
        /// Whose it is.
        key: OwnerKey,
        /// Which of its deadlines.
        name: DeadlineName,
    },
    /// A timer fired. It is not armed any more, but keeps its id until it is cancelled.
    Timer {
        /// Which timer.
        timer: TimerId,
        /// Whose it is.
        key: OwnerKey,
    },
    /// Bytes of a `relay` were accepted by the kernel for the other stream. At most once a turn.
    Relayed {
        /// The stream that they came from.
        stream: StreamId,
        /// Whose that is.
        key: OwnerKey,
        /// How many since this was told last.
        count: u64,
        /// No more come: the limit is reached, this stream's end has come (`Eof` or `Closed`
        /// follows), or the other stream takes no more; what it did not accept is lost then.
        done: bool,
    },
    /// One datagram came in. What the owner does not keep of it is gone.
    Datagram {
        /// By which socket.
        socket: SocketId,
        /// From whom; the answer goes there.
        from: &'a Origin,
        /// All of it.
        bytes: &'a [u8],
    },
    /// A descriptor is no datagram socket, or cannot be waited for. It is closed and its id gone.
    DatagramsFailed {
        /// Which socket.
        socket: SocketId,
        /// What the kernel said.
        error: io::ErrorKind,
    },
    /// A message from another thread.
    Mail(M),
}
