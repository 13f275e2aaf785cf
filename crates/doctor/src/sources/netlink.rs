//! Sends a netlink request and receives its answers.
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use std::io;

/// Requests a dump, and passes every answer to `each`.
pub(super) fn dump<M, A>(protocol: isize, request: M, each: impl FnMut(A)) -> io::Result<()>
where
    M: NetlinkSerializable + Into<NetlinkPayload<M>>,
    A: NetlinkDeserializable,
{
    ask(protocol, NLM_F_DUMP, request, each)
}

/// Requests one object.
pub(super) fn get<M>(protocol: isize, request: M) -> io::Result<Option<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
{
    let mut found = None;
    ask(protocol, NLM_F_ACK, request, |answer| found = Some(answer))?;
    Ok(found)
}

fn ask<M, A>(protocol: isize, flags: u16, request: M, mut each: impl FnMut(A)) -> io::Result<()>
where
    M: NetlinkSerializable + Into<NetlinkPayload<M>>,
    A: NetlinkDeserializable,
{
    let socket = asked(protocol, flags, request)?;
    let mut buffer = Vec::with_capacity(BUFFER);
    loop {
        buffer.clear();
        socket.recv(&mut buffer, 0)?;
        if take(&buffer, &mut each)? {
            return Ok(());
        }
    }
}

/// Sends a request, and returns the socket that receives the answers.
fn asked<M>(protocol: isize, flags: u16, request: M) -> io::Result<Socket>
where
    M: NetlinkSerializable + Into<NetlinkPayload<M>>,
{
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, request.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(socket)
}

/// Parses the messages of one datagram. Returns whether it was the last.
fn take<M: NetlinkDeserializable>(mut bytes: &[u8], each: &mut impl FnMut(M)) -> io::Result<bool> {
    while !bytes.is_empty() {
        let message = NetlinkMessage::<M>::deserialize(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let length = (message.header.length as usize).next_multiple_of(4);
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::Error(_) => return Ok(true),
            NetlinkPayload::InnerMessage(inner) => each(inner),
            _ => {}
        }
        bytes = bytes.get(length.max(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Size of the receive buffer. The kernel sends at most 32 KiB at once (NLMSG_GOODSIZE and the
/// growth of a dump).
const BUFFER: usize = 1 << 16;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Mutations of each answer in an ordinary run. FIRSTBYTE_MUTATIONS sets another number.
    const MUTATIONS: usize = 4000;

    /// Mutates the kernel's answer to `request`: each copy is changed in a few places, cut or
    /// extended. Passes what can be parsed to `each`. Nothing must panic.
    pub(in super::super) fn mutated<M, A>(protocol: isize, request: M, mut each: impl FnMut(A))
    where
        M: NetlinkSerializable + Into<NetlinkPayload<M>>,
        A: NetlinkDeserializable,
    {
        let socket = asked(protocol, NLM_F_DUMP, request).expect("netlink");
        let mut buffer = Vec::with_capacity(BUFFER);
        socket.recv(&mut buffer, 0).expect("an answer");
        let mut read = 0;
        take(&buffer, &mut |_: A| read += 1).expect("the kernel's own");
        assert!(read > 0, "the kernel sent no answer");
        // Fewer messages make the test faster.
        buffer.truncate(2000);
        let wanted = std::env::var("FIRSTBYTE_MUTATIONS").ok().and_then(|number| number.parse().ok());
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut refused = 0;
        for _ in 0..wanted.unwrap_or(MUTATIONS) {
            let mut bytes = buffer.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = match random.below(3) {
                    0 => bytes[at] ^ 1 << random.below(8),
                    1 => 0xff * u8::try_from(random.below(2)).expect("a bit"),
                    _ => u8::try_from(random.below(256)).expect("a byte"),
                };
            }
            if random.below(4) == 0 {
                bytes.truncate(random.below(bytes.len()));
            }
            refused += usize::from(take(&bytes, &mut each).is_err());
        }
        assert!(refused > 0, "no mutation was rejected");
    }

    /// xorshift64 (Marsaglia 2003).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            for (shift, left) in [(13, true), (7, false), (17, true)] {
                self.0 ^= if left { self.0 << shift } else { self.0 >> shift };
            }
            usize::try_from(self.0 % end.max(1) as u64).expect("below a usize")
        }
    }
}
