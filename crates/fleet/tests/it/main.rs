//! Fleets whose hosts, operators and store stop at any time.
#![expect(clippy::unwrap_used, reason = "tests")]
mod world;

use proptest::collection::vec;
use proptest::prelude::*;
use world::{Event, HOSTS, How, OPERATORS, World};

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        12 => Just(How::Done),
        1 => Just(How::AnswerLost),
        1 => Just(How::Fails),
        1 => Just(How::DiesBefore),
        1 => Just(How::DiesAfter),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let host = 0..HOSTS;
    let operator = 0..OPERATORS;
    prop_oneof![
        30 => (host.clone(), how()).prop_map(|(host, how)| Event::Agent(host, how)),
        3 => host.clone().prop_map(Event::AgentStarts),
        1 => host.clone().prop_map(Event::Reboots),
        1 => host.clone().prop_map(Event::LosesItsDisk),
        1 => host.clone().prop_map(Event::IsForgotten),
        1 => (host.clone(), any::<bool>()).prop_map(|(host, is_there)| Event::Network(host, is_there)),
        1 => any::<bool>().prop_map(Event::Store),
        8 => (operator, how()).prop_map(|(operator, how)| Event::Operator(operator, how)),
        1 => Just(Event::LockExpires),
        1 => host.clone().prop_map(Event::ReportExpires),
        6 => host.prop_map(Event::Visit),
        4 => (1_u64..5).prop_map(Event::SecondsPass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every event is followed by the checks of [`World`].
    #[test]
    fn no_host_refuses_what_another_makes_and_a_rotation_ends_once_all_are_well(
        events in vec(event(), 0..300)
    ) {
        let mut world = World::new();
        for event in events {
            world.play(event);
        }
        world.heal();
        world.finish();
    }
}

/// The shortest rotation, with each of its actions interrupted in each way.
#[test]
fn a_crash_at_every_step_is_made_good() {
    let mut moments = 0;
    for at in 0.. {
        let mut cut_any = false;
        for how in [How::AnswerLost, How::Fails, How::DiesBefore, How::DiesAfter] {
            let mut world = World::new();
            world.cut(at, how);
            world.heal();
            world.finish();
            cut_any |= world.was_cut();
        }
        if !cut_any {
            moments = at;
            break;
        }
    }
    assert!(moments > 50, "{moments} moments of three agents and an operator");
}

/// The checks detect a skipped step: hosts that do not wait for each other reject cookies.
#[test]
#[should_panic(expected = "refuses what")]
fn a_step_that_is_left_out_is_seen() {
    let mut world = World::new();
    world.heal();
    world.finish();
    world.leave_a_step_out();
}
