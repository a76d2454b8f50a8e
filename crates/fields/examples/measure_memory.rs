//! Counts the allocations of each store. Prints one line per subject: allocations, reallocations and live bytes after a
//! set of 20 members was created, and the additional ones for a second set in the same memory.

#[path = "measure/subjects.rs"]
mod subjects;

use std::alloc::System;

use fields::{Case, Fields, Rows, Schema, Value, http1};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use subjects::{Classic, Members, Reform, Store, Strings, Tree};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn counted<T>(subject: &str, work: impl FnOnce() -> T) -> T {
    let region = Region::new(ALLOCATOR);
    let made = work();
    let change = region.change();
    // The growth by a reallocation is included in the allocated bytes.
    let live = change.bytes_allocated as isize - change.bytes_deallocated as isize;
    println!("{subject}\t{}\t{}\t{live}", change.allocations, change.reallocations);
    made
}

fn store<S: Store>(members: &Members) {
    let mut set = counted(S::NAME, || S::fill(members));
    counted(&format!("{}, filled again", S::NAME), || set.refill(members));
}

/// The method of hyper: the values are slices of the received block.
fn sliced(ended: &bytes::Bytes) -> HeaderMap {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let (_, parsed) = httparse::parse_headers(ended, &mut headers).expect("a head").unwrap();
    let mut map = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).expect("a token");
        let value = HeaderValue::from_maybe_shared(ended.slice_ref(header.value));
        map.append(name, value.expect("a value"));
    }
    map
}

fn main() {
    let members = subjects::twenty();
    store::<Fields>(&members);
    store::<HeaderMap>(&members);
    store::<Tree>(&members);
    store::<Strings>(&members);
    store::<Classic>(&members);
    store::<Reform>(&members);
    let lines = block::Slice::copy_of(&subjects::lines(&members));
    let adopt = || {
        let mut set = Fields::pooled_headers();
        http1::adopt(&mut set, lines.clone()).expect("a head");
        set
    };
    counted("Fields, adopted", adopt).give_back();
    counted("Fields, adopted, from the pool", adopt).give_back();
    let ended = bytes::Bytes::from([&lines[..], b"\r\n"].concat());
    counted("http::HeaderMap, values sliced", || sliced(&ended));
    let tiny = block::Slice::copy_of(&subjects::lines(&subjects::hundred_tiny()));
    let mut set = Fields::headers();
    counted("Fields, 100 tiny headers adopted", || {
        http1::adopt(&mut set, tiny.clone()).expect("a head");
    });
    counted("http::HeaderMap, 100 tiny headers", || HeaderMap::fill(&subjects::hundred_tiny()));
    let names: Vec<_> = (0..20).map(|column| format!("column_{column}")).collect();
    let schema = Schema::new(&names, Case::Exact);
    counted("Rows, 1000 x 20 of 22 bytes", || {
        let mut rows = Rows::with_capacity(schema, 1000, 1000 * 20 * 22);
        for _ in 0..1000 {
            rows.push([Value::Bytes(&[b'v'; 22]); 20]).expect("a row");
        }
        rows
    });
    let thousand = |_| Classic::fill(&members);
    counted("one allocation a string, 1000 x 20", || (0..1000).map(thousand).collect::<Vec<_>>());
}
