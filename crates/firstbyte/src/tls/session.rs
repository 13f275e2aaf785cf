//! One TLS connection without its transport: bytes go in and out.
use super::handshake::{Finish, Handshake};
use super::outcome::{EarlyBytes, NotSent, Ticket};
use super::sessions::Visit;
use super::shared::Stored;
use bytes::Bytes;
use rustls::{ClientConnection, Connection, HandshakeKind, ProtocolVersion};
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::io::ReadBuf;

/// Data of the peer that rustls has not taken is at most this much: one read of the transport.
pub(super) const READ_MAX: usize = 16_384;

pub(super) struct Session {
    connection: Connection,
    /// A client's first message, until it is sent.
    hello: Vec<u8>,
    /// True if something was written that waits for the end of the handshake.
    holds_text: bool,
    /// True on a server once the connection was handed to the application.
    is_accepted: bool,
    /// Received, but not yet taken by rustls, because its plaintext waits for a reader.
    surplus: Vec<u8>,
    client: Option<Client>,
    stored: Option<Arc<Stored>>,
    handshake: Handshake,
    finish: Finish,
    completed_at: Option<Instant>,
}

/// A client's part.
struct Client {
    visit: Arc<Visit>,
    offers_ticket: bool,
    early: Early,
}

/// The first bytes of a client's stream.
enum Early {
    NotSent(NotSent),
    /// Kept until the server has taken them.
    Sent(Vec<u8>),
    Accepted,
    Refused,
}

impl Session {
    /// Begins a server's part. `stored` are its sessions, if other servers share them.
    pub(super) fn server(connection: rustls::ServerConnection, stored: Option<Arc<Stored>>) -> Session {
        Session { stored, ..Session::new(connection.into(), None) }
    }

    /// Begins a connection to a server. Nothing of it is sent early.
    pub(super) fn client(connection: ClientConnection, visit: Arc<Visit>) -> Session {
        let early = Early::NotSent(NotSent::NotAsked);
        Session::new(connection.into(), Some(Client { visit, offers_ticket: false, early }))
    }

    fn new(connection: Connection, client: Option<Client>) -> Session {
        let (finish, handshake) = Handshake::begin();
        Session {
            connection,
            hello: Vec::new(),
            holds_text: false,
            is_accepted: false,
            surplus: Vec::new(),
            client,
            stored: None,
            handshake,
            finish,
            completed_at: None,
        }
    }

    /// Returns a client's first message. The next [`flight`](Self::flight) begins with it.
    pub(super) fn hello(&mut self) -> io::Result<&[u8]> {
        self.connection.write_tls(&mut self.hello)?;
        Ok(&self.hello)
    }

    /// Notes that the ClientHello offers a ticket.
    pub(super) fn expect_resumption(&mut self) {
        if let Some(client) = &mut self.client {
            client.offers_ticket = true;
        }
    }

    /// Sends `first` as early data, if the ticket and the server's limit allow it.
    pub(super) fn send_early(&mut self, first: Vec<u8>) -> io::Result<()> {
        let (Connection::Client(connection), Some(client)) = (&mut self.connection, &mut self.client) else {
            return Ok(());
        };
        if let Some(mut early) = connection.early_data() {
            early.write_all(&first)?;
            client.early = Early::Sent(first);
            return Ok(());
        }
        self.send_late(&first, NotSent::NoTicket)
    }

    /// Sends `first` after the handshake.
    pub(super) fn send_late(&mut self, first: &[u8], why: NotSent) -> io::Result<()> {
        if let Some(client) = &mut self.client {
            client.early = Early::NotSent(why);
        }
        self.holds_text = !first.is_empty();
        self.connection.writer().write_all(first)
    }

    /// Returns everything to send, as one piece.
    pub(super) fn flight(&mut self) -> io::Result<Bytes> {
        let mut flight = std::mem::take(&mut self.hello);
        while self.connection.wants_write() {
            self.connection.write_tls(&mut flight)?;
        }
        Ok(flight.into())
    }

    /// Ready when nothing that must be stored is among what is to be sent: a client may come back
    /// with a ticket as soon as it has it.
    pub(super) fn poll_stored(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.stored.as_ref().map_or(Poll::Ready(()), |stored| stored.poll_stored(cx))
    }

    pub(super) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Writes records to `transport`: all that are there, in one call.
    pub(super) fn write_to(&mut self, transport: &mut impl Write) -> io::Result<usize> {
        self.connection.write_tls(transport)
    }

    /// Takes bytes that were read before the session began, if there are any.
    pub(super) fn receive_first(&mut self, data: &[u8]) -> io::Result<()> {
        if data.is_empty() { Ok(()) } else { self.receive(data) }
    }

