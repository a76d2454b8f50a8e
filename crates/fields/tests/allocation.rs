//! Checks that a steady load allocates nothing: ten thousand pooled requests, records that become rows, and refilled
//! rows. Also checks the number of memory blocks of each object.
//!
//! The counts are for the whole process, and the standard test harness allocates on a separate thread while a test
//! runs. Therefore this test has its own harness with one thread.

use std::alloc::System;

use block::{Block, Slice};
use fields::{Case, Fields, Rows, Schema, Value, http1, json, known};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let checks = [
        ("pooled_requests_allocate_nothing", requests as fn()),
        ("records_that_become_rows_allocate_nothing", records),
        ("a_set_is_two_blocks", set),
        ("a_batch_is_three_blocks", batch),
        ("room_for_tiny_headers_is_estimated_twice", tiny_headers),
    ];
    for (name, check) in checks {
        // A panic ends the program and fails the test.
        check();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed; 0 ignored", checks.len());
}

/// The number of allocations and reallocations while `work` runs.
fn counted(work: impl FnOnce()) -> (usize, usize) {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    (change.allocations, change.reallocations)
}

const HEAD: &[u8] = b"Host: example.org\r\nConnection: close\r\nCookie: a=b\r\nAccept: */*\r\n";

fn request(out: &mut Vec<u8>) {
    let mut block = Block::with_capacity(4096);
    block.push(HEAD);
    let mut set = Fields::pooled_headers();
    http1::adopt(&mut set, block.freeze()).expect("a head");
    assert!(set.get(&known::UPGRADE).is_none() && set.contains(&known::HOST));
    set.remove(&known::CONNECTION);
    set.append("Via", "1.1 x").expect("it is within the limits");
    set.update("Accept", "text/plain").expect("it is within the limits");
    out.clear();
    http1::encode(&set, out).expect("lines");
    set.give_back();
}

fn requests() {
    let mut out = Vec::with_capacity(4096);
    request(&mut out);
    assert_eq!(counted(|| (0..10_000).for_each(|_| request(&mut out))), (0, 0));
}

fn records() {
    let mut rows = Rows::with_capacity(Schema::new(["at", "path"], Case::Exact), 100, 10_000);
    let mut record = Fields::with_capacity(4, 100);
    let mut hundred = || {
        rows.clear();
        for _ in 0..100 {
            let mut block = Block::with_capacity(100);
            block.push(br#"{"at":17,"user":null,"path":"/index.html","ok":true}"#);
            json::adopt(&mut record, &block.freeze()).expect("a record");
            rows.push_record(&record).expect("a row");
            record.clear();
        }
    };
    hundred();
    assert_eq!(counted(|| (0..100).for_each(|_| hundred())), (0, 0));
}

fn set() {
    let fill = || {
        let mut set = Fields::with_capacity(20, 700);
        for _ in 0..20 {
            set.append("a-name-of-12", "a value of 22 bytes ok").expect("it is within the limits");
        }
        assert!(set.bytes_held() <= 1100, "{}", set.bytes_held());
    };
    assert_eq!(counted(fill), (2, 0));
}

fn batch() {
    let names: Vec<_> = (0..20).map(|column| format!("column_{column}")).collect();
    let schema = Schema::new(&names, Case::Exact);
    let fill = || {
        let mut rows = Rows::with_capacity(schema, 1000, 1000 * 20 * 22);
        for _ in 0..2 {
            rows.clear();
            for _ in 0..1000 {
                rows.push([Value::Bytes(&[b'v'; 22]); 20]).expect("a row");
            }
        }
    };
    assert_eq!(counted(fill), (3, 0));
}

fn tiny_headers() {
    let tiny: Vec<u8> = (0..100).flat_map(|n| format!("x-h-{n:04}: v\r\n").into_bytes()).collect();
    let lines = Slice::copy_of(&tiny);
    let block = lines.held();
    let mut set = Fields::headers();
    let adopt = || http1::adopt(&mut set, lines).expect("a head");
    assert_eq!(counted(adopt), (1, 1));
    let index = set.bytes_held() - block;
    assert!(2 * (tiny.len() + index) <= 5 * tiny.len(), "{index} bytes for {}", tiny.len());
}
