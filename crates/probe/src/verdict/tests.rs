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

/// Judges a flawless server, except for one probe.
fn cause(probe: Probe, change: impl FnOnce(&mut Visit)) -> Cause {
    let mut visits: Vec<Visit> = Probe::ALL.into_iter().map(|probe| visit(probe, |_| {})).collect();
    change(visits.iter_mut().find(|visit| visit.probe == probe).unwrap());
    Verdict::of(&visits).cause
}

/// Judges a flawless server, except for these probes.
fn of_probes(probes: &[Probe], change: fn(&mut Visit)) -> Cause {
    let mut visits: Vec<Visit> = Probe::ALL.into_iter().map(|probe| visit(probe, |_| {})).collect();
    visits.iter_mut().filter(|visit| probes.contains(&visit.probe)).for_each(change);
    Verdict::of(&visits).cause
}

/// Judges a flawless server, except for SYNs with data.
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
    assert_eq!((cause(Probe::Cookie, lost), cause(Probe::Cookie, reset)), (Cause::Unclear, Cause::Unclear));
    let refused = |visit: &mut Visit| (visit.acknowledged, visit.cookie) = (0, Some("09".to_owned()));
    assert_eq!(cause(Probe::CookieAgain, refused), Cause::KeysDiffer);
    assert_eq!(cause(Probe::CookieAgain, |visit| visit.acknowledged = 0), Cause::Unclear, "a full queue");
    assert_eq!(with_data(|visit| visit.reply = 0), Cause::Stalls);
    let then_reset = |visit: &mut Visit| (visit.reply, visit.reset) = (0, true);
    assert_eq!(with_data(then_reset), Cause::ThenReset);
    assert_eq!(of_probes(&Probe::ALL, then_reset), Cause::ProgramResets);
    assert_eq!(cause(Probe::Big, lost), Cause::WorksSmall);
    let refused_once = |visit: &mut Visit| (visit.acknowledged, visit.cookie) = (0, Some("09".to_owned()));
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
    // A kernel that never requests a cookie.
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
    assert!(verdict.deduced.iter().any(|words| words.starts_with("no visit got a reply")), "{verdict:#?}");
}

/// Two servers in turn: each rejects the other's cookie.
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

/// The server was busy during the plain visits: Fast Open still saves only one round trip.
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
