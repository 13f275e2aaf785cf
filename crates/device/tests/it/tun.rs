//! TUN interfaces with the real kernel on the other side, each test in its own network namespace.

use crate::packets::{Flow, parse};
use device::tap::complete_checksum;
use device::tun::{Builder, Tun, TunError};
use device::{Device, interface};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use wire::{Flags, IpHeader, RxBatch, RxChecksum, RxPacket, SeqNum, TcpHeader, TxPacket, protocol};

const TIMEOUT_S: i64 = 5;

fn addressed() -> Builder {
    Tun::builder().name("tun0").address(addr("10.0.0.1"), 24).address(addr("fd00::1"), 64)
}

fn addr(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn wait_readable(fd: &impl AsFd) {
    let timeout = Timespec { tv_sec: TIMEOUT_S, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)).unwrap(), 1, "nothing came");
}

/// Returns the next packets of this protocol; skips other packets of the kernel (router
/// solicitations, MLD).
fn receive(tun: &mut Tun, wanted: u8) -> Vec<RxPacket> {
    loop {
        wait_readable(&tun.as_fd().unwrap());
        let mut batch = RxBatch::default();
        tun.recv(&mut batch, 64).unwrap();
        let is_wanted = |packet: &RxPacket| {
            IpHeader::parse(&packet.data).is_ok_and(|(ip, _)| ip.protocol == wanted && !ip.dst.is_multicast())
        };
        let packets: Vec<RxPacket> = batch.drain().filter(is_wanted).collect();
        if !packets.is_empty() {
            return packets;
        }
    }
}

fn send_all(tun: &mut Tun, packets: impl Into<VecDeque<TxPacket>>) {
    let mut batch = packets.into();
    while !batch.is_empty() {
        assert!(tun.send(&mut batch).unwrap() > 0, "the kernel pushes back");
    }
}

#[test]
fn a_new_interface_has_its_addresses_and_mtu_and_goes_with_its_descriptor() {
    testnet::in_namespace(|| {
        let tun = addressed().mtu(1400).open().unwrap();
        assert_eq!((tun.name(), tun.capabilities().mtu), ("tun0", 1400));
        let found = interface::find("tun0").unwrap();
        assert_eq!((found.index, found.mtu, found.is_up), (tun.index(), 1400, true));
        for address in ["10.0.0.1:5000", "[fd00::1]:5000"] {
            UdpSocket::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        }
        assert!(UdpSocket::bind("10.0.0.2:5000").is_err(), "that one is the stack's");
        drop(tun);
        assert_eq!(interface::find("tun0").unwrap_err().raw_os_error(), Some(19), "ENODEV");
    });
}

#[test]
fn the_kernel_chooses_a_name_when_none_is_given() {
    testnet::in_namespace(|| {
        let (first, second) = (Tun::builder().open().unwrap(), Tun::builder().open().unwrap());
        assert_eq!((first.name(), second.name()), ("tun0", "tun1"));
        assert_eq!(Tun::builder().name("fb%d").open().unwrap().name(), "fb0");
    });
}

#[test]
fn a_route_leads_to_the_interface() {
    testnet::in_namespace(|| {
        let routed = addressed().route(addr("192.0.2.0"), 24).route(addr("2001:db8::"), 32);
        let mut tun = routed.open().unwrap();
        for (from, to) in [("10.0.0.1:0", "192.0.2.9:53"), ("[fd00::1]:0", "[2001:db8::9]:53")] {
            let peer: SocketAddr = to.parse().unwrap();
            UdpSocket::bind(from).unwrap().send_to(b"hello", peer).unwrap();
            let (ip, _) = IpHeader::parse(&receive(&mut tun, protocol::UDP)[0].data).unwrap();
            assert_eq!(ip.dst.to_ip(), peer.ip());
        }
    });
}

#[test]
fn an_address_or_route_may_be_given_twice() {
    testnet::in_namespace(|| {
        let builder = addressed().route(addr("192.0.2.0"), 24).multi_queue(true);
        let first = builder.open().unwrap();
        assert_eq!(builder.open().unwrap().index(), first.index());
    });
}

/// Returns an ICMP socket of the kernel, and an echo request to send from it.
fn pinger(is_v6: bool) -> (OwnedFd, u8, Vec<u8>) {
    let (family, kind, number, request) = match is_v6 {
        false => (AddressFamily::INET, ipproto::ICMP, protocol::ICMP, 8),
        true => (AddressFamily::INET6, ipproto::ICMPV6, protocol::ICMPV6, 128),
    };
    let mut message = vec![request, 0, 0, 0, 0x12, 0x34, 0, 1];
    message.extend(b"firstbyte");
    if !is_v6 {
        let mut sum = wire::Checksum::new();
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    }
    (socket(family, SocketType::RAW, Some(kind)).unwrap(), number, message)
}

