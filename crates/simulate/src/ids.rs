//! Ids of descriptors, ports, connections and flows, and the parties at their ends.

/// A descriptor of the gateway. Numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DescriptorId(pub(crate) usize);

/// A port that accepts connections. Each loop that listens there has its own descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortId(pub(crate) usize);

/// A connection between the gateway and another party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) usize);

/// The number of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId(pub(crate) usize);

/// The party at one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Gateway(DescriptorId),
    Client(usize),
    Program(usize),
    /// A party that speaks HTTP: a visitor, or a server to which the gateway has connected.
    Speaker(usize),
}

impl Party {
    /// Returns the number of the party within its kind.
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Gateway(DescriptorId(number))
            | Self::Client(number)
            | Self::Program(number)
            | Self::Speaker(number) => number,
        }
    }
}
