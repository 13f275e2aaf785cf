//! Netlink messages: a 16-byte header, a fixed body, attributes aligned to 4 bytes, all in the
//! machine's byte order.
use std::io;
use std::net::IpAddr;

const NLM_F_REQUEST: u16 = 0x1;
const NLMSG_ERROR: u16 = 2;
const HEADER_LEN: usize = 16;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Returns the kernel's number of the address family, and the bytes of the address.
pub(super) fn family(address: &IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (AF_INET6, v6.octets().to_vec()),
    }
}

/// A request under construction.
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn new(kind: u16, flags: u16) -> Message {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        bytes.extend([0; 8]);
        Message { bytes }
    }

    /// Appends a part of the fixed body.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Message {
        self.bytes.extend(bytes);
        self
    }

    /// Appends the body of a link message (`struct ifinfomsg`).
    pub(super) fn link(&mut self, index: u32, flags: u32, change: u32) -> &mut Message {
        self.raw(&[0; 4]).raw(&index.to_ne_bytes()).raw(&flags.to_ne_bytes()).raw(&change.to_ne_bytes())
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Message {
        let len = 4 + value.len() as u16;
        self.raw(&len.to_ne_bytes()).raw(&kind.to_ne_bytes()).raw(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn string(&mut self, kind: u16, value: &str) -> &mut Message {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes
    }
}

/// The kernel's answer.
pub(super) struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    pub(super) fn new(bytes: Vec<u8>) -> Reply {
        Reply { bytes }
    }

    /// Returns the body of a message of this kind, or the error that the kernel sent instead.
    pub(super) fn body(&self, kind: u16) -> io::Result<&[u8]> {
        let (header, body) = self.bytes.split_at_checked(HEADER_LEN).ok_or(io::ErrorKind::InvalidData)?;
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        match u16::from_ne_bytes([header[4], header[5]]) {
            NLMSG_ERROR => Err(error(body)?.unwrap_or_else(|| io::ErrorKind::InvalidData.into())),
            found if found == kind => {
                let len = len.checked_sub(HEADER_LEN).ok_or(io::ErrorKind::InvalidData)?;
                body.get(..len).ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Checks that the request was carried out.
    pub(super) fn acknowledged(&self) -> io::Result<()> {
        let (header, body) = self.bytes.split_at_checked(HEADER_LEN).ok_or(io::ErrorKind::InvalidData)?;
        if u16::from_ne_bytes([header[4], header[5]]) != NLMSG_ERROR {
            return Err(io::ErrorKind::InvalidData.into());
        }
        error(body)?.map_or(Ok(()), Err)
    }
}

/// Returns the error of an NLMSG_ERROR; `None` for an acknowledgment (errno 0).
fn error(body: &[u8]) -> io::Result<Option<io::Error>> {
    let errno =
        body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(io::ErrorKind::InvalidData)?;
    Ok((errno != 0).then(|| io::Error::from_raw_os_error(errno.saturating_neg())))
}

/// Returns the value of the first attribute of this kind.
pub(super) fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while let Some((head, rest)) = attributes.split_first_chunk::<4>() {
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]])).checked_sub(4)?;
        let value = rest.get(..len)?;
        if u16::from_ne_bytes([head[2], head[3]]) == kind {
            return Some(value);
        }
        attributes = rest.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_aligned_and_found() {
        let mut message = Message::new(1, 0);
        message.string(3, "tun0").attribute(4, &1500u32.to_ne_bytes());
        let bytes = message.finish();
        assert_eq!(bytes.len(), 16 + 12 + 8);
        assert_eq!(attribute(&bytes[16..], 4), Some(&1500u32.to_ne_bytes()[..]));
        assert_eq!(attribute(&bytes[16..], 3), Some(&b"tun0\0"[..]));
        assert_eq!(attribute(&bytes[16..], 5), None);
        assert_eq!(attribute(&[3, 0, 0, 0, 9], 5), None, "a length below the header's ends the search");
    }

    #[test]
    fn an_error_reply_is_the_errno() {
        let mut bytes = vec![0; 16];
        bytes[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        bytes.extend((-19i32).to_ne_bytes());
        let reply = Reply::new(bytes.clone());
        assert_eq!(reply.acknowledged().unwrap_err().raw_os_error(), Some(19));
        assert_eq!(reply.body(16).unwrap_err().raw_os_error(), Some(19));
        bytes[16..20].fill(0);
        assert!(Reply::new(bytes).acknowledged().is_ok());
        assert!(Reply::new(vec![0; 3]).acknowledged().is_err());
    }
}
