//! What becomes of a message to a program.

use wire::jsonrpc::splice;

/// What becomes of a message to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::programs::pipes) enum Outgoing {
    /// It is sent, and a reply waited for.
    Request,
    /// It is sent, and nothing is answered.
    Notification,
    /// It is not for the program, and nothing is answered.
    Dropped,
    /// As before, and counted: it names a request or a token, which may be another client's.
    Stray,
    /// What was written is the reply.
    Answered,
    /// It cannot be sent.
    Refused(&'static str),
    /// Its method is not for clients that share a program.
    Unshared,
}

/// A reply of ours with this result.
pub(super) fn write_result(id: &[u8], result: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":"#);
    splice(result, &[], out);
    out.push(b'}');
}
