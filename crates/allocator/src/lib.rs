//! The memory of the program: small blocks come from mimalloc, large ones from the system's allocator.
//!
//! A call takes some 70 blocks of at most 8 KiB. mimalloc hands each out in a third of the instructions that glibc's
//! `malloc` takes, which is 0.4 µs of a call over HTTP. Large blocks stay with the system: glibc grows them in place
//! (`mremap`) and gives them back at once, so that many gigabytes in transit take no memory. `docs/performance.md` has
//! the figures of both.
//!
//! This is the one crate with `unsafe` in it. Its whole argument: which of the two a block belongs to is a function of
//! its [`Layout`] alone ([`is_small`]), and [`GlobalAlloc`] promises that a block is given back with the layout that it
//! was asked for with.
#![expect(
    unsafe_code,
    reason = "`GlobalAlloc` is unsafe to implement, and mimalloc is called over C's interface"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_zalloc};

/// The largest block in bytes that mimalloc gives: more than an ordinary call needs at once, less than the kernel is
/// worth asking to move.
const SMALL: usize = 16 * 1024;

/// The strictest alignment in bytes that mimalloc keeps for a block of any size without being asked to: a word.
const ALIGNED: usize = size_of::<usize>();

/// Returns whether a block is mimalloc's: by nothing but its layout.
const fn is_small(size: usize, align: usize) -> bool {
    size <= SMALL && align <= ALIGNED
}

/// The allocator of the program, for `#[global_allocator]`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramAllocator;

// SAFETY: each method hands on to one of two allocators that keep the contract of `GlobalAlloc`, and to the same one
// for the same layout. mimalloc's blocks are aligned to at least `ALIGNED` (`mi_malloc`: to the machine's word for
// blocks up to 8 bytes, to 16 for larger ones), hold as many bytes as asked for, and are null if there is no memory; it
// neither unwinds nor calls back.
unsafe impl GlobalAlloc for ProgramAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_small(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            unsafe { mi_malloc(layout.size()).cast() }
        } else {
            // SAFETY: the caller's promise for this method (a size above 0) is the one that the system's asks for.
            unsafe { System.alloc(layout) }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_small(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            unsafe { mi_zalloc(layout.size()).cast() }
        } else {
            // SAFETY: as in `alloc`.
            unsafe { System.alloc_zeroed(layout) }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_small(layout.size(), layout.align()) {
            // SAFETY: the caller got `block` with this layout, so from mimalloc, and gives it back once.
            unsafe { mi_free(block.cast()) }
        } else {
            // SAFETY: the caller got `block` with this layout, so from the system, and gives it back once.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        match (is_small(layout.size(), align), is_small(size, align)) {
            // SAFETY: `block` is mimalloc's, by its layout; the result is one as well, by its own.
            (true, true) => unsafe { mi_realloc(block.cast(), size).cast() },
            // SAFETY: `block` is the system's, by its layout; the result is one as well, by its own.
            (false, false) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: the caller's promise: `block` has this layout, and `size`, rounded up to the alignment, is no
            // more than `isize::MAX`.
            _ => unsafe { self.move_block(block, layout, size) },
        }
    }
}

impl ProgramAllocator {
    /// Returns a block that grew or shrank across the border between the two allocators.
    ///
    /// # Safety
    ///
    /// As `GlobalAlloc::realloc`.
    #[cold]
    unsafe fn move_block(self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise on `size`; the alignment is that of a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: `realloc` is never called with a size of 0.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both blocks hold the smaller of the two sizes, and are different ones, as both are under way.
            unsafe { ptr::copy_nonoverlapping(block, new, layout.size().min(size)) };
            // SAFETY: the caller's promise: `block` has this layout, and is not used after this.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tests of this crate take their own blocks from the allocator as well.
    #[global_allocator]
    static ALLOCATOR: ProgramAllocator = ProgramAllocator;

    #[test]
    fn a_block_keeps_its_bytes_when_it_crosses_the_border_and_back() {
        let mut bytes: Vec<u8> = Vec::new();
        for n in 0..SMALL * 4 {
            bytes.push((n % 251) as u8);
        }
        for size in [SMALL + 1, SMALL, SMALL - 1, 100, 7, 1] {
            bytes.truncate(size);
            bytes.shrink_to_fit();
            assert!(bytes.iter().enumerate().all(|(n, b)| *b == (n % 251) as u8));
        }
        bytes.reserve_exact(SMALL * 2);
        assert_eq!(bytes, [0]);
    }

    #[test]
    fn blocks_of_every_size_and_alignment_are_aligned_apart_and_zeroed_where_asked() {
        let mut held = Vec::new();
        for align in (0..=12).map(|power| 1 << power) {
            for size in [
                1,
                7,
                8,
                9,
                15,
                16,
                17,
                24,
                1000,
                SMALL - 1,
                SMALL,
                SMALL + 1,
                SMALL * 9,
            ] {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                // SAFETY: no size is 0.
                let (block, zeroed) =
                    unsafe { (ALLOCATOR.alloc(layout), ALLOCATOR.alloc_zeroed(layout)) };
                for (block, fill) in [(block, None), (zeroed, Some(0))] {
                    assert!(!block.is_null());
                    assert_eq!(block.align_offset(align), 0, "{size} aligned to {align}");
                    // SAFETY: the block holds `size` bytes.
                    let bytes = unsafe { std::slice::from_raw_parts_mut(block, size) };
                    if let Some(fill) = fill {
                        assert!(bytes.iter().all(|b| *b == fill));
                    }
                    let mark = held.len() as u8;
                    bytes.fill(mark);
                    held.push((block, layout, mark));
                }
            }
        }
        for (block, layout, mark) in held {
            // SAFETY: the block holds as many bytes as its layout says, and is given back once.
            unsafe {
                let bytes = std::slice::from_raw_parts(block, layout.size());
                assert!(bytes.iter().all(|b| *b == mark), "{layout:?}");
                ALLOCATOR.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn a_block_of_one_thread_is_given_back_by_another() {
        let (give, take) = std::sync::mpsc::channel::<Vec<u8>>();
        let other = std::thread::spawn(move || take.iter().map(|block| block.len()).sum::<usize>());
        let sizes: Vec<usize> = (0..2000).map(|n| n * 37 % (SMALL * 2)).collect();
        for size in &sizes {
            give.send(vec![1; *size]).expect("the other thread takes");
        }
        drop(give);
        assert_eq!(other.join().expect("it ends"), sizes.iter().sum::<usize>());
    }
}
