//! Minimum rates of clients.

use std::time::Duration;

/// Whether `bytes` in `time` reach `rate_min` bytes per second. Zero bytes never do.
pub(crate) fn is_enough(bytes: u64, rate_min: usize, time: Duration) -> bool {
    bytes > 0 && u128::from(bytes) * 1000 >= rate_min as u128 * time.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_is_not_enough() {
        let time = Duration::from_secs(10);
        for (bytes, rate_min, expected) in [
            (0, 240, false),
            (1, 240, false),
            (2399, 240, false),
            (2400, 240, true),
            (0, 0, false),
            (1, 0, true),
            (u64::MAX, usize::MAX, false),
        ] {
            assert_eq!(is_enough(bytes, rate_min, time), expected, "{bytes} at {rate_min}");
        }
        assert!(is_enough(1, 1, Duration::from_millis(1)));
    }
}
