//! The kinds of disciplines: made, changed and shown by name.
use super::error::{EINVAL, EOPNOTSUPP, TcError, kernel, usage};
use super::show::Detail;
use super::words::Words;
use super::{cake, codel, fifo, flows, htb, netem, prio, red, tbf};
use crate::node::{Kind, Node};
use crate::rng::mix;
use crate::{
    Cake, CakeConfig, Codel, CodelConfig, Dropped, Fifo, Fq, FqCodel, FqCodelConfig, FqConfig, Handle, Htb,
    Limit, Nanos, Netem, Packet, PfifoFast, Pie, PieConfig, Prio, Red, Sfq, SfqConfig, Tbf,
};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// What the kernel knows of a device when it makes a discipline for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceFacts {
    pub(super) tx_queue_len: usize,
    /// The longest frame: mtu and header (`psched_mtu`).
    pub(super) frame: u32,
    /// Seeds whatever draws at random.
    pub(super) seed: u64,
}

impl DeviceFacts {
    /// The seed of a discipline.
    fn seed_of(&self, handle: Handle) -> u64 {
        mix(self.seed ^ u64::from(u32::from(handle)))
    }
}

/// The kinds of disciplines, whose options tc can read.
pub const KINDS: &[&str] = &[
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "prio",
    "tbf",
    "htb",
    "codel",
    "fq_codel",
    "sfq",
    "red",
    "pie",
    "fq",
    "cake",
    "netem",
];

/// Is the kind known, and are its options understood? (What tc itself checks before it asks the kernel.)
pub(super) fn check(kind: &str, words: Words<'_>) -> Result<(), TcError> {
    if !KINDS.contains(&kind) {
        return match words.peek() {
            Some(option) => {
                Err(usage(format!("Unknown qdisc \"{kind}\", hence option \"{option}\" is unparsable")))
            }
            None => Err(kernel("Specified qdisc kind is unknown")),
        };
    }
    match kind {
        "pfifo_fast" => match words.peek() {
            Some(_) => Err(usage("qdisc 'pfifo_fast' does not support option parsing")),
            None => Ok(()),
        },
        "prio" => prio::parse(words).map(drop),
        "tbf" => tbf::parse(words).map(drop),
        "htb" => htb::parse(words, 0).map(drop),
        "codel" => codel::parse(words, &mut CodelConfig::default()),
        "fq_codel" => codel::parse_fq(words, &mut FqCodelConfig::new(0)),
        "sfq" => flows::parse_sfq(words, &mut SfqConfig::new(0)),
        "red" => red::parse(words).map(drop),
        "pie" => flows::parse_pie(words, &mut PieConfig::default()),
        "fq" => flows::parse_fq(words, &mut FqConfig::new(0)),
        "cake" => cake::parse(words, &mut CakeConfig::default()),
        "netem" => netem::parse(words).map(drop),
        _ => fifo::parse(kind, words).map(drop),
    }
}

/// Is it a kind whose classes have options, and are they understood?
pub(super) fn check_class(kind: &str, words: Words<'_>) -> Result<(), TcError> {
    match kind {
        "htb" if words.peek().is_some() => htb::parse_class(words, 1).map(drop),
        "htb" => Ok(()),
        _ => Err(usage(format!("Error: Qdisc \"{kind}\" is classless."))),
    }
}

