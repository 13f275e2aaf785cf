//! What add, change, replace and delete do to the tree, and refuse (Linux's `sch_api.c`, since 6.6 as to a root of another kind).
use super::error::{EEXIST, EINVAL, ENOENT, EOPNOTSUPP, TcError, kernel};
use super::kinds::{self, DeviceFacts, Leaf};
use super::words::Words;
use super::{Device, htb};
use crate::node::{Kind, Node, account};
use crate::{Dropped, Handle, HtbError, Nanos, Packet, SizeSpec, SizeTable};
use alloc::string::String;
use alloc::vec::Vec;

/// How the kernel is asked (`NLM_F_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags {
    create: bool,
    exclusive: bool,
    replace: bool,
    delete: bool,
}

impl Flags {
    const NONE: Flags = Flags { create: false, exclusive: false, replace: false, delete: false };
    pub(super) const ADD: Flags = Flags { create: true, exclusive: true, ..Flags::NONE };
    pub(super) const CHANGE: Flags = Flags::NONE;
    pub(super) const REPLACE: Flags = Flags { create: true, replace: true, ..Flags::NONE };
    pub(super) const LINK: Flags = Flags { replace: true, ..Flags::NONE };
    pub(super) const DELETE: Flags = Flags { delete: true, ..Flags::NONE };
}

/// What the kernel is asked.
#[derive(Clone, Debug)]
pub(super) struct Request<'a> {
    pub(super) flags: Flags,
    pub(super) parent: Option<Handle>,
    /// The discipline's handle, or the class's number.
    pub(super) handle: Option<Handle>,
    pub(super) stab: Option<SizeSpec>,
    pub(super) kind: Option<&'a str>,
    pub(super) options: &'a [&'a str],
}

impl Request<'_> {
    pub(super) fn new<'a>(flags: Flags) -> Request<'a> {
        Request { flags, parent: None, handle: None, stab: None, kind: None, options: &[] }
    }

    fn handle(&self) -> Option<Handle> {
        self.handle.filter(|handle| *handle != Handle::NONE)
    }
}

fn find<P: Packet>(node: &mut Node<P>, handle: Handle) -> Option<&mut Node<P>> {
    if node.handle == handle && handle != Handle::NONE {
        return Some(node);
    }
    kinds::children_mut(node).into_iter().find_map(|child| find(child, handle))
}

fn kind_differs<P>(kind: Option<&str>, node: &Node<P>) -> bool {
    kind.is_some_and(|kind| kind != kinds::name(&node.kind))
}

impl<P: Packet> Device<P> {
    pub(super) fn modify(
        &mut self,
        now: Nanos,
        request: &Request<'_>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), TcError> {
        if request.flags.delete {
            return self.delete(request, dropped);
        }
        let flags = request.flags;
        let Some(parent) = request.parent.filter(|parent| *parent != Handle::NONE) else {
            let handle = request.handle().ok_or_else(|| kernel("Handle cannot be zero"))?;
            return self.change(now, handle, request, dropped);
        };
        // A default discipline does not count as being there.
        let current = self.current(parent)?.filter(|node| node.handle != Handle::NONE);
        let current = current.map(|node| (node.handle, kind_differs(request.kind, node)));
        match (request.handle(), current) {
            (Some(handle), Some((there, _))) if there == handle => self.change(now, there, request, dropped),
            (Some(_), Some(_)) if !flags.replace => Err(kernel("NLM_F_REPLACE needed to override")),
            (Some(handle), _) => {
                if let Some(elsewhere) = find(&mut self.root, handle) {
                    if flags.exclusive {
                        return Err(kernel("Exclusivity flag on, cannot override"));
                    }
                    if kind_differs(request.kind, elsewhere) {
                        return Err(kernel("Invalid qdisc name: must match existing qdisc"));
                    }
                    // Linux would let one discipline stand in two places.
                    return Err(kernel("Qdisc parent/child loop detected"));
                }
                self.create(now, parent, request, dropped)
            }
            (None, None) => self.create(now, parent, request, dropped),
            (None, Some((_, true))) if !flags.replace || flags.create => {
                self.create_and_graft(now, parent, request, dropped)
            }
            (None, Some((there, _))) => self.change(now, there, request, dropped),
        }
    }

