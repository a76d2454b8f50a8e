//! Connections and datagrams that a listener turned away, by reason.

use exchange::Cause;

/// Why a listener turned a connection or a datagram away, counted.
#[derive(Clone, Debug, Default)]
pub struct Rejections([u64; Self::WORDS.len()]);

impl Rejections {
    /// The words in the metrics: causes, and behind them the answer of an embedder's own check.
    pub const WORDS: [&'static str; 7] =
        ["connections", "denied", "crowded", "rate", "toolong", "draining", "admission"];

    pub fn count(&mut self, cause: Cause) {
        if let Some(place) = Self::WORDS.iter().position(|word| *word == cause.word()) {
            self.0[place] += 1;
        }
    }

    pub fn count_admission(&mut self) {
        self.0[Self::WORDS.len() - 1] += 1;
    }

    pub const fn counts(&self) -> &[u64; Self::WORDS.len()] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_turn_somebody_away_has_its_place() {
        let mut turned = Rejections::default();
        for cause in
            [Cause::Connections, Cause::Denied, Cause::Crowded, Cause::Rate, Cause::TooLong]
        {
            turned.count(cause);
        }
        turned.count(Cause::Draining);
        turned.count_admission();
        assert_eq!(turned.counts(), &[1; 7]);
    }
}
