//! How the allocator of this process returns memory to the system.

#![allow(unsafe_code, reason = "mallopt has no safe wrapper; other C libraries do without it")]

/// The smallest block, in bytes, that is taken from the system by itself and returned when it is freed.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 16 << 10;

/// Has freed blocks of 16 KiB and more returned to the system at once. By default glibc raises that
/// limit, up to 32 MiB, whenever such a block is freed; from then on such blocks lie in a heap, which
/// shrinks only at its end: one small block that is in use there keeps all memory below it. To be called
/// before threads start. Does nothing with other C libraries.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallopt takes two numbers and changes parameters of the allocator alone; it needs no
        // other thread to stand still, and a value that it does not accept changes nothing.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD) };
        // SAFETY: as above. More mappings than the system allows are refused to the allocator, which
        // then takes the block from its heap.
        unsafe { libc::mallopt(libc::M_MMAP_MAX, libc::c_int::MAX) };
    }
}
