//! Tunnels and other encapsulations around a segment.

use core::fmt;

/// A layer between the link and the IP packet of a segment that most networks do not have. VLAN
/// tags do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tunnel {
    /// IP authentication header (RFC 4302).
    Ah,
    /// AYIYA (draft-massar-v6ops-ayiya), of IPv6 tunnel brokers.
    Ayiya,
    /// CAPWAP data (RFC 5415): Wi-Fi frames from an access point to its controller.
    Capwap,
    /// Cisco metadata: a security group tag.
    CiscoMetadata,
    /// Port extender tag (IEEE 802.1BR).
    ETag,
    /// ERSPAN, type I, II or III.
    Erspan,
    /// Ethernet in IP (RFC 3378, or protocol 143 of RFC 8986).
    EtherIp,
    /// Cisco FabricPath.
    FabricPath,
    /// Geneve (RFC 8926).
    Geneve,
    /// GRE (RFC 2784), NVGRE too.
    Gre,
    /// GTP-U (3GPP TS 29.281), and its first version.
    GtpU,
    /// Generic UDP encapsulation.
    Gue,
    /// High-availability seamless redundancy tag (IEC 62439-3).
    Hsr,
    /// IPv4 in IPv4 (RFC 2003).
    Ip4In4,
    /// IPv4 in IPv6 (RFC 2473).
    Ip4In6,
    /// IPv6 in IPv4 (RFC 4213).
    Ip6In4,
    /// IPv6 in IPv6 (RFC 2473).
    Ip6In6,
    /// Inter-switch link of Cisco.
    Isl,
    /// L2TP version 2 (RFC 2661).
    L2tp,
    /// LISP data (RFC 9300).
    Lisp,
    /// MACsec without encryption (IEEE 802.1AE).
    MacSec,
    /// MPLS labels (RFC 3032), a pseudowire too.
    Mpls,
    /// Network service header (RFC 8300).
    Nsh,
    /// Provider backbone bridge (IEEE 802.1ah).
    Pbb,
    /// PPP over Ethernet (RFC 2516).
    Pppoe,
    /// PPTP: PPP in GRE version 1 (RFC 2637).
    Pptp,
    /// Teredo (RFC 4380).
    Teredo,
    /// TRILL (RFC 6325).
    Trill,
    /// TaZmen sniffer protocol.
    Tzsp,
    /// Virtual network tag of Cisco.
    VnTag,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// VXLAN with a protocol field (draft-ietf-nvo3-vxlan-gpe).
    VxlanGpe,
    /// Web cache redirection in GRE.
    Wccp,
}

impl Tunnel {
    /// Returns the usual name.
    pub fn name(self) -> &'static str {
        match self {
            Tunnel::Ah => "AH",
            Tunnel::Ayiya => "AYIYA",
            Tunnel::Capwap => "CAPWAP",
            Tunnel::CiscoMetadata => "Cisco metadata",
            Tunnel::ETag => "802.1BR",
            Tunnel::Erspan => "ERSPAN",
            Tunnel::EtherIp => "EtherIP",
            Tunnel::FabricPath => "FabricPath",
            Tunnel::Geneve => "Geneve",
            Tunnel::Gre => "GRE",
            Tunnel::GtpU => "GTP-U",
            Tunnel::Gue => "GUE",
            Tunnel::Hsr => "HSR",
            Tunnel::Ip4In4 => "IPv4 in IPv4",
            Tunnel::Ip4In6 => "IPv4 in IPv6",
            Tunnel::Ip6In4 => "IPv6 in IPv4",
            Tunnel::Ip6In6 => "IPv6 in IPv6",
            Tunnel::Isl => "ISL",
            Tunnel::L2tp => "L2TP",
            Tunnel::Lisp => "LISP",
            Tunnel::MacSec => "MACsec",
            Tunnel::Mpls => "MPLS",
            Tunnel::Nsh => "NSH",
            Tunnel::Pbb => "PBB",
            Tunnel::Pppoe => "PPPoE",
            Tunnel::Pptp => "PPTP",
            Tunnel::Teredo => "Teredo",
            Tunnel::Trill => "TRILL",
            Tunnel::Tzsp => "TZSP",
            Tunnel::VnTag => "VN-Tag",
            Tunnel::Vxlan => "VXLAN",
            Tunnel::VxlanGpe => "VXLAN-GPE",
            Tunnel::Wccp => "WCCP",
        }
    }
}

/// Most tunnels recorded per segment. Further tunnels are decoded but not recorded.
const REMEMBERED: usize = 6;

/// The tunnels of one segment, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnels([Option<Tunnel>; REMEMBERED]);

impl Tunnels {
    pub(crate) fn push(&mut self, tunnel: Tunnel) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(tunnel);
        }
    }

    /// Returns true if the segment was in no tunnel.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Returns only the outermost tunnel.
    pub fn outermost(&self) -> Tunnels {
        Tunnels([self.0[0], None, None, None, None, None])
    }

    /// Iterates over the tunnels, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = Tunnel> {
        self.0.into_iter().flatten()
    }
}

/// Names of the tunnels, outermost first: `VXLAN, MPLS`.
impl fmt::Display for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, tunnel) in self.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{}", tunnel.name())?;
        }
        Ok(())
    }
}
