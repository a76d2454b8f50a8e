//! Formats numbers, addresses and times. Values that occur in every line are formatted without `fmt`, which needs ten
//! times as many instructions.

use std::io::Write;
use std::net::SocketAddr;

use exchange::Peer;

use crate::calendar::{MONTHS, calendar};

/// The maximum number of digits of a `u64`.
const DIGITS_MAX: usize = 20;

/// Writes a number.
pub(super) fn number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX];
    let mut start = DIGITS_MAX;
    loop {
        start -= 1;
        digits[start] = digit(number % 10);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Writes the last six digits of a number, including zeros.
pub(super) fn six(mut number: u32, out: &mut Vec<u8>) {
    let mut digits = [0; 6];
    for place in digits.iter_mut().rev() {
        *place = digit(u64::from(number % 10));
        number /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Returns the digit of a number below ten.
fn digit(number: u64) -> u8 {
    b'0' + u8::try_from(number).unwrap_or(0)
}

/// Writes the address of a client, with or without the port.
pub(super) fn peer(peer: Peer, with_port: bool, out: &mut Vec<u8>) {
    match peer {
        Peer::Internet(SocketAddr::V4(address)) => {
            for (place, part) in address.ip().octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                number(u64::from(part), out);
            }
            if with_port {
                out.push(b':');
                number(u64::from(address.port()), out);
            }
        }
        Peer::Internet(address) if with_port => put(out, format_args!("{address}")),
        Peer::Internet(address) => put(out, format_args!("{}", address.ip())),
        Peer::Local | Peer::Inside => put(out, format_args!("{peer}")),
    }
}

/// Formats into memory, which cannot fail.
pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// The second of a line as text, cached for lines of the same second.
#[derive(Debug)]
pub(super) struct Dated {
    /// The Unix time of the texts, in seconds.
    second: i64,
    /// The form `2024-02-29T12:34:56.`
    standard: Vec<u8>,
    /// The form `29/Feb/2024:12:34:56 +0000`
    combined: Vec<u8>,
}

impl Default for Dated {
    fn default() -> Self {
        let mut dated = Self { second: 0, standard: Vec::new(), combined: Vec::new() };
        dated.write();
        dated
    }
}

impl Dated {
    /// Updates the texts for a Unix time in microseconds.
    pub(super) fn turn_to(&mut self, at_us: i64) {
        let second = at_us.div_euclid(1_000_000);
        if second != self.second {
            self.second = second;
            self.write();
        }
    }

    fn write(&mut self) {
        let (year, month, day, second) = calendar(self.second);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let name = MONTHS[usize::from(month - 1)];
        let (standard, combined) = (&mut self.standard, &mut self.combined);
        standard.clear();
        put(standard, format_args!("{year:04}-{month:02}-{day:02}T"));
        put(standard, format_args!("{hour:02}:{minute:02}:{second:02}."));
        combined.clear();
        put(combined, format_args!("{day:02}/{name}/{year:04}:"));
        put(combined, format_args!("{hour:02}:{minute:02}:{second:02} +0000"));
    }

    /// Returns the form `2024-02-29T12:34:56.`
    pub(super) fn standard(&self) -> &[u8] {
        &self.standard
    }

    /// Returns the form `29/Feb/2024:12:34:56 +0000`
    pub(super) fn combined(&self) -> &[u8] {
        &self.combined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn numbers_and_addresses_are_written_as_fmt_does() {
        for value in [0, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(written(|out| number(value, out)), value.to_string());
        }
        for value in [0, 7, 999_999, 120_000] {
            assert_eq!(written(|out| six(value, out)), format!("{value:06}"));
        }
        for address in ["1.2.3.4:5", "255.0.10.100:65535", "[::1]:80", "[2001:db8::a]:1"] {
            let address: SocketAddr = address.parse().expect("it is an address");
            let who = Peer::Internet(address);
            assert_eq!(written(|out| peer(who, true, out)), address.to_string());
            assert_eq!(written(|out| peer(who, false, out)), address.ip().to_string());
        }
        assert_eq!(written(|out| peer(Peer::Local, true, out)), "unix");
        assert_eq!(written(|out| peer(Peer::Inside, false, out)), "inside");
    }

    #[test]
    fn the_text_of_a_second_follows_the_moment() {
        let mut dated = Dated::default();
        assert_eq!(dated.standard(), b"1970-01-01T00:00:00.");
        for (at_us, standard, combined) in [
            (1_709_210_096_789_012, "2024-02-29T12:34:56.", "29/Feb/2024:12:34:56 +0000"),
            (1_709_210_096_999_999, "2024-02-29T12:34:56.", "29/Feb/2024:12:34:56 +0000"),
            (1_709_210_097_000_000, "2024-02-29T12:34:57.", "29/Feb/2024:12:34:57 +0000"),
            (-1, "1969-12-31T23:59:59.", "31/Dec/1969:23:59:59 +0000"),
            (4_102_444_800_000_000, "2100-01-01T00:00:00.", "01/Jan/2100:00:00:00 +0000"),
        ] {
            dated.turn_to(at_us);
            assert_eq!(dated.standard(), standard.as_bytes(), "{at_us}");
            assert_eq!(dated.combined(), combined.as_bytes(), "{at_us}");
        }
    }
}
