//! Turns visits into a verdict: the cause, the evidence, and the fix.
use crate::plan::Probe;
use crate::visit::{Answer, Visit};
use serde::{Deserialize, Serialize};

/// The cause of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The server accepts data on the SYN.
    Works,
    /// The server accepts data on the SYN, but not if it fills the segment.
    WorksSmall,
    /// No plain SYN is answered.
    Unreachable,
    /// The server answers SYNs with a reset.
    Refused,
    /// The server sends no cookie.
    NotOffered,
    /// SYNs with the option get no answer.
    OptionDropped,
    /// SYNs with the option are answered with a reset.
    OptionReset,
    /// SYNs with data get no answer.
    DataDropped,
    /// SYNs with data are answered with a reset.
    DataReset,
    /// The server rejects its cookie and sends a new one.
    KeyDiffers,
    /// One of two visits with the same cookie was rejected.
    KeysDiffer,
    /// The server rejected the cookie and sent a new one, which it accepted.
    KeyChanged,
    /// The server sent a cookie, and ignores data that comes with it.
    Ignored,
    /// The server accepts data without a cookie, and sends none.
    WithoutCookie,
    /// The server accepted the data, and its reply never arrives.
    Stalls,
    /// The server accepted the data and the connection was reset, also without Fast Open.
    ProgramResets,
    /// The server accepted the data and the connection was reset, only with Fast Open.
    ThenReset,
    /// The visits contradict each other, or are too few.
    Unclear,
    /// This host's kernel sent neither the option nor data, although it should: it has paused Fast
    /// Open.
    Paused,
    /// This host's kernel sends data without the option and never requests a cookie, and the server
    /// did not accept the data.
    NotAsked,
    /// The server's cookie has a length that clients ignore.
    InvalidCookie,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The cause.
    pub cause: Cause,
    /// The verdict in one sentence.
    pub sentence: String,
    /// The observations behind it.
    pub evidence: Vec<String>,
    /// Conclusions about the server and the path.
    pub deduced: Vec<String>,
    /// The fix; may be empty.
    pub fix: String,
    /// Milliseconds that a visit saves compared with a plain one; negative if it costs time.
    pub saves_ms: Option<f64>,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 21] = [
        Cause::Works,
        Cause::WorksSmall,
        Cause::KeyChanged,
        Cause::ProgramResets,
        Cause::Unreachable,
        Cause::Refused,
        Cause::NotOffered,
        Cause::InvalidCookie,
        Cause::WithoutCookie,
        Cause::OptionDropped,
        Cause::OptionReset,
        Cause::DataDropped,
        Cause::DataReset,
        Cause::Ignored,
        Cause::KeyDiffers,
        Cause::KeysDiffer,
        Cause::Stalls,
        Cause::ThenReset,
        Cause::Paused,
        Cause::NotAsked,
        Cause::Unclear,
    ];

    /// True if the server accepts data on SYNs, with or without other problems.
    #[must_use]
    pub fn works(self) -> bool {
        matches!(self, Cause::Works | Cause::WorksSmall | Cause::KeyChanged | Cause::ProgramResets)
    }

    /// Describes the cause in a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Cause::Works => "Fast Open works.",
            Cause::WorksSmall => "Fast Open works, but SYNs that are full of data are lost.",
            Cause::Unreachable => "The server does not answer any form of SYN.",
            Cause::Refused => "Nothing listens on this port.",
            Cause::NotOffered => {
                "The server sends no cookie: it does not offer Fast Open, or a middlebox strips the \
                option."
            }
            Cause::OptionDropped => "Something on the path drops SYNs with the Fast Open option.",
            Cause::OptionReset => "SYNs with the Fast Open option are answered with a reset.",
            Cause::DataDropped => "Something on the path drops SYNs with data.",
            Cause::DataReset => "SYNs with data are answered with a reset.",
            Cause::KeyDiffers => {
                "The server rejects its own cookie and sends another: its key changes, or it sees \
                this host under changing addresses."
            }
            Cause::KeysDiffer => {
                "A server behind this address rejects the cookie of another and sends its own: the \
                servers have different keys."
            }
            Cause::KeyChanged => {
                "Fast Open works. This host's cookie was made with an old key of the server, which \
                sent a new one."
            }
            Cause::Ignored => "The server sent a cookie, but ignores the data that comes with it.",
            Cause::WithoutCookie => "The server accepts data on a SYN from anybody, and sends no cookies.",
            Cause::NotAsked => {
                "This host's kernel sends data without ever requesting a cookie, and the server \
                accepts no data without one."
            }
            Cause::InvalidCookie => {
                "The server's cookie has a length that clients must ignore: it must be 4 to 16 \
                bytes, and even."
            }
            Cause::Paused => {
                "This host's kernel has paused Fast Open to every server, because connections that \
                began with data were lost."
            }
            Cause::Stalls => "The SYN's data is accepted, but no reply arrives: something drops it.",
            Cause::ProgramResets => {
                "Fast Open works: the SYN's data is accepted. Then the connection is reset, also \
                without Fast Open."
            }
            Cause::ThenReset => {
                "The SYN's data is accepted, and then the connection is reset, which does not \
                happen without Fast Open."
            }
            Cause::Unclear => "No cause is certain: the visits contradict each other, or are too few.",
        }
    }

    /// Returns the fix; empty if nothing needs fixing.
    #[must_use]
    pub fn fix(self) -> &'static str {
        match self {
            Cause::Works => "",
            Cause::WorksSmall => {
                "Keep the request short. Look for a tunnel with a smaller MTU, and make sure that \
                ICMP passes."
            }
            Cause::Unreachable => "Fix the path first: route, firewall, the server itself.",
            Cause::Refused => "Start the server, or choose its port.",
            Cause::NotOffered => {
                "At the server: run sysctl -w net.ipv4.tcp_fastopen=3, and enable Fast Open in \
                the program (nginx: fastopen=256). If both are on, check tcp_syncookies=2 and \
                TCPFastOpenListenOverflow, then firewalls."
            }
            Cause::OptionDropped | Cause::DataDropped => {
                "Allow it in the firewall. Until then disable Fast Open in the client: each \
                connection waits a second or more."
            }
            Cause::OptionReset => {
                "Look for a firewall or load balancer that resets unknown options (34). Until then \
                disable Fast Open in the client."
            }
            Cause::DataReset => {
                "Look for a firewall or load balancer that takes a SYN with data for an attack."
            }
            Cause::KeyDiffers => {
                "Give the server a fixed key (net.ipv4.tcp_fastopen_key), or make sure that a NAT \
                always uses the same address for a client."
            }
            Cause::KeysDiffer => {
                "Give every server behind the load balancer the same key: \
                net.ipv4.tcp_fastopen_key, or TCP_FASTOPEN_KEY in the program."
            }
            Cause::KeyChanged => {
                "Nothing, if the key was changed on purpose. If it repeats, give all servers \
                behind the address one key, and keep the old key as the backup (`firstbyte fleet \
                rotate`)."
            }
            Cause::Ignored => {
                "At the server: enable Fast Open in this program; check bit 0x2 of \
                net.ipv4.tcp_fastopen, tcp_syncookies=2 and TCPFastOpenListenOverflow (raise \
                fastopen=). Otherwise a firewall strips the option."
            }
            Cause::WithoutCookie => {
                "Remove bit 0x200 from the server's net.ipv4.tcp_fastopen, TCP_FASTOPEN_NO_COOKIE \
                from its program, or fastopen_no_cookie from its route, unless only trusted hosts \
                can reach it."
            }
            Cause::NotAsked => {
                "On this host: remove bit 0x4 from net.ipv4.tcp_fastopen (1 enables only the \
                client), and fastopen_no_cookie from the route; then test again. Own SYNs (--tun) \
                request a cookie in any case."
            }
            Cause::InvalidCookie => {
                "Fix the server, or the load balancer that answers for it: RFC 7413 §4.1.1 (errata \
                4238) allows cookies of 4, 6, … 16 bytes; Linux makes 8."
            }
            Cause::Paused => {
                "Find what drops them: own SYNs (--tun) do not pause, and TCPFastOpenBlackhole \
                counts how often it happened. The pause ends by itself; \
                net.ipv4.tcp_fastopen_blackhole_timeout_sec=0 disables it."
            }
            Cause::Stalls => {
                "A firewall forgets connections that begin with data: fix it, or disable Fast Open \
                in the client."
            }
            Cause::ProgramResets => {
                "At the server: find out why its program resets connections that it has accepted (a \
                rule that denies this host, a full worker pool, a request that it does not \
                understand: --request)."
            }
            Cause::ThenReset => {
                "Look for a firewall that resets connections that begin with data. If there is \
                none: does the server's program fail if the request is available immediately?"
            }
            Cause::Unclear => {
                "Test again. If it stays unclear, packets are lost at random, or servers or paths \
                behind this address differ: record a visit (tcpdump -w FILE) and read it with \
                firstbyte pcap FILE."
            }
        }
    }
}

