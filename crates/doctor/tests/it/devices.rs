//! Devices, filters and routes of a namespace.
use crate::bed::{bed, once_found, once_gone};
use crate::shown::Show;
use crate::{assert_healthy, everything, findings, has, ids, of, shell};
use doctor::{Limits, sources};
use interop::netns::{Addresses, Host};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Creates two links with addresses.
fn two_links() {
    // Without IPv6 the kernel sends nothing by itself.
    testnet::sysctl("net.ipv6.conf.default.disable_ipv6", "1");
    shell("ip link add v0 type veth peer name v1; ip link add w0 type veth peer name w1");
    shell("ip addr add 10.1.0.1/24 dev v0; ip addr add 10.2.0.1/24 dev w0");
    shell("for link in v0 v1 w0 w1; do ip link set $link up; done");
}

pub(crate) fn strict_filters_on_two_links_are_found(show: &Show) {
    testnet::in_namespace(|| {
        two_links();
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["RX-08", "RX-09"], &found);
        testnet::sysctl("net.ipv4.conf.all.rp_filter", "1");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["RX-08", "RX-09"], "strict, and 0 at the devices");
        show.fires(&["RX-08", "RX-09"], &found);
        let each = |value| {
            for device in ["v0", "v1", "w0", "w1"] {
                testnet::sysctl(&format!("net.ipv4.conf.{device}.rp_filter"), value);
            }
        };
        each("1");
        show.by_hand(&["RX-09"]);
        show.gone(&["RX-09"], &findings(|| {}));
        each("0");
        show.run(&["RX-08"]);
        let found = findings(|| {});
        assert_eq!(found, []);
        show.gone(&["RX-08"], &found);
        testnet::sysctl("net.ipv4.conf.all.rp_filter", "1");
        shell("ip rule add from 10.2.0.1 table 7");
        assert!(!has(&findings(|| {}), "RX-08"), "routed by source");
    });
}

pub(crate) fn what_a_device_cannot_take_is_told(show: &Show) {
    if testnet::can().is_err() {
        return;
    }
    let (host, device) = Host::new(Addresses::nth(1));
    host.run(|| {
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["RX-05"], &found);
        let found = findings(|| {
            // Neither IPv4 nor IPv6.
            assert!(rustix::io::write(&device, &[0x20; 40]).is_err());
        });
        assert_eq!(ids(&found), ["RX-05"]);
        show.fires(&["RX-05"], &found);
        // The sender has stopped.
        show.by_hand(&["RX-05"]);
        let found = findings(|| {
            rustix::io::write(&device, &datagram()).unwrap();
        });
        assert_eq!(found, []);
        show.gone(&["RX-05"], &found);
    });
}

pub(crate) fn a_queue_set_by_hand_is_told(show: &Show) {
    testnet::in_namespace(|| {
        two_links();
        show.silent(&["TX-07"], &findings(|| {}));
        shell("tc qdisc add dev v0 root tbf rate 20mbit burst 15k limit 15k");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["TX-07"]);
        show.fires(&["TX-07"], &found);
        let rate = sources::here().queues.iter().find_map(|queue| queue.rate);
        assert_eq!(rate, Some(2_500_000));
        // As after a boot, before anything sets it again.
        shell("tc qdisc del dev v0 root");
        show.by_hand(&["TX-07"]);
        show.gone(&["TX-07"], &findings(|| {}));
    });
}

pub(crate) fn a_small_mtu_towards_the_world_is_told_until_peers_are(show: &Show) {
    testnet::in_namespace(|| {
        two_links();
        shell("ip route add default via 10.1.0.2 dev v0");
        show.silent(&["TX-09"], &findings(|| {}));
        shell("ip link set v0 mtu 1400");
        let found = findings(|| {});
        assert_eq!(ids(&found), ["TX-09"]);
        show.fires(&["TX-09"], &found);
        show.run(&["TX-09"]);
        let found = findings(|| {});
        assert_eq!(found, []);
        show.gone(&["TX-09"], &found);
    });
}

/// `ip route change` drops attributes that it does not name.
#[test]
fn fixes_of_a_route_leave_all_else_as_it_is_and_can_be_taken_back() {
    let hop = "via 10.1.0.2 dev v0";
    let routes = [
        format!(
            "default {hop} proto static src 10.1.0.1 metric 7 onlink mtu lock 1400 initcwnd 5 rto_min 30ms quickack 1 hoplimit 12 congctl reno"
        ),
        format!(
            "default proto 186 metric 7 mtu 1400 initcwnd 5 nexthop {hop} weight 1 nexthop via 10.2.0.2 dev w0 weight 2"
        ),
        "default dev v0 scope link initcwnd 5 mtu 1400 features ecn rtt 40ms rttvar 8ms".to_owned(),
    ];
    for route in routes {
        testnet::in_namespace(|| {
            two_links();
            shell(&format!("ip route add {route}"));
            let shown = || {
                let output = testnet::command("ip").args(["route", "show", "default"]).output().unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                text.split_whitespace().map(|word| format!("{word} ")).collect::<String>()
            };
            let before = shown();
            let found = findings(|| {});
            let changes = [("TX-09", "advmss 1360 "), ("CC-05", "initcwnd 5 ")];
            let found =
                changes.into_iter().filter_map(|(rule, change)| Some((*of(&found, rule).first()?, change)));
            let found: Vec<_> = found.collect();
            // With several next hops the route has no device of its own.
            assert_eq!(found.len(), if route.contains("nexthop") { 1 } else { 2 });
            let changes: Vec<&str> = found.iter().map(|(_, change)| *change).collect();
            for (finding, _) in &found {
                let place = if route.contains("nexthop") { "peer default" } else { "device v0" };
                assert_eq!(finding.scope.to_string(), place);
                let step = &finding.fix.steps[0];
                shell(&step.command);
                let after = shown();
                assert_ne!(after, before, "{}", step.command);
                // The requested change, and nothing else.
                let without = |text: &str| {
                    changes.iter().fold(text.to_owned(), |text, change| text.replace(change, ""))
                };
                assert_eq!(without(&after), without(&before), "{}", step.command);
                shell(step.undo.as_ref().unwrap());
                assert_eq!(shown(), before, "{:?}", step.undo);
            }
        });
    }
}

