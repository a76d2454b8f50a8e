//! The fuzz targets over bytes from a fixed seed: paths, broken a little and much.

#[path = "../../../fuzz/entries/route.rs"]
mod entries;

const ROUNDS: u64 = 200_000;

/// What paths are made of.
const PIECES: [&[u8]; 22] = [
    b"/",
    b"a",
    b"api",
    b".",
    b"..",
    b"//",
    b"%2e",
    b"%2E%2e",
    b"%2f",
    b"%5c",
    b"%25",
    b"%252e",
    b";a=b",
    b"%3b",
    b"%c0%ae",
    b"%e2%80%a6",
    b"%00",
    b"%41",
    b"%",
    b"\\",
    b"~",
    b"\xff",
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

    fn path(&mut self) -> Vec<u8> {
        let mut bytes = b"/".to_vec();
        for _ in 0..self.below(8) {
            bytes.extend_from_slice(PIECES[self.below(PIECES.len())]);
        }
        if self.below(4) == 0 {
            let place = self.below(bytes.len());
            bytes[place] = u8::try_from(self.below(256)).expect("below 256");
        }
        bytes
    }
}

#[test]
fn paths() {
    let mut random = Random(1);
    for round in 0..ROUNDS {
        let path = random.path();
        if let Err(fault) = std::panic::catch_unwind(|| entries::paths(&path)) {
            eprintln!("round {round}: {}", path.escape_ascii());
            std::panic::resume_unwind(fault);
        }
    }
}
