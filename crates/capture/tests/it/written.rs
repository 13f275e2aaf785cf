//! A capture written by a test: packets with their times, as pcap.
use capture::{CaptureFile, Connection, Events, Table};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::{
    Cookie, FastOpenKind, FastOpenOption, Flags, IpHeader, SeqNum, TcpHeader, Timestamps, build_tcp_packet,
    protocol,
};

pub(crate) const CLIENT: (u8, u16) = (1, 40_000);
pub(crate) const SERVER: (u8, u16) = (2, 80);

pub(crate) const CLIENT_ISN: u32 = 1000;
pub(crate) const SERVER_ISN: u32 = 5000;

/// A packet to write. Numbers are relative to the initial ones.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    from_client: bool,
    tcp: TcpHeader,
    text_len: usize,
    ident: u16,
}

fn header(from_client: bool, seq: u32, ack: Option<u32>, flags: Flags) -> TcpHeader {
    let ((_, src), (_, dst)) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let (own, other) = if from_client { (CLIENT_ISN, SERVER_ISN) } else { (SERVER_ISN, CLIENT_ISN) };
    let ack_flag = if ack.is_some() { Flags::ACK } else { Flags::empty() };
    TcpHeader {
        seq: SeqNum(own) + seq,
        ack: ack.map_or(SeqNum(0), |ack| SeqNum(other) + ack),
        flags: flags | ack_flag,
        window: 65_535,
        ..TcpHeader::new(src, dst)
    }
}

/// Returns a packet from the client, with data.
pub(crate) fn up(seq: u32, ack: u32, text_len: usize) -> Draft {
    Draft { from_client: true, tcp: header(true, seq, Some(ack), Flags::PSH), text_len, ident: 0 }
}

/// Returns a packet from the server, with data.
pub(crate) fn down(seq: u32, ack: u32, text_len: usize) -> Draft {
    Draft { from_client: false, tcp: header(false, seq, Some(ack), Flags::PSH), text_len, ident: 0 }
}

/// Returns the client's SYN.
pub(crate) fn syn() -> Draft {
    Draft { from_client: true, tcp: header(true, 0, None, Flags::SYN), text_len: 0, ident: 0 }
        .offering(1460, 0)
}

/// Returns the server's SYN-ACK.
pub(crate) fn syn_ack(ack: u32) -> Draft {
    Draft { from_client: false, tcp: header(false, 0, Some(ack), Flags::SYN), text_len: 0, ident: 0 }
        .offering(1460, 0)
}

/// Returns the server's SYN in a simultaneous open.
pub(crate) fn opened_by_server() -> Draft {
    Draft { from_client: false, tcp: header(false, 0, None, Flags::SYN), text_len: 0, ident: 0 }
        .offering(1460, 0)
}

impl Draft {
    pub(crate) fn text(self, text_len: usize) -> Draft {
        Draft { text_len, ..self }
    }

    pub(crate) fn with(mut self, flags: Flags) -> Draft {
        self.tcp.flags |= flags;
        self
    }

    /// Sets exactly these control bits.
    pub(crate) fn alone(mut self, flags: Flags) -> Draft {
        self.tcp.flags = flags;
        self
    }

    /// Raises the initial numbers of client and server.
    pub(crate) fn shifted(mut self, client: u32, server: u32) -> Draft {
        let (own, other) = if self.from_client { (client, server) } else { (server, client) };
        self.tcp.seq += own;
        if self.tcp.flags.contains(Flags::ACK) {
            self.tcp.ack += other;
        }
        self
    }

    pub(crate) fn window(mut self, window: u16) -> Draft {
        self.tcp.window = window;
        self
    }

    pub(crate) fn ident(self, ident: u16) -> Draft {
        Draft { ident, ..self }
    }

    pub(crate) fn offering(mut self, mss: u16, scale: u8) -> Draft {
        self.tcp.options.mss = Some(mss);
        self.tcp.options.window_scale = Some(scale);
        self
    }

    pub(crate) fn stamped(mut self, tsval: u32) -> Draft {
        self.tcp.options.timestamps = Some(Timestamps { tsval, tsecr: 0 });
        self
    }

    /// Adds the option: a request, or this cookie.
    pub(crate) fn cookie(mut self, cookie: Option<&[u8]>) -> Draft {
        let cookie = cookie.map(|bytes| Cookie::new(bytes).unwrap());
        self.tcp.options.fast_open = Some(FastOpenOption { kind: FastOpenKind::Standard, cookie });
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let addr = |last| Ipv4Addr::new(10, 0, 0, last).into();
        let (src, dst) = if self.from_client { (CLIENT.0, SERVER.0) } else { (SERVER.0, CLIENT.0) };
        let ip = IpHeader { ident: self.ident, ..IpHeader::new(addr(src), addr(dst), protocol::TCP) };
        build_tcp_packet(&ip, &self.tcp, &vec![b'x'; self.text_len]).to_vec()
    }
}

pub(crate) fn endpoint((last, port): (u8, u16)) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
}

/// Returns a pcap file of raw IP with times in microseconds.
pub(crate) fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    pcap_of(101, packets)
}

/// Returns a pcap file of this link type.
pub(crate) fn pcap_of(link_type: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend(link_type.to_le_bytes());
    for (us, packet) in packets {
        let len = u32::try_from(packet.len()).unwrap();
        for word in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// Returns the connections of a conversation. Times in tenths of a millisecond.
pub(crate) fn connections(drafts: &[(u64, Draft)]) -> Vec<Connection> {
    let packets: Vec<(u64, Vec<u8>)> = drafts.iter().map(|(at, draft)| (at * 100, draft.bytes())).collect();
    connections_of(&pcap(&packets))
}

/// Returns the events of each packet.
pub(crate) fn events(drafts: &[(u64, Draft)]) -> Vec<Events> {
    let packets: Vec<(u64, Vec<u8>)> = drafts.iter().map(|(at, draft)| (at * 100, draft.bytes())).collect();
    let file = pcap(&packets);
    let mut file = CaptureFile::open(&file[..]).unwrap();
    let (mut table, mut all) = (Table::default(), Vec::new());
    while let Some(frame) = file.next_frame() {
        all.push(table.handle(&frame.tcp().unwrap(), &mut |_| ()).last_events());
    }
    all
}

pub(crate) fn connections_of(file: &[u8]) -> Vec<Connection> {
    let mut file = CaptureFile::open(file).unwrap();
    let (mut table, mut all) = (Table::default(), Vec::new());
    while let Some(frame) = file.next_frame() {
        if let Ok(packet) = frame.tcp() {
            table.handle(&packet, &mut |over| all.push(over));
        } else if let Some(error) = frame.icmp_error() {
            table.handle_icmp(&error);
        }
    }
    table.finish(&mut |over| all.push(over));
    all
}

/// Returns the only connection of a conversation.
pub(crate) fn connection(drafts: &[(u64, Draft)]) -> Connection {
    let [connection] = <[Connection; 1]>::try_from(connections(drafts)).unwrap();
    connection
}
