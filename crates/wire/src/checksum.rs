//! The Internet checksum (RFC 1071): pseudo-headers, 64-bit words, copy combined with sum.
//!
//! Words are read in native byte order, and the sum is converted to network order once at the end
//! (RFC 1071 §2(B)). Long data is summed with the widest vectors of the processor, which the first
//! long sum detects. The result is identical.
use crate::{Addr, protocol};
use fearless_simd::{Level, dispatch, prelude::*, u8x64, u64x8};

/// A running one's-complement sum. Parts of odd length may be added in any number, because it
/// tracks the parity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    /// Native-order sums, not yet folded: fields add 32-bit words, each part at most 2³³, so 2³¹ parts fit.
    sum: u64,
    odd: bool,
}

impl Checksum {
    /// Creates an empty sum.
    pub fn new() -> Checksum {
        Checksum::default()
    }

    /// Returns whether this sum, followed by `segment`, covers data with a correct checksum field.
    /// Not for sums that are all zero.
    #[inline(always)]
    pub(crate) fn is_right_for(self, segment: &[u8]) -> bool {
        debug_assert!(!self.odd);
        let sum = match <&[u8; BARE_ACK_LEN]>::try_from(segment) {
            Ok(ack) => sum_short(ack),
            Err(_) => sum_native(segment),
        };
        Checksum { sum: self.sum + sum, odd: false }.is_right()
    }

    /// Returns whether this sum covers data with a correct checksum field. Not for sums that are
    /// all zero.
    #[inline(always)]
    pub(crate) fn is_right(self) -> bool {
        // All ones in one's complement, however it is folded, is a multiple of 0xffff (RFC 1071 §2).
        self.sum.is_multiple_of(0xffff)
    }

    /// Adds the pseudo-header of either IP version (by `src.is_v4()`; RFC 9293 §3.1, RFC 8200
    /// §8.1). `len`: bytes of the upper-layer packet, which may exceed 65535 before GSO splits it.
    #[inline]
    pub fn pseudo_header(src: Addr, dst: Addr, protocol: u8, len: u32) -> Checksum {
        let addresses = if src.is_v4() {
            words_sum(src.0.last_chunk::<4>()) + words_sum(dst.0.last_chunk::<4>())
        } else {
            words_sum(Some(&src.0)) + words_sum(Some(&dst.0))
        };
        let sum = addresses + u64::from(len.to_be()) + u64::from(u32::from(protocol).to_be());
        Checksum { sum, odd: false }
    }

    /// Adds the pseudo-header of TCP over IPv4, from addresses in the machine's byte order as they
    /// are in the header.
    #[inline(always)]
    pub(crate) fn pseudo_header_v4(src: u32, dst: u32, len: u32) -> Checksum {
        let addresses = u64::from(src) + u64::from(dst);
        let protocol = u32::from(protocol::TCP).to_be();
        Checksum { sum: addresses + u64::from(len.to_be()) + u64::from(protocol), odd: false }
    }

    /// Adds bytes.
    #[inline]
    pub fn add(&mut self, data: &[u8]) {
        self.add_part(sum_native(data), data.len());
    }

    /// Adds a header of known length, unrolled. An even number of bytes must have been added
    /// before.
    #[inline(always)]
    pub(crate) fn add_header<const N: usize>(&mut self, header: &[u8; N]) {
        debug_assert!(!self.odd && N.is_multiple_of(2));
        self.sum += sum_short(header);
    }

    /// Adds a header field. An even number of bytes must have been added before.
    #[inline]
    pub(crate) fn add_u16(&mut self, field: u16) {
        debug_assert!(!self.odd);
        self.sum += u64::from(field.to_be());
    }

    /// Adds a 32-bit field. See [`add_u16`](Self::add_u16).
    #[inline]
    pub(crate) fn add_u32(&mut self, field: u32) {
        debug_assert!(!self.odd);
        self.sum += u64::from(field.to_be());
    }

