//! A verdict claims only what its rows show. Judges every combination of rows, and compares each
//! sentence with the rows by its meaning, not by how the cause was found.

use super::*;

const SENT: usize = 30;

fn row(probe: Probe, change: impl FnOnce(&mut Visit)) -> Option<Visit> {
    let sent = if probe.has_data() { SENT } else { 0 };
    let mut visit = Visit {
        syns: 1,
        answer: Answer::SynAck,
        reply: 100,
        answered_ms: Some(10.0),
        ..Visit::new(probe, sent)
    };
    change(&mut visit);
    Some(visit)
}

/// Lists the possible results of any SYN.
fn answers(probe: Probe) -> Vec<Option<Visit>> {
    let mut rows = vec![None, row(probe, |_| {})];
    rows.push(row(probe, |visit| visit.answer = Answer::Reset));
    rows.push(row(probe, |visit| (visit.answer, visit.reply) = (Answer::Nothing, 0)));
    rows
}

/// Lists the possible results of a SYN with data.
fn data(probe: Probe) -> Vec<Option<Visit>> {
    let mut rows = answers(probe);
    rows.push(row(probe, |visit| visit.fell_back = true));
    rows.push(row(probe, |visit| visit.acknowledged = SENT));
    rows
}

/// Lists the possible results of a SYN with data and the cookie.
fn cookie(probe: Probe) -> Vec<Option<Visit>> {
    let mut rows = data(probe);
    rows.push(row(probe, |visit| (visit.acknowledged, visit.reply) = (SENT, 0)));
    rows.push(row(probe, |visit| (visit.acknowledged, visit.reply, visit.reset) = (SENT, 0, true)));
    rows.push(row(probe, |visit| (visit.reply, visit.reset) = (0, true)));
    for cookie in ["0a", "0b"] {
        rows.push(row(probe, |visit| visit.cookie = Some(cookie.to_owned())));
    }
    rows.push(row(probe, |visit| (visit.paused, visit.sent) = (true, 0)));
    rows
}

fn plain() -> Vec<Option<Visit>> {
    let mut rows = answers(Probe::Plain);
    rows.push(row(Probe::Plain, |visit| visit.reply = 0));
    rows.push(row(Probe::Plain, |visit| (visit.reply, visit.reset) = (0, true)));
    rows.push(row(Probe::Plain, |visit| visit.answer = Answer::Unreachable([192, 0, 2, 1].into())));
    rows
}

fn request() -> Vec<Option<Visit>> {
    let mut rows = answers(Probe::Request);
    rows.push(row(Probe::Request, |visit| visit.fell_back = true));
    rows.push(row(Probe::Request, |visit| visit.cookie = Some("0a".to_owned())));
    rows.push(row(Probe::Request, |visit| visit.invalid_cookie = Some(15)));
    rows.push(row(Probe::Request, |visit| visit.paused = true));
    rows
}

/// The rows of a verdict's table.
struct Table<'a>(&'a [Visit]);

