use super::*;
use crate::testing::*;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// Returns (interface, nanoseconds, length, comments) of each packet in a file.
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
    assert_eq!(
        times,
        [(0, 1000), (0, 1040), (0, 1040), (0, 1080), (1, 2100), (1, 2100), (1, 2140), (1, 2140)]
    );
    assert_eq!(
        packets[0].3,
        ["SYN carries 27 bytes and a cookie: the request arrives 20.0 ms after connect"]
    );
    assert_eq!(
        packets[1].3,
        [
            "SYN-ACK acknowledges all 27 bytes of the SYN",
            "SYN-ACK carries 43 bytes of the reply and the FIN",
            "reply of 43 bytes: arrives 40.0 ms after connect",
        ]
    );
    assert_eq!(packets[2].3, [""; 0]);
}

/// Returns name and description of each interface.
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

/// Each file has the clock of its own end, with the same time zero.
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
    assert_eq!(milliseconds(&client), [1000, 1040, 1040, 1080, 2080, 2120, 2120, 2160]);
    assert_eq!(milliseconds(&server), [1020, 1020, 1060, 1060, 2100, 2100, 2140, 2140]);
    assert_eq!(packets(&client)[0].3, packets(&server)[0].3, "remarks are on a packet wherever it is seen");
    let named = |name: &str, at: &str| (name.to_owned(), format!("{at}, virtual time"));
    assert_eq!(interfaces(&client)[1], named("second (client)", "at the client"));
    assert_eq!(interfaces(&server)[1], named("second (server)", "at the server"));
}

/// Runs three clients in each of two runs, which end while data is in flight.
fn three_clients_twice() -> crate::experiment::Outcome {
    let text = "# How?\nchapter = \"Own\"\nlesson = \"So.\"\nfor = \"300ms\"\n[path]\nrtt = \"20ms\"\nrate = \"5mbit\"\n[client]\n\
                clients = 3\nsteps = [\"connect\", \"read 1MB\", \"close\"]\n[server]\nsteps = [\"write 1MB\", \"close\"]\n\
                [[run]]\nname = \"one\"\n[[run]]\nname = \"two\"\n\
                [[expect]]\nwhat = \"cut off\"\nthat = \"done(one) + done(two)\"\nis = 0\n";
    let outcome = crate::experiment::Experiment::parse(text).unwrap().run().unwrap();
    assert!(outcome.holds(), "both runs end early");
    outcome
}

/// An analyzer treats packets between the same ports as one connection, on any interface.
#[test]
fn no_two_runs_have_a_connection_between_the_same_ports() {
    let outcome = three_clients_twice();
    let mut file = Vec::new();
    write_pcapng(&mut file, &crate::report::Report::recordings(&outcome)).unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut seen_on: BTreeMap<[std::net::SocketAddr; 2], BTreeSet<u32>> = BTreeMap::new();
    while let Some(block) = reader.next_block() {
        let (Block::EnhancedPacket(packet), _) = block.unwrap() else { continue };
        let segment = crate::segment::Segment::parse(&packet.data.into_owned().into()).unwrap();
        let mut ends = [segment.src(), segment.dst()];
        ends.sort_unstable();
        seen_on.entry(ends).or_default().insert(packet.interface_id);
    }
    assert_eq!(seen_on.len(), 6, "three clients in two runs");
    assert!(seen_on.values().all(|interfaces| interfaces.len() == 1), "{seen_on:?}");
}

#[test]
fn all_clients_of_a_run_are_in_the_file_with_their_remarks() {
    let outcome = three_clients_twice();
    let mut file = Vec::new();
    write_pcapng(&mut file, &crate::report::Report::recordings(&outcome)).unwrap();
    let names: Vec<String> = interfaces(&file).into_iter().map(|(name, _)| name).collect();
    let of_run = |run| [1, 2, 3].map(|n| format!("{run} (client {n})"));
    assert_eq!(names, [of_run("one"), of_run("two")].concat());
    let packets = packets(&file);
    for interface in 0..6 {
        let has_reply = |comment: &String| comment.starts_with("reply of ");
        let replies =
            packets.iter().filter(|(on, .., comments)| *on == interface && comments.iter().any(has_reply));
        assert_eq!(replies.count(), 1, "{}", names[interface as usize]);
    }
}
