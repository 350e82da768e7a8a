//! Places in an array, in as few bits as its length needs: the fewer, the less memory a list of them runs through, and
//! a place of 8 or 16 bits in an array of all that these reach needs no look at the array's length.

/// A place in some number of bits.
pub(crate) trait SlotIndex: Copy {
    /// How many places there are at most.
    const COUNT: usize;

    /// Returns the place with this number, which is below [`SlotIndex::COUNT`].
    fn new(number: u32) -> Self;

    /// Its number.
    fn wide(self) -> usize;
}

impl SlotIndex for u8 {
    const COUNT: usize = 1 << 8;

    #[expect(clippy::cast_possible_truncation, reason = "below the count")]
    fn new(number: u32) -> Self {
        number as u8
    }

    #[inline(always)]
    fn wide(self) -> usize {
        usize::from(self)
    }
}

impl SlotIndex for u16 {
    const COUNT: usize = 1 << 16;

    #[expect(clippy::cast_possible_truncation, reason = "below the count")]
    fn new(number: u32) -> Self {
        number as u16
    }

    #[inline(always)]
    fn wide(self) -> usize {
        usize::from(self)
    }
}

impl SlotIndex for u32 {
    const COUNT: usize = 1 << 32;

    fn new(number: u32) -> Self {
        number
    }

    #[inline(always)]
    fn wide(self) -> usize {
        self as usize
    }
}
