//! Properties of a JSON message that some libraries cannot parse or write.

/// The maximum length of a number as written, in bytes, in a message for a shared program. Some parsers fail for longer
/// numbers: Jackson from 1000, Python from 4300.
pub const NUMBER_MAX: usize = 1000;

/// The maximum nesting of objects and arrays, including the message, in a message for a shared program. A program may
/// reply with the received value and some levels around it. The reply must stay below
/// [`DEPTH_MAX`](crate::jsonrpc::DEPTH_MAX).
pub const SHARED_DEPTH_MAX: usize = 64;

/// A number without an exponent and with fewer bytes is less than the largest double.
const FINITE_BYTES: usize = 300;

/// The depth of a value, and the properties of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// The nesting of objects and arrays.
    pub depth: usize,
    /// The length of the longest number as written, in bytes.
    pub longest_number: usize,
    /// Whether a number is larger than every double. Many libraries read such a number as infinity, and then write text
    /// that is not JSON.
    pub overflows: bool,
}

impl Measure {
    pub(super) fn add_number(&mut self, written: &[u8]) {
        self.longest_number = self.longest_number.max(written.len());
        let has_exponent = written.iter().any(|byte| matches!(byte, b'e' | b'E'));
        if has_exponent || written.len() >= FINITE_BYTES {
            let number = std::str::from_utf8(written).ok().and_then(|it| it.parse::<f64>().ok());
            self.overflows |= number.is_none_or(f64::is_infinite);
        }
    }

    /// The reason why the value must not be sent to a shared program, if there is one. Some programs would fail, or
    /// reply with invalid JSON, while they serve other clients.
    ///
    /// ```
    /// use wire::jsonrpc::Measure;
    ///
    /// assert_eq!(Measure::of(b"[1e300]").unwrap().excess(), None);
    /// assert!(Measure::of(b"[1e400]").unwrap().excess().is_some());
    /// ```
    #[must_use]
    pub const fn excess(&self) -> Option<&'static str> {
        if self.longest_number > NUMBER_MAX {
            Some("a number has at most 1000 characters: some programs end at a longer one")
        } else if self.overflows {
            Some("a number is greater than every double: some programs take it for infinity")
        } else if self.depth > SHARED_DEPTH_MAX {
            Some("its values are nested in more than 64 levels: some programs cannot reply to it")
        } else {
            None
        }
    }
}

const _: () = assert!(NUMBER_MAX == 1000 && SHARED_DEPTH_MAX == 64, "the texts say it");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_some_programs_cannot_carry_has_an_excess() {
        let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for (value, fits) in [
            ("1.5e308".to_owned(), true),
            ("-1.8e308".to_owned(), false),
            ("{\"a\":[1E400]}".to_owned(), false),
            ("1e-400".to_owned(), true),
            ("0e999999".to_owned(), true),
            ("9".repeat(308), true),
            ("9".repeat(309), false),
            (format!("0.{}", "9".repeat(NUMBER_MAX - 2)), true),
            (format!("0.{}", "9".repeat(NUMBER_MAX - 1)), false),
            ("\"1e400\"".to_owned(), true),
            (nested(SHARED_DEPTH_MAX), true),
            (nested(SHARED_DEPTH_MAX + 1), false),
        ] {
            let excess = Measure::of(value.as_bytes()).unwrap().excess();
            assert_eq!(excess.is_none(), fits, "{value}: {excess:?}");
        }
        assert_eq!(Measure::of(b"[1,{\"a\":{}},[]]").unwrap().depth, 3);
        assert!(Measure::of(b"[1").is_err());
    }
}
