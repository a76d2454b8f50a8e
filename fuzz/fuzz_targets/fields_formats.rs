#![no_main]

#[allow(dead_code)]
#[path = "../entries/fields.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entries::formats(bytes));
