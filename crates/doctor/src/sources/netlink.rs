//! A netlink request and its answers.
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use std::io;

/// Asks for everything there is and hands every answer to `each`.
pub(super) fn dump<M>(protocol: isize, request: M, each: impl FnMut(M)) -> io::Result<()>
where
    M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
{
    ask(protocol, NLM_F_DUMP, request, each)
}

/// Asks for one thing.
pub(super) fn get<M>(protocol: isize, request: M) -> io::Result<Option<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
{
    let mut found = None;
    ask(protocol, NLM_F_ACK, request, |answer| found = Some(answer))?;
    Ok(found)
}

fn ask<M>(protocol: isize, flags: u16, request: M, mut each: impl FnMut(M)) -> io::Result<()>
where
    M: NetlinkSerializable + NetlinkDeserializable + Into<NetlinkPayload<M>>,
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
    let mut buffer = Vec::with_capacity(BUFFER);
    loop {
        buffer.clear();
        socket.recv(&mut buffer, 0)?;
        if take(&buffer, &mut each)? {
            return Ok(());
        }
    }
}

/// The messages of one datagram. Was it the last?
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

/// The kernel fills at most 32 KiB at once (NLMSG_GOODSIZE and what a dump may grow to).
const BUFFER: usize = 1 << 16;
