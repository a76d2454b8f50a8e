//! The state that an operator has set for a worker.

/// The state that an operator has set for a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminState {
    /// No restriction.
    #[default]
    Enabled,
    /// The worker serves only the clients that are bound to it.
    Drained,
    /// The worker receives no requests.
    Disabled,
}

impl AdminState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Enabled, Self::Drained, Self::Disabled];

    /// The name in status, in `why` and in the state that machines share.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Drained => "drained",
            Self::Disabled => "disabled",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}
