//! A TCP segment in tcpdump's words.
use super::{Depth, Part};
use crate::tcp::raw_options::{FAST_OPEN_EXID, RawOption, RawOptions, kind};
use crate::{AccurateEcnOption, AccurateEcnOrder, Ecn, Flags, TCP_HEADER_LEN};
use core::fmt;

pub(super) fn segment(f: &mut fmt::Formatter<'_>, part: &Part<'_>) -> fmt::Result {
    let Some(&[s0, s1, d0, d1, q0, q1, q2, q3]) = part.data.first_chunk() else {
        return write!(f, "{} > {}: tcp [truncated: {} bytes]", part.ip.src, part.ip.dst, part.data.len());
    };
    let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    write!(f, "{}.{src_port} > {}.{dst_port}: ", part.ip.src, part.ip.dst)?;
    let seq = u32::from_be_bytes([q0, q1, q2, q3]);
    match part.data.first_chunk() {
        Some(fixed) => header(f, part, fixed, seq),
        None if part.depth == Depth::Quoted => write!(f, "tcp, seq {seq}"),
        None => write!(f, "tcp, seq {seq} [truncated: {} of {TCP_HEADER_LEN} bytes]", part.data.len()),
    }
}

fn header(
    f: &mut fmt::Formatter<'_>,
    part: &Part<'_>,
    fixed: &[u8; TCP_HEADER_LEN],
    seq: u32,
) -> fmt::Result {
    let [_, _, _, _, _, _, _, _, a0, a1, a2, a3, offset_flags, low_flags, w0, w1, _, _, u0, u1] = *fixed;
    let flags = Flags::from_bits_truncate(u16::from_be_bytes([offset_flags, low_flags]));
    let header_len = usize::from(offset_flags >> 4) * 4;
    let payload_len = part.declared_len.saturating_sub(header_len);
    f.write_str("Flags [")?;
    flag_letters(f, flags)?;
    f.write_str("]")?;
    if header_len < TCP_HEADER_LEN || header_len > part.declared_len {
        return write!(f, " [bad hdr length {header_len}]");
    }
    if payload_len > 0 || flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) {
        write!(f, ", seq {seq}")?;
        if payload_len > 0 {
            write!(f, ":{}", seq.wrapping_add(payload_len as u32))?;
        }
    }
    if flags.contains(Flags::ACK) {
        write!(f, ", ack {}", u32::from_be_bytes([a0, a1, a2, a3]))?;
    }
    write!(f, ", win {}", u16::from_be_bytes([w0, w1]))?;
    if flags.contains(Flags::URG) {
        write!(f, ", urg {}", u16::from_be_bytes([u0, u1]))?;
    }
    let options_end = header_len.min(part.data.len());
    options(f, &part.data[TCP_HEADER_LEN..options_end])?;
    write!(f, ", length {payload_len}")
}

const FLAG_LETTERS: [(Flags, &str); 9] = [
    (Flags::FIN, "F"),
    (Flags::SYN, "S"),
    (Flags::RST, "R"),
    (Flags::PSH, "P"),
    (Flags::ACK, "."),
    (Flags::URG, "U"),
    (Flags::ECE, "E"),
    (Flags::CWR, "W"),
    (Flags::AE, "e"),
];

fn flag_letters(f: &mut fmt::Formatter<'_>, flags: Flags) -> fmt::Result {
    if flags.is_empty() {
        return f.write_str("none");
    }
    FLAG_LETTERS
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .try_for_each(|(_, letter)| f.write_str(letter))
}

fn options(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    if bytes.is_empty() {
        return Ok(());
    }
    f.write_str(", options [")?;
    for (index, option) in RawOptions::new(bytes).enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        match option {
            RawOption::End => f.write_str("eol"),
            RawOption::Nop => f.write_str("nop"),
            RawOption::Body(kind, body) => known_option(f, kind, body),
            RawOption::Broken(kind) => write!(f, "[bad opt {kind}]"),
        }?;
    }
    f.write_str("]")
}

