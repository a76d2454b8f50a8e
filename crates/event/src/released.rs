//! A stream that the loop has given up.

use block::Slice;

use crate::Fd;

/// A stream that the loop has given up ([`Context::release`](crate::Context::release)).
///
/// ```text
///   received:  [ consumed by the handler ][ unread ][ still in the socket ]
///   sent:      [ accepted by the kernel ][ unsent ]
/// ```
#[derive(Debug)]
pub struct Released {
    /// The descriptor. It is non-blocking and close-on-exec.
    pub fd: Fd,
    /// Bytes that the loop has received and the handler has not consumed. They come before the bytes that are read
    /// from the descriptor.
    pub unread: Slice,
    /// Bytes that the handler has sent and the kernel has not accepted. They must be written before any other bytes.
    /// Empty if nothing can be written any more.
    pub unsent: Slice,
}