#[test]
fn a_ping_comes_in_and_its_answer_goes_out() {
    testnet::in_namespace(|| {
        let mut tun = addressed().open().unwrap();
        for (is_v6, flow) in [(false, Flow::v4()), (true, Flow::v6())] {
            let (icmp, number, message) = pinger(is_v6);
            sendto(&icmp, &message, SendFlags::empty(), &SocketAddr::new(flow.src, 0)).unwrap();
            let request = receive(&mut tun, number).remove(0);
            let (ip, transport) = IpHeader::parse(&request.data).unwrap();
            assert_eq!((ip.src.to_ip(), ip.dst.to_ip()), (flow.dst, flow.src));
            assert_eq!(&request.data[transport.clone()][4..], &message[4..]);
            assert_eq!((request.checksum, request.gso_size), (RxChecksum::Verify, 0));

            let mut echo = request.data[transport].to_vec();
            (echo[0], echo[2], echo[3]) = (if is_v6 { 129 } else { 0 }, 0, 0);
            let mut sum = match is_v6 {
                true => wire::Checksum::pseudo_header(ip.dst, ip.src, number, echo.len() as u32),
                false => wire::Checksum::new(),
            };
            sum.add(&echo);
            echo[2..4].copy_from_slice(&sum.finish().to_be_bytes());
            let back = IpHeader { src: ip.dst, dst: ip.src, ..ip };
            let mut header = vec![0; back.emit_len()];
            back.emit(echo.len(), &mut header);
            send_all(&mut tun, [TxPacket::new(&header, [echo.clone().into()].into_iter().collect())]);

            let mut answer = [0; 256];
            loop {
                wait_readable(&icmp);
                let (len, _) = recv(&icmp, &mut answer[..], RecvFlags::DONTWAIT).unwrap();
                if answer[..len].ends_with(&echo) {
                    break;
                }
            }
        }
    });
}

/// Returns the next segments that the kernel sends to our end of `flow`: as received, and parsed
/// with their checksum completed.
fn segments(tun: &mut Tun, flow: Flow) -> Vec<(RxPacket, TcpHeader, Vec<u8>)> {
    loop {
        let parsed = receive(tun, protocol::TCP).into_iter().map(|packet| {
            let completed = complete_checksum(&packet.data);
            let (ip, tcp, payload) = parse(completed.as_deref().unwrap_or(&packet.data));
            (ip.dst.to_ip() == flow.src && tcp.dst_port == flow.src_port).then_some((packet, tcp, payload))
        });
        let ours: Vec<_> = parsed.flatten().collect();
        if !ours.is_empty() {
            return ours;
        }
    }
}

/// A connection between a kernel socket and the test, which plays the other end of it segment by
/// segment.
struct Conversation {
    flow: Flow,
    socket: TcpStream,
    /// Our next sequence number, and the next one that we expect.
    seq: u32,
    ack: u32,
}

impl Conversation {
    /// Accepts a connection of the kernel.
    fn accept(tun: &mut Tun, mut flow: Flow) -> Conversation {
        let target = SocketAddr::new(flow.src, flow.src_port);
        let connect = thread::spawn(move || TcpStream::connect(target).unwrap());
        let (_, syn, _) = segments(tun, flow).remove(0);
        assert_eq!(syn.flags, Flags::SYN);
        flow.dst_port = syn.src_port;
        let ack = syn.seq.0.wrapping_add(1);
        let mut syn_ack = flow.tcp(0, ack, Flags::SYN | Flags::ACK);
        syn_ack.options.mss = syn.options.mss;
        send_all(tun, [TxPacket::tcp(&flow.ip(), &syn_ack, Default::default(), 0, false)]);
        let (_, handshake_ack, _) = segments(tun, flow).remove(0);
        assert_eq!((handshake_ack.flags, handshake_ack.ack), (Flags::ACK, SeqNum(1)));
        Conversation { flow, socket: connect.join().unwrap(), seq: 1, ack }
    }

    fn header(&self, flags: Flags) -> TcpHeader {
        self.flow.tcp(self.seq, self.ack, flags)
    }

