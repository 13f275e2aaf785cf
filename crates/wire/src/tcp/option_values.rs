//! The two options of variable number, so that [`TcpOptions`](crate::TcpOptions) stays small and is cheap to make and to drop.
use super::TCP_OPTIONS_MAX;
use crate::SeqNum;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use smallvec::SmallVec;

/// Blocks that fit into one header.
const BLOCKS_MAX: usize = (TCP_OPTIONS_MAX - 2) / 8;

/// The blocks of a SACK option (RFC 2018), [left, right); at most four.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [(SeqNum, SeqNum); BLOCKS_MAX],
}

impl SackBlocks {
    /// Adds one; a fifth finds no room and is left out.
    pub fn push(&mut self, block: (SeqNum, SeqNum)) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.len)) {
            *free = block;
            self.len += 1;
        }
    }

    /// Removes the last block.
    pub fn pop(&mut self) -> Option<(SeqNum, SeqNum)> {
        let last = *self.last()?;
        self.len -= 1;
        Some(last)
    }
}

impl Deref for SackBlocks {
    type Target = [(SeqNum, SeqNum)];

    fn deref(&self) -> &[(SeqNum, SeqNum)] {
        self.blocks.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl DerefMut for SackBlocks {
    fn deref_mut(&mut self) -> &mut [(SeqNum, SeqNum)] {
        self.blocks.get_mut(..usize::from(self.len)).unwrap_or(&mut [])
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        **self == **other
    }
}

impl Eq for SackBlocks {}

/// The first four.
impl FromIterator<(SeqNum, SeqNum)> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = (SeqNum, SeqNum)>>(blocks: I) -> SackBlocks {
        let mut all = SackBlocks::default();
        blocks.into_iter().take(BLOCKS_MAX).for_each(|block| all.push(block));
        all
    }
}

/// An option by its kind and body.
pub type UnknownOption = (u8, SmallVec<[u8; 8]>);

/// Options without their own field, in order of arrival. There are usually none, which takes one
/// word.
#[derive(Clone, Debug, Default)]
#[expect(clippy::box_collection, reason = "a vector is three words, and there is nearly never one")]
pub struct UnknownOptions(Option<Box<Vec<UnknownOption>>>);

impl UnknownOptions {
    /// Adds one.
    pub fn push(&mut self, option: UnknownOption) {
        self.0.get_or_insert_default().push(option);
    }

    /// Removes the last option.
    pub fn pop(&mut self) -> Option<UnknownOption> {
        self.0.as_mut()?.pop()
    }
}

impl Deref for UnknownOptions {
    type Target = [UnknownOption];

    fn deref(&self) -> &[UnknownOption] {
        self.0.as_ref().map_or(&[], |options| options)
    }
}

impl PartialEq for UnknownOptions {
    fn eq(&self, other: &UnknownOptions) -> bool {
        **self == **other
    }
}

impl Eq for UnknownOptions {}

impl From<Vec<UnknownOption>> for UnknownOptions {
    fn from(options: Vec<UnknownOption>) -> UnknownOptions {
        UnknownOptions((!options.is_empty()).then(|| Box::new(options)))
    }
}

impl FromIterator<UnknownOption> for UnknownOptions {
    fn from_iter<I: IntoIterator<Item = UnknownOption>>(options: I) -> UnknownOptions {
        Vec::from_iter(options).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_block_is_left_out() {
        let block = |n| (SeqNum(n), SeqNum(n + 1));
        let mut blocks: SackBlocks = (0..5).map(block).collect();
        assert_eq!(blocks[..], [block(0), block(1), block(2), block(3)]);
        blocks.push(block(9));
        assert_eq!((blocks.pop(), blocks.len()), (Some(block(3)), 3));
        assert_eq!(blocks, (0..3).map(block).collect());
    }
}
