//! What visits mean: the cause, the numbers that speak for it, and what mends it.
use crate::plan::Probe;
use crate::visit::{Answer, Visit};
use serde::{Deserialize, Serialize};

/// Why it is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Data goes with the SYN.
    Works,
    /// Data goes with the SYN, but not when it fills the segment.
    WorksSmall,
    /// No plain SYN is answered.
    Unreachable,
    /// The server answers SYNs by resets.
    Refused,
    /// The server gives no cookie.
    NotOffered,
    /// SYNs with the option get no answer.
    OptionDropped,
    /// SYNs with the option are answered by a reset.
    OptionReset,
    /// SYNs with data get no answer.
    DataDropped,
    /// SYNs with data are answered by a reset.
    DataReset,
    /// The cookie is refused, and a new one given.
    KeyDiffers,
    /// Of two visits with one cookie, one was refused.
    KeysDiffer,
    /// The cookie was refused and a new one given, which was taken.
    KeyChanged,
    /// The cookie was given, and the data with it is ignored.
    Ignored,
    /// The server takes data without any cookie, and gives none.
    WithoutCookie,
    /// The data was taken, and the reply never comes.
    Stalls,
    /// The data was taken, and the connection was reset, as it is without Fast Open.
    ProgramResets,
    /// The data was taken, and the connection was reset, which does not happen without Fast Open.
    ThenReset,
    /// The visits contradict one another, or are too few.
    Unclear,
    /// This host's kernel was to open with the option or with data and did neither: it pauses Fast Open.
    Paused,
    /// This host's kernel sends data without the option, never asks for a cookie, and the server did not take the data.
    NotAsked,
    /// The server's cookie has a length that clients ignore.
    InvalidCookie,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Why.
    pub cause: Cause,
    /// In one sentence.
    pub sentence: String,
    /// What speaks for it.
    pub evidence: Vec<String>,
    /// What must be true of the server and the path, from what was seen.
    pub deduced: Vec<String>,
    /// What mends it.
    pub fix: String,
    /// Milliseconds that a visit saves, or (below zero) costs, beside a plain one.
    pub saves_ms: Option<f64>,
}

impl Cause {
    /// Every one.
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