fn known_option(f: &mut fmt::Formatter<'_>, kind: u8, body: &[u8]) -> fmt::Result {
    match (kind, body) {
        (kind::MSS, &[high, low]) => write!(f, "mss {}", u16::from_be_bytes([high, low])),
        (kind::WINDOW_SCALE, [shift]) => write!(f, "wscale {shift}"),
        (kind::SACK_PERMITTED, []) => f.write_str("sackOK"),
        (kind::SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => sack(f, blocks),
        (kind::TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
            let tsval = u32::from_be_bytes([v0, v1, v2, v3]);
            write!(f, "TS val {tsval} ecr {}", u32::from_be_bytes([e0, e1, e2, e3]))
        }
        (kind::MD5, digest) => write!(f, "md5 {}", Hex(digest)),
        (kind::AO, [key_id, next_key_id, mac @ ..]) => {
            write!(f, "tcp-ao keyid {key_id} rnextkeyid {next_key_id} mac 0x{}", Hex(mac))
        }
        (kind::FAST_OPEN, cookie) => {
            f.write_str("tfo  ")?;
            fast_open(f, cookie)
        }
        (kind::ACCURATE_ECN_0 | kind::ACCURATE_ECN_1, counters) => accurate_ecn(f, kind, counters),
        (kind::EXPERIMENT, [e0, e1, cookie @ ..]) if [*e0, *e1] == FAST_OPEN_EXID => {
            f.write_str("exp-tfo ")?;
            fast_open(f, cookie)
        }
        (kind::EXPERIMENT, [e0, e1, ..]) => write!(f, "exp-{e0:02x}{e1:02x}"),
        (kind::MSS, body) => bad_length(f, "mss", body),
        (kind::WINDOW_SCALE, body) => bad_length(f, "wscale", body),
        (kind::SACK_PERMITTED, body) => bad_length(f, "sackOK", body),
        (kind::SACK, body) => bad_length(f, "sack", body),
        (kind::TIMESTAMPS, body) => bad_length(f, "TS", body),
        (kind, []) => write!(f, "unknown-{kind}"),
        (kind, body) => write!(f, "unknown-{kind} 0x{}", Hex(body)),
    }
}

fn bad_length(f: &mut fmt::Formatter<'_>, name: &str, body: &[u8]) -> fmt::Result {
    write!(f, "{name}[len {}]", 2 + body.len())
}

fn sack(f: &mut fmt::Formatter<'_>, blocks: &[u8]) -> fmt::Result {
    let (blocks, _) = blocks.as_chunks::<8>();
    write!(f, "sack {} ", blocks.len())?;
    blocks.iter().try_for_each(|&[l0, l1, l2, l3, r0, r1, r2, r3]| {
        let (left, right) = (u32::from_be_bytes([l0, l1, l2, l3]), u32::from_be_bytes([r0, r1, r2, r3]));
        write!(f, "{{{left}:{right}}}")
    })
}

/// The counters under the names of RFC 9768's fields (§3.2.3), without their `E`.
fn accurate_ecn(f: &mut fmt::Formatter<'_>, kind: u8, body: &[u8]) -> fmt::Result {
    let Some(option) = AccurateEcnOption::from_body(kind, body) else { return Ok(()) };
    let order = u8::from(option.order() == AccurateEcnOrder::Ect1First);
    write!(f, "accecn{order}")?;
    option.counters().try_for_each(|(codepoint, bytes)| {
        let name = match codepoint {
            Ecn::Ect0 => "e0b",
            Ecn::Ect1 => "e1b",
            Ecn::Ce | Ecn::NotEct => "ceb",
        };
        write!(f, " {name} {bytes}")
    })
}

fn fast_open(f: &mut fmt::Formatter<'_>, cookie: &[u8]) -> fmt::Result {
    match crate::Cookie::new(cookie) {
        Some(cookie) => write!(f, "cookie {cookie}"),
        None if cookie.is_empty() => f.write_str("cookiereq"),
        None => f.write_str("(invalid)"),
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
