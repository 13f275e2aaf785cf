//! Devices, filters and routes of a namespace.
use crate::{apply, assert_healthy, findings, has, ids, shell};
use interop::netns::{Addresses, Host};

/// Two links with addresses.
fn two_links() {
    shell("ip link add v0 type veth peer name v1; ip link add w0 type veth peer name w1");
    shell("ip addr add 10.1.0.1/24 dev v0; ip addr add 10.2.0.1/24 dev w0");
    shell("for link in v0 v1 w0 w1; do ip link set $link up; done");
}

#[test]
fn strict_filters_on_two_links_are_found() {
    testnet::in_namespace(|| {
        two_links();
        assert_healthy(&findings(|| {}));
        testnet::sysctl("net.ipv4.conf.all.rp_filter", "1");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["RX-08", "RX-09"], "strict, and 0 at the devices");
        apply(&found, "RX-08");
        assert!(findings(|| {}).is_empty());
        testnet::sysctl("net.ipv4.conf.all.rp_filter", "1");
        shell("ip rule add from 10.2.0.1 table 7");
        assert!(!has(&findings(|| {}), "RX-08"), "routed by source");
    });
}

#[test]
fn what_a_device_cannot_take_is_told() {
    if testnet::can().is_err() {
        return;
    }
    let (host, device) = Host::new(Addresses::nth(1));
    host.run(|| {
        assert_healthy(&findings(|| {}));
        let found = findings(|| {
            // Of no version of IP.
            assert!(rustix::io::write(&device, &[0x20; 40]).is_err());
        });
        assert_eq!(ids(&found), ["RX-05"]);
        assert!(findings(|| {}).is_empty());
    });
}

#[test]
fn a_queue_set_by_hand_is_told() {
    testnet::in_namespace(|| {
        two_links();
        shell("tc qdisc add dev v0 root tbf rate 20mbit burst 15k limit 15k");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["TX-07"]);
        let rate = doctor::sources::here().queues.iter().find_map(|queue| queue.rate);
        assert_eq!(rate, Some(2_500_000));
        shell("tc qdisc del dev v0 root");
        assert!(findings(|| {}).is_empty());
    });
}

#[test]
fn a_small_mtu_towards_the_world_is_told_until_peers_are() {
    testnet::in_namespace(|| {
        two_links();
        shell("ip route add default via 10.1.0.2 dev v0");
        assert!(findings(|| {}).is_empty());
        shell("ip link set v0 mtu 1400");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["TX-09"]);
        apply(&found, "TX-09");
        assert!(findings(|| {}).is_empty());
    });
}
