//! The fuzz targets over bytes from a fixed seed: valid inputs, broken a little and much.

#[path = "../../../fuzz/entries/fields.rs"]
mod entries;

const ROUNDS: u64 = 20_000;

/// What the formats look like, to be broken.
const SAMPLES: [&[u8]; 12] = [
    b"Host: example.org\r\nUser-Agent:  x \t\r\naccept:*/*\r\nX-Empty:\r\nhost: b\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"4:path,1:/,2:at,0:,",
    b"21:SCGI\x001\x00CONTENT_LENGTH\x00,",
    b"PATH=/bin\0HOME=\0A=b=c\0",
    b"\x06\x03METHODGET\x04\x80\x00\x00\x05NAMEvalue",
    b"at=17 path=\"/a \\\" \\\\ b\" user empty= n=\"\\t\\n\\r\"",
    b"{\"a\":1,\"b\":null,\"c\":\"x\\u0000\\n\",\"d\":[1,{\"e\":2}],\"f\":true}",
    b"1\t\\N\t\\\\a\\tb",
    b"a\t\tb",
    b"a",
    b"",
];

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).expect("31 bits fit")
            % limit
    }

    fn byte(&mut self) -> u8 {
        const LIKELY: &[u8] = b"\r\n\t :,=\"\\0123\0{}[]aN\x7f\x80\xff";
        let any = u8::try_from(self.below(256)).expect("below 256");
        if self.below(4) == 0 { any } else { LIKELY[self.below(LIKELY.len())] }
    }

    fn input(&mut self) -> Vec<u8> {
        let mut bytes = SAMPLES[self.below(SAMPLES.len())].to_vec();
        if self.below(4) == 0 {
            bytes.extend_from_slice(SAMPLES[self.below(SAMPLES.len())]);
        }
        for _ in 0..self.below(4) {
            let place = self.below(bytes.len() + 1);
            let byte = self.byte();
            match self.below(4) {
                0 => bytes.insert(place, byte),
                1 if place < bytes.len() => bytes[place] = byte,
                2 if place < bytes.len() => drop(bytes.remove(place)),
                3 => bytes.truncate(place),
                _ => {}
            }
        }
        bytes
    }
}

fn smoke(seed: u64, entry: fn(&[u8])) {
    let mut random = Random(seed);
    for round in 0..ROUNDS {
        let input = random.input();
        let run = || entry(&input);
        if let Err(fault) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}, round {round}: {}", input.escape_ascii());
            std::panic::resume_unwind(fault);
        }
    }
    SAMPLES.iter().for_each(|sample| entry(sample));
}

#[test]
fn heads() {
    smoke(1, entries::head);
}

#[test]
fn formats() {
    smoke(2, entries::formats);
}