    /// Copies `src` to `dst` and adds it, in one pass.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    pub fn copy_and_add(&mut self, dst: &mut [u8], src: &[u8]) {
        assert_eq!(dst.len(), src.len(), "copy_and_add needs equal lengths");
        let sum = if src.len() < LONG {
            dst.copy_from_slice(src);
            sum_short(src)
        } else {
            copy_and_sum_long(dst, src)
        };
        self.add_part(sum, src.len());
    }

    /// Adds the sum of `part`, which follows the data added so far.
    #[inline]
    pub fn append(&mut self, part: Checksum) {
        if self.odd {
            self.add_part(part.sum, usize::from(part.odd));
        } else {
            (self.sum, self.odd) = (self.sum + (part.sum & LOW_HALF) + (part.sum >> 32), part.odd);
        }
    }

    /// Returns the folded sum, not complemented, as in the field of a partial checksum.
    #[inline]
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.sum))
    }

    /// Returns the value of the checksum field: the complement of the folded sum.
    #[inline]
    pub fn finish(self) -> u16 {
        !self.folded()
    }

    #[inline]
    fn add_part(&mut self, sum: u64, len: usize) {
        self.sum += if self.odd { swapped(sum) } else { (sum & LOW_HALF) + (sum >> 32) };
        self.odd ^= len % 2 == 1;
    }
}

/// A TCP header with timestamps and nothing behind it: so many segments are just this that its sum is written out.
const BARE_ACK_LEN: usize = 32;
/// Fewer bytes than this are summed word by word: splitting them up would cost more than it saves.
const LONG: usize = 256;
const LOW_HALF: u64 = 0xffff_ffff;
type Word = [u8; 8];

/// Sums of 64-bit words, eight beside each other, without a carry in the loop: `high` sums the words' upper halves, which cannot overflow
/// before 2³² words, and `wrapped` sums the whole words modulo 2⁶⁴. The sum of the lower halves is what is left, exactly.
struct Sums<S: Simd> {
    wrapped: u64x8<S>,
    high: u64x8<S>,
}

impl<S: Simd> Sums<S> {
    #[inline(always)]
    fn new(simd: S) -> Sums<S> {
        Sums { wrapped: u64x8::splat(simd, 0), high: u64x8::splat(simd, 0) }
    }

    #[inline(always)]
    fn add(&mut self, simd: S, step: &[u8; STEP]) {
        self.add_words(u8x64::from_slice(simd, step).bitcast());
    }

    #[inline(always)]
    fn copy_and_add(&mut self, simd: S, to: &mut [u8; STEP], step: &[u8; STEP]) {
        let bytes = u8x64::from_slice(simd, step);
        bytes.store_slice(to);
        self.add_words(bytes.bitcast());
    }

    #[inline(always)]
    fn add_words(&mut self, words: u64x8<S>) {
        self.wrapped += words;
        self.high += words >> 32;
    }

    /// A sum of 32-bit words, of which 2³² fit.
    #[inline(always)]
    fn total(self) -> u64 {
        let high: u64 = self.high.as_slice().iter().sum();
        let wrapped = self.wrapped.as_slice().iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
        high + wrapped.wrapping_sub(high << 32)
    }
}

/// Inlined, so that a header of known length needs no loop.
#[inline]
fn sum_native(data: &[u8]) -> u64 {
    if data.len() < LONG { sum_short(data) } else { sum_long(data) }
}

/// Bytes that the loops below add at once. They take two such steps a turn, which halves what the turns themselves cost.
const STEP: usize = 64;

/// Sums what is long, with the widest vectors this machine has.
fn sum_long(data: &[u8]) -> u64 {
    let (steps, tail) = data.as_chunks();
    dispatch!(level(), simd => sum_steps(simd, steps)) + sum_tail(tail)
}

#[inline(always)]
fn sum_steps<S: Simd>(simd: S, steps: &[[u8; STEP]]) -> u64 {
    let mut sums = Sums::new(simd);
    let (pairs, last) = steps.as_chunks::<2>();
    for [step, next] in pairs {
        sums.add(simd, step);
        sums.add(simd, next);
    }
    for step in last {
        sums.add(simd, step);
    }
    sums.total()
}