    fn acknowledge(&self, tun: &mut Tun) {
        let ack = TxPacket::tcp(&self.flow.ip(), &self.header(Flags::ACK), Default::default(), 0, false);
        send_all(tun, [ack]);
    }

    /// Sends `data` as one packet and reads it back from the kernel's socket.
    fn deliver(&mut self, tun: &mut Tun, data: &[u8], gso_size: u16, partial: bool) {
        let payload = [data.to_vec().into()].into_iter().collect();
        let header = self.header(Flags::ACK | Flags::PSH);
        send_all(tun, [TxPacket::tcp(&self.flow.ip(), &header, payload, gso_size, partial)]);
        self.seq = self.seq.wrapping_add(data.len() as u32);
        let mut read = vec![0; data.len()];
        self.socket.set_read_timeout(Some(std::time::Duration::from_secs(TIMEOUT_S as u64))).unwrap();
        self.socket.read_exact(&mut read).expect("the kernel took the packet");
        assert_eq!(read, data);
    }

    /// Receives `len` bytes that the kernel's socket sends. Returns the packets.
    fn collect(&mut self, tun: &mut Tun, len: usize) -> (Vec<u8>, Vec<RxPacket>) {
        let (mut data, mut packets) = (Vec::new(), Vec::new());
        while data.len() < len {
            for (packet, tcp, payload) in segments(tun, self.flow) {
                if tcp.seq == SeqNum(self.ack) {
                    self.ack = self.ack.wrapping_add(payload.len() as u32);
                    data.extend(payload);
                    packets.push(packet);
                }
            }
            self.acknowledge(tun);
        }
        (data, packets)
    }
}

fn merged_count(packets: &[RxPacket]) -> u64 {
    packets.iter().filter(|packet| packet.gso_size != 0).count() as u64
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + n / 251) as u8).collect()
}

#[test]
fn a_big_write_of_a_kernel_socket_arrives_merged_and_trusted() {
    testnet::in_namespace(|| {
        for (flow, mss) in [(Flow::v4(), 1460), (Flow::v6(), 1440)] {
            let mut tun = addressed().open().unwrap();
            let mut peer = Conversation::accept(&mut tun, flow);
            let sent = pattern(200_000);
            let mut socket = peer.socket.try_clone().unwrap();
            let copy = sent.clone();
            let writer = thread::spawn(move || socket.write_all(&copy).unwrap());
            let (data, packets) = peer.collect(&mut tun, sent.len());
            writer.join().unwrap();
            assert_eq!(data, sent);
            assert!(packets.iter().all(|packet| packet.checksum == RxChecksum::Trusted));
            let merged: Vec<&RxPacket> = packets.iter().filter(|packet| packet.data.len() > 1500).collect();
            assert!(
                merged.len() * 10 > packets.len() * 5,
                "{} of {} are merged",
                merged.len(),
                packets.len()
            );
            assert!(merged.iter().all(|packet| packet.gso_size == mss), "cut where the kernel would cut");
            assert!(packets.iter().all(|packet| packet.truesize >= packet.data.len()));
            let pinned: usize = packets.iter().map(|packet| packet.truesize).sum();
            assert!(pinned < 5 * sent.len(), "{pinned} bytes pinned for {}", sent.len());
            assert!(tun.stats().rx_merged >= merged_count(&packets) && tun.stats().rx_invalid == 0);
        }
    });
}

#[test]
fn a_gso_packet_with_a_partial_checksum_is_taken_by_the_kernel() {
    testnet::in_namespace(|| {
        for (flow, mss) in [(Flow::v4(), 1460), (Flow::v6(), 1440)] {
            let mut tun = addressed().open().unwrap();
            let gso_max = tun.capabilities().gso_max_size;
            let before = testnet::counters();
            let mut peer = Conversation::accept(&mut tun, flow);
            peer.deliver(&mut tun, &pattern(20_000), mss, true);
            peer.deliver(&mut tun, &pattern(100), mss, true);
            peer.deliver(&mut tun, &pattern(1_000), 0, true);
            peer.deliver(&mut tun, &pattern(1_000), 0, false);
            peer.deliver(&mut tun, &pattern(30_000), mss, false);
            peer.deliver(&mut tun, &pattern(gso_max), mss, true);
            let grown = testnet::counters().since(&before);
            assert_eq!(grown.get("TcpInErrs").or(grown.get("TcpInCsumErrors")), None, "{grown:?}");
            assert_eq!((tun.stats().tx_invalid, tun.stats().tx_oversize, tun.stats().tx_gso), (0, 0, 3));
        }
    });
}

