//! Which client receives the unsolicited output of a session program.

/// The receiver of unsolicited output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UnsolicitedTo {
    /// No client: unsolicited output is a fault.
    #[default]
    Nobody,
    /// The client of a session program.
    Client,
    /// No client any more. The program serves no other client, so its output cannot reach a wrong client.
    Gone,
}
