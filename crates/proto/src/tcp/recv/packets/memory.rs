//! What packets take with their bookkeeping, in Linux on a machine of 64 bits: `sk_buff`s, and the memory they point to.

/// `sk_buff`, in whole cache lines.
const DESCRIPTOR: u32 = 256;
/// `skb_shared_info`, at the end of the head.
const SHARED_INFO: u32 = 320;
/// Heads up to this size come from a cache of their own (`SKB_SMALL_HEAD_CACHE_SIZE`), others in powers of two.
const SMALL_HEAD: u32 = 576;
/// Left free before a packet (`NET_SKB_PAD`).
const PAD: u32 = 64;
const CACHE_LINE: u32 = 64;
const PAGE: u32 = 4096;
/// Greatest run of pages behind a head (`PAGE_ALLOC_COSTLY_ORDER`).
const RUN_MAX: u32 = PAGE << 3;
/// Payload of a head that fills a page.
const PAGE_HEAD: u32 = PAGE - SHARED_INFO;

pub(super) struct Allocation {
    pub(super) truesize: u32,
    pub(super) room: u16,
}

/// A packet of `len` bytes as a TUN device hands it over (`tun_alloc_skb`): in one piece below a page, otherwise what does not fit
/// into a head of a page lies in pages.
pub(super) fn of_arriving(len: u32) -> Allocation {
    if PAD + len < PAGE {
        return in_one_piece(PAD, len);
    }
    let mut left = len - (PAGE_HEAD - PAD);
    let (mut run, mut pages) = (RUN_MAX, 0);
    while left > 0 {
        while run > PAGE && left.next_multiple_of(PAGE) < run {
            run /= 2;
        }
        pages += run;
        left = left.saturating_sub(run);
    }
    Allocation { truesize: PAGE + DESCRIPTOR + pages, room: 0 }
}

/// `len` bytes copied together (`alloc_skb`), at most [`COLLAPSED`].
pub(super) fn of_copy(len: u32) -> Allocation {
    in_one_piece(0, len)
}

/// Most bytes that are copied together.
pub(super) const COLLAPSED: u32 = PAGE_HEAD;
/// A run of packets this long is worth copying together, whatever they take.
pub(super) const WORTH_COLLAPSING: u32 = PAGE_HEAD;

fn in_one_piece(pad: u32, len: u32) -> Allocation {
    let needed = (pad + len).next_multiple_of(CACHE_LINE) + SHARED_INFO;
    let head = if needed <= SMALL_HEAD { SMALL_HEAD } else { needed.next_power_of_two() };
    Allocation { truesize: head + DESCRIPTOR, room: (head - SHARED_INFO - pad - len) as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `SO_MEMINFO` of a 6.18 tells of them.
    #[test]
    fn packets_take_what_they_take_in_a_kernel() {
        let seen = [
            (41, 832),
            (140, 832),
            (255, 1280),
            (640, 1280),
            (960, 2304),
            (1500, 2304),
            (1640, 2304),
            (2040, 4352),
            (3040, 4352),
            (3940, 8448),
            (4031, 8448),
            (4032, 8448),
            (8040, 12_544),
            (14_640, 16_640),
            (40_040, 41_216),
            (65_040, 65_792),
        ];
        for (len, truesize) in seen {
            assert_eq!(of_arriving(len).truesize, truesize, "{len} bytes");
        }
        assert_eq!(of_arriving(41).room, 151);
        assert_eq!((of_copy(COLLAPSED).truesize, of_copy(COLLAPSED).room), (4352, 0));
    }
}