    /// Takes bytes of the transport; none are its end.
    pub(super) fn receive(&mut self, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            self.connection.read_tls(&mut io::empty())?;
            return Ok(());
        }
        self.surplus.extend_from_slice(data);
        self.process()
    }

    /// Decrypts what was received, until the plaintext fills rustls's buffer.
    fn process(&mut self) -> io::Result<()> {
        let mut data = &self.surplus[..];
        while !data.is_empty() {
            if self.connection.read_tls(&mut data)? == 0 {
                // Behind close_notify, data means nothing (RFC 8446 §6.1).
                data = &[];
                break;
            }
            let state = self.connection.process_new_packets().map_err(invalid)?;
            if state.plaintext_bytes_to_read() >= READ_MAX {
                break;
            }
        }
        let taken = self.surplus.len() - data.len();
        self.surplus.drain(..taken);
        if self.surplus.is_empty() {
            self.surplus = Vec::new();
        }
        self.settle()
    }

    /// Acts on the end of the handshake, and keeps new tickets.
    fn settle(&mut self) -> io::Result<()> {
        let alpn = self.connection.alpn_protocol();
        if let Some(client) = &self.client {
            client.visit.keep(alpn);
        }
        if self.connection.is_handshaking() {
            return Ok(());
        }
        self.finish.complete();
        self.holds_text = false;
        self.completed_at.get_or_insert_with(Instant::now);
        self.settle_early()
    }

    /// Sends refused early data again, before everything else.
    fn settle_early(&mut self) -> io::Result<()> {
        let (Connection::Client(connection), Some(client)) = (&mut self.connection, &mut self.client) else {
            return Ok(());
        };
        let Early::Sent(bytes) = &mut client.early else { return Ok(()) };
        if connection.is_early_data_accepted() {
            client.early = Early::Accepted;
            return Ok(());
        }
        let bytes = std::mem::take(bytes);
        client.early = Early::Refused;
        if connection.alpn_protocol() != client.visit.alpn() {
            // The bytes are of another protocol. The next visit knows the new one.
            client.visit.forget();
            return Err(another_protocol());
        }
        connection.writer().write_all(&bytes)
    }

    /// Reads plaintext, early data first. False if there is none yet; true with nothing read is
    /// the end of the stream.
    pub(super) fn read(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<bool> {
        loop {
            let len = self.read_early(buf)?;
            if len > 0 {
                buf.advance(len);
                return Ok(true);
            }
            match self.connection.reader().read(buf.initialize_unfilled()) {
                Ok(len) => {
                    buf.advance(len);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && self.surplus.is_empty() => {
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.process()?,
                Err(error) => return Err(error),
            }
        }
    }

    fn read_early(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<usize> {
        let Connection::Server(connection) = &mut self.connection else { return Ok(0) };
        match connection.early_data() {
            Some(mut early) => early.read(buf.initialize_unfilled()),
            None => Ok(0),
        }
    }

    /// Encrypts as much of `slices` as rustls's buffer takes.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.holds_text |= self.client.is_some() && self.is_handshaking();
        self.connection.writer().write_vectored(slices)
    }

    /// True if a flush must complete the handshake first.
    pub(super) fn holds_text(&self) -> bool {
        self.holds_text
    }

    /// Notes that the application has the connection.
    pub(super) fn accepted(&mut self) {
        self.is_accepted = true;
    }

    pub(super) fn completed_at(&self) -> Option<Instant> {
        self.completed_at
    }

    pub(super) fn close(&mut self) {
        self.connection.send_close_notify();
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// True on a server that has received early data and taken it.
    pub(super) fn takes_early_data(&mut self) -> bool {
        match &mut self.connection {
            Connection::Server(connection) => connection.early_data().is_some(),
            Connection::Client(_) => false,
        }
    }

    /// True while the server may still refuse what was sent early: more cannot be written, because
    /// it would overtake the early data.
    pub(super) fn awaits_verdict(&self) -> bool {
        matches!(&self.client, Some(Client { early: Early::Sent(_), .. }))
    }

    /// True if closing now would lose something: a server's tickets, or a client's next ticket.
    pub(super) fn is_unfinished(&self) -> bool {
        match &self.connection {
            Connection::Client(connection) => {
                connection.protocol_version() == Some(ProtocolVersion::TLSv1_3)
                    && connection.tls13_tickets_received() == 0
            }
            Connection::Server(connection) => self.is_accepted && connection.is_handshaking(),
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn handshake(&self) -> Handshake {
        self.handshake.clone()
    }

    /// Returns the protocol of the last visit, which early data was written for.
    pub(super) fn expected_alpn(&self) -> Option<&[u8]> {
        self.client.as_ref()?.visit.alpn()
    }

    /// A client's outcome: of its ticket, and of its first bytes.
    pub(super) fn outcome(&self) -> (Ticket, EarlyBytes) {
        let Some(client) = &self.client else {
            return (Ticket::None, EarlyBytes::NotSent(NotSent::NotAsked));
        };
        let ticket = match self.connection.handshake_kind() {
            _ if !client.offers_ticket => Ticket::None,
            None => Ticket::Pending,
            Some(HandshakeKind::Resumed) => Ticket::Accepted,
            Some(_) => Ticket::Refused,
        };
        let early = match &client.early {
            Early::NotSent(why) => EarlyBytes::NotSent(*why),
            Early::Sent(_) => EarlyBytes::Pending,
            Early::Accepted => EarlyBytes::Accepted,
            Early::Refused => EarlyBytes::Refused,
        };
        (ticket, early)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("is_client", &self.client.is_some())
            .field("is_handshaking", &self.is_handshaking())
            .finish_non_exhaustive()
    }
}

fn another_protocol() -> io::Error {
    let text = "the server has refused early data and chosen another protocol than at the last visit; \
                connect again";
    io::Error::new(ErrorKind::ConnectionAborted, text)
}

pub(super) fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
