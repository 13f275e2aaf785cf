//! Reads the one thing of a ClientHello that rustls does not show: the identities of its tickets.

/// The start of a TLS connection, as far as it was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// More bytes are needed.
    Incomplete,
    /// The identities of the offered tickets, in the client's order (RFC 8446 §4.2.11).
    Whole(Vec<Vec<u8>>),
    /// Not a ClientHello, or a damaged one: rustls reports what is wrong.
    Other,
}

/// Longest ClientHello that is read: four times what clients send with post-quantum key shares.
const MAX: usize = 16_384;

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const PRE_SHARED_KEY: u16 = 41;

/// Reads the identities of the tickets in the first bytes of a connection.
pub(super) fn read(records: &[u8]) -> Hello {
    let message = match message(records) {
        Ok(message) => message,
        Err(hello) => return hello,
    };
    identities(&message).map_or(Hello::Other, Hello::Whole)
}

/// Returns the body of the first handshake message, which may be spread over several records
/// (RFC 8446 §5.1).
fn message(mut records: &[u8]) -> Result<Vec<u8>, Hello> {
    let mut message = Vec::new();
    loop {
        if let [kind, a, b, c, body @ ..] = &message[..] {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if *kind != CLIENT_HELLO || len > MAX {
                return Err(Hello::Other);
            }
            if let Some(body) = body.get(..len) {
                return Ok(body.to_vec());
            }
        }
        let [kind, _, _, a, b, rest @ ..] = records else {
            let is_other = records.first().is_some_and(|&kind| kind != HANDSHAKE_RECORD);
            return Err(if is_other { Hello::Other } else { Hello::Incomplete });
        };
        let len = usize::from(u16::from_be_bytes([*a, *b]));
        if *kind != HANDSHAKE_RECORD || len == 0 {
            return Err(Hello::Other);
        }
        let Some((fragment, rest)) = rest.split_at_checked(len) else { return Err(Hello::Incomplete) };
        message.extend_from_slice(fragment);
        records = rest;
    }
}

/// Returns the identities of the extension `pre_shared_key`; none without it. `None` if the
/// message is damaged.
fn identities(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader(message);
    reader.take(2 + 32)?;
    reader.block(1)?;
    reader.block(2)?;
    reader.block(1)?;
    if reader.0.is_empty() {
        return Some(Vec::new());
    }
    let mut extensions = Reader(reader.block(2)?);
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let body = extensions.block(2)?;
        if kind == usize::from(PRE_SHARED_KEY) {
            return tickets(body);
        }
    }
    Some(Vec::new())
}

fn tickets(extension: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut list = Reader(Reader(extension).block(2)?);
    let mut tickets = Vec::new();
    while !list.0.is_empty() {
        tickets.push(list.block(2)?.to_vec());
        // The obfuscated age.
        list.take(4)?;
    }
    Some(tickets)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// Takes a block with its length before it, in `bytes` bytes.
    fn block(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let len = self.number(bytes)?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A ClientHello with extensions, in records of at most `record` bytes.
    fn hello(extensions: &[(u16, Vec<u8>)], record: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        let list: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, data)| {
                [&kind.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
            })
            .collect();
        body.extend((list.len() as u16).to_be_bytes());
        body.extend(list);
        let len = (body.len() as u32).to_be_bytes();
        let message = [&[CLIENT_HELLO, len[1], len[2], len[3]], &body[..]].concat();
        let records = message.chunks(record).map(|fragment| {
            [&[HANDSHAKE_RECORD, 3, 1][..], &(fragment.len() as u16).to_be_bytes(), fragment].concat()
        });
        records.collect::<Vec<_>>().concat()
    }

    fn pre_shared_key(identities: &[&[u8]]) -> Vec<u8> {
        let list: Vec<u8> = identities
            .iter()
            .flat_map(|identity| [&(identity.len() as u16).to_be_bytes()[..], identity, &[0; 4]].concat())
            .collect();
        [&(list.len() as u16).to_be_bytes()[..], &list, &[0, 3, 2, 1, 1]].concat()
    }

    #[test]
    fn tickets_are_found_in_one_record_and_in_several() {
        let extensions = [(0, vec![1; 20]), (PRE_SHARED_KEY, pre_shared_key(&[b"first", b"second"]))];
        for record in [10_000, 100, 7, 1] {
            let bytes = hello(&extensions, record);
            assert_eq!(read(&bytes), Hello::Whole(vec![b"first".to_vec(), b"second".to_vec()]));
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len]), Hello::Incomplete, "{len} bytes");
            }
        }
    }

    #[test]
    fn what_is_no_client_hello_is_left_to_rustls() {
        assert_eq!(read(&hello(&[], 100)), Hello::Whole(Vec::new()));
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n"), Hello::Other);
        assert_eq!(read(&[HANDSHAKE_RECORD, 3, 1, 0, 0]), Hello::Other);
        assert_eq!(read(&hello(&[(PRE_SHARED_KEY, vec![0, 9])], 100)), Hello::Other);
        let mut endless = vec![HANDSHAKE_RECORD, 3, 1, 0, 4, CLIENT_HELLO, 0xff, 0xff, 0xff];
        assert_eq!(read(&endless), Hello::Other);
        endless[5] = 2;
        assert_eq!(read(&endless), Hello::Other);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes);
            read(&[&[HANDSHAKE_RECORD, 3, 1, 0, 200, CLIENT_HELLO, 0, 0, 196][..], &bytes].concat());
        }
    }
}
