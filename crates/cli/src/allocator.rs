//! Memory of the program.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one only chooses between two others"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use mimalloc::MiMalloc;

/// Blocks from this size on are mapped one by one by the system's allocator, and go back as they are freed. `MiMalloc`
/// keeps them for a while: decoding a page of 64 MiB would take its place three times over.
const MAPPED: usize = 32 << 20;

/// Requests are built on one thread and freed on another, which the system's allocator does under locks: that one gets
/// only what is mapped.
pub(crate) struct Allocator;

// SAFETY: a block comes from and goes to one and the same of two allocators, told apart by its size, which a layout
// keeps; both uphold the trait.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        unsafe { if layout.size() < MAPPED { MiMalloc.alloc(layout) } else { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        unsafe {
            if layout.size() < MAPPED { MiMalloc.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller; the block is of the allocator that its size says.
        unsafe {
            if layout.size() < MAPPED {
                MiMalloc.dealloc(block, layout);
            } else {
                System.dealloc(block, layout);
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised by the caller; where the size says another allocator from now on, the block is copied,
        // of which both the old and the new one have the smaller length.
        unsafe {
            match (layout.size() < MAPPED, size < MAPPED) {
                (true, true) => MiMalloc.realloc(block, layout, size),
                (false, false) => System.realloc(block, layout, size),
                _ => {
                    let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !new.is_null() {
                        ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    new
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MAPPED;

    #[test]
    fn blocks_keep_their_bytes_as_they_grow_and_shrink_across_the_limit() {
        let mut bytes: Vec<u8> = vec![7; MAPPED - 3];
        bytes.extend_from_slice(&[8; 6]);
        assert_eq!((bytes.len(), bytes[MAPPED - 4], bytes[MAPPED - 3]), (MAPPED + 3, 7, 8));
        bytes.truncate(1000);
        bytes.shrink_to_fit();
        assert!(bytes.len() == 1000 && bytes.iter().all(|byte| *byte == 7));
        let zeros = vec![0_u64; MAPPED / 4];
        assert!(zeros.iter().step_by(1 << 12).all(|word| *word == 0));
        bytes.reserve_exact(2 * MAPPED);
        assert_eq!((bytes[0], bytes[999]), (7, 7));
    }
}