    /// Does data go with SYNs, whatever there is to say beside?
    #[must_use]
    pub fn works(self) -> bool {
        matches!(self, Cause::Works | Cause::WorksSmall | Cause::KeyChanged | Cause::ProgramResets)
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Cause::Works => "Fast Open works.",
            Cause::WorksSmall => "Fast Open works, but a SYN that is full of data is lost.",
            Cause::Unreachable => "The server does not answer, whatever the SYN is like.",
            Cause::Refused => "Nothing listens there.",
            Cause::NotOffered => {
                "The server gives no cookie: it does not offer Fast Open, or the option is taken out on the way."
            }
            Cause::OptionDropped => "Something on the path drops SYNs that carry the Fast Open option.",
            Cause::OptionReset => "SYNs that carry the Fast Open option are answered by a reset.",
            Cause::DataDropped => "Something on the path drops SYNs that carry data.",
            Cause::DataReset => "SYNs that carry data are answered by a reset.",
            Cause::KeyDiffers => {
                "The server refuses the cookie that it has given, and gives another: its key changes, or it sees this host under changing addresses."
            }
            Cause::KeysDiffer => {
                "A cookie that came from this address is refused there, and another given: servers behind it have different keys."
            }
            Cause::KeyChanged => {
                "Fast Open works. The cookie that this host had was of a former key of the server, which gave another."
            }
            Cause::Ignored => "The server gave a cookie and ignores the data that comes with it.",
            Cause::WithoutCookie => "The server takes data with a SYN from anybody, and gives no cookies.",
            Cause::NotAsked => {
                "This host's kernel sends data without ever asking for a cookie, and the server takes none without one."
            }
            Cause::InvalidCookie => {
                "The server's cookie has a length that no client may take: it must be 4 to 16 bytes, and even."
            }
            Cause::Paused => {
                "This host's kernel pauses Fast Open to every server, since connections that began with data were lost."
            }
            Cause::Stalls => {
                "The SYN's data is taken, and then nothing comes any more: something drops the reply."
            }
            Cause::ProgramResets => {
                "Fast Open works: the SYN's data is taken. Then the connection is reset, as it is without Fast Open."
            }
            Cause::ThenReset => {
                "The SYN's data is taken, and then the connection is reset, which does not happen without Fast Open."
            }
            Cause::Unclear => "No cause is certain: the visits contradict one another, or are too few.",
        }
    }

    /// What mends it; empty where nothing is to be mended.
    #[must_use]
    pub fn fix(self) -> &'static str {
        match self {
            Cause::Works => "",
            Cause::WorksSmall => {
                "Keep the request short; look for a tunnel with a smaller MTU, and see that ICMP passes."
            }
            Cause::Unreachable => "Mend the path first: route, firewall, the server itself.",
            Cause::Refused => "Start the server, or name its port.",
            Cause::NotOffered => {
                "At the server: sysctl -w net.ipv4.tcp_fastopen=3, and Fast Open in the program (nginx: listen 443 ssl fastopen=256). If it has both: with tcp_syncookies=2, or while its Fast Open queue is full (TCPFastOpenListenOverflow), Linux gives no cookie; else a firewall on the path takes option 34 out."
            }
            Cause::OptionDropped | Cause::DataDropped => {
                "Let the firewall pass it. Until then switch Fast Open off in the client: each connection waits a second and more."
            }
            Cause::OptionReset => {
                "Look for a firewall or load balancer that resets what it does not know: option 34. Until then switch Fast Open off in the client."
            }
            Cause::DataReset => {
                "Look for a firewall or load balancer that takes a SYN with data for an attack."
            }
            Cause::KeyDiffers => {
                "Give the server one key that stays (net.ipv4.tcp_fastopen_key), or see that a NAT keeps to one address for a client."
            }
            Cause::KeysDiffer => {
                "Give every server behind the balancer the same key: net.ipv4.tcp_fastopen_key, or TCP_FASTOPEN_KEY of the program."
            }
            Cause::KeyChanged => {
                "Nothing, where the key was changed on purpose. Where this comes again and again, servers behind the address have different keys, or the key is lost with each restart: keep the former one as the backup (`firstbyte fleet rotate`)."
            }
            Cause::Ignored => {
                "At the server: has this port's program Fast Open at all (a cookie is for the address, whatever port gave it), has net.ipv4.tcp_fastopen bit 0x2, is net.ipv4.tcp_syncookies 2, does TCPFastOpenListenOverflow grow (raise fastopen=)? If not, a firewall takes the option out of SYNs with data."
            }
            Cause::WithoutCookie => {
                "Take bit 0x200 out of the server's net.ipv4.tcp_fastopen, TCP_FASTOPEN_NO_COOKIE out of its program, or fastopen_no_cookie out of its route, unless only trusted hosts reach it."
            }
            Cause::NotAsked => {
                "Here: take bit 0x4 out of net.ipv4.tcp_fastopen (1 is the client's half alone), and fastopen_no_cookie out of the route there; then ask again; SYNs of our own (--tun) ask whatever it is."
            }
            Cause::InvalidCookie => {
                "Mend the server, or the load balancer that answers for it: RFC 7413 §4.1.1 (errata 4238) allows cookies of 4, 6, … 16 bytes; Linux makes 8."
            }
            Cause::Paused => {
                "Find who loses them: SYNs of our own (--tun) do not pause, and TCPFastOpenBlackhole counts how often it came to that. The pause ends by itself; net.ipv4.tcp_fastopen_blackhole_timeout_sec=0 switches it off."
            }
            Cause::Stalls => {
                "A firewall forgets connections that begin with data: mend it, or switch Fast Open off in the client."
            }
            Cause::ProgramResets => {
                "At the server: look why its program resets what it accepts (a rule that denies this host, a full pool of workers, a request that it does not understand: --request)."
            }
            Cause::ThenReset => {
                "Look for a firewall that resets connections that begin with data. If there is none: does the server's program fail when the request is there at once?"
            }
            Cause::Unclear => {
                "Ask again. Where it stays so, packets are lost by chance, or servers or paths behind this address differ: record a visit (tcpdump -w FILE) and read it with firstbyte pcap FILE."
            }
        }
    }
}

