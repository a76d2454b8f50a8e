#![no_main]

#[allow(dead_code)]
#[path = "../entries/http1.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entries::objects(bytes));
