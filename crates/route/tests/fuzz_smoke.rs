//! Runs the fuzz targets with bytes from a fixed seed: paths with few and with many errors.

#[path = "../../../fuzz/entries/route.rs"]
mod entries;
#[path = "../../../fuzz/entries/random.rs"]
mod random;

use random::Random;

const ROUNDS: u64 = 200_000;

/// The pieces that paths are built from.
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

fn path(random: &mut Random) -> Vec<u8> {
    let mut bytes = b"/".to_vec();
    for _ in 0..random.below(8) {
        bytes.extend_from_slice(PIECES[random.below(PIECES.len())]);
    }
    if random.below(4) == 0 {
        let place = random.below(bytes.len());
        bytes[place] = u8::try_from(random.below(256)).expect("below 256");
    }
    bytes
}

#[test]
fn paths() {
    let mut random = Random(1);
    for round in 0..ROUNDS {
        let path = path(&mut random);
        if let Err(fault) = std::panic::catch_unwind(|| entries::paths(&path)) {
            eprintln!("round {round}: {}", path.escape_ascii());
            std::panic::resume_unwind(fault);
        }
    }
}