impl Verdict {
    /// Of what was seen.
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

/// SYNs that carry the option.
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
            // Data alone is data, too.
            fates => match (fates, self.fates(&[Probe::DataAlone])) {
                ([false, true, false], [false, _, false]) => Cause::DataReset,
                ([false, false, true], [false, false, _]) => Cause::DataDropped,
                _ => Cause::Unclear,
            },
        }
    }

    /// Returns which fates SYNs of these forms had: answered by a SYN-ACK, reset, not answered.
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

    /// All SYNs with the cookie and data were answered by SYN-ACKs.
    fn with_cookie(&self, plain: &Visit) -> Cause {
        let visits: Vec<&Visit> =
            [Probe::Cookie, Probe::CookieAgain].into_iter().filter_map(|probe| self.of(probe)).collect();
        let taken: Vec<&Visit> = visits.iter().copied().filter(|visit| is_taken(visit)).collect();
        let asked = self.of(Probe::Request).and_then(|request| request.cookie.as_ref());
        let another = |visit: &Visit| visit.cookie.as_ref().is_some_and(|cookie| asked != Some(cookie));
        let given_another = visits.iter().any(|visit| !is_taken(visit) && another(visit));
        match (taken.len(), visits.len() - taken.len()) {
            (0, _) if self.of(Probe::DataAlone).is_some_and(is_taken) => Cause::Unclear,
            // Two servers in turn give their two cookies in turn.
            (0, _) if self.was_given_before(self.of(Probe::CookieAgain)) => Cause::KeysDiffer,
            (0, _) if given_another => Cause::KeyDiffers,
            (0, _) => Cause::Ignored,
            (_, 0) => self.taken(plain, &taken),
            (_, _) if !given_another => Cause::Unclear,
            (_, _) if is_taken(visits[0]) => Cause::KeysDiffer,
            (_, _) => Cause::KeyChanged,
        }
    }

    /// The data of all these SYNs was taken.
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

    /// Did this visit bring the cookie of the request once more, after another?
    fn was_given_before(&self, visit: Option<&Visit>) -> bool {
        let given = |visit: Option<&Visit>| visit.and_then(|visit| visit.cookie.clone());
        let (asked, now) = (given(self.of(Probe::Request)), given(visit));
        let between = given(self.of(Probe::Cookie));
        now.is_some() && now == asked && between.is_some() && now != between
    }

    /// No cookie could be sent.
    fn without_cookie(&self) -> Cause {
        let alone = self.of(Probe::DataAlone);
        match (self.of(Probe::Request), alone) {
            // It was given, and never used.
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

    /// Of the server and the path.
    fn deduced(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.of(Probe::Request).is_some_and(|visit| visit.cookie.is_some()) {
            words.push(
                "the server's tcp_fastopen has bit 0x2, and its listener Fast Open (or bit 0x400)".to_owned(),
            );
        }
        if self.of(Probe::DataAlone).is_some_and(is_taken) {
            words.push("the server takes data without a cookie (bit 0x200, or TCP_FASTOPEN_NO_COOKIE of its program): anybody can make it work for a forged address".to_owned());
        }
        if self.of(Probe::Plain).is_some_and(|plain| plain.answer == Answer::SynAck)
            && self.0.iter().all(|visit| visit.reply == 0)
        {
            words.push(
                "no visit got a reply, with Fast Open or without: whether one can get lost was not seen"
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
                // What senders begin with.
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
                        format!("SYNs that ask for {what} get no answer: something on the path drops them")
                    }
                    () if agreed => format!("{what} is agreed to"),
                    () => format!("{what} is not agreed to"),
                });
            }
        }
        if let Some(most) =
            self.0.iter().filter(|visit| visit.segments > 0).max_by_key(|visit| visit.segments)
        {
            words.push(format!(
                "{} segments, {} bytes of a reply came before any was acknowledged",
                most.segments, most.reply
            ));
        }
        words
    }

    /// The best of each kind: what else the server had to do at that moment is not the path's. Fast Open saves one round trip, so that no more
    /// than the shortest is claimed.
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

/// A visit in words.
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
            // Worth a word where one was asked for, or where a new one would have said why the data was not taken.
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
        Answer::Unreachable(router) => format!("{router} says that it cannot be reached"),
        Answer::TooBig(router, mtu) => {
            format!("{router} says that packets there are at most {mtu} bytes long")
        }
        Answer::Expired(router) => format!("the hop limit ended at {router}"),
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
mod tests {
    use super::*;

    fn visit(probe: Probe, change: impl FnOnce(&mut Visit)) -> Visit {
        let sent = if probe.has_data() { 30 } else { 0 };
        let mut visit = Visit {
            syns: 1,
            answer: Answer::SynAck,
            answered_ms: Some(40.0),
            acknowledged: if probe.needs_cookie() { sent } else { 0 },
            cookie: (probe == Probe::Request).then(|| "0102030405060708".to_owned()),
            first_byte_ms: Some(if probe.needs_cookie() { 40.0 } else { 80.0 }),
            segments: 1,
            reply: 100,
            ..Visit::new(probe, sent)
        };
        change(&mut visit);
        visit
    }

