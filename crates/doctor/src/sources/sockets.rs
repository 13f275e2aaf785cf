//! Every TCP socket of this namespace, by inet_diag.
use super::netlink::dump;
use crate::sample::{Address, Info, Memory, Socket};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, Timer,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// Reads them all.
pub(super) fn read() -> io::Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    let mut names = Names::default();
    for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        dump(NETLINK_SOCK_DIAG, request(family, socket_id), |answer| {
            if let SockDiagMessage::InetResponse(response) = answer {
                sockets.push(socket(&response, &mut names));
            }
        })?;
    }
    Ok(sockets)
}

fn request(family: u8, socket_id: SocketId) -> SockDiagMessage {
    let extensions = ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO | ExtensionFlags::CONG;
    let states = StateFlags::all();
    SockDiagMessage::InetRequest(InetRequest { family, protocol: IPPROTO_TCP, extensions, states, socket_id })
}

/// Names of congestion controls, each kept once.
#[derive(Default)]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.0.insert(Arc::clone(&name));
        name
    }
}

fn socket(response: &InetResponse, names: &mut Names) -> Socket {
    let header = &response.header;
    let id = &header.socket_id;
    let (retransmits, expires) = match &header.timer {
        Some(Timer::Retransmit(expires, times)) => (*times, milliseconds(*expires)),
        Some(Timer::KeepAlive(expires) | Timer::Probe(expires)) => (0, milliseconds(*expires)),
        Some(Timer::TimeWait) | None => (0, 0),
    };
    let mut socket = Socket {
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
    };
    for attribute in &response.nlas {
        match attribute {
            Nla::MemInfo(memory) => {
                socket.memory = Some(Memory {
                    rcvbuf: memory.receive_queue_max,
                    sndbuf: memory.send_queue_max,
                    rmem_alloc: memory.receive_queue,
                    wmem_queued: memory.send_queue,
                    wmem_alloc: memory.bottom_send_queues,
                    fwd_alloc: memory.cache,
                    optmem: memory.options,
                    backlog: memory.backlog_queue_length,
                    drops: memory.drops,
                });
            }
            Nla::TcpInfo(info) => socket.info = Some(used(info)),
            Nla::Congestion(name) => socket.congestion = names.of(name),
            _ => {}
        }
    }
    socket
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
        mutated(NETLINK_SOCK_DIAG, request(AF_INET, SocketId::new_v4()), |answer| {
            if let SockDiagMessage::InetResponse(response) = answer {
                socket(&response, &mut names);
            }
        });
    }
}