impl Verdict {
    /// Judges visits.
    pub fn of(visits: &[Visit]) -> Verdict {
        let seen = Seen(visits);
        let cause = seen.cause();
        let mut verdict = Verdict {
            cause,
            sentence: cause.sentence().to_owned(),
            evidence: seen.evidence(cause),
            deduced: seen.deduced(),
            fix: cause.fix().to_owned(),
            saves_ms: seen.saves(),
        };
        if let Some(saves) = verdict.saves_ms.filter(|saves| cause.works() && *saves > 0.0) {
            verdict.sentence += &format!(" A visit saves {saves:.1} ms.");
        } else if let Some(costs) = verdict.saves_ms.filter(|saves| *saves < -100.0) {
            verdict.sentence +=
                &format!(" A visit with Fast Open costs {:.0} ms more than a plain one.", -costs);
        }
        verdict
    }
}

/// SYNs with the option.
const WITH_OPTION: [Probe; 4] = [Probe::Request, Probe::Cookie, Probe::CookieAgain, Probe::Big];

struct Seen<'a>(&'a [Visit]);

impl Seen<'_> {
    fn of(&self, probe: Probe) -> Option<&Visit> {
        self.0.iter().find(|visit| visit.probe == probe)
    }

    fn cause(&self) -> Cause {
        let answered = |visit: &Visit| matches!(visit.answer, Answer::SynAck | Answer::Reset);
        let Some(plain) = self.of(Probe::Plain) else {
            return if self.0.iter().any(answered) { Cause::Unclear } else { Cause::Unreachable };
        };
        let others = || self.0.iter().filter(|visit| visit.probe != Probe::Plain);
        match plain.answer {
            Answer::SynAck => {}
            Answer::Reset if others().any(|visit| visit.answer == Answer::SynAck) => return Cause::Unclear,
            Answer::Reset => return Cause::Refused,
            _ if others().any(answered) => return Cause::Unclear,
            _ => return Cause::Unreachable,
        }
        if self.0.iter().any(|visit| visit.paused) {
            return Cause::Paused;
        }
        match self.fates(&[Probe::Request]) {
            [_, false, false] => {}
            _ if self.fates(&WITH_OPTION)[0] => return Cause::Unclear,
            [_, false, _] => return Cause::OptionDropped,
            _ => return Cause::OptionReset,
        }
        match self.fates(&[Probe::Cookie, Probe::CookieAgain]) {
            [false, false, false] => self.without_cookie(),
            [true, false, false] => self.with_cookie(plain),
            // A SYN with only data carries data, too.
            fates => match (fates, self.fates(&[Probe::DataAlone])) {
                ([false, true, false], [false, _, false]) => Cause::DataReset,
                ([false, false, true], [false, false, _]) => Cause::DataDropped,
                _ => Cause::Unclear,
            },
        }
    }

    /// Returns the fates of SYNs of these forms: answered with a SYN-ACK, reset, not answered.
    fn fates(&self, probes: &[Probe]) -> [bool; 3] {
        let mut fates = [false; 3];
        for visit in probes.iter().filter_map(|probe| self.of(*probe)) {
            let fate = match visit.answer {
                Answer::SynAck if !visit.fell_back => 0,
                Answer::Reset if !visit.fell_back => 1,
                _ => 2,
            };
            fates[fate] = true;
        }
        fates
    }

    /// Judges if all SYNs with cookie and data were answered with a SYN-ACK.
    fn with_cookie(&self, plain: &Visit) -> Cause {
        let visits: Vec<&Visit> =
            [Probe::Cookie, Probe::CookieAgain].into_iter().filter_map(|probe| self.of(probe)).collect();
        let taken: Vec<&Visit> = visits.iter().copied().filter(|visit| is_taken(visit)).collect();
        let asked = self.of(Probe::Request).and_then(|request| request.cookie.as_ref());
        let another = |visit: &Visit| visit.cookie.as_ref().is_some_and(|cookie| asked != Some(cookie));
        let given_another = visits.iter().any(|visit| !is_taken(visit) && another(visit));
        match (taken.len(), visits.len() - taken.len()) {
            (0, _) if self.of(Probe::DataAlone).is_some_and(is_taken) => Cause::Unclear,
            // Two servers in turn send their two cookies in turn.
            (0, _) if self.was_given_before(self.of(Probe::CookieAgain)) => Cause::KeysDiffer,
            (0, _) if given_another => Cause::KeyDiffers,
            (0, _) => Cause::Ignored,
            (_, 0) => self.taken(plain, &taken),
            (_, _) if !given_another => Cause::Unclear,
            (_, _) if is_taken(visits[0]) => Cause::KeysDiffer,
            (_, _) => Cause::KeyChanged,
        }
    }

    /// Judges if the data of all these SYNs was accepted.
    fn taken(&self, plain: &Visit, taken: &[&Visit]) -> Cause {
        let all = |holds: fn(&Visit) -> bool| taken.iter().all(|visit| holds(visit));
        let ends_without_reply = |visit: &Visit| visit.reset && visit.reply == 0;
        match () {
            () if all(ends_without_reply) && ends_without_reply(plain) => Cause::ProgramResets,
            () if all(ends_without_reply) && !plain.reset => Cause::ThenReset,
            () if taken.iter().any(|visit| ends_without_reply(visit)) => Cause::Unclear,
            () if all(|visit| visit.reply == 0) && plain.reply > 0 => Cause::Stalls,
            () if taken.iter().any(|visit| visit.reply == 0) && plain.reply > 0 => Cause::Unclear,
            () if self.fates(&[Probe::Big])[2] => Cause::WorksSmall,
            () => Cause::Works,
        }
    }

    /// True if this visit brought the cookie of the request again, after another one.
    fn was_given_before(&self, visit: Option<&Visit>) -> bool {
        let given = |visit: Option<&Visit>| visit.and_then(|visit| visit.cookie.clone());
        let (asked, now) = (given(self.of(Probe::Request)), given(visit));
        let between = given(self.of(Probe::Cookie));
        now.is_some() && now == asked && between.is_some() && now != between
    }

    /// Judges if no cookie could be sent.
    fn without_cookie(&self) -> Cause {
        let alone = self.of(Probe::DataAlone);
        match (self.of(Probe::Request), alone) {
            // A cookie was received, but never used.
            (Some(request), _) if request.cookie.is_some() => Cause::Unclear,
            (Some(request), _) if request.invalid_cookie.is_some() => Cause::InvalidCookie,
            (_, Some(alone)) if is_taken(alone) => Cause::WithoutCookie,
            (Some(_), _) => Cause::NotOffered,
            (None, Some(_)) => match self.fates(&[Probe::DataAlone]) {
                [true, _, _] => Cause::NotAsked,
                [_, true, _] => Cause::DataReset,
                _ => Cause::DataDropped,
            },
            (None, None) => Cause::Unclear,
        }
    }

    fn evidence(&self, cause: Cause) -> Vec<String> {
        let probes: &[Probe] = match cause {
            Cause::Unreachable | Cause::Refused => &[Probe::Plain],
            Cause::NotOffered | Cause::OptionDropped | Cause::OptionReset => {
                &[Probe::Plain, Probe::Request, Probe::DataAlone]
            }
            Cause::WithoutCookie => &[Probe::Request, Probe::DataAlone],
            Cause::NotAsked => &[Probe::Plain, Probe::DataAlone],
            Cause::InvalidCookie => &[Probe::Plain, Probe::Request],
            Cause::Paused => &[Probe::Plain, Probe::Request, Probe::Cookie],
            Cause::DataDropped | Cause::DataReset => {
                &[Probe::Plain, Probe::Cookie, Probe::CookieAgain, Probe::DataAlone]
            }
            Cause::WorksSmall => &[Probe::Cookie, Probe::Big],
            Cause::Unclear => &Probe::ALL,
            _ => &[Probe::Plain, Probe::Cookie, Probe::CookieAgain],
        };
        probes.iter().filter_map(|probe| self.of(*probe)).map(line).collect()
    }

    /// Returns conclusions about the server and the path.
    fn deduced(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.of(Probe::Request).is_some_and(|visit| visit.cookie.is_some()) {
            words.push(
                "the server's tcp_fastopen has bit 0x2, and its listener Fast Open (or bit 0x400)".to_owned(),
            );
        }
        if self.of(Probe::DataAlone).is_some_and(is_taken) {
            words.push(
                "the server accepts data without a cookie (bit 0x200, or \
                TCP_FASTOPEN_NO_COOKIE in its program): anybody can make it work for a forged \
                address"
                    .to_owned(),
            );
        }
        if self.of(Probe::Plain).is_some_and(|plain| plain.answer == Answer::SynAck)
            && self.0.iter().all(|visit| visit.reply == 0)
        {
            words.push(
                "no visit got a reply, with or without Fast Open, so nothing shows whether replies \
                are lost"
                    .to_owned(),
            );
        }
        let agreed = self.0.iter().filter_map(|visit| visit.agreed.map(|agreed| (visit.probe, agreed)));
        let agreed: Vec<_> = agreed.collect();
        if let Some((_, plain)) = agreed.iter().find(|(probe, _)| *probe == Probe::Plain) {
            let no = |holds: bool, what: &str| if holds { what.to_owned() } else { format!("no {what}") };
            let scale = plain
                .window_scale
                .map_or("no window scaling".to_owned(), |shift| format!("window scale {shift}"));
            let mss = plain.mss.map_or("no MSS (536)".to_owned(), |mss| format!("MSS {mss}"));
            words.push(format!(
                "{mss}, {scale}, {}, {}",
                no(plain.sack, "SACK"),
                no(plain.timestamps, "timestamps")
            ));
            if let Some(left) = plain.hop_limit {
                // Initial hop limits of senders.
                let begun = [64_u8, 128, 255].into_iter().find(|begun| *begun >= left).unwrap_or(255);
                let routers = begun - left;
                let plural = if routers == 1 { "" } else { "s" };
                words.push(format!("the server is {routers} router{plural} away"));
            }
        }
        for (probe, what) in [(Probe::Ecn, "ECN"), (Probe::AccurateEcn, "Accurate ECN")] {
            if let Some(visit) = self.of(probe) {
                let agreed = visit
                    .agreed
                    .is_some_and(|agreed| if probe == Probe::Ecn { agreed.ecn } else { agreed.accurate_ecn });
                words.push(match () {
                    () if visit.fell_back => {
                        format!(
                            "SYNs that request {what} get no answer: something on the path \
                            drops them"
                        )
                    }
                    () if agreed => format!("{what} is negotiated"),
                    () => format!("{what} is not negotiated"),
                });
            }
        }
        if let Some(most) =
            self.0.iter().filter(|visit| visit.segments > 0).max_by_key(|visit| visit.segments)
        {
            words.push(format!(
                "{} segments, {} bytes of a reply arrived before any ACK",
                most.segments, most.reply
            ));
        }
        words
    }

    /// Compares the best visits of each kind, to exclude other work of the server. Claims at most
    /// the shortest round trip, which is all that Fast Open can save.
    fn saves(&self) -> Option<f64> {
        let best = |probes: &[Probe]| {
            let times = probes.iter().filter_map(|probe| self.of(*probe)?.first_byte_ms);
            times.min_by(f64::total_cmp)
        };
        let (slow, fast) = match best(&[Probe::Cookie, Probe::CookieAgain]) {
            Some(fast) => (best(&[Probe::Plain, Probe::Request])?, fast),
            None => (best(&[Probe::Plain])?, best(&[Probe::Request])?),
        };
        let answers = self.0.iter().filter(|visit| visit.answer == Answer::SynAck);
        let round_trip = answers.filter_map(|visit| visit.answered_ms).min_by(f64::total_cmp)?;
        Some(((slow - fast).min(round_trip) * 1000.0).round() / 1000.0)
    }
}