    /// The discipline in a place, the default one included; `None` for an inner class.
    fn current(&mut self, parent: Handle) -> Result<Option<&mut Node<P>>, TcError> {
        if parent == Handle::ROOT {
            return Ok(Some(&mut self.root));
        }
        let node =
            find(&mut self.root, parent.qdisc()).ok_or_else(|| kernel("Failed to find specified qdisc"))?;
        match kinds::leaf(node, parent).map_err(|_| kernel("Parent qdisc is not classful"))? {
            Some(Leaf::Node(leaf)) => Ok(Some(leaf)),
            Some(Leaf::None) => Ok(None),
            None => Err(kernel("Specified class not found")),
        }
    }

    fn change(
        &mut self,
        now: Nanos,
        handle: Handle,
        request: &Request<'_>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), TcError> {
        let facts = self.facts;
        let node = find(&mut self.root, handle).ok_or_else(|| kernel("Specified qdisc not found"))?;
        if request.flags.exclusive {
            return Err(kernel("Exclusivity flag on, cannot modify"));
        }
        if kind_differs(request.kind, node) {
            return Err(kernel("Invalid qdisc name: must match existing qdisc"));
        }
        let before = node.stats();
        kinds::change(node, Words::new(request.options), facts, now, dropped)?;
        node.stab = request.stab.map(SizeTable::new);
        let after = node.stats();
        account(&mut self.root, handle, &before, &after);
        Ok(())
    }

    fn create(
        &mut self,
        now: Nanos,
        parent: Handle,
        request: &Request<'_>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), TcError> {
        if !request.flags.create {
            return Err(kernel("Qdisc not found. To create specify NLM_F_CREATE flag"));
        }
        self.create_and_graft(now, parent, request, dropped)
    }

    fn create_and_graft(
        &mut self,
        now: Nanos,
        parent: Handle,
        request: &Request<'_>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), TcError> {
        let kind = request.kind.ok_or_else(|| kernel("Specified qdisc kind is unknown"))?;
        let handle = request.handle().unwrap_or_else(|| self.free_handle());
        let made = kinds::create(kind, Words::new(request.options), handle, self.facts, now)?;
        let mut node = Node::new(handle, parent, made);
        node.stab = request.stab.map(SizeTable::new);
        self.made += 1;
        node.serial = self.made;
        self.graft(parent, Some(node), dropped)
    }

    fn graft(
        &mut self,
        parent: Handle,
        new: Option<Node<P>>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), TcError> {
        if parent == Handle::ROOT {
            self.root.reset(dropped);
            self.root = new.unwrap_or_else(|| self.default_root());
            return Ok(());
        }
        let facts: DeviceFacts = self.facts;
        let owner = find(&mut self.root, parent.qdisc()).ok_or(ENOENT)?;
        let inner = matches!(kinds::leaf(owner, parent)?, Some(Leaf::None));
        if inner && matches!(owner.kind, Kind::Htb(_)) {
            return Err(EINVAL);
        }
        let before = owner.stats();
        kinds::graft(owner, parent, new, facts, dropped);
        let after = owner.stats();
        account(&mut self.root, parent.qdisc(), &before, &after);
        Ok(())
    }

    /// The next of `8001:`, `8002:`, … that is not in use.
    fn free_handle(&mut self) -> Handle {
        loop {
            self.last_auto = self.last_auto.checked_add(1).unwrap_or(0x8001);
            let handle = Handle::new(self.last_auto, 0);
            if find(&mut self.root, handle).is_none() {
                return handle;
            }
        }
    }