impl Table<'_> {
    fn rows(&self, probes: &'static [Probe]) -> impl Iterator<Item = &Visit> {
        self.0.iter().filter(|visit| probes.contains(&visit.probe))
    }

    fn taken(&self, probes: &'static [Probe]) -> usize {
        self.rows(probes).filter(|visit| self.is_taken(visit)).count()
    }

    fn is_taken(&self, visit: &Visit) -> bool {
        visit.answer == Answer::SynAck && visit.acknowledged > 0
    }

    /// Number of SYNs that were answered with a SYN-ACK in the intended form.
    fn passed(&self, probes: &'static [Probe]) -> usize {
        self.rows(probes).filter(|visit| visit.answer == Answer::SynAck && !visit.fell_back).count()
    }

    fn lost(&self, probes: &'static [Probe]) -> usize {
        self.rows(probes).filter(|visit| visit.fell_back || visit.answer == Answer::Nothing).count()
    }

    fn reset(&self, probes: &'static [Probe]) -> usize {
        self.rows(probes).filter(|visit| visit.answer == Answer::Reset).count()
    }

    /// Number of visits whose data was rejected, with a cookie other than the one requested.
    fn refused_with_another(&self) -> usize {
        let asked = self.rows(&[Probe::Request]).find_map(|visit| visit.cookie.clone());
        let refused =
            |visit: &&Visit| visit.acknowledged == 0 && visit.cookie.is_some() && visit.cookie != asked;
        self.rows(&COOKIES).filter(refused).count()
    }

    /// True if both visits were rejected with different cookies.
    fn cookies_in_turn(&self) -> bool {
        let cookies: Vec<_> = self.rows(&COOKIES).filter_map(|visit| visit.cookie.clone()).collect();
        matches!(&cookies[..], [one, other] if one != other)
    }

    /// True if the visit ended with a reset, without a reply.
    fn ended(&self, visit: &Visit) -> bool {
        visit.reset && visit.reply == 0
    }

    fn plain_is(&self, holds: impl Fn(&Visit) -> bool) -> bool {
        self.rows(&[Probe::Plain]).any(holds)
    }

    /// True if the rows show what the sentence of this cause says.
    fn shows(&self, cause: Cause) -> bool {
        let answers_plain = self.plain_is(|visit| visit.answer == Answer::SynAck);
        let all_taken =
            self.rows(&COOKIES).count() > 0 && self.rows(&COOKIES).all(|visit| self.is_taken(visit));
        let replies =
            self.rows(&COOKIES).all(|visit| visit.reply > 0) || !self.plain_is(|visit| visit.reply > 0);
        let ends = || self.rows(&COOKIES).all(|visit| self.ended(visit));
        let none = |count: usize| count == 0;
        match cause {
            Cause::Works => all_taken && replies && !self.rows(&COOKIES).any(|visit| self.ended(visit)),
            Cause::WorksSmall => all_taken && replies && self.lost(&[Probe::Big]) > 0,
            Cause::KeyChanged => self.taken(&[Probe::CookieAgain]) > 0 && self.refused_with_another() > 0,
            Cause::ProgramResets => all_taken && ends() && self.plain_is(|visit| self.ended(visit)),
            Cause::ThenReset => all_taken && ends() && answers_plain && !self.plain_is(|visit| visit.reset),
            Cause::Stalls => {
                let silent = self.rows(&COOKIES).all(|visit| visit.reply == 0 && !visit.reset);
                all_taken && silent && self.plain_is(|visit| visit.reply > 0)
            }
            Cause::Unreachable => {
                self.0.iter().all(|visit| !matches!(visit.answer, Answer::SynAck | Answer::Reset))
            }
            Cause::Refused => {
                let resets = self.plain_is(|visit| visit.answer == Answer::Reset);
                resets && self.0.iter().all(|visit| visit.answer != Answer::SynAck)
            }
            Cause::NotOffered | Cause::InvalidCookie | Cause::WithoutCookie => {
                let given = self.0.iter().any(|visit| visit.cookie.is_some());
                let invalid = self.rows(&[Probe::Request]).any(|visit| visit.invalid_cookie.is_some());
                let asked = self.passed(&[Probe::Request]) > 0;
                let alone = self.taken(&[Probe::DataAlone]) > 0;
                answers_plain
                    && !given
                    && match cause {
                        Cause::NotOffered => asked && !invalid && !alone,
                        Cause::InvalidCookie => asked && invalid,
                        _ => alone,
                    }
            }
            Cause::NotAsked => {
                let asked = self.rows(&[Probe::Request, Probe::Cookie, Probe::CookieAgain]).count() > 0;
                !asked && self.passed(&[Probe::DataAlone]) > 0 && none(self.taken(&[Probe::DataAlone]))
            }
            Cause::OptionDropped => {
                answers_plain && self.lost(&WITH_OPTION) > 0 && none(self.passed(&WITH_OPTION))
            }
            Cause::OptionReset => {
                answers_plain && self.reset(&WITH_OPTION) > 0 && none(self.passed(&WITH_OPTION))
            }
            Cause::DataDropped => {
                answers_plain && self.lost(&DATA) > 0 && none(self.passed(&DATA) + self.reset(&DATA))
            }
            Cause::DataReset => {
                answers_plain && self.reset(&DATA) > 0 && none(self.passed(&DATA) + self.lost(&DATA))
            }
            Cause::Ignored => {
                self.passed(&COOKIES) == self.rows(&COOKIES).count()
                    && self.passed(&COOKIES) > 0
                    && none(self.taken(&DATA) + self.refused_with_another())
            }
            Cause::KeyDiffers => none(self.taken(&COOKIES)) && self.refused_with_another() > 0,
            Cause::KeysDiffer => {
                self.refused_with_another() > 0 && (self.taken(&COOKIES) > 0 || self.cookies_in_turn())
            }
            Cause::Paused => answers_plain && self.0.iter().any(|visit| visit.paused),
            Cause::Unclear => true,
        }
    }
}

const COOKIES: [Probe; 2] = [Probe::Cookie, Probe::CookieAgain];
const DATA: [Probe; 3] = [Probe::Cookie, Probe::CookieAgain, Probe::DataAlone];
const WITH_OPTION: [Probe; 3] = [Probe::Request, Probe::Cookie, Probe::CookieAgain];

/// Returns a combination of one row of each kind, by its number.
fn combination(kinds: &[Vec<Option<Visit>>], mut number: usize) -> Vec<Visit> {
    let mut visits = Vec::new();
    for rows in kinds {
        visits.extend(rows[number % rows.len()].clone());
        number /= rows.len();
    }
    visits
}

#[test]
fn no_verdict_claims_what_its_rows_do_not_show() {
    let kinds = [
        plain(),
        request(),
        cookie(Probe::Cookie),
        cookie(Probe::CookieAgain),
        data(Probe::DataAlone),
        data(Probe::Big),
    ];
    let all: usize = kinds.iter().map(Vec::len).product();
    let mut met = std::collections::BTreeMap::new();
    for number in 0..all {
        let visits = combination(&kinds, number);
        let cause = Seen(&visits).cause();
        assert!(Table(&visits).shows(cause), "{number}: {cause:?} of {visits:#?}");
        *met.entry(cause as usize).or_insert(0_usize) += 1;
    }
    assert_eq!(met.len(), Cause::ALL.len(), "every cause occurs: {met:?} of {all}");
}

/// A flawless server, and a path that treats every SYN of a kind alike: the verdict names it.
#[test]
fn what_happens_to_every_syn_is_not_unclear() {
    let sound = |probe: Probe| {
        row(probe, |visit| {
            visit.acknowledged = if probe.needs_cookie() { SENT } else { 0 };
            visit.cookie = (probe == Probe::Request).then(|| "0a".to_owned());
        })
    };
    let changes: [fn(&mut Visit); 4] = [
        |_| {},
        |visit| visit.answer = Answer::Reset,
        |visit| (visit.fell_back, visit.acknowledged) = (true, 0),
        |visit| (visit.reset, visit.reply) = (true, 0),
    ];
    for change in changes {
        for meant in [|_: Probe| true, |probe: Probe| probe.has_data()] {
            let mut visits: Vec<Visit> = Probe::ALL.into_iter().filter_map(sound).collect();
            visits.iter_mut().filter(|visit| meant(visit.probe)).for_each(change);
            let cause = Verdict::of(&visits).cause;
            assert_ne!(cause, Cause::Unclear, "{visits:#?}");
        }
    }
}