#[test]
fn without_the_virtio_header_everything_is_cut_and_completed_here() {
    testnet::in_namespace(|| {
        for flow in [Flow::v4(), Flow::v6()] {
            let mut tun = addressed().offload(false).open().unwrap();
            assert!(tun.capabilities().gso_max_size > 60_000 && tun.capabilities().tx_checksum);
            let mut peer = Conversation::accept(&mut tun, flow);
            peer.deliver(&mut tun, &pattern(20_000), 1400, true);
            peer.deliver(&mut tun, &pattern(1_000), 0, true);
            peer.deliver(&mut tun, &pattern(1_000), 0, false);
            peer.socket.write_all(&pattern(8_000)).unwrap();
            let (data, packets) = peer.collect(&mut tun, 8_000);
            assert_eq!(data, pattern(8_000));
            assert!(packets.iter().all(|packet| packet.data.len() <= 1500 && packet.gso_size == 0));
            assert!(packets.iter().all(|packet| packet.checksum == RxChecksum::Verify));
            // Parsing checks that their checksums are complete.
            packets.iter().for_each(|packet| drop(parse(&packet.data)));
        }
    });
}

#[test]
fn a_burst_goes_out_whole() {
    testnet::in_namespace(|| {
        let mut tun = addressed().open().unwrap();
        let listener = TcpListener::bind("10.0.0.1:80").unwrap();
        let syn = |port: u16| {
            let flow = Flow { src_port: port, ..Flow::v4() };
            TxPacket::tcp(&flow.ip(), &flow.tcp(0, 0, Flags::SYN), Default::default(), 0, true)
        };
        let mut burst: VecDeque<TxPacket> = (2000..2100).map(syn).collect();
        assert_eq!(tun.send(&mut burst).unwrap(), 100);
        let mut answers = 0;
        while answers < 100 {
            for packet in receive(&mut tun, protocol::TCP) {
                let completed = complete_checksum(&packet.data);
                let (_, tcp, _) = parse(completed.as_deref().unwrap_or(&packet.data));
                answers += usize::from(tcp.flags == Flags::SYN | Flags::ACK);
            }
        }
        drop(listener);
    });
}

#[test]
fn recv_stops_at_max_and_says_when_nothing_is_there() {
    testnet::in_namespace(|| {
        testnet::sysctl("net.ipv6.conf.all.disable_ipv6", "1");
        testnet::sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        let mut tun = Tun::builder().name("tun0").address(addr("10.0.0.1"), 24).open().unwrap();
        let mut batch = RxBatch::default();
        assert_eq!(tun.recv(&mut batch, 64).unwrap(), 0);
        let udp = UdpSocket::bind("10.0.0.1:0").unwrap();
        for _ in 0..5 {
            udp.send_to(b"x", "10.0.0.2:9").unwrap();
        }
        assert_eq!(tun.recv(&mut batch, 3).unwrap(), 3);
        assert_eq!(tun.recv(&mut batch, 3).unwrap(), 2);
        assert_eq!(tun.recv(&mut batch, 3).unwrap(), 0);
        assert_eq!((batch.len(), tun.stats().rx_packets), (5, 5));
    });
}

#[test]
fn what_the_kernel_or_the_mtu_refuses_is_counted_and_the_rest_goes_on() {
    testnet::in_namespace(|| {
        let mut tun = addressed().open().unwrap();
        let mut beyond = Flow::v4().data(vec![1; 10], 0, true);
        beyond.checksum = wire::TxChecksum::Partial { start: 4000, offset: 16 };
        let oversize = Flow::v4().data(vec![1; 1461], 0, false);
        let not_ip = TxPacket::new(&[0; 40], Default::default());
        let mut batch = VecDeque::from([beyond, oversize, not_ip, Flow::v4().data(vec![1; 1460], 0, false)]);
        assert_eq!(tun.send(&mut batch).unwrap(), 4);
        assert_eq!((tun.stats().tx_invalid, tun.stats().tx_oversize, tun.stats().tx_packets), (2, 1, 1));
        let (_, reset, _) = segments(&mut tun, Flow::v4()).remove(0);
        assert!(reset.flags.contains(Flags::RST), "nobody listens there");
    });
}

fn tun_error(error: &std::io::Error) -> &TunError {
    error.get_ref().and_then(|source| source.downcast_ref()).expect("a TunError")
}