    fn delete(&mut self, request: &Request<'_>, dropped: &mut Vec<Dropped<P>>) -> Result<(), TcError> {
        let Some(parent) = request.parent.filter(|parent| *parent != Handle::NONE) else {
            let handle = request.handle().unwrap_or_default();
            let node = find(&mut self.root, handle)
                .ok_or_else(|| kernel("Failed to find qdisc with specified handle"))?;
            if kind_differs(request.kind, node) {
                return Err(kernel("Invalid qdisc name: must match existing qdisc"));
            }
            return Err(kernel("Classid cannot be zero"));
        };
        let node = if parent == Handle::ROOT {
            &mut self.root
        } else {
            let owner = find(&mut self.root, parent.qdisc())
                .ok_or_else(|| kernel("Failed to find qdisc with specified classid"))?;
            match kinds::leaf(owner, parent).map_err(|_| kernel("Parent qdisc is not classful"))? {
                Some(Leaf::Node(node)) => node,
                Some(Leaf::None) => return Err(kernel("Cannot find specified qdisc on specified device")),
                None => return Err(kernel("Specified class not found")),
            }
        };
        if request.handle().is_some_and(|handle| handle != node.handle) {
            return Err(kernel("Invalid handle"));
        }
        if kind_differs(request.kind, node) {
            return Err(kernel("Invalid qdisc name: must match existing qdisc"));
        }
        if node.handle == Handle::NONE {
            return Err(kernel("Cannot delete qdisc with handle of zero"));
        }
        self.graft(parent, None, dropped)
    }

    pub(super) fn modify_class(
        &mut self,
        now: Nanos,
        request: &Request<'_>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<String, TcError> {
        let limit = self.facts.tx_queue_len;
        let id = request.handle.unwrap_or_default();
        let parent = request.parent.unwrap_or_default();
        let major =
            [parent, id].into_iter().find(|id| id.major() != 0 && *id != Handle::ROOT).unwrap_or_default();
        let node = match major {
            Handle::NONE => &mut self.root,
            class => find(&mut self.root, class.qdisc()).ok_or(ENOENT)?,
        };
        let (owner, before) = (node.handle, node.stats());
        let Kind::Htb(q) = &mut node.kind else { return Err(EOPNOTSUPP) };
        if request.flags.delete {
            let result = q.remove_class(id, limit, dropped).map_err(htb_error);
            let after = node.stats();
            account(&mut self.root, owner, &before, &after);
            return result.map(|()| String::new());
        }
        let parsed = || htb::parse_class(Words::new(request.options), q.config().rate2quantum);
        if request.kind.is_none() {
            return Err(EINVAL);
        }
        let (config, warning) = parsed()?;
        let exists = q.find(id).is_some();
        if exists && request.flags.exclusive {
            return Err(EEXIST);
        }
        if !exists && !request.flags.create {
            return Err(ENOENT);
        }
        if exists {
            q.change_class(id, config).map_err(htb_error)?;
        } else {
            if parent.major() != owner.major() && parent != Handle::ROOT && parent != Handle::NONE {
                return Err(EINVAL);
            }
            q.add_class(now, id, Some(parent), config, limit, dropped).map_err(htb_error)?;
        }
        let after = node.stats();
        account(&mut self.root, owner, &before, &after);
        let number = u32::from(id);
        Ok(warning.map_or_else(String::new, |size| {
            format!("Warning: sch_htb: quantum of class {number:X} is {size}. Consider r2q change.\n")
        }))
    }

    pub(super) fn attach_filter(&mut self, parent: Handle, mark: u32, class: Handle) -> Result<(), TcError> {
        let node = match parent {
            Handle::NONE => &mut self.root,
            parent => {
                find(&mut self.root, parent.qdisc()).ok_or_else(|| kernel("Parent Qdisc doesn't exists"))?
            }
        };
        match &mut node.kind {
            Kind::Htb(q) => q.add_filter(mark, class),
            Kind::Prio(q) => q.add_filter(mark, class),
            _ => return Err(kernel("Qdisc not classful")),
        }
        Ok(())
    }
}

fn htb_error(error: HtbError) -> TcError {
    match error {
        HtbError::Invalid => EINVAL,
        HtbError::TooDeep => kernel("sch_htb: tree is too deep"),
        HtbError::NoClass => ENOENT,
        HtbError::InUse => kernel("HTB class in use"),
    }
}
