//! The tuple table: a hash table that answers from one cache line.
//!
//! With a million connections, the cost of a lookup is the number of cache lines that were not
//! touched recently. An entry is one word: the index of the owner, and above it the remaining bits
//! of the hash. Fifteen entries and a count make a line of memory:
//!
//! ```text
//!  line   | mark index | mark index | 0 | … | mark index | overflow |
//! ```
//! An entry that finds its line full lies in one of the next lines, and is counted in every line
//! that it skipped. A search continues only if that count is not zero, and a removal leaves no
//! trace.
//!
//! The position in a line is arbitrary, but the hash suggests one, which is tested first: most
//! entries are there.
//!
//! Not here: the tuples, which their owners store (`same`), and the hash, which is keyed
//! (`keyed_hash`).

use alloc::vec::Vec;

/// Words of a line: the places, and the count of those who were passed on.
const WORDS: usize = 16;
const PLACES: usize = WORDS - 1;
/// The table is doubled when its lines have more than so many taken on average: then a look-up of what is there takes 1.1 lines.
const TAKEN_MOST: usize = 13;
/// A place that is free. Marks are not 0.
const FREE: u32 = 0;
/// A place that is taken.
const TAKEN: u32 = 1 << 31;
/// The bits that are always an index.
const INDEX_MOST: u32 = 0xffff;

#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
struct Line([u32; WORDS]);

/// A bit for each word of a line. (Not the lowest: compilers turn that one comparison into something else than the others.)
const BITS: [u32; WORDS] = {
    let (mut bits, mut word) = ([0; WORDS], 0);
    while word < WORDS {
        bits[word] = 1 << (FIRST_BIT + word);
        word += 1;
    }
    bits
};
const FIRST_BIT: usize = 1;

const EMPTY: Line = Line([FREE; WORDS]);

impl Line {
    #[inline]
    fn places(&self) -> &[u32] {
        &self.0[..PLACES]
    }

    /// The places with this mark, a bit for each. All words are compared at once; the count has no mark, unless it is huge.
    #[inline]
    fn marked(&self, mark: u32, index_most: u32) -> u32 {
        let words = self.0.iter().zip(BITS);
        words.fold(0, |all, (word, bit)| all | if word & !index_most == mark { bit } else { 0 })
    }

    /// Those who were passed on to the lines behind.
    #[inline]
    fn overflow(&self) -> u32 {
        self.0[PLACES]
    }

    fn overflow_mut(&mut self) -> &mut u32 {
        &mut self.0[PLACES]
    }

    /// Where this word stands; looks at the proposed place first.
    #[inline]
    fn place_of(&self, word: u32, proposed: usize) -> Option<usize> {
        if self.0[proposed] == word {
            return Some(proposed);
        }
        self.places().iter().position(|place| *place == word)
    }
}

/// The place in a line that a hash proposes: by bits that neither choose the line nor are part of the mark, unless there are very many.
#[inline]
fn proposed(hash: u64) -> usize {
    (((hash >> 24) as u8 as usize) * PLACES) >> 8
}

/// Indices by the hash of a tuple. Eight bytes for each where the table has just been doubled, five before that.
pub(crate) struct TupleTable {
    /// None, or a power of two.
    lines: Vec<Line>,
    len: usize,
    /// Greatest index there is room for: all the lower bits of a place.
    index_most: u32,
}

impl TupleTable {
    /// Most bytes for each that is stored.
    pub(crate) const BYTES_MOST: usize = 2 * size_of::<Line>() / TAKEN_MOST + 1;

    /// Empty; takes no memory.
    pub(crate) fn new() -> TupleTable {
        TupleTable { lines: Vec::new(), len: 0, index_most: INDEX_MOST }
    }

    /// Who stands in the place that this hash proposes, if it may be somebody of this hash.
    pub(crate) fn proposed(&self, hash: u64) -> Option<u32> {
        let line = self.lines.get(self.home(hash))?;
        let index = line.0[proposed(hash)] ^ self.mark(hash);
        (index <= self.index_most).then_some(index)
    }