#[test]
fn a_persistent_interface_stays_and_can_be_attached_again() {
    testnet::in_namespace(|| {
        let first = addressed().persistent(true).open().unwrap();
        let index = first.index();
        let busy = Tun::builder().name("tun0").open().err().expect("in use");
        assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
        assert!(busy.to_string().contains("another process uses tun0"), "{busy}");
        drop(first);
        let other_kind = Tun::builder().name("tun0").multi_queue(true).open().err().expect("not multi-queue");
        assert_eq!((other_kind.kind(), tun_error(&other_kind).raw_os_error()), (ErrorKind::InvalidInput, 22));
        assert!(other_kind.to_string().contains("multi_queue"), "{other_kind}");
        let again = Tun::builder().name("tun0").persistent(false).open().unwrap();
        assert_eq!(again.index(), index);
        drop(again);
        assert!(interface::find("tun0").is_err());
    });
}

#[test]
fn errors_name_the_step() {
    testnet::in_namespace(|| {
        let text = |builder: Builder| builder.open().err().expect("refused").to_string();
        assert!(text(Tun::builder().name("lo")).contains("cannot create or attach lo"));
        assert!(text(Tun::builder().name("a-name-that-is-too-long")).contains("1 to 15 bytes"));
        assert!(text(Tun::builder().mtu(67)).contains("68 to 65535"));
        let bad_prefix = text(Tun::builder().address(addr("10.0.0.1"), 33));
        assert!(
            bad_prefix.contains("cannot give an address to tun0") && bad_prefix.contains("0 to 32"),
            "{bad_prefix}"
        );
        testnet::sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        let no_ipv6 = text(Tun::builder().address(addr("fd00::1"), 64));
        assert!(no_ipv6.contains("disable_ipv6"), "{no_ipv6}");
    });
}

#[test]
fn several_queues_of_one_interface() {
    testnet::in_namespace(|| {
        let mut first = addressed().multi_queue(true).open().unwrap();
        let mut peer = Conversation::accept(&mut first, Flow::v4());
        let mut second = first.queue().unwrap();
        // The kernel records the queue of a flow after it has processed a packet: replies use it
        // from the next packet on.
        peer.deliver(&mut second, &pattern(20_000), 1460, true);
        peer.deliver(&mut second, &pattern(20_000), 1460, true);
        while !segments(&mut second, peer.flow).iter().any(|(_, tcp, _)| tcp.ack == SeqNum(40_001)) {}
        assert!(
            Tun::builder().name("tun1").open().unwrap().queue().is_err(),
            "a single-queue interface has one"
        );
    });
}

#[test]
fn an_interface_that_is_down_or_deleted_says_so() {
    testnet::in_namespace(|| {
        let mut tun = addressed().open().unwrap();
        let mut batch = VecDeque::from([Flow::v4().data(vec![1], 0, false)]);
        interface::set_down(tun.index()).unwrap();
        let down = tun.send(&mut batch).unwrap_err().to_string();
        assert!(down.contains("the interface is down: ip link set tun0 up"), "{down}");
        assert_eq!(batch.len(), 1, "it was not taken");
        interface::delete(tun.index()).unwrap();
        let gone = tun.send(&mut batch).unwrap_err().to_string();
        assert!(gone.contains("the interface was deleted"), "{gone}");
        let gone = tun.recv(&mut RxBatch::default(), 1).unwrap_err().to_string();
        assert!(gone.contains("the interface was deleted"), "{gone}");
    });
}

/// Without offload, a burst is segmented here: the segments after an error go back to the stack.
#[test]
fn a_burst_that_fails_is_not_lost() {
    testnet::in_namespace(|| {
        let mut tun = addressed().offload(false).open().unwrap();
        interface::set_down(tun.index()).unwrap();
        let mut batch = VecDeque::from([Flow::v4().data(vec![7; 3000], 1400, true)]);
        assert!(tun.send(&mut batch).unwrap_err().to_string().contains("the interface is down"));
        let left: Vec<usize> = batch.iter().map(|packet| parse(&packet.to_bytes()).2.len()).collect();
        assert_eq!(left, [1400, 1400, 200]);
    });
}

#[test]
fn what_could_not_be_set_up_does_not_stay() {
    testnet::in_namespace(|| {
        let error = addressed().mtu(20).persistent(true).open().err().expect("no such MTU");
        assert!(error.to_string().contains("cannot set the MTU of tun0"), "{error}");
        assert_eq!(interface::find("tun0").unwrap_err().raw_os_error(), Some(19), "ENODEV");
        drop(addressed().persistent(true).open().unwrap());
        interface::delete(interface::find("tun0").unwrap().index).unwrap();
    });
}
