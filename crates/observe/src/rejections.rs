//! Connections and datagrams that a listener rejected, by reason.

use exchange::Cause;

/// Counts the connections and datagrams that one listener rejected.
#[derive(Clone, Debug, Default)]
pub struct Rejections([u64; Self::WORDS.len()]);

impl Rejections {
    /// The label values in the metrics: causes, and `admission` for the check of an embedding program.
    pub const WORDS: [&'static str; 7] =
        ["connections", "denied", "crowded", "rate", "toolong", "draining", "admission"];

    /// Counts one rejection. Causes that are not in [`Self::WORDS`] are ignored.
    pub fn count(&mut self, cause: Cause) {
        if let Some(place) = Self::WORDS.iter().position(|word| *word == cause.as_str()) {
            self.0[place] += 1;
        }
    }

    /// Counts one rejection by the check of an embedding program.
    pub fn count_admission(&mut self) {
        self.0[Self::WORDS.len() - 1] += 1;
    }

    /// Returns the counts, in the order of [`Self::WORDS`].
    pub const fn counts(&self) -> &[u64; Self::WORDS.len()] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_to_turn_somebody_away_has_its_place() {
        let mut rejections = Rejections::default();
        for cause in
            [Cause::Connections, Cause::Denied, Cause::Crowded, Cause::Rate, Cause::TooLong]
        {
            rejections.count(cause);
        }
        rejections.count(Cause::Draining);
        rejections.count_admission();
        assert_eq!(rejections.counts(), &[1; 7]);
    }
}
