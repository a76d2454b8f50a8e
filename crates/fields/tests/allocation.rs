//! The steady loop allocates nothing: ten thousand pooled requests, and rows filled again.

use std::alloc::System;

use block::{Block, Slice};
use fields::{Case, Fields, Rows, Schema, Value, http1, known};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const HEAD: &[u8] = b"Host: example.org\r\nConnection: close\r\nCookie: a=b\r\nAccept: */*\r\n";

fn request(out: &mut Vec<u8>) {
    let mut block = Block::with_capacity(4096);
    block.push(HEAD);
    let mut set = Fields::pooled_headers();
    http1::adopt(&mut set, block.freeze()).expect("a head");
    assert!(set.get(&known::UPGRADE).is_none() && set.contains(&known::HOST));
    set.remove(&known::CONNECTION);
    set.append("Via", "1.1 x");
    set.update("Accept", "text/plain");
    out.clear();
    http1::encode(&set, out).expect("lines");
    set.give_back();
}

/// One test, because the counts are of the whole process.
#[test]
fn the_steady_loop_allocates_nothing() {
    let mut out = Vec::with_capacity(4096);
    request(&mut out);
    let region = Region::new(ALLOCATOR);
    (0..10_000).for_each(|_| request(&mut out));
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "requests");

    let region = Region::new(ALLOCATOR);
    let mut set = Fields::with_capacity(20, 700);
    for _ in 0..20 {
        set.append("a-name-of-12", "a value of 22 bytes ok");
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (2, 0), "a set is two blocks");
    assert!(set.bytes_held() <= 1100, "{}", set.bytes_held());

    let names: Vec<_> = (0..20).map(|column| format!("column_{column}")).collect();
    let schema = Schema::new(&names, Case::Exact);
    let region = Region::new(ALLOCATOR);
    let mut rows = Rows::with_capacity(schema, 1000, 1000 * 20 * 22);
    for _ in 0..2 {
        rows.clear();
        for _ in 0..1000 {
            rows.push([Value::Bytes(&[b'v'; 22]); 20]).expect("a row");
        }
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (3, 0), "a batch is three blocks");

    let tiny: Vec<u8> = (0..100).flat_map(|n| format!("x-h-{n:04}: v\r\n").into_bytes()).collect();
    let mut set = Fields::headers();
    set.reserve(100, 0);
    http1::adopt(&mut set, Slice::copy_of(&tiny)).expect("a head");
    let own = set.bytes_held() - set.stats().bytes_used.next_power_of_two().max(4096);
    assert!(own <= 1600, "the index of 100 tiny headers is 16 bytes each: {own}");

    let lines = Slice::copy_of(&tiny);
    let mut set = Fields::headers();
    let region = Region::new(ALLOCATOR);
    http1::adopt(&mut set, lines).expect("a head");
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (1, 1), "room is estimated twice");
    let index = set.bytes_held() - 4096;
    assert!(2 * (tiny.len() + index) <= 5 * tiny.len(), "{index} bytes for {}", tiny.len());
}
