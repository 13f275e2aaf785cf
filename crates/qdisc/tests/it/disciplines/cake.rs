//! cake (tc-cake(8), Linux's `sch_cake.c`; "Piece of CAKE", arXiv:1804.07617).
mod acks;
mod aqm;
mod isolation;
mod shaper;
mod tins;
mod words;

use super::bed::{Bed, Frame};

/// A line of `tc -s qdisc show`: the values of all tins.
fn row(bed: &mut Bed, name: &str) -> Vec<String> {
    let text = bed.tc("-s qdisc show");
    let line = text.lines().find(|line| line.trim_start().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    line.trim_start().trim_start_matches(name).split_whitespace().map(str::to_owned).collect()
}

/// Bytes that left and of which that is true.
fn bytes(bed: &Bed, of: impl Fn(&Frame) -> bool) -> usize {
    bed.left.iter().filter(|left| of(&left.frame)).map(|left| left.len).sum()
}