/// A new discipline of this kind.
pub(super) fn create<P: Packet>(
    kind: &str,
    words: Words<'_>,
    handle: Handle,
    facts: DeviceFacts,
    now: Nanos,
) -> Result<Kind<P>, TcError> {
    let default_len = facts.tx_queue_len;
    Ok(match kind {
        "pfifo" | "pfifo_head_drop" => {
            let limit = Limit::packets(fifo::parse(kind, words)?.map_or(default_len, |limit| limit as usize));
            Kind::Fifo(if kind == "pfifo" { Fifo::new(limit) } else { Fifo::head_drop(limit) })
        }
        "bfifo" => {
            let default = default_len as u64 * u64::from(facts.frame);
            Kind::Fifo(Fifo::new(Limit::bytes(fifo::parse(kind, words)?.map_or(default, u64::from))))
        }
        "pfifo_fast" => Kind::PfifoFast(PfifoFast::new(default_len)),
        "prio" => {
            let config = Some(prio::parse(words)?).filter(|config| config.is_valid()).ok_or(EINVAL)?;
            Kind::Prio(Prio::new(handle, config, default_len))
        }
        "tbf" => {
            let config = Some(tbf::parse(words)?).filter(|config| config.is_valid()).ok_or(EINVAL)?;
            Kind::Tbf(Tbf::new(handle, config, now))
        }
        "htb" => Kind::Htb(Box::new(Htb::new(handle, htb::parse(words, default_len)?))),
        "codel" => {
            let mut config = CodelConfig::default();
            codel::parse(words, &mut config)?;
            Kind::Codel(Codel::new(config, facts.frame))
        }
        "fq_codel" => {
            let mut config = FqCodelConfig::new(facts.frame);
            codel::parse_fq(words, &mut config)?;
            // The kernel's fq_codel_policy and fq_codel_change.
            if config.flows == 0 || config.flows > 65_536 {
                return Err(EINVAL);
            }
            config.quantum = config.quantum.max(256);
            Kind::FqCodel(FqCodel::new(handle, config, facts.frame, facts.seed_of(handle)))
        }
        "sfq" => {
            let mut config = SfqConfig::new(facts.frame);
            flows::parse_sfq(words, &mut config)?;
            let config = flows::check_sfq(config)?;
            Kind::Sfq(Sfq::new(handle, config, now, facts.seed_of(handle)))
        }
        "red" => Kind::Red(Box::new(Red::new(handle, red::parse(words)?, now, facts.seed_of(handle)))),
        "pie" => {
            let mut config = PieConfig::default();
            flows::parse_pie(words, &mut config)?;
            Kind::Pie(Pie::new(config, facts.frame, now, facts.seed_of(handle)))
        }
        "fq" => {
            let mut config = FqConfig::new(facts.frame);
            flows::parse_fq(words, &mut config)?;
            Kind::Fq(Box::new(Fq::new(flows::check_fq(config)?)))
        }
        "cake" => {
            let mut config = CakeConfig::default();
            cake::parse(words, &mut config)?;
            Kind::Cake(Box::new(Cake::new(handle, config, facts.frame, facts.seed_of(handle))))
        }
        "netem" => Kind::Netem(Box::new(Netem::new(netem::parse(words)?, now, facts.seed_of(handle)))),
        _ => return Err(kernel("Specified qdisc kind is unknown")),
    })
}