/// As [`sum_long`], copying on the way.
fn copy_and_sum_long(dst: &mut [u8], src: &[u8]) -> u64 {
    let ((steps, tail), (to_steps, to_tail)) = (src.as_chunks(), dst.as_chunks_mut());
    to_tail.copy_from_slice(tail);
    dispatch!(level(), simd => copy_and_sum_steps(simd, to_steps, steps)) + sum_tail(tail)
}

#[inline(always)]
fn copy_and_sum_steps<S: Simd>(simd: S, to_steps: &mut [[u8; STEP]], steps: &[[u8; STEP]]) -> u64 {
    let mut sums = Sums::new(simd);
    let ((pairs, last), (to_pairs, to_last)) = (steps.as_chunks(), to_steps.as_chunks_mut());
    for ([to, to_next], [step, next]) in to_pairs.iter_mut().zip(pairs) {
        sums.copy_and_add(simd, to, step);
        sums.copy_and_add(simd, to_next, next);
    }
    for (to, step) in to_last.iter_mut().zip(last) {
        sums.copy_and_add(simd, to, step);
    }
    sums.total()
}

/// Sums a few bytes; a last odd byte is padded with zero.
#[inline]
fn sum_tail(data: &[u8]) -> u64 {
    let (words, mut rest) = data.as_chunks::<8>();
    let mut sum: u128 = words.iter().map(|word| u128::from(u64::from_ne_bytes(*word))).sum();
    if let Some((word, after)) = rest.split_first_chunk::<4>() {
        sum += u128::from(u32::from_ne_bytes(*word));
        rest = after;
    }
    if let Some((pair, after)) = rest.split_first_chunk::<2>() {
        sum += u128::from(u16::from_ne_bytes(*pair));
        rest = after;
    }
    if let [odd] = rest {
        sum += u128::from(u16::from_ne_bytes([*odd, 0]));
    }
    wrap(sum)
}

/// Sums what is not long, four words at a time.
#[inline]
fn sum_short(data: &[u8]) -> u64 {
    let (lines, rest) = data.as_chunks::<32>();
    let sum = wrap(lines.iter().fold(0, sum_words));
    if rest.is_empty() { sum } else { sum + sum_tail(rest) }
}

/// Adds words whose number is known.
#[inline(always)]
fn sum_words<const N: usize>(sum: u128, bytes: &[u8; N]) -> u128 {
    bytes.as_chunks().0.iter().fold(sum, |sum, word: &Word| sum + u128::from(u64::from_ne_bytes(*word)))
}

/// A sum of 64-bit words as one of 32-bit words.
#[inline(always)]
fn wrap(sum: u128) -> u64 {
    let low = sum as u64;
    (low & LOW_HALF) + (low >> 32) + (sum >> 64) as u64
}

/// Sum of an address's 32-bit words.
#[inline]
fn words_sum<const N: usize>(address: Option<&[u8; N]>) -> u64 {
    let (words, _) = address.map_or(&[][..], |bytes| &bytes[..]).as_chunks::<4>();
    words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

/// A part that starts at an odd offset has its high and low bytes exchanged (RFC 1071 §2(B)).
#[cold]
fn swapped(sum: u64) -> u64 {
    fold(sum).swap_bytes().into()
}

/// Added to itself with its halves exchanged, a number has in its upper half their sum, and what that carries, too.
#[inline(always)]
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// The SIMD instructions to use.
fn level() -> Level {
    #[cfg(feature = "std")]
    return Level::new();
    #[cfg(not(feature = "std"))]
    Level::baseline()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn narrow_and_wide_vectors_sum_alike() {
        let data: Vec<u8> = (0..16 * STEP as u32).map(|n| ((n * 7 + n / 256 * 31) | 0x80) as u8).collect();
        let (steps, _) = data.as_chunks();
        let with = |level: Level| {
            let mut copy = vec![0; data.len()];
            let (to, _) = copy.as_chunks_mut();
            let copied = dispatch!(level, simd => copy_and_sum_steps(simd, to, steps));
            assert_eq!(copy, data);
            assert_eq!(dispatch!(level, simd => sum_steps(simd, steps)), copied);
            copied
        };
        assert_eq!(with(Level::new()), with(Level::baseline()));
        assert_eq!(fold(with(Level::new())), fold(sum_tail(&data)));
    }
}