fn is_taken(visit: &Visit) -> bool {
    visit.answer == Answer::SynAck && visit.acknowledged > 0 && !visit.fell_back
}

/// Describes a visit.
fn line(visit: &Visit) -> String {
    let syns = if visit.syns == 1 { "one SYN".to_owned() } else { format!("{} SYNs", visit.syns) };
    let plain = if visit.fell_back { ", the last one plain" } else { "" };
    let answer = match visit.answer {
        Answer::SynAck => {
            let data = if visit.sent > 0 {
                format!(", {} of {} bytes acknowledged", visit.acknowledged, visit.sent)
            } else {
                String::new()
            };
            // Worth mentioning if one was requested, or if a new one would explain why the data was
            // not accepted.
            let expected = visit.probe == Probe::Request || visit.sent > 0 && visit.acknowledged == 0;
            let cookie = match (&visit.cookie, visit.invalid_cookie) {
                (None, Some(bytes)) => format!(", with a cookie of {bytes} bytes, which clients ignore"),
                (Some(_), _) => ", with a cookie".to_owned(),
                (None, None) if expected => ", without a cookie".to_owned(),
                (None, None) => String::new(),
            };
            format!("a SYN-ACK{data}{cookie}")
        }
        Answer::Reset => "a reset".to_owned(),
        Answer::Unreachable(router) => format!("{router} says that the destination is unreachable"),
        Answer::TooBig(router, mtu) => {
            format!("{router} says that packets may have at most {mtu} bytes")
        }
        Answer::Expired(router) => format!("the hop limit expired at {router}"),
        Answer::Nothing => "no answer".to_owned(),
    };
    let first = visit.first_byte_ms.map_or(String::new(), |time| format!(", the reply after {time:.1} ms"));
    let paused = if visit.paused { ", with neither option nor data" } else { "" };
    let reset = if visit.reset { ", then a reset" } else { "" };
    format!("{}: {syns}{plain}{paused}, {answer}{first}{reset}", visit.probe)
}

#[cfg(test)]
mod claims;

#[cfg(test)]
mod tests;
