//! How a message to a program is handled.

use wire::jsonrpc::splice;

/// How a message to the program is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::programs::pipes) enum Outgoing {
    /// It is sent, and a reply is expected.
    Request,
    /// It is sent, and has no reply.
    Notification,
    /// It is not sent, and has no reply.
    Dropped,
    /// It is not sent, has no reply, and is counted: it names a request or token that may belong to another client.
    Stray,
    /// It is not sent; the output is the reply.
    Answered,
    /// It cannot be sent.
    Refused(&'static str),
    /// Its method is not allowed for clients that share a program.
    Unshared,
}

/// Writes our own reply with this result.
pub(super) fn write_result(id: &[u8], result: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":"#);
    splice(result, &[], out);
    out.push(b'}');
}
