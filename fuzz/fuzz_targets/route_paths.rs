#![no_main]

#[allow(dead_code)]
#[path = "../entries/route.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entries::paths(bytes));