pub(crate) fn packets_that_the_filter_drops_are_found(show: &Show) {
    let Some(bed) = bed(Duration::from_millis(2)) else { return };
    let address = bed.address(80);
    let _listener = bed.server.host.run(|| TcpListener::bind(address).unwrap());
    let connect = || bed.client.host.run(|| TcpStream::connect_timeout(&address, Duration::from_millis(100)));
    show.silent(&["RX-07"], &bed.at_server(|| drop(connect().unwrap())));
    // The return path to the client uses another link.
    bed.server.host.run(|| {
        shell("ip link add v0 type veth peer name v1; ip addr add 10.9.0.1/24 dev v0");
        shell("ip link set v0 up; ip link set v1 up; ip route add 10.77.0.1/32 dev v0");
        testnet::sysctl("net.ipv4.conf.all.rp_filter", "1");
    });
    show.fires(&["RX-07"], &bed.at_server(|| drop(connect().unwrap_err())));
    bed.server.host.run(|| show.run(&["RX-07"]));
    show.gone(&["RX-07"], &bed.at_server(|| drop(connect())));
}

pub(crate) fn a_deep_fifo_is_told_of_a_link_too_slow_for_it(show: &Show) {
    testnet::in_namespace(|| {
        two_links();
        // A veth reports 10 Gbit/s. At that rate a thousand packets take 1.2 ms.
        shell("tc qdisc add dev v0 root pfifo limit 1000");
        show.silent(&["TX-03"], &findings(|| {}));
        shell("tc qdisc replace dev v0 root pfifo limit 100000");
        show.fires(&["TX-03"], &findings(|| {}));
        show.run_or(&["TX-03"], || shell("tc qdisc replace dev v0 root pfifo limit 1000"));
        show.gone(&["TX-03"], &findings(|| {}));
        shell("tc qdisc replace dev v0 root bfifo limit 200000000");
        assert!(has(&findings(|| {}), "TX-03"), "160 ms");
    });
}

pub(crate) fn offloads_that_were_switched_off_are_told(show: &Show) {
    if !testnet::has_program("ethtool") {
        return show.skip("needs ethtool");
    }
    testnet::in_namespace(|| {
        two_links();
        let found = findings(|| {});
        assert_healthy(&found);
        show.silent(&["RX-10"], &found);
        shell("ethtool -K v0 tx-generic-segmentation off");
        let found = findings(|| {});
        assert_eq!(found[0].fix.steps[0].command, "ethtool -K v0 tx-generic-segmentation on");
        show.fires(&["RX-10"], &found);
        show.run(&["RX-10"]);
        show.gone(&["RX-10"], &findings(|| {}));
    });
}

pub(crate) fn a_backlog_that_overflows_is_found(show: &Show) {
    let allowed = sched_getaffinity(None).unwrap();
    // A mask of more CPUs would need commas.
    let cpus: Vec<usize> = (0..32).filter(|cpu| allowed.is_set(*cpu)).take(2).collect();
    let [sends, receives] = cpus[..] else { return show.skip("needs two CPUs") };
    let (host, device) = Host::new(Addresses::nth(1));
    host.run(|| {
        // Two thousand rules that every packet must pass slow the receiving CPU down.
        let rules: String =
            (1..=2000).map(|n| format!("rule add from 10.8.0.0/16 table 7 pref {n}\n")).collect();
        let file = std::env::temp_dir().join(format!("doctor-rules-{}", std::process::id()));
        std::fs::write(&file, rules).unwrap();
        shell(&format!("ip -batch {}", file.display()));
        std::fs::remove_file(&file).unwrap();
        // This CPU sends, the other one receives.
        let mut here = CpuSet::new();
        here.set(sends);
        sched_setaffinity(None, &here).unwrap();
        let steer = |cpus: u32| {
            let script = format!(
                "mount -t sysfs sysfs /sys && echo {cpus:x} > /sys/class/net/tun0/queues/rx-0/rps_cpus"
            );
            let output = testnet::command("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        // The counter covers the whole machine. In some windows no other program drops packets.
        let send = |packets| {
            let before = sources::here();
            for _ in 0..packets {
                rustix::io::write(&device, &datagram()).unwrap();
            }
            everything(&before, &sources::here(), Limits::USUAL)
        };
        steer(1 << receives);
        show.silent(&["RX-01"], &once_gone(&["RX-01"], || send(100)));
        show.fires(&["RX-01"], &once_found("RX-01", || send(5000)));
        steer(0);
        show.by_hand(&["RX-01"]);
        show.gone(&["RX-01"], &once_gone(&["RX-01"], || send(5000)));
    });
}

/// Returns a datagram for a port of 10.77.0.1 without a listener.
fn datagram() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1];
    packet.extend([0x10, 0, 0x20, 0, 0, 8, 0, 0]);
    crate::half_open::checksum(&mut packet);
    packet
}
