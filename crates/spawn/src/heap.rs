//! How the allocator of this process returns memory to the system.

#![allow(unsafe_code, reason = "mallopt has no safe wrapper; other C libraries do without it")]

/// The minimum size, in bytes, of a block that is mapped separately and is returned to the system when it is freed.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 16 << 10;

/// Makes the allocator return freed blocks of 16 KiB and more to the system immediately.
///
/// By default glibc raises this limit, up to 32 MiB, whenever such a block is freed. Later blocks of this size are then
/// allocated in a heap, which shrinks only at its end, so one small block in use there keeps all memory below it. Call
/// this function before threads start. It does nothing with other C libraries.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallopt takes two numbers and changes only parameters of the allocator. It does not require that
        // other threads are stopped, and an invalid value changes nothing.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD) };
        // SAFETY: as above. If the system rejects a mapping because there are too many, the allocator takes the block
        // from its heap.
        unsafe { libc::mallopt(libc::M_MMAP_MAX, libc::c_int::MAX) };
    }
}