/// Changes a discipline to other options of its kind.
pub(super) fn change<P: Packet>(
    node: &mut Node<P>,
    words: Words<'_>,
    facts: DeviceFacts,
    now: Nanos,
    dropped: &mut Vec<Dropped<P>>,
) -> Result<(), TcError> {
    let kind = name(&node.kind);
    match &mut node.kind {
        Kind::Fifo(fifo) => {
            if let Some(limit) = fifo::parse(kind, words)? {
                let by_bytes = fifo.limit().bytes.is_some();
                fifo.set_limit(if by_bytes {
                    Limit::bytes(limit.into())
                } else {
                    Limit::packets(limit as usize)
                });
            }
        }
        // tc sends no options, so that the kernel is not asked to change anything.
        Kind::PfifoFast(_) => {}
        Kind::Prio(q) => {
            let config = Some(prio::parse(words)?).filter(|config| config.is_valid()).ok_or(EINVAL)?;
            q.set_config(config, facts.tx_queue_len, dropped);
        }
        Kind::Tbf(q) => {
            let config = Some(tbf::parse(words)?).filter(|config| config.is_valid()).ok_or(EINVAL)?;
            q.set_config(config, now);
        }
        Kind::Htb(_) => return Err(kernel("Change operation not supported by specified qdisc")),
        Kind::Sfq(q) => {
            let mut config = q.config();
            flows::parse_sfq(words, &mut config)?;
            q.set_config(now, flows::check_sfq(config)?, dropped);
        }
        Kind::Red(q) => q.set_config(red::parse(words)?, now),
        Kind::Pie(q) => {
            let mut config = q.config();
            flows::parse_pie(words, &mut config)?;
            q.set_config(config, dropped);
        }
        Kind::Fq(q) => {
            let mut config = q.config();
            flows::parse_fq(words, &mut config)?;
            q.set_config(now, flows::check_fq(config)?, dropped);
        }
        Kind::Cake(q) => {
            let mut config = q.config();
            cake::parse(words, &mut config)?;
            q.set_config(config, dropped);
        }
        Kind::Netem(q) => q.set_config(netem::parse(words)?, now),
        Kind::Codel(q) => {
            let mut config = q.config();
            codel::parse(words, &mut config)?;
            q.set_config(config, dropped);
        }
        Kind::FqCodel(q) => {
            let mut config = q.config();
            codel::parse_fq(words, &mut config)?;
            if config.flows != q.config().flows {
                return Err(EINVAL);
            }
            config.quantum = config.quantum.max(256);
            q.set_config(now, config, dropped);
        }
    }
    Ok(())
}

/// tc's name of a discipline.
pub(super) fn name<P>(kind: &Kind<P>) -> &'static str {
    match kind {
        Kind::Fifo(fifo) if fifo.drops_head() => "pfifo_head_drop",
        Kind::Fifo(fifo) if fifo.limit().bytes.is_some() => "bfifo",
        Kind::Fifo(_) => "pfifo",
        Kind::PfifoFast(_) => "pfifo_fast",
        Kind::Prio(_) => "prio",
        Kind::Tbf(_) => "tbf",
        Kind::Htb(_) => "htb",
        Kind::Codel(_) => "codel",
        Kind::FqCodel(_) => "fq_codel",
        Kind::Sfq(_) => "sfq",
        Kind::Red(_) => "red",
        Kind::Pie(_) => "pie",
        Kind::Fq(_) => "fq",
        Kind::Cake(_) => "cake",
        Kind::Netem(_) => "netem",
    }
}

/// Its options as `tc qdisc show` prints them.
pub(super) fn options<P: Packet>(node: &Node<P>, detail: Detail) -> String {
    match &node.kind {
        Kind::Fifo(fifo) => match (fifo.limit().bytes, fifo.limit().packets) {
            (Some(bytes), _) => {
                format!("limit {}", super::units::show_size(bytes.min(u32::MAX.into()) as u32))
            }
            (None, packets) => format!("limit {}p", packets.unwrap_or(0)),
        },
        Kind::PfifoFast(_) => prio::show(&crate::PrioConfig::default()),
        Kind::Prio(q) => prio::show(&q.config()),
        Kind::Tbf(q) => tbf::show(&q.config(), q.depths(), detail),
        Kind::Htb(q) => htb::show(&q.config(), q.direct_packets(), detail),
        Kind::Codel(q) => codel::show(&q.config()),
        Kind::FqCodel(q) => codel::show_fq(&q.config()),
        Kind::Sfq(q) => flows::show_sfq(&q.config(), detail),
        Kind::Red(q) => red::show(&q.config(), detail),
        Kind::Pie(q) => flows::show_pie(&q.config()),
        Kind::Fq(q) => flows::show_fq(&q.config()),
        Kind::Cake(q) => cake::show(&q.config()),
        Kind::Netem(q) => netem::show(q.config()),
    }
}

