//! The same as `measure`, with mimalloc.

#[path = "measure/main.rs"]
mod measure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    measure::main();
}
