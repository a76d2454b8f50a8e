//! Flow control between two shards.

/// Flow control of the parts of one exchange between two shards.
///
/// ```text
///   sent and not acknowledged  ≤ window, except for the part that reaches it
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Bytes that were sent and not acknowledged.
    sent: usize,
    /// Bytes that were consumed and not acknowledged yet.
    taken: usize,
    /// The receiver has paused the exchange.
    unwanted: bool,
}

impl Window {
    /// Counts bytes that are sent. `true`: the window is full now, and the sender must pause its source.
    pub fn send(&mut self, bytes: usize, window: usize) -> bool {
        let open = self.sent < window;
        self.sent += bytes;
        open && self.sent >= window && !self.unwanted
    }

    /// Counts bytes that the receiver acknowledged. `true`: the sender must resume its source.
    pub fn credit(&mut self, bytes: usize, window: usize) -> bool {
        let full = self.sent >= window;
        self.sent = self.sent.saturating_sub(bytes);
        full && self.sent < window && !self.unwanted
    }

    /// The receiver pauses or resumes the exchange. `true`: the source must be notified.
    pub fn want(&mut self, wanted: bool, window: usize) -> bool {
        self.unwanted = !wanted;
        self.sent < window
    }

    /// Counts bytes that were consumed here. Returns the number to acknowledge, once it reaches a quarter of the window.
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
