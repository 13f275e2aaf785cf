//! Reads every TCP socket of this namespace from inet_diag.
//!
//! A host may have hundreds of thousands of sockets, so each answer becomes a [`Socket`]
//! immediately, without a list of attributes that would take memory. The older of the two requests
//! covers every family, so the kernel goes through its tables only once.
use super::netlink::dump;
use crate::sample::{Address, Info, Memory, Socket};
use netlink_packet_core::{
    DecodeError, NetlinkDeserializable, NetlinkHeader, NetlinkPayload, NetlinkSerializable, NlasIterator,
    Parseable,
};
use netlink_packet_sock_diag::constants::{INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_SKMEMINFO};
use netlink_packet_sock_diag::inet::nlas::{MemInfo, TcpInfo};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetResponseBuffer, InetResponseHeader, SocketIdBuffer, StateFlags, Timer,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::io;
use std::sync::Arc;

/// Reads all sockets.
pub(super) fn read() -> io::Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    let mut names = Names::default();
    dump(NETLINK_SOCK_DIAG, EveryTcp, |answer: Answer| {
        sockets.push(Socket { congestion: names.of(&answer.congestion), ..answer.socket });
    })?;
    Ok(sockets)
}

/// Parses the value of `TCP_INFO`. Returns `None` if the kernel's structure is shorter than on any
/// supported kernel.
pub(super) fn info(bytes: &[u8]) -> Option<Info> {
    TcpInfo::parse(bytes).ok().map(|info| used(&info))
}

/// `inet_diag_req` (include/uapi/linux/inet_diag.h): TCP in every state and family, with the
/// extensions that rules use.
struct EveryTcp;

/// TCPDIAG_GETSOCK.
const EVERY_FAMILY: u16 = 18;
/// Family, lengths of prefixes, extensions; identity; states; tables.
const REQUEST_LEN: usize = 4 + size_of::<SocketIdBuffer>() + 4 + 4;

impl NetlinkSerializable for EveryTcp {
    fn message_type(&self) -> u16 {
        EVERY_FAMILY
    }

    fn buffer_len(&self) -> usize {
        REQUEST_LEN
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let extensions = ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO | ExtensionFlags::CONG;
        buffer.fill(0);
        buffer[3] = extensions.bits();
        buffer[REQUEST_LEN - 8..REQUEST_LEN - 4].copy_from_slice(&StateFlags::all().bits().to_ne_bytes());
    }
}

impl From<EveryTcp> for NetlinkPayload<EveryTcp> {
    fn from(request: EveryTcp) -> NetlinkPayload<EveryTcp> {
        NetlinkPayload::InnerMessage(request)
    }
}

/// TCP_CA_NAME_MAX (include/net/tcp.h): a name, padded with zeros.
type Name = [u8; 16];

/// Names of congestion controls, each stored once.
#[derive(Default)]
struct Names(Vec<(Name, Arc<str>)>);

impl Names {
    fn of(&mut self, bytes: &Name) -> Arc<str> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| known == bytes) {
            return Arc::clone(known);
        }
        let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let name: Arc<str> = String::from_utf8_lossy(&bytes[..len]).into();
        self.0.push((*bytes, Arc::clone(&name)));
        name
    }
}

/// A socket without the name of its congestion control.
struct Answer {
    socket: Socket,
    congestion: Name,
}

impl NetlinkDeserializable for Answer {
    type Error = DecodeError;

    fn deserialize(_: &NetlinkHeader, payload: &[u8]) -> Result<Answer, DecodeError> {
        let mut answer =
            Answer { socket: headed(&InetResponseHeader::parse(payload)?), congestion: Name::default() };
        let attributes = payload.get(size_of::<InetResponseBuffer>()..).unwrap_or_default();
        for attribute in NlasIterator::new(attributes) {
            let attribute = attribute?;
            match attribute.kind() {
                INET_DIAG_SKMEMINFO => {
                    answer.socket.memory = Some(memory(&MemInfo::parse(attribute.value())?));
                }
                INET_DIAG_INFO => answer.socket.info = Some(used(&TcpInfo::parse(attribute.value())?)),
                INET_DIAG_CONG => {
                    let name = attribute.value();
                    let len = name.len().min(answer.congestion.len());
                    answer.congestion[..len].copy_from_slice(&name[..len]);
                }
                _ => {}
            }
        }
        Ok(answer)
    }
}

