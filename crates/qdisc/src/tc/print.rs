//! What `tc … show` prints of a tree.
use super::show::{self, Detail};
use super::{Device, htb, kinds, stab};
use crate::node::{Kind, Node};
use crate::{Handle, Nanos, Packet};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Reverse;

impl<P: Packet> Device<P> {
    pub(super) fn show_qdiscs(&self, now: Nanos, detail: Detail) -> String {
        let mut below = Vec::new();
        collect(&self.root, &mut below);
        // The kernel walks the buckets of a hash table, in each the newest first.
        below.sort_by_key(|node| (bucket(node.handle), Reverse(node.serial)));
        core::iter::once(&self.root).chain(below).map(|node| line(node, now, detail)).collect()
    }

    pub(super) fn show_classes(&self, detail: Detail) -> String {
        let mut nodes = Vec::new();
        collect(&self.root, &mut nodes);
        core::iter::once(&self.root).chain(nodes).map(|node| classes(node, detail)).collect()
    }

    pub(super) fn show_filters(&self) -> String {
        let filters = match &self.root.kind {
            Kind::Htb(q) => q.filters(),
            Kind::Prio(q) => q.filters(),
            _ => return String::new(),
        };
        let parent = self.root.handle;
        let line = |(mark, class): (&u32, &Handle)| {
            format!(
                "filter parent {parent} protocol all pref 49152 fw chain 0 handle {mark:#x} classid {class} \n"
            )
        };
        filters.iter().map(line).collect()
    }
}

/// Those with a handle below a discipline; the ones that came with a class are not shown.
fn collect<'a, P: Packet>(node: &'a Node<P>, found: &mut Vec<&'a Node<P>>) {
    for child in kinds::children(node) {
        if child.handle != Handle::NONE {
            found.push(child);
        }
        collect(child, found);
    }
}

/// Linux's `hash_min(handle, 4)`.
fn bucket(handle: Handle) -> u32 {
    u32::from(handle).wrapping_mul(0x61c8_8647) >> 28
}

fn line<P: Packet>(node: &Node<P>, now: Nanos, detail: Detail) -> String {
    let place = match node.parent {
        // One reference is the device's, one the tree's.
        Handle::ROOT => "root refcnt 2".to_owned(),
        parent => format!("parent {parent}"),
    };
    let handle = if node.handle == Handle::NONE { "0:".to_owned() } else { node.handle.to_string() };
    let kind = kinds::name(&node.kind);
    let stab = node.stab.as_ref().map(|table| stab::show(&table.spec(), detail)).unwrap_or_default();
    let mut text = format!("qdisc {kind} {handle} {place} {}\n{stab}", kinds::options(node, detail));
    if detail.stats {
        text += &show::stats(&node.stats());
        text += &kinds::xstats(node, now);
    }
    text
}

fn classes<P: Packet>(node: &Node<P>, detail: Detail) -> String {
    let Kind::Htb(q) = &node.kind else { return one_class_each(node, detail) };
    let mut text = String::new();
    for class in q.classes() {
        let place = q.parent_id(class).map_or("root".to_owned(), |parent| format!("parent {parent}"));
        let leaf = class.leaf.as_ref().filter(|leaf| leaf.handle != Handle::NONE);
        let leaf = leaf.map(|leaf| format!("leaf {} ", leaf.handle)).unwrap_or_default();
        text += &format!("class htb {} {place} {leaf}{}\n", class.id, htb::show_class(class, detail));
        if detail.stats {
            text += &show::stats(&class.stats());
            text += &htb::show_class_xstats(class);
            text += "\n";
        }
    }
    text
}

/// Disciplines whose classes are only places for others.
fn one_class_each<P: Packet>(node: &Node<P>, detail: Detail) -> String {
    let kind = kinds::name(&node.kind);
    let mut text = String::new();
    for (number, child) in kinds::children(node).into_iter().enumerate() {
        let class = node.handle.class(number as u16 + 1);
        let leaf =
            if child.handle == Handle::NONE { String::new() } else { format!("leaf {} ", child.handle) };
        text += &format!("class {kind} {class} parent {} {leaf}\n", node.handle);
        if detail.stats {
            if kind == "prio" {
                text += &show::stats(&child.stats());
            }
            text += "\n";
        }
    }
    text
}
