//! Every TCP socket of this namespace, by inet_diag.
use super::netlink::dump;
use crate::sample::{Info, Memory, Socket};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags, Timer,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::io;

/// Reads them all.
pub(super) fn read() -> io::Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    for (family, socket_id) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        let extensions = ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO;
        let states = StateFlags::all();
        let request = InetRequest { family, protocol: IPPROTO_TCP, extensions, states, socket_id };
        dump(NETLINK_SOCK_DIAG, SockDiagMessage::InetRequest(request), |answer| {
            if let SockDiagMessage::InetResponse(response) = answer {
                sockets.push(socket(&response));
            }
        })?;
    }
    Ok(sockets)
}

fn socket(response: &InetResponse) -> Socket {
    let header = &response.header;
    let id = &header.socket_id;
    let mut socket = Socket {
        state: header.state,
        local: id.source_address.to_canonical().to_string(),
        local_port: id.source_port,
        peer: id.destination_address.to_canonical().to_string(),
        peer_port: id.destination_port,
        recv_queue: header.recv_queue,
        send_queue: header.send_queue,
        inode: header.inode,
        probing: matches!(header.timer, Some(Timer::Probe(_))),
        ..Socket::default()
    };
    for attribute in &response.nlas {
        match attribute {
            Nla::MemInfo(memory) => {
                socket.memory = Some(Memory {
                    rcvbuf: memory.receive_queue_max,
                    sndbuf: memory.send_queue_max,
                    wmem_queued: memory.send_queue,
                    drops: memory.drops,
                });
            }
            Nla::TcpInfo(info) => socket.info = Some(used(info)),
            _ => {}
        }
    }
    socket
}

fn used(info: &TcpInfo) -> Info {
    Info {
        options: info.options,
        snd_mss: info.snd_mss,
        unacked: info.unacked,
        snd_cwnd: info.snd_cwnd,
        min_rtt: info.min_rtt,
        last_ack_recv: info.last_ack_recv,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        busy_time: info.busy_time,
        rwnd_limited: info.rwnd_limited,
        backoff: info.backoff,
    }
}
