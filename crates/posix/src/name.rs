//! Addresses as Linux writes them for programs.
use core::net::{SocketAddr, SocketAddrV6};

/// Returns the bytes of a `sockaddr_in` or `sockaddr_in6`.
pub(crate) fn name_bytes(name: SocketAddr) -> Vec<u8> {
    match name {
        SocketAddr::V4(v4) => {
            let head = [libc::AF_INET as u16, v4.port().to_be()].map(u16::to_ne_bytes).concat();
            [head.as_slice(), &v4.ip().octets(), &[0; 8]].concat()
        }
        SocketAddr::V6(v6) => v6_bytes(v6),
    }
}

fn v6_bytes(v6: SocketAddrV6) -> Vec<u8> {
    let head = [libc::AF_INET6 as u16, v6.port().to_be()].map(u16::to_ne_bytes).concat();
    [head.as_slice(), &[0; 4], &v6.ip().octets(), &[0; 4]].concat()
}
