//! Which workers are reserved for one client.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reservation {
    #[default]
    Open,
    /// Reserved for this client; `None`: for no client.
    For(Option<u64>),
}

/// The reservations of all workers.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    pub(super) places: Vec<Reservation>,
    pub(super) count: u32,
}

impl Reservations {
    pub(super) const fn any(&self) -> bool {
        self.count > 0
    }

    pub(super) fn is_reserved(&self, place: u32) -> bool {
        self.any() && self.at(place) != Reservation::Open
    }

    pub(super) fn at(&self, place: u32) -> Reservation {
        self.places.get(place as usize).copied().unwrap_or_default()
    }

    /// The client for which a place is reserved.
    pub(super) fn client(&self, place: u32) -> Option<u64> {
        match self.at(place) {
            Reservation::For(client) => client,
            Reservation::Open => None,
        }
    }

    pub(super) fn set(&mut self, place: u32, keep: Reservation) {
        if self.places.len() <= place as usize {
            self.places.resize(place as usize + 1, Reservation::Open);
        }
        let before = std::mem::replace(&mut self.places[place as usize], keep);
        self.count = self.count + u32::from(keep != Reservation::Open)
            - u32::from(before != Reservation::Open);
    }

    /// The worker at a place is no longer ready.
    pub(super) fn clear(&mut self, place: u32) {
        if self.is_reserved(place) {
            self.set(place, Reservation::Open);
        }
    }

    pub(super) fn places(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.places.len()).expect("a place has 32 bits")
    }
}
