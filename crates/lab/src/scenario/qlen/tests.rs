use super::*;
use crate::exchange::Answer;

#[test]
fn one_fits_and_five_overflow() {
    for case in run(&Params::default()).cases {
        let mut times: Vec<_> = case.together.iter().filter_map(Exchange::time_to_first_byte).collect();
        times.sort();
        let ms = Duration::from_millis;
        assert_eq!(times, [ms(200), ms(400), ms(400), ms(400), ms(400), ms(400)], "{:?}", case.profile);
        assert_eq!((case.refused(), case.listen_overflow), (5, 5), "{:?}", case.profile);
    }
}

#[test]
fn ours_hands_out_the_cookie_on_overflow_and_linux_does_not() {
    let results = run(&Params::default());
    for (case, expected) in results.cases.iter().zip([Answer::SameCookie, Answer::NoOption]) {
        let answers: Vec<_> = case.together.iter().map(|exchange| exchange.verdict).collect();
        let refused =
            answers.iter().filter(|verdict| **verdict == Verdict::NotAcknowledged { answer: expected });
        assert_eq!(refused.count(), 5, "{answers:?}");
        assert_eq!(case.after.time_to_first_byte(), Some(Duration::from_millis(200)), "{:?}", case.profile);
    }
}

#[test]
fn a_longer_queue_takes_all() {
    for case in run(&Params { qlen: 6, ..Params::default() }).cases {
        assert_eq!((case.refused(), case.listen_overflow), (0, 0));
    }
}
