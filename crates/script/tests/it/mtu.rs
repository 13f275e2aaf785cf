//! Our own scripts over devices and routes of other MTUs.
//!
//! What only follows from the MTU (our MSS, the window of our SYNs, two fields of TCP_INFO) is calculated anew. Where more depends on it the
//! script does not run there: what it says decides, never its name.

use crate::scripts::all_scripts;
use script::ast::{
    Action, Body, Call, Direction, Event, Expr, Line, Packet, Script, Segment, TcpOption, When,
};
use script::{Setup, run};
use std::collections::BTreeMap;
use wire::Flags;

/// The MTU of IPv4's scripts. Those of IPv6 name theirs, and keep their distance to it.
const USUAL_MTU: usize = 1500;
/// Every link carries so much of IPv6 (RFC 8200 §5).
const IPV6_MIN_MTU: usize = 1280;
/// Timestamps in every segment.
const TIMESTAMPS: usize = 12;
/// So much of the MSS a SYN keeps free of data for its options (Linux's tcp_send_syn_data).
const SYN_OPTIONS: usize = 40;
/// What a window may offer at first: half of `tcp_rmem`'s 131072 (Linux's tcp_full_space).
const SPACE: usize = 65_536;

#[derive(Debug)]
struct Place {
    device: usize,
    /// Of the route to the peer; `None`: it has none of its own.
    route: Option<usize>,
    /// So many scripts run there at least.
    at_least: usize,
}

const PLACES: [Place; 6] = [
    Place { device: 65_515, route: None, at_least: 620 },
    Place { device: 9000, route: None, at_least: 620 },
    Place { device: 1300, route: None, at_least: 620 },
    Place { device: 576, route: None, at_least: 390 },
    Place { device: 9000, route: Some(1500), at_least: 620 },
    Place { device: 9000, route: Some(1300), at_least: 620 },
];

/// Why a script does not run at a place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    /// It says windows that follow from buffer and MSS together (Linux's tcp_select_initial_window, tcp_grow_window).
    Windows,
    /// It says its own MSS where the peer's does not decide.
    OwnMss,
    /// It sends more at once than the place's packets hold, though the peer would take it.
    Segments,
    /// It has routes of its own.
    Routes,
    /// It is of IPv6, for which the place is too small.
    Ipv6,
}

/// MTU and MSS where a script was written, and at a place.
struct Sizes {
    mtu: (usize, usize),
    mss: (usize, usize),
}

impl Sizes {
    fn new(script: &Script, place: &Place) -> Sizes {
        let own = option(script, "mtu").map_or(USUAL_MTU, |mtu| mtu.parse().unwrap());
        let mtu = (own, own + place.route.unwrap_or(place.device) - USUAL_MTU);
        let headers = if is_v6(script) { 60 } else { 40 };
        Sizes { mtu, mss: (mtu.0 - headers, mtu.1 - headers) }
    }

    /// The first window is whole segments (Linux's tcp_select_initial_window).
    fn first_window(&self) -> (u16, u16) {
        let of = |mss| u16::try_from(SPACE / mss * mss).unwrap_or(u16::MAX);
        (of(self.mss.0), of(self.mss.1))
    }
}

fn option<'a>(script: &'a Script, name: &str) -> Option<&'a str> {
    script.options.iter().find(|option| option.name.value == name)?.value.as_deref()
}

fn is_v6(script: &Script) -> bool {
    option(script, "ip_version") == Some("ipv6")
}

fn segments(script: &Script, way: Direction) -> impl Iterator<Item = &Segment> {
    script.events.iter().filter_map(move |event| match &event.action.value {
        Action::Packet(Packet { direction, body: Body::Tcp(segment), .. }) if *direction == way => {
            Some(segment)
        }
        _ => None,
    })
}

fn mss_of(segment: &Segment) -> Option<usize> {
    segment.options.iter().flatten().find_map(|option| match option {
        TcpOption::Mss(mss) => Some(usize::from(*mss)),
        _ => None,
    })
}

fn is_syn(segment: &Segment) -> bool {
    segment.flags.contains(Flags::SYN)
}

/// Why does a script not run at a place?
fn bound(script: &Script, source: &str, place: &Place) -> Option<Bound> {
    let sizes = Sizes::new(script, place);
    if is_v6(script) && sizes.mtu.1 < IPV6_MIN_MTU {
        Some(Bound::Ipv6)
    } else if place.route.is_some() && source.contains("ip route") {
        Some(Bound::Routes)
    } else if sizes.mtu.0 == sizes.mtu.1 {
        None
    } else if says_windows(script, source, &sizes) {
        Some(Bound::Windows)
    } else if says_own_mss(script, source, &sizes) {
        Some(Bound::OwnMss)
    } else if outgrows(script, &sizes) {
        Some(Bound::Segments)
    } else {
        None
    }
}