/// What this kind counts besides, as `tc -s qdisc show` prints it; ends in a line break unless it is empty.
pub(super) fn xstats<P: Packet>(node: &Node<P>, now: Nanos) -> String {
    match &node.kind {
        Kind::Codel(q) => codel::xstats(&q.xstats(), now),
        Kind::FqCodel(q) => codel::xstats_fq(&q.xstats()),
        Kind::Red(q) => red::xstats(&q.xstats()),
        Kind::Pie(q) => flows::xstats_pie(&q.xstats()),
        Kind::Fq(q) => flows::xstats_fq(&q.xstats(), now),
        Kind::Cake(q) => cake::xstats(&q.xstats()),
        _ => String::new(),
    }
}

/// Where a class of a discipline leads.
pub(super) enum Leaf<'a, P> {
    /// To this discipline.
    Node(&'a mut Node<P>),
    /// It has none of its own: an inner class.
    None,
}

/// The discipline of a class; `None`: there is no such class.
pub(super) fn leaf<P: Packet>(node: &mut Node<P>, class: Handle) -> Result<Option<Leaf<'_, P>>, TcError> {
    let own = class.major() == node.handle.major();
    Ok(match &mut node.kind {
        Kind::Prio(q) => match q.band_of(class) {
            Some(band) => q.bands_mut().get_mut(band).map(Leaf::Node),
            None => None,
        },
        // Whatever the class's number, as in the kernel.
        Kind::Tbf(q) => own.then(|| Leaf::Node(q.child_mut())),
        Kind::Red(q) => own.then(|| Leaf::Node(q.child_mut())),
        Kind::Netem(q) => own.then(|| q.child_mut().map_or(Leaf::None, Leaf::Node)),
        Kind::Htb(q) => match q.find_mut(class) {
            Some(class) => Some(class.leaf.as_deref_mut().map_or(Leaf::None, Leaf::Node)),
            None => None,
        },
        _ => return Err(EOPNOTSUPP),
    })
}

/// Puts another discipline in the place of a class's; `None` puts what the class has by default.
pub(super) fn graft<P: Packet>(
    node: &mut Node<P>,
    class: Handle,
    new: Option<Node<P>>,
    facts: DeviceFacts,
    dropped: &mut Vec<Dropped<P>>,
) {
    let pfifo = || Node::pfifo(class, facts.tx_queue_len);
    // The kernel's noop: everything is dropped.
    let noop = || Node::pfifo(class, 0);
    match &mut node.kind {
        Kind::Prio(q) => {
            if let Some(band) = q.band_of(class) {
                q.graft(band, new.unwrap_or_else(pfifo), dropped);
            }
        }
        Kind::Tbf(q) => q.graft(new.unwrap_or_else(noop), dropped),
        Kind::Red(q) => q.graft(new.unwrap_or_else(noop), dropped),
        Kind::Netem(q) => q.graft(new, dropped),
        Kind::Htb(q) => {
            q.graft(class, new.unwrap_or_else(pfifo), dropped);
        }
        _ => {}
    }
}

/// The disciplines right below.
pub(super) fn children<P: Packet>(node: &Node<P>) -> Vec<&Node<P>> {
    match &node.kind {
        Kind::Prio(q) => q.bands().iter().collect(),
        Kind::Tbf(q) => vec![q.child()],
        Kind::Red(q) => vec![q.child()],
        Kind::Netem(q) => q.child().into_iter().collect(),
        Kind::Htb(q) => q.classes().filter_map(|class| class.leaf.as_deref()).collect(),
        _ => Vec::new(),
    }
}

/// The disciplines right below, to be changed.
pub(super) fn children_mut<P: Packet>(node: &mut Node<P>) -> Vec<&mut Node<P>> {
    match &mut node.kind {
        Kind::Prio(q) => q.bands_mut().iter_mut().collect(),
        Kind::Tbf(q) => vec![q.child_mut()],
        Kind::Red(q) => vec![q.child_mut()],
        Kind::Netem(q) => q.child_mut().into_iter().collect(),
        Kind::Htb(q) => q.leaves_mut().collect(),
        _ => Vec::new(),
    }
}