    /// A server where all is well, but for one probe.
    fn cause(probe: Probe, change: impl FnOnce(&mut Visit)) -> Cause {
        let mut visits: Vec<Visit> = Probe::ALL.into_iter().map(|probe| visit(probe, |_| {})).collect();
        change(visits.iter_mut().find(|visit| visit.probe == probe).unwrap());
        Verdict::of(&visits).cause
    }

    /// A server where all is well, but for these probes.
    fn of_probes(probes: &[Probe], change: fn(&mut Visit)) -> Cause {
        let mut visits: Vec<Visit> = Probe::ALL.into_iter().map(|probe| visit(probe, |_| {})).collect();
        visits.iter_mut().filter(|visit| probes.contains(&visit.probe)).for_each(change);
        Verdict::of(&visits).cause
    }

    /// A server where all is well, but for SYNs with data.
    fn with_data(change: fn(&mut Visit)) -> Cause {
        of_probes(&[Probe::Cookie, Probe::CookieAgain, Probe::DataAlone], change)
    }

    #[test]
    fn each_cause_has_its_own_sign() {
        let lost = |visit: &mut Visit| (visit.fell_back, visit.acknowledged, visit.syns) = (true, 0, 3);
        assert_eq!(cause(Probe::Plain, |_| {}), Cause::Works);
        let plain_only = |answer| Verdict::of(&[visit(Probe::Plain, |visit| visit.answer = answer)]).cause;
        assert_eq!(plain_only(Answer::Nothing), Cause::Unreachable);
        assert_eq!(plain_only(Answer::Reset), Cause::Refused);
        let asks_only = |change: fn(&mut Visit)| {
            Verdict::of(&[visit(Probe::Plain, |_| {}), visit(Probe::Request, change)]).cause
        };
        let lost_alone = |visit: &mut Visit| (visit.fell_back, visit.cookie) = (true, None);
        assert_eq!(asks_only(lost_alone), Cause::OptionDropped);
        assert_eq!(asks_only(|visit| visit.answer = Answer::Reset), Cause::OptionReset);
        assert_eq!(cause(Probe::Request, lost), Cause::Unclear, "cookies come through");
        let reset = |visit: &mut Visit| visit.answer = Answer::Reset;
        assert_eq!(with_data(lost), Cause::DataDropped);
        assert_eq!(with_data(reset), Cause::DataReset);
        assert_eq!(
            (cause(Probe::Cookie, lost), cause(Probe::Cookie, reset)),
            (Cause::Unclear, Cause::Unclear)
        );
        let refused = |visit: &mut Visit| (visit.acknowledged, visit.cookie) = (0, Some("09".to_owned()));
        assert_eq!(cause(Probe::CookieAgain, refused), Cause::KeysDiffer);
        assert_eq!(cause(Probe::CookieAgain, |visit| visit.acknowledged = 0), Cause::Unclear, "a full queue");
        assert_eq!(with_data(|visit| visit.reply = 0), Cause::Stalls);
        let then_reset = |visit: &mut Visit| (visit.reply, visit.reset) = (0, true);
        assert_eq!(with_data(then_reset), Cause::ThenReset);
        assert_eq!(of_probes(&Probe::ALL, then_reset), Cause::ProgramResets);
        assert_eq!(cause(Probe::Big, lost), Cause::WorksSmall);
        let refused_once =
            |visit: &mut Visit| (visit.acknowledged, visit.cookie) = (0, Some("09".to_owned()));
        assert_eq!(cause(Probe::Cookie, refused_once), Cause::KeyChanged);
        assert_eq!(cause(Probe::Cookie, |visit| visit.paused = true), Cause::Paused);
        let refused = |cookie: Option<&str>| {
            let visits = [Probe::Plain, Probe::Request, Probe::Cookie, Probe::CookieAgain].map(|probe| {
                visit(probe, |visit| {
                    if probe.needs_cookie() {
                        (visit.acknowledged, visit.cookie) = (0, cookie.map(str::to_owned));
                    }
                })
            });
            Verdict::of(&visits).cause
        };
        assert_eq!((refused(Some("09")), refused(None)), (Cause::KeyDiffers, Cause::Ignored));
        let without = |acknowledged| {
            let visits = [Probe::Plain, Probe::Request, Probe::DataAlone].map(|probe| {
                visit(probe, |visit| {
                    visit.cookie = None;
                    visit.acknowledged = if probe == Probe::DataAlone { acknowledged } else { 0 };
                })
            });
            Verdict::of(&visits).cause
        };
        assert_eq!((without(0), without(30)), (Cause::NotOffered, Cause::WithoutCookie));
        let invalid = [Probe::Plain, Probe::Request]
            .map(|probe| visit(probe, |visit| (visit.cookie, visit.invalid_cookie) = (None, Some(15))));
        assert_eq!(Verdict::of(&invalid).cause, Cause::InvalidCookie);
        // A kernel that never asks.
        let alone = |change: fn(&mut Visit)| {
            Verdict::of(&[visit(Probe::Plain, |_| {}), visit(Probe::DataAlone, change)]).cause
        };
        assert_eq!(alone(|_| {}), Cause::NotAsked);
        assert_eq!(alone(|visit| visit.acknowledged = 30), Cause::WithoutCookie);
        assert_eq!(alone(|visit| visit.fell_back = true), Cause::DataDropped);
        assert_eq!(alone(|visit| visit.answer = Answer::Reset), Cause::DataReset);
        assert_eq!(Verdict::of(&[]).cause, Cause::Unreachable);
    }

