//! The events of a loop and the trait that receives them.

use crate::Released;
use crate::context::Context;
use crate::data::Data;
use crate::datagram::Origin;
use crate::interface::{
    DeadlineName, ListenerId, OwnerKey, Peer, Reason, SocketId, StreamId, TimerId,
};
use crate::kernel_error::KernelError;

/// Receives the events of a loop.
///
/// The order is guaranteed. For each stream, all `Data` comes before the one `Eof`, and `Eof` comes before the one
/// `Closed`. No event follows `Closed`, `Released` or the handler's own `close`, not even one that the kernel had
/// reported before.
/// Only `Hangup`, `EndAhead` and `Broken` may overtake `Data`.
pub trait EventHandler {
    /// The type of messages that other threads send to this loop.
    type Mail: Send + 'static;

    /// Handles one event. System calls that are requested through `io` are made at the end of the turn.
    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, Self::Mail>);

    /// Called when all events of the turn were delivered. Mail that is in the mailbox afterwards, for example messages
    /// that the handler sent to its own loop, is delivered in the same turn. This method is then called again, at most
    /// twice per turn.
    fn on_events_done(&mut self, io: &mut Context<'_>) {
        let _ = io;
    }

    /// Called at the end of a turn, after its events and before its output is sent.
    fn on_iteration_end(&mut self, io: &mut Context<'_>) {
        let _ = io;
    }
}

/// An event of the loop.
#[derive(Debug)]
pub enum Event<'a, M> {
    /// A listener has accepted a new connection, which is already a stream of the loop.
    Accepted {
        /// The listener.
        listener: ListenerId,
        /// The new stream.
        stream: StreamId,
        /// The peer.
        peer: Peer,
    },
    /// A listener could not accept because a limit of the process or the system was reached. The loop pauses the
    /// listener for 100 ms and then tries again; each failure is reported.
    AcceptFailed {
        /// The listener.
        listener: ListenerId,
        /// The error of the kernel; `QuotaExceeded` if no descriptor is left.
        error: KernelError,
    },
    /// A `connect` succeeded.
    Connected {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
    },
    /// Bytes were received. Bytes that are neither consumed nor taken are offered again when more bytes arrive and
    /// after `resume`. They are offered once more, marked as last, before `Eof`.
    Data {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
        /// The received bytes, on loan.
        data: Data<'a>,
    },
    /// The peer will send no more. The stream can still send.
    Eof {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
    },
    /// The output was above the high-water mark and is now at or below the low-water mark.
    Drained {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
    },
    /// The peer has closed both directions. This event comes at most once, is not final and may overtake `Data`. A
    /// paused stream reports it too. So does a paused pipe; there it means that the writer is gone.
    Hangup {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
    },
    /// The peer of a paused stream will send no more. Received bytes wait for `resume`, and `Eof` follows after them.
    /// This event comes at most once. `poll` and `select` may report it only when all bytes were received.
    EndAhead {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
    },
    /// Nothing can be sent any more to the peer of a paused stream. Received bytes wait for `resume`, and `Closed`
    /// follows after them. This event comes at most once.
    Broken {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
    },
    /// The stream has ended. Its id is not used again.
    Closed {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
        /// Why it ended.
        reason: Reason,
    },
    /// The loop has given up a stream, as [requested](Context::release). Its id is not used again.
    Released {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
        /// The descriptor, and the bytes that the loop had.
        released: Box<Released>,
    },
    /// A named deadline of a stream has passed. It is not armed any more.
    Deadline {
        /// The stream.
        stream: StreamId,
        /// The owner of the stream.
        key: OwnerKey,
        /// Which of its deadlines.
        name: DeadlineName,
    },
    /// A timer fired. It is not armed any more, but its id stays valid until it is cancelled.
    Timer {
        /// The timer.
        timer: TimerId,
        /// The owner of the timer.
        key: OwnerKey,
    },
    /// The kernel accepted bytes of a `relay` for the other stream. This event comes at most once per turn.
    Relayed {
        /// The stream that the bytes came from.
        stream: StreamId,
        /// The owner of that stream.
        key: OwnerKey,
        /// The number of bytes since the previous event of this kind.
        count: u64,
        /// Whether the relay is over: the limit is reached, this stream has ended (`Eof` or `Closed` follows), or the
        /// other stream accepts no more. In the last case, bytes that it did not accept are lost.
        done: bool,
    },
    /// A datagram was received. The bytes are valid only during the call.
    Datagram {
        /// The receiving socket.
        socket: SocketId,
        /// The sender, to which replies are sent.
        from: &'a Origin,
        /// The whole datagram.
        bytes: &'a [u8],
    },
    /// A descriptor is not a datagram socket, or cannot be watched. It is closed, and its id is invalid.
    DatagramsFailed {
        /// The socket.
        socket: SocketId,
        /// The error of the kernel.
        error: KernelError,
    },
    /// A message from another thread.
    Mail(M),
}
