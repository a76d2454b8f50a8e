//! The bytes of a value in the bucket.
//!
//! ```text
//!   epoch:    format (1), 16 bytes
//!   binding:  format (2), target: 8 bytes, origin: 8 bytes        little endian
//! ```
//!
//! Neither the time of the binding nor the lifetime is written: other daemons could only compare them with their own
//! wall clocks.

use crate::message::{Epoch, Origin, Target, Value};

const EPOCH: u8 = 1;
const BINDING: u8 = 2;

impl Value {
    /// The length of a value, in bytes.
    pub const LENGTH: usize = 17;

    /// Encodes a value.
    ///
    /// ```
    /// use cluster::{Origin, Target, Value};
    ///
    /// let value = Value::Binding { target: Target(7), origin: Origin(1) };
    /// assert_eq!(Value::decode(&value.encode()), Some(value));
    /// assert_eq!(Value::decode(b"other"), None);
    /// ```
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        match self {
            Self::Epoch(Epoch(epoch)) => {
                bytes[0] = EPOCH;
                bytes[1..].copy_from_slice(&epoch.to_le_bytes());
            }
            Self::Binding { target, origin } => {
                bytes[0] = BINDING;
                bytes[1..9].copy_from_slice(&target.0.to_le_bytes());
                bytes[9..].copy_from_slice(&origin.0.to_le_bytes());
            }
        }
        bytes
    }

    /// Decodes a value. `None`: this version does not know the format.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first()?;
        let rest: [u8; 16] = rest.try_into().ok()?;
        let number = u128::from_le_bytes(rest);
        match *format {
            EPOCH => Some(Self::Epoch(Epoch(number))),
            BINDING => Some(Self::Binding {
                target: Target(u64::try_from(number & u128::from(u64::MAX)).ok()?),
                origin: Origin(u64::try_from(number >> 64).ok()?),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_back_and_others_are_rejected() {
        let binding = Value::Binding { target: Target(u64::MAX - 1), origin: Origin(3) };
        for value in [binding, Value::Epoch(Epoch(u128::MAX / 3))] {
            assert_eq!(Value::decode(&value.encode()), Some(value));
            assert_eq!(Value::decode(&value.encode()[1..]), None);
        }
        assert_eq!(Value::decode(&[9; Value::LENGTH]), None);
        assert_eq!(Value::decode(b""), None);
    }
}