    #[test]
    fn a_server_that_never_replies_is_no_stall() {
        let visits: Vec<Visit> =
            Probe::ALL.into_iter().map(|probe| visit(probe, |visit| visit.reply = 0)).collect();
        let verdict = Verdict::of(&visits);
        assert_eq!(verdict.cause, Cause::Works);
        assert!(
            verdict.deduced.iter().any(|words| words.starts_with("no visit got a reply")),
            "{verdict:#?}"
        );
    }

    /// Two servers in turn: each refuses the other's cookie.
    #[test]
    fn a_cookie_that_comes_back_is_of_two_keys() {
        let cookies = [(Probe::Request, "0a"), (Probe::Cookie, "0b"), (Probe::CookieAgain, "0a")];
        let visits = [(Probe::Plain, "")].into_iter().chain(cookies).map(|(probe, cookie)| {
            visit(probe, |visit| {
                visit.acknowledged = 0;
                visit.cookie = Some(cookie.to_owned()).filter(|cookie| !cookie.is_empty());
            })
        });
        assert_eq!(Verdict::of(&visits.collect::<Vec<_>>()).cause, Cause::KeysDiffer);
    }

    #[test]
    fn what_a_visit_saves_is_the_difference_to_a_plain_one() {
        let visits: Vec<Visit> = Probe::ALL.into_iter().map(|probe| visit(probe, |_| {})).collect();
        let verdict = Verdict::of(&visits);
        assert_eq!(verdict.saves_ms, Some(40.0));
        assert_eq!(verdict.sentence, "Fast Open works. A visit saves 40.0 ms.");
    }

    /// The server was busy at the plain visits: what Fast Open saves is a round trip all the same.
    #[test]
    fn no_more_than_a_round_trip_is_saved() {
        let visits: Vec<Visit> = Probe::ALL
            .into_iter()
            .map(|probe| {
                visit(probe, |visit| {
                    visit.answered_ms = Some(0.1);
                    visit.first_byte_ms = Some(if probe.needs_cookie() { 0.3 } else { 5.2 });
                })
            })
            .collect();
        let verdict = Verdict::of(&visits);
        assert_eq!(
            (verdict.saves_ms, verdict.sentence.as_str()),
            (Some(0.1), "Fast Open works. A visit saves 0.1 ms.")
        );
    }

    #[test]
    fn nothing_is_saved_where_fast_open_does_not_work() {
        let visits = [(Probe::Plain, 0.050), (Probe::Request, 0.040)].map(|(probe, first_byte)| {
            visit(probe, |visit| {
                visit.cookie = None;
                visit.acknowledged = 0;
                visit.first_byte_ms = Some(first_byte * 1000.0);
            })
        });
        let verdict = Verdict::of(&visits);
        assert_eq!((verdict.cause, verdict.saves_ms), (Cause::NotOffered, Some(10.0)));
        assert!(!verdict.sentence.contains("saves"), "{}", verdict.sentence);
    }
}
