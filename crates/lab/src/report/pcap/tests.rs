use super::*;
use crate::testing::*;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// (interface, nanoseconds, length, comments) of each packet in a file.
fn packets(file: &[u8]) -> Vec<(u32, u128, usize, Vec<String>)> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let (Block::EnhancedPacket(packet), _) = block.unwrap() {
            let comment = |option: &EnhancedPacketOption<'_>| match option {
                EnhancedPacketOption::Common(CommonOption::Comment(text)) => Some(text.to_string()),
                _ => None,
            };
            let comments = packet.options.iter().filter_map(comment).collect();
            packets.push((packet.interface_id, packet.timestamp.as_nanos(), packet.data.len(), comments));
        }
    }
    packets
}

#[test]
fn recordings_follow_each_other_with_comments() {
    let capture = four_packets();
    let recording =
        |name: &str, host| Recording { name: name.into(), capture: &capture, host, clients: &[CLIENT] };
    let mut file = Vec::new();
    write_pcapng(&mut file, &[recording("at the client", CLIENT), recording("at the server", SERVER)])
        .unwrap();
    let packets = packets(&file);
    let times: Vec<_> =
        packets.iter().map(|(interface, nanos, ..)| (*interface, nanos / 1_000_000)).collect();
    assert_eq!(times, [(0, 0), (0, 40), (0, 40), (0, 80), (1, 1100), (1, 1100), (1, 1140), (1, 1140)]);
    assert_eq!(
        packets[0].3,
        ["SYN carries 27 bytes and a cookie: the request arrives 20.0 ms after connect"]
    );
    assert_eq!(
        packets[1].3,
        [
            "SYN-ACK acknowledges all 27 bytes of the SYN",
            "43 bytes of the reply and the FIN ride on the SYN-ACK",
            "reply of 43 bytes: arrives 40.0 ms after connect",
        ]
    );
    assert_eq!(packets[2].3, [""; 0]);
}

/// Name and description of each interface.
fn interfaces(file: &[u8]) -> Vec<(String, String)> {
    let mut reader = PcapNgReader::new(file).unwrap();
    while reader.next_block().is_some() {}
    let named = |interface: &InterfaceDescriptionBlock<'_>| {
        let (mut name, mut description) = (String::new(), String::new());
        for option in &interface.options {
            match option {
                InterfaceDescriptionOption::IfName(text) => name = text.to_string(),
                InterfaceDescriptionOption::IfDescription(text) => description = text.to_string(),
                _ => {}
            }
        }
        (name, description)
    };
    reader.interfaces().iter().map(named).collect()
}

/// When a packet left one end and when it came to the other: each file has its own end's clock, and both begin at the same moment.
#[test]
fn the_servers_file_has_the_same_packets_at_its_own_time() {
    let capture = four_packets();
    let recording =
        |name: &str| Recording { name: name.into(), capture: &capture, host: CLIENT, clients: &[CLIENT] };
    let runs = [recording("first"), recording("second")];
    let (mut client, mut server) = (Vec::new(), Vec::new());
    write_pcapng(&mut client, &runs).unwrap();
    write_pcapng_of_servers(&mut server, &runs).unwrap();
    let milliseconds =
        |file: &[u8]| -> Vec<u128> { packets(file).iter().map(|(_, nanos, ..)| nanos / 1_000_000).collect() };
    assert_eq!(milliseconds(&client), [0, 40, 40, 80, 1080, 1120, 1120, 1160]);
    assert_eq!(milliseconds(&server), [20, 20, 60, 60, 1100, 1100, 1140, 1140]);
    assert_eq!(packets(&client)[0].3, packets(&server)[0].3, "remarks are on a packet wherever it is seen");
    let named = |name: &str, at: &str| (name.to_owned(), format!("{at}, virtual time"));
    assert_eq!(interfaces(&client)[1], named("second (client)", "at the client"));
    assert_eq!(interfaces(&server)[1], named("second (server)", "at the server"));
}
