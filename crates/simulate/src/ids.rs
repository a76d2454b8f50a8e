//! Ids of descriptors, ports, connections and flows, and who is at an end of one.

/// A descriptor of the gateway; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DescriptorId(pub(crate) usize);

/// A place that connections come to. Each loop that listens there has a descriptor of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortId(pub(crate) usize);

/// A connection of the gateway with somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) usize);

/// A flow by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowId(pub(crate) usize);

/// Who is at one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Gateway(DescriptorId),
    Client(usize),
    Program(usize),
    /// One who speaks HTTP: a visitor, or a server that the gateway has connected to.
    Speaker(usize),
}

impl Party {
    /// The number among those of its kind.
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Gateway(DescriptorId(number))
            | Self::Client(number)
            | Self::Program(number)
            | Self::Speaker(number) => number,
        }
    }
}