fn headed(header: &InetResponseHeader) -> Socket {
    let id = &header.socket_id;
    let (retransmits, expires) = match &header.timer {
        Some(Timer::Retransmit(expires, times)) => (*times, milliseconds(*expires)),
        Some(Timer::KeepAlive(expires) | Timer::Probe(expires)) => (0, milliseconds(*expires)),
        Some(Timer::TimeWait) | None => (0, 0),
    };
    Socket {
        state: header.state,
        local: Address(id.source_address.to_canonical()),
        local_port: id.source_port,
        peer: Address(id.destination_address.to_canonical()),
        peer_port: id.destination_port,
        recv_queue: header.recv_queue,
        send_queue: header.send_queue,
        inode: header.inode,
        uid: header.uid,
        timed: header.timer.is_some(),
        probing: matches!(header.timer, Some(Timer::Probe(_))),
        keepalive: matches!(header.timer, Some(Timer::KeepAlive(_))),
        retransmits,
        expires,
        ..Socket::default()
    }
}

fn memory(memory: &MemInfo) -> Memory {
    Memory {
        rcvbuf: memory.receive_queue_max,
        sndbuf: memory.send_queue_max,
        rmem_alloc: memory.receive_queue,
        wmem_queued: memory.send_queue,
        wmem_alloc: memory.bottom_send_queues,
        fwd_alloc: memory.cache,
        optmem: memory.options,
        backlog: memory.backlog_queue_length,
        drops: memory.drops,
    }
}

fn milliseconds(time: std::time::Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn used(info: &TcpInfo) -> Info {
    Info {
        options: info.options,
        // tcpi_snd_wscale:4, tcpi_rcv_wscale:4
        snd_wscale: info.wscale & 15,
        rcv_wscale: info.wscale >> 4,
        backoff: info.backoff,
        rcv_ooopack: info.rcv_ooopack,
        reord_seen: info.reord_seen,
        dsack_dups: info.dsack_dups,
        delivered: info.delivered,
        data_segs_in: info.data_segs_in,
        data_segs_out: info.data_segs_out,
        segs_in: info.segs_in,
        segs_out: info.segs_out,
        reordering: info.reordering,
        rcv_space: info.rcv_space,
        rcv_rtt: info.rcv_rtt,
        rttvar: info.rttvar,
        retrans: info.retrans,
        lost: info.lost,
        sacked: info.sacked,
        rcv_mss: info.rcv_mss,
        ato: info.ato,
        ca_state: info.ca_state,
        probes: info.probes,
        // tcpi_delivery_rate_app_limited:1, tcpi_fastopen_client_fail:2
        app_limited: info.delivery_rate_app_limited & 1 != 0,
        fastopen_client_fail: info.delivery_rate_app_limited >> 1 & 3,
        rto: info.rto,
        snd_mss: info.snd_mss,
        advmss: info.advmss,
        pmtu: info.pmtu,
        unacked: info.unacked,
        snd_cwnd: info.snd_cwnd,
        snd_ssthresh: info.snd_ssthresh,
        snd_wnd: info.snd_wnd,
        rtt: info.rtt,
        min_rtt: info.min_rtt,
        rcv_ssthresh: info.rcv_ssthresh,
        last_data_sent: info.last_data_sent,
        last_data_recv: info.last_data_recv,
        last_ack_recv: info.last_ack_recv,
        bytes_sent: info.bytes_sent,
        bytes_retrans: info.bytes_retrans,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        notsent_bytes: info.notsent_bytes,
        total_retrans: info.total_retrans,
        busy_time: info.busy_time,
        rwnd_limited: info.rwnd_limited,
        sndbuf_limited: info.sndbuf_limited,
        delivery_rate: info.delivery_rate,
        pacing_rate: info.pacing_rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::netlink::tests::mutated;

    #[test]
    fn mutated_sockets_do_not_panic() {
        let _there = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut names = Names::default();
        mutated(NETLINK_SOCK_DIAG, EveryTcp, |answer: Answer| {
            names.of(&answer.congestion);
        });
    }
}
