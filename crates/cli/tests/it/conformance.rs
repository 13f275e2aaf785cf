//! HTTP/1.1 by RFC 9110 and RFC 9112, request by request, each on its own connection.
mod files;

use crate::Server;
use crate::hostile::connect;
use files::FILES;
use std::io::{Read, Write};
use std::net::Shutdown;

/// A request, byte for byte, and the answers that the section allows.
struct Case {
    section: &'static str,
    request: &'static str,
    /// Allowed statuses of all replies in order, one row per allowed result. An empty row: closed
    /// without a reply.
    allowed: &'static [&'static [u16]],
    /// Strings that the answers must contain.
    says: &'static [&'static str],
}

const fn case(
    section: &'static str,
    request: &'static str,
    allowed: &'static [&'static [u16]],
    says: &'static [&'static str],
) -> Case {
    Case { section, request, allowed, says }
}

const OK: &[&[u16]] = &[&[200]];
const BAD: &[&[u16]] = &[&[400]];
const TWO: &[&[u16]] = &[&[200, 200]];

/// Lines, versions, targets and fields: the forms of a head.
const HEADS: &[Case] = &[
    case("9112 §2.2 empty lines before a request", "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", OK, &[]),
    case("9112 §2.2 LF alone may end a line", "GET / HTTP/1.1\nHost: x\n\n", &[&[200], &[400]], &[]),
    case("9112 §2.2 CR alone", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", BAD, &[]),
    case("9112 §2.2 space before the first field", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", BAD, &[]),
    case("9112 §2.2 no HTTP at all", "\x16\x03\x01\x02\0\x01\0\x01\u{7f}\x03\x03", BAD, &[]),
    case("9112 §2.3 version in small letters", "GET / http/1.1\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §2.3 two digits", "GET / HTTP/1.10\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §2.3 no digits", "GET / HTTP/x.y\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9110 §2.5 a higher minor", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", &[&[200], &[400], &[505]], &[]),
    case("9110 §15.6.6 a higher major", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", &[&[400], &[505]], &[]),
    case(
        "9110 §15.6.6 HTTP/2 named in a request",
        "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        &[&[400], &[505]],
        &[],
    ),
    case(
        "9113 §3.4 the preface of HTTP/2",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[&[400], &[505]],
        &["HTTP/1.1 505 HTTP Version Not Supported\r\n", "connection: close\r\n"],
    ),
    case("9112 §3 HTTP/0.9", "GET /\r\n", &[&[400], &[505]], &[]),
    case("9112 §3 two spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §3 a space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §3 a space at the end", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §3 no target", "GET HTTP/1.1\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §3.1 a method that is no token", "G@T / HTTP/1.1\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9110 §9.1 methods have case", "get / HTTP/1.1\r\nHost: x\r\n\r\n", &[&[501], &[405]], &[]),
    case("9110 §9.1 an unknown method", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", &[&[501]], &[]),
    case("9112 §3.2 no Host", "GET / HTTP/1.1\r\n\r\n", BAD, &[]),
    case("9112 §3.2 two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", BAD, &[]),
    case("9112 §3.2 a Host that is none", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", BAD, &[]),
    case("9112 §3.2 a Host with a path", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", BAD, &[]),
    case("9112 §3.2 a Host with a user", "GET / HTTP/1.1\r\nHost: u@x\r\n\r\n", BAD, &[]),
    case("9112 §3.2 two Hosts in one", "GET / HTTP/1.1\r\nHost: x, y\r\n\r\n", BAD, &[]),
    case("9112 §3.2 an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", &[&[200], &[400]], &[]),
    case("9112 §3.2 an IPv6 Host with a port", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", OK, &[]),
    case("9112 §3.2 HTTP/1.0 needs no Host", "GET / HTTP/1.0\r\n\r\n", OK, &[]),
    case("9112 §3.2.1 origin-form", "GET /where?q=now HTTP/1.1\r\nHost: x\r\n\r\n", OK, &[]),
    case("9112 §3.2.2 absolute-form", "GET http://x/where HTTP/1.1\r\nHost: x\r\n\r\n", OK, &[]),
    case("9112 §3.2.2 Host is ignored then", "GET http://x/ HTTP/1.1\r\nHost: y\r\n\r\n", OK, &[]),
    case("9112 §3.2.2 an empty path", "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", OK, &[]),
    case("9112 §3.2.3 authority-form of GET", "GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", &[&[400], &[301]], &[]),
    case("9112 §3.2.3 CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", &[&[405], &[501], &[400]], &[]),
    case(
        "9112 §3.2.4 OPTIONS *",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[200], &[204]],
        &["allow: GET, HEAD"],
    ),
    case("9112 §3.2.4 GET *", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", &[&[400], &[404]], &[]),
    case("9112 §5 an empty name", "GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", BAD, &[]),
    case("9112 §5 no colon", "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n", BAD, &[]),
    case("9112 §5.1 space before the colon", "GET / HTTP/1.1\r\nHost: x\r\nA : y\r\n\r\n", BAD, &[]),
    case("9112 §5.1 no space behind it", "GET / HTTP/1.1\r\nHost:x\r\nA:\t y \t\r\n\r\n", OK, &[]),
    case("9112 §5.2 obs-fold", "GET / HTTP/1.1\r\nHost: x\r\nA: y\r\n z\r\n\r\n", BAD, &[]),
    case("9110 §5.5 NUL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: y\0z\r\n\r\n", BAD, &[]),
    case("9110 §5.5 obs-text in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: é\r\n\r\n", OK, &[]),
    case("9110 §5.6.2 a name that is no token", "GET / HTTP/1.1\r\nHost: x\r\nA(b): y\r\n\r\n", BAD, &[]),
];

/// The length of a request: two hops must not interpret it differently.
const BODIES: &[Case] = &[
    case(
        "9112 §6.2 a length",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        TWO,
        &["POST: 3 bytes"],
    ),
    case(
        "9112 §6.2 zeros before a length",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 003\r\n\r\nabc",
        &[&[200], &[400]],
        &[],
    ),
    case(
        "9112 §6.3 one length twice",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc",
        &[&[200], &[400]],
        &[],
    ),
    case(
        "9112 §6.3 two lengths",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 3\r\n\r\nabc",
        BAD,
        &[],
    ),
    case(
        "9112 §6.3 two lengths in one",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 3\r\n\r\nabc",
        BAD,
        &[],
    ),
    case("9110 §8.6 a sign", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", BAD, &[]),
    case(
        "9110 §8.6 a negative length",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\nabc",
        BAD,
        &[],
    ),
    case("9110 §8.6 hexadecimal", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc", BAD, &[]),
    case("9110 §8.6 an empty length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nabc", BAD, &[]),
    case(
        "9110 §8.6 more than 64 bits",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        &[&[400], &[413]],
        &[],
    ),
    case(
        "9112 §8 a body that is too short",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc",
        &[&[400], &[]],
        &[],
    ),
    case(
        "9112 §6.1 both lengths",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        // Either it is refused, or the chunks count and the connection is closed.
        &[&[400], &[200]],
        &[],
    ),
    case(
        "9112 §6.1 both lengths, the other way round",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[400], &[200]],
        &[],
    ),
    case(
        "9112 §6.1 a coding that nobody knows",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n",
        &[&[501], &[400]],
        &[],
    ),
    case(
        "9112 §6.3 chunked is not the last coding",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §6.1 chunked twice",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        &[&[400], &[501]],
        &[],
    ),
    case(
        "9112 §6.1 a coding that looks like chunked",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        &[&[400], &[501]],
        &[],
    ),
    case(
        "9112 §6.1 chunks in HTTP/1.0",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        // Either it is refused, or it is served and the connection is closed.
        &[&[400], &[200]],
        &[],
    ),
    case(
        "9112 §7.1 chunks, in either case, and an extension",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\nA;n=\"v\"\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        TWO,
        &["POST: 20 bytes"],
    ),
    case(
        "9112 §7.1.2 trailers",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        TWO,
        &["POST: 1 bytes"],
    ),
    case(
        "9112 §7.1 a size that is none",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\ng\r\nabc\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 a negative size",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 a sign",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 0x",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 a size of 72 bits",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 no end of line behind the data",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 LF alone behind the data",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1.1 CR alone in an extension",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n",
        BAD,
        &[],
    ),
    case(
        "9112 §7.1 chunks that end early",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        &[&[400], &[]],
        &[],
    ),
    case(
        "9112 §5.1 a smuggled coding",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 3\r\n\r\nabc",
        BAD,
        &[],
    ),
    case(
        "9112 §6.1 a folded coding",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 3\r\n\r\nabc",
        BAD,
        &[],
    ),
    case(
        "9112 §6.1 a coding with a control",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: 3\r\n\r\nabc",
        BAD,
        &[],
    ),
    case(
        "9110 §10.1.1 Expect: 100-continue",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
        &[&[100, 200], &[200]],
        &["POST: 3 bytes"],
    ),
    case(
        "9110 §10.1.1 Expect is ignored in HTTP/1.0",
        "POST / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
        OK,
        &["POST: 3 bytes"],
    ),
    case(
        "9110 §10.1.1 no 100 before a refusal",
        "DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        &[&[405]],
        &[],
    ),
    case(
        "9110 §10.1.1 an expectation that nobody knows",
        "GET / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n",
        &[&[417], &[200]],
        &[],
    ),
];

/// Connections: how many requests they carry.
const CONNECTIONS: &[Case] = &[
    case(
        "9112 §9.3 HTTP/1.1 persists",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        TWO,
        &[],
    ),
    case(
        "9112 §9.3 until it is closed",
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        OK,
        &["connection: close\r\n"],
    ),
    case(
        "9110 §7.6.1 close among other options, in any case",
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: x, Close\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        OK,
        &["connection: close\r\n"],
    ),
    case("9112 §9.3 HTTP/1.0 does not persist", "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", OK, &[]),
    case(
        "9112 §C.2.2 HTTP/1.0 persists by agreement",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
        TWO,
        &["connection: keep-alive\r\n"],
    ),
    case(
        "9112 §9.3.2 pipelined requests are answered in order",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\naPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nabHEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[200, 200, 200, 200]],
        &["POST: 1 bytes", "POST: 2 bytes", "Hello"],
    ),
    case(
        "9112 §9.3.2 nothing behind a bad request is answered",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /\0 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[200, 400]],
        &[],
    ),
    case(
        "9110 §9.3.1 GET with a body",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[200, 200], &[200], &[400]],
        &[],
    ),
    case("9110 §9.3.2 HEAD", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", OK, &["content-length: "]),
    case(
        "9110 §9.3.7 OPTIONS",
        "OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[200], &[204]],
        &["allow: GET, HEAD, POST, PUT, OPTIONS\r\n"],
    ),
    case("9110 §9.3.8 TRACE", "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", &[&[405], &[501]], &[]),
    case(
        "9110 §15.5.6 405 names what is allowed",
        "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&[405]],
        &["allow: GET, HEAD, POST, PUT, OPTIONS\r\n"],
    ),
    case("9110 §6.6.1 Date", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", OK, &["date: ", " GMT\r\n"]),
    case(
        "9110 §7.8 an upgrade that is not wanted",
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        OK,
        &[],
    ),
    case(
        "9110 §12.5.3 no coding is preferred",
        "GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br\r\n\r\n",
        OK,
        &["Hello"],
    ),
];

#[test]
fn requests_are_answered_as_the_rfcs_say() {
    testnet::in_namespace(|| {
        let server = Server::start(&["--quiet"]);
        let mut wrong = Vec::new();
        for case in HEADS.iter().chain(BODIES).chain(CONNECTIONS) {
            wrong.extend(case.fault());
        }
        assert_eq!(server.stop().0, Some(0));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn requests_for_files_are_answered_as_the_rfcs_say() {
    testnet::in_namespace(|| {
        let folder = std::env::temp_dir().join(format!("firstbyte-conformance-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("folder")).unwrap();
        let file = folder.join("a.txt");
        std::fs::write(&file, "0123456789").unwrap();
        let changed = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(changed).unwrap();
        let server = Server::start(&["--quiet", "--root", folder.to_str().unwrap()]);
        let wrong: Vec<String> = FILES.iter().filter_map(Case::fault).collect();
        assert_eq!(server.stop().0, Some(0));
        std::fs::remove_dir_all(folder).unwrap();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

impl Case {
    /// Returns the fault of the answers, if there is one.
    fn fault(&self) -> Option<String> {
        let said = exchange(self.request);
        let statuses = statuses(&said);
        let is_allowed = self.allowed.iter().any(|allowed| **allowed == *statuses);
        let lacks: Vec<_> = self.says.iter().filter(|says| !has(&said, says)).collect();
        let is_right = is_allowed && lacks.is_empty();
        (!is_right).then(|| {
            format!("{}: {statuses:?}, allowed {:?}, lacks {lacks:?}: {said:?}", self.section, self.allowed)
        })
    }
}

/// Names of fields have no case.
fn has(said: &str, part: &str) -> bool {
    said.contains(part) || said.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

/// Returns all replies to a client that closes its side after the request.
fn exchange(request: &str) -> String {
    let mut stream = connect();
    // The server may have closed before it has read all of it.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(len @ 1..) = stream.read(&mut piece) {
        said.extend_from_slice(&piece[..len]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// Returns the statuses of all answers. No body in these tests has a line like a status line.
fn statuses(said: &str) -> Vec<u16> {
    let lines = said.split("HTTP/1.").skip(1);
    lines.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect()
}
