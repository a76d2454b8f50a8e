//! How much of an exchange may be on its way between two shards.

/// The parts of one exchange on their way between two shards.
///
/// ```text
///   sent and not taken  ≤ window, but for the one part that reaches it
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Bytes that were sent and not taken.
    sent: usize,
    /// Bytes that were taken and not told.
    taken: usize,
    /// The receiver wants none.
    unwanted: bool,
}

impl Window {
    /// So many bytes go. True when that fills it: whoever brings them is to stop.
    pub fn send(&mut self, bytes: usize, window: usize) -> bool {
        let open = self.sent < window;
        self.sent += bytes;
        open && self.sent >= window && !self.unwanted
    }

    /// The other side took so many. True when whoever brings them is to go on.
    pub fn credit(&mut self, bytes: usize, window: usize) -> bool {
        let full = self.sent >= window;
        self.sent = self.sent.saturating_sub(bytes);
        full && self.sent < window && !self.unwanted
    }

    /// The receiver wants more, or none. True when whoever brings it is to be told.
    pub fn want(&mut self, wanted: bool, window: usize) -> bool {
        self.unwanted = !wanted;
        self.sent < window
    }

    /// So many were taken here. Gives what the other side is to be told, now and then.
    pub fn take(&mut self, bytes: usize, window: usize) -> Option<usize> {
        self.taken += bytes;
        (self.taken >= window / 4).then(|| std::mem::take(&mut self.taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sends_stops_at_the_window_and_goes_on_with_credit() {
        let mut window = Window::default();
        assert!(!window.send(99, 100));
        assert!(window.send(1, 100), "full");
        assert!(!window.send(50, 100), "it was told");
        assert!(!window.credit(50, 100), "still full");
        assert!(window.credit(1, 100));
        assert!(window.want(false, 100), "its receiver wants none");
        assert!(!window.send(1, 100) && !window.credit(90, 100), "and goes before credit");
        assert!(window.want(true, 100));
    }

    #[test]
    fn what_was_taken_is_told_by_quarters_of_the_window() {
        let mut window = Window::default();
        assert_eq!(window.take(24, 100), None);
        assert_eq!(window.take(10, 100), Some(34));
        assert_eq!(window.take(24, 100), None);
    }
}
