//! Programs as the distribution ships them, with the kernel's TCP and with ours.
mod bulk;
mod control;
mod curl_to_ours;
mod firstbyte_command;
mod many;
mod ours_to_nginx;
mod pcap;

use interop::netns::Addresses;
use interop::{Host, OurEnd};
use proto::Config;

/// The kernel as 10.77.0.1 and fd77::1, our stack as 10.77.0.2 and fd77::2 on the kernel's own TUN
/// device, with offloads.
fn kernel_and_ours(config: Config) -> (Host, OurEnd) {
    let (kernel, ours) = (Addresses::nth(1), Addresses::nth(2));
    let (host, tun) = Host::with_tun(kernel, true);
    host.sysctl("net.ipv4.tcp_fastopen", "3");
    (host, OurEnd::new(tun, config, ours, kernel))
}