    /// The one with this hash of which `same` is true.
    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let proposed = self.proposed(hash).filter(|index| same(*index));
        proposed.or_else(|| self.find_elsewhere(hash, same))
    }

    /// As [`find`](Self::find), where it does not stand in the place that the hash proposes.
    #[inline]
    pub(crate) fn find_elsewhere(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let (mark, at) = (self.mark(hash), self.home(hash));
        let line = self.lines.get(at)?;
        let marked = line.marked(mark, self.index_most);
        if marked == 0 && line.overflow() == 0 { None } else { self.search(at, marked, mark, same) }
    }

    /// Finds the index of which `same` is true in the line at `at` and those after it; `marked` are the places of the first that have the
    /// mark.
    #[inline(never)]
    fn search(&self, mut at: usize, mut marked: u32, mark: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        for _ in 0..self.lines.len() {
            let line = self.lines.get(at)?;
            while marked != 0 {
                let index = line.0[(marked.trailing_zeros() as usize - FIRST_BIT) % WORDS] ^ mark;
                if same(index) {
                    return Some(index);
                }
                marked &= marked - 1;
            }
            if line.overflow() == 0 {
                return None;
            }
            at = self.behind(at);
            marked = self.lines.get(at)?.marked(mark, self.index_most);
        }
        None
    }

    /// Stores who is not there yet. `hash_of` tells the hash of anyone stored.
    pub(crate) fn insert(&mut self, hash: u64, index: u32, hash_of: impl Fn(u32) -> u64) {
        if self.len >= self.lines.len() * TAKEN_MOST || index > self.index_most {
            self.grow(index, hash_of);
        }
        self.put(hash, index);
        self.len += 1;
    }

    /// Removes who is stored under this hash.
    pub(crate) fn remove(&mut self, hash: u64, index: u32) {
        match self.proposed_place(hash, self.word(hash, index)) {
            Some(place) => {
                *place = FREE;
                self.len -= 1;
            }
            None => self.remove_elsewhere(hash, index),
        }
    }

    #[inline(never)]
    fn remove_elsewhere(&mut self, hash: u64, index: u32) {
        let Some((found, place)) = self.place_of(hash, index) else { return };
        let mut at = self.home(hash);
        while at != found {
            *self.lines[at].overflow_mut() -= 1;
            at = self.behind(at);
        }
        self.lines[found].0[place] = FREE;
        self.len -= 1;
    }

    /// `after` takes the place of `before`, stored under the same hash. False: `before` is not there any more, but there is no room for
    /// so great an index.
    pub(crate) fn replace(&mut self, hash: u64, before: u32, after: u32) -> bool {
        if after > self.index_most {
            self.remove(hash, before);
            return false;
        }
        let (word, next) = (self.word(hash, before), self.word(hash, after));
        if let Some(place) = self.proposed_place(hash, word) {
            *place = next;
            return true;
        }
        let Some((line, place)) = self.place_of(hash, before) else { return false };
        self.lines[line].0[place] = next;
        true
    }

    /// The place that this hash proposes, if this word stands there.
    fn proposed_place(&mut self, hash: u64, word: u32) -> Option<&mut u32> {
        let at = self.home(hash);
        let place = &mut self.lines.get_mut(at)?.0[proposed(hash)];
        (*place == word).then_some(place)
    }

    /// Where something with this hash lies: in which line, and there.
    fn place_of(&self, hash: u64, index: u32) -> Option<(usize, usize)> {
        let (word, mut at) = (self.word(hash, index), self.home(hash));
        for _ in 0..self.lines.len() {
            if let Some(place) = self.lines[at].place_of(word, proposed(hash)) {
                return Some((at, place));
            }
            at = self.behind(at);
        }
        None
    }

    fn put(&mut self, hash: u64, index: u32) {
        let (word, mut at) = (self.word(hash, index), self.home(hash));
        for _ in 0..self.lines.len() {
            let line = &mut self.lines[at];
            if let Some(place) = line.place_of(FREE, proposed(hash)) {
                line.0[place] = word;
                return;
            }
            *line.overflow_mut() += 1;
            at = self.behind(at);
        }
    }

    /// Twice the lines, or as many with more bits for an index.
    #[cold]
    fn grow(&mut self, index: u32, hash_of: impl Fn(u32) -> u64) {
        let before = core::mem::take(&mut self.lines);
        let full = self.len >= before.len() * TAKEN_MOST;
        let count = if full { (2 * before.len()).max(1) } else { before.len() };
        let index_most = self.index_most;
        self.lines = vec![EMPTY; count];
        self.index_most |= u32::MAX.checked_shr(index.leading_zeros().max(1)).unwrap_or_default();
        let taken = before.iter().flat_map(Line::places).filter(|place| **place != FREE);
        for stored in taken.map(|place| place & index_most) {
            self.put(hash_of(stored), stored);
        }
    }

    /// The first line for this hash, if there is any.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        hash as usize & self.lines.len().wrapping_sub(1)
    }

    #[inline]
    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.lines.len() - 1)
    }

    /// The bits of the hash in a place: of the upper ones, since the lower ones chose the line. The uppermost is set, so that it is not 0.
    #[inline]
    fn mark(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & !self.index_most | TAKEN
    }

    #[inline]
    fn word(&self, hash: u64, index: u32) -> u32 {
        self.mark(hash) | index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed_hash::HashKey;
    use alloc::collections::BTreeMap;

    /// Hashes of which many share lines and marks.
    fn hash_of(index: u32) -> u64 {
        let spread = u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spread & 0x0003_ffff_0000_0007 | u64::from(index % 5) << 4
    }

    fn find(table: &TupleTable, index: u32) -> Option<u32> {
        table.find(hash_of(index), |found| found == index)
    }

    #[test]
    fn what_is_stored_is_found_until_it_is_removed() {
        let (mut table, mut model) = (TupleTable::new(), BTreeMap::new());
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = (random >> 33) as u32 % 1500;
            if model.remove(&index).is_some() {
                table.remove(hash_of(index), index);
            } else {
                model.insert(index, ());
                table.insert(hash_of(index), index, hash_of);
            }
            let asked = (random >> 45) as u32 % 1500;
            assert_eq!(find(&table, asked), model.get(&asked).map(|()| asked));
        }
        assert_eq!(table.len, model.len());
        model.keys().for_each(|index| table.remove(hash_of(*index), *index));
        assert!(table.lines.iter().all(|line| *line == EMPTY));
    }

    #[test]
    fn who_takes_over_a_tuple_takes_over_its_place() {
        let mut table = TupleTable::new();
        (0..40).for_each(|index| table.insert(hash_of(index), index, hash_of));
        let before = table.lines.iter().map(Line::overflow).collect::<Vec<_>>();
        assert!(table.replace(hash_of(7), 7, 0x8007));
        assert_eq!(table.find(hash_of(7), |_| true), Some(0x8007));
        assert_eq!((table.lines.iter().map(Line::overflow).collect::<Vec<_>>(), table.len), (before, 40));
        // There is no room for so great an index beside the marks: it has to be inserted.
        assert!(!table.replace(hash_of(8), 8, 0x1_0008));
        assert_eq!((find(&table, 8), table.len), (None, 39));
    }

    #[test]
    fn a_great_index_has_room_beside_the_small_ones() {
        let mut table = TupleTable::new();
        let indices = [0, 1, 0xffff, 0x1_0000, 0x12_3456, 0x0fff_ffff];
        for (count, index) in indices.into_iter().enumerate() {
            table.insert(hash_of(index), index, hash_of);
            assert!(indices[..=count].iter().all(|index| find(&table, *index) == Some(*index)));
        }
        assert_eq!(table.lines.len(), 1);
    }

    #[test]
    fn most_lie_where_their_hash_proposes() {
        let mut table = TupleTable::new();
        let key = HashKey::new((3, 4));
        let hash_of = |index: u32| key.hash(&[1; 16], &[2; 16], index.into());
        // 6.5 of 15 places are taken.
        let count = 13 * 512 + 1;
        (0..count).for_each(|index| table.insert(hash_of(index), index, hash_of));
        let there = |index: &u32| {
            let (hash, word) = (hash_of(*index), table.word(hash_of(*index), *index));
            table.lines[table.home(hash)].0[proposed(hash)] == word
        };
        let there = (0..count).filter(there).count() as u32;
        assert!(there * 100 > count * 70, "{there} of {count}");
    }

    #[test]
    fn a_look_up_takes_hardly_more_than_one_line_before_the_table_is_doubled() {
        let mut table = TupleTable::new();
        let key = HashKey::new((1, 2));
        let hash_of = |index: u32| key.hash(&[1; 16], &[2; 16], index.into());
        let count = 13 * 1024;
        (0..count).for_each(|index| table.insert(hash_of(index), index, hash_of));
        assert_eq!(table.lines.len(), 1024);
        let lines = |index: u32| {
            let hash = hash_of(index);
            1 + (table.place_of(hash, index).unwrap().0 + 1024 - table.home(hash)) % 1024
        };
        let sum: usize = (0..count).map(lines).sum();
        assert!(sum * 100 < count as usize * 115, "{sum} lines for {count}");
    }
}
