//! Integer cube root: the same on every machine.

/// The greatest `r` with r³ ≤ `n`, for `n` < 2⁹⁶.
///
/// One bit after the other, from the top: (r + 2ⁱ)³ ≤ n?
pub(super) fn cube_root(n: u128) -> u32 {
    let mut root: u128 = 0;
    for bit in (0..u32::BITS).rev() {
        let tried = root | 1 << bit;
        if tried * tried * tried <= n {
            root = tried;
        }
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cubes_and_their_neighbours() {
        for root in [1u32, 2, 3, 10, 1000, 1 << 20, u32::MAX] {
            let cube = u128::from(root).pow(3);
            assert_eq!([cube_root(cube - 1), cube_root(cube), cube_root(cube + 1)], [root - 1, root, root]);
        }
        assert_eq!([cube_root(0), cube_root(7), cube_root(26)], [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn it_is_the_greatest_that_fits(n in 0u128..1 << 96) {
            let root = u128::from(cube_root(n));
            prop_assert!(root.pow(3) <= n && n < (root + 1).pow(3));
        }
    }
}
