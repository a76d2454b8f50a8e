//! Which workers are kept for one client.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Keep {
    #[default]
    Open,
    /// For this client; for nobody where there is none.
    For(Option<u64>),
}

/// Which workers are kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) places: Vec<Keep>,
    pub(super) count: u32,
}

impl Kept {
    pub(super) const fn any(&self) -> bool {
        self.count > 0
    }

    pub(super) fn is_kept(&self, place: u32) -> bool {
        self.any() && self.at(place) != Keep::Open
    }

    pub(super) fn at(&self, place: u32) -> Keep {
        self.places.get(place as usize).copied().unwrap_or_default()
    }

    /// The client for which a place is kept.
    pub(super) fn client(&self, place: u32) -> Option<u64> {
        match self.at(place) {
            Keep::For(client) => client,
            Keep::Open => None,
        }
    }

    pub(super) fn set(&mut self, place: u32, keep: Keep) {
        if self.places.len() <= place as usize {
            self.places.resize(place as usize + 1, Keep::Open);
        }
        let before = std::mem::replace(&mut self.places[place as usize], keep);
        self.count = self.count + u32::from(keep != Keep::Open) - u32::from(before != Keep::Open);
    }

    /// The worker at a place is not ready any more.
    pub(super) fn clear(&mut self, place: u32) {
        if self.is_kept(place) {
            self.set(place, Keep::Open);
        }
    }

    pub(super) fn places(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.places.len()).expect("a place has 32 bits")
    }
}