fn says_windows(script: &Script, source: &str, sizes: &Sizes) -> bool {
    let is_first = |segment: &Segment| is_syn(segment) && segment.window == Some(sizes.first_window().0);
    let told = segments(script, Direction::Out).any(|segment| segment.window.is_some() && !is_first(segment));
    told || source.contains("tcpi_rcv_ssthresh")
}

fn says_own_mss(script: &Script, source: &str, sizes: &Sizes) -> bool {
    let (own, new) = sizes.mss;
    let follows = |size: usize| size == own || size == own - TIMESTAMPS || size > new - TIMESTAMPS;
    let asked =
        ["tcpi_snd_mss == ", "tcpi_rcv_mss == "].into_iter().flat_map(|word| source.split(word).skip(1));
    let data =
        segments(script, Direction::Out).filter(|segment| is_syn(segment)).map(|syn| usize::from(syn.len));
    asked.filter_map(leading_number).any(follows)
        || data.into_iter().any(|len| len == own - SYN_OPTIONS || len > new - SYN_OPTIONS)
}

fn leading_number(text: &str) -> Option<usize> {
    text.split(|at: char| !at.is_ascii_digit()).next()?.parse().ok()
}

fn outgrows(script: &Script, sizes: &Sizes) -> bool {
    let held = sizes.mss.1 - TIMESTAMPS;
    let peer_takes = segments(script, Direction::In).filter_map(mss_of).any(|mss| mss > held);
    let sent = segments(script, Direction::Out).map(|segment| usize::from(segment.len));
    peer_takes && sent.chain(written(script)).any(|len| len > held)
}

/// What each call to write took.
fn written(script: &Script) -> impl Iterator<Item = usize> {
    script.events.iter().filter_map(|event| match &event.action.value {
        Action::Call(Call { name, result: Expr::Int(len), .. }) => {
            let writes = ["write", "send", "splice"].iter().any(|word| name.starts_with(word));
            usize::try_from(*len).ok().filter(|_| writes)
        }
        _ => None,
    })
}

/// A script moved to a place: other sizes of segments, the same conversation.
fn moved(script: &Script, place: &Place) -> Script {
    let mut script = script.clone();
    let sizes = Sizes::new(&script, place);
    let device = sizes.mtu.0 + place.device - USUAL_MTU;
    for option in script.options.iter_mut().filter(|option| option.name.value == "mtu") {
        option.value = Some(device.to_string());
    }
    for event in &mut script.events {
        match &mut event.action.value {
            Action::Code(text) => *text = asked_anew(text, &sizes),
            Action::Packet(Packet { direction: Direction::Out, body: Body::Tcp(segment), .. })
                if is_syn(segment) =>
            {
                tell_anew(segment, &sizes);
            }
            _ => {}
        }
    }
    if place.route.is_some() {
        let peer =
            option(&script, "remote_ip").map_or(Setup::default().remote, |address| address.parse().unwrap());
        let prefix = if peer.is_ipv4() { 32 } else { 128 };
        let command = format!("ip route replace {peer}/{prefix} dev tun0 mtu {}", sizes.mtu.1);
        let first =
            Event { time: When::Absolute(0), action: Line { line: 1, value: Action::Command(command) } };
        script.events.insert(0, first);
    }
    script
}

fn asked_anew(text: &str, sizes: &Sizes) -> String {
    let (mtu, mss) = (sizes.mtu, sizes.mss);
    let fields =
        [("tcpi_pmtu", mtu), ("tcpi_advmss", mss), ("tcpi_advmss", (mss.0 - TIMESTAMPS, mss.1 - TIMESTAMPS))];
    let text = text.to_owned();
    fields.iter().fold(text, |text, (name, (old, new))| {
        text.replace(&format!("{name} == {old}"), &format!("{name} == {new}"))
    })
}

fn tell_anew(syn: &mut Segment, sizes: &Sizes) {
    let (old, new) = sizes.first_window();
    syn.window = syn.window.map(|window| if window == old { new } else { window });
    for option in syn.options.iter_mut().flatten() {
        if let TcpOption::Mss(mss) = option
            && usize::from(*mss) == sizes.mss.0
        {
            *mss = u16::try_from(sizes.mss.1).unwrap();
        }
    }
}

#[test]
fn scripts_hold_at_other_mtus() {
    let found = all_scripts();
    for place in &PLACES {
        let (mut failures, mut bounds, mut ran) = (String::new(), BTreeMap::<Bound, usize>::new(), 0);
        for (path, source) in &found {
            let script = Script::parse(source).unwrap();
            if let Some(bound) = bound(&script, source, place) {
                *bounds.entry(bound).or_default() += 1;
                continue;
            }
            ran += 1;
            let setup = Setup { mtu: place.device, ..Setup::default() };
            if let Err(failure) = run(&moved(&script, place), setup) {
                failures += &format!("{}:{}\n", path.display(), failure.in_source(source));
            }
        }
        assert!(failures.is_empty(), "{place:?}\n{failures}");
        println!("{place:?}: {ran} scripts, without {bounds:?}");
        assert!(ran >= place.at_least, "{place:?}: {ran} scripts, without {bounds:?}");
    }
}
