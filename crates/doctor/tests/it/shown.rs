//! Shows every rule in three parts: silent on a healthy host, firing on the same host with the
//! fault, and silent after its advice was followed.
//!
//! Each test below names the rules that it shows and how they were fixed. It fails unless exactly
//! these rules went through all three parts.
use crate::{ids, of, shell};
use doctor::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Mutex;

/// The way in which a finding was fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fixed {
    /// By its own command, run in the namespace of the finding.
    Command,
    /// By following its advice by hand, on this kernel: no command can be run there.
    ByHand,
    /// Not on this kernel: in a record of the host, and a record of the host after the command.
    Record,
}

/// A test that shows rules.
pub(crate) struct Showing {
    pub(crate) test: &'static str,
    pub(crate) rules: &'static [(&'static str, Fixed)],
}

macro_rules! showings {
    ($($module:ident::$test:ident: $($fixed:ident [$($id:literal)+])+;)+) => {
        pub(crate) const SHOWINGS: &[Showing] = &[$(
            Showing { test: stringify!($test), rules: &[$($(($id, Fixed::$fixed)),+),+] },
        )+];

        $(
            #[test]
            fn $test() {
                show(stringify!($test), crate::$module::$test);
            }
        )+
    };
}

showings! {
    accept::a_full_accept_queue_is_named_with_its_port_first: ByHand ["ACC-01" "ACC-05"];
    accept::an_accept_queue_that_fills_is_seen_before_it_overflows: ByHand ["ACC-03"];
    accept::a_backlog_cut_by_somaxconn_is_told_until_the_service_listens_again: Command ["ACC-04"];
    counted::losses_on_the_path_are_found: ByHand ["CC-07"];
    counted::connects_that_nobody_answers_are_found: ByHand ["CC-12"];
    counted::programs_that_close_with_unread_data_are_found: ByHand ["ST-09"];
    counted::a_queue_of_our_own_that_drops_is_found: ByHand ["TX-01"];
    counted::syns_dropped_without_cookies_are_found: Command ["ACC-08"];
    counted::a_rotation_of_keys_is_told_until_clients_have_the_new_one: ByHand ["TFO-09"];
    counted::a_fast_open_queue_that_is_too_short_is_found: ByHand ["TFO-06"];
    counted::a_pause_of_fast_open_is_found_and_switched_off: Command ["TFO-13"];
    counted::receive_queues_that_overflow_in_memory_are_found: ByHand ["WIN-11"];
    cwnd::a_threshold_of_another_day_is_found_in_path_route_and_connection: Command ["CC-01" "CC-03" "CC-04"];
    cwnd::routes_that_clamp_or_shrink_windows_are_found_and_their_fix_works: Command ["CC-04" "CC-05"];
    cwnd::pauses_that_shrink_windows_are_told: Command ["CC-06"];
    cwnd::packets_that_arrive_twice_are_found: ByHand ["CC-09"];
    cwnd::a_path_that_swallows_full_size_packets_is_found: Command ["CC-11"];
    counted::a_path_that_loses_everything_one_way_is_found: ByHand ["CC-14"];
    counted::a_device_that_sends_nothing_is_found: ByHand ["TX-02"];
    cwnd::a_connect_that_will_wait_for_minutes_is_told: Command ["CC-13"];
    devices::strict_filters_on_two_links_are_found: Command ["RX-08"] ByHand ["RX-09"];
    devices::packets_that_the_filter_drops_are_found: Command ["RX-07"];
    devices::what_a_device_cannot_take_is_told: ByHand ["RX-05"];
    devices::a_backlog_that_overflows_is_found: ByHand ["RX-01"];
    devices::offloads_that_were_switched_off_are_told: Command ["RX-10"];
    devices::a_deep_fifo_is_told_of_a_link_too_slow_for_it: ByHand ["TX-03"];
    devices::a_queue_set_by_hand_is_told: ByHand ["TX-07"];
    devices::a_small_mtu_towards_the_world_is_told_until_peers_are: Command ["TX-09"];
    fast_open::requests_for_cookies_that_a_server_refuses_are_found: Command ["TFO-02"];
    fast_open::a_listener_that_does_not_use_fast_open_is_found: ByHand ["TFO-03"];
    fast_open::keys_that_change_without_a_backup_are_found_at_both_ends: ByHand ["TFO-04" "TFO-07"];
    fast_open::a_path_that_drops_syns_with_data_is_found_until_it_is_forgotten: Command ["TFO-05"];
    fast_open::a_key_without_a_backup_and_cookies_without_fast_open_are_told: ByHand ["TFO-08"] Command ["TFO-14"];
    half_open::a_syn_queue_that_overflows_into_cookies_is_found: ByHand ["ACC-14"];
    floods::a_syn_flood_is_one_finding_that_names_it: ByHand ["ACC-07"];
    floods::clients_without_a_route_back_are_named: ByHand ["ACC-02"];
    floods::damaged_segments_are_told_from_losses: ByHand ["RX-11"];
    floods::signatures_that_do_not_match_are_named: ByHand ["RX-12"];
    half_open::half_open_connections_that_nobody_finishes_are_found: Command ["ACC-12"];
    half_open::clients_connected_by_cookie_into_a_full_queue_are_found: ByHand ["ACC-13"];
    hosts::a_receive_ring_that_overflows_is_found_and_enlarged: Record ["RX-04"];
    hosts::budgets_and_flow_limits_are_found: Record ["RX-02" "RX-03"];
    hosts::one_cpu_that_receives_everything_is_found: Record ["RX-06"];
    hosts::byte_queue_limits_that_are_missing_or_forgotten_are_found: Record ["TX-04" "TX-05"];
    hosts::a_connection_tracking_table_that_fills_is_found: Record ["RX-13"];
    hosts::a_congestion_control_that_containers_cannot_have_is_told: Record ["CC-10"];
    settings::each_wrong_setting_is_found_and_gone_after_its_fix: Command [
        "ACC-06" "ACC-09" "ACC-10" "ACC-11" "CC-02" "CC-08" "ST-10" "TFO-01" "TFO-10" "TFO-11" "TFO-12" "TX-06" "WIN-01" "WIN-08"
        "WIN-12" "WIN-13"
    ];
    situations::a_standing_queue_at_a_shaper: ByHand ["TX-02"];
    states::a_server_that_never_closes_is_found: ByHand ["ST-01"];
    states::clients_that_gave_up_in_the_accept_queue_are_found: ByHand ["ST-02"];
    states::closed_connections_that_a_zero_window_holds_are_found: Command ["ST-03"];
    states::connections_half_closed_for_ever_are_found: ByHand ["ST-04"];
    states::a_full_time_wait_table_is_found: Command ["ST-06"];
    states::ports_that_run_out_are_found_and_a_wider_range_mends_it: Command ["ST-07"];
    states::ports_that_wait_although_they_could_be_used_again_are_told: Command ["ST-08"];
    trees::lines_of_sysctl_d_are_judged_by_the_kernel_that_runs: Command ["ST-11" "ST-12" "WIN-15"];
    trees::gauges_and_bonds_are_read_from_proc: Record ["ST-05" "TX-08" "WIN-14"];
    windows::a_reader_that_is_too_slow_is_found: ByHand ["WIN-09"];
    windows::a_peer_that_does_not_read_is_found: ByHand ["WIN-10"];
    windows::a_program_that_has_stopped_reading_is_named_with_its_process: ByHand ["WIN-17"];
    windows::a_connection_without_window_scaling_is_found: ByHand ["WIN-02"];
    windows::a_receive_window_that_holds_the_sender_is_found: ByHand ["WIN-03"];
    windows::a_maximum_that_holds_the_receiver_is_found: Command ["WIN-04"];
    windows::a_maximum_that_holds_the_sender_is_found: Command ["WIN-05"];
    windows::a_fixed_receive_buffer_is_found: ByHand ["WIN-07"];
    windows::a_fixed_send_buffer_is_found: ByHand ["WIN-06"];
    windows::a_buffer_cut_by_the_hosts_maximum_is_told: ByHand ["WIN-16"];
}

/// Rules that no namespace of this kernel can provoke, with the reason.
pub(crate) const BY_RECORD: &[(&str, &str)] = &[
    ("CC-10", "the list of what is allowed is one for the whole machine, and read-only in a namespace"),
    ("RX-02", "the budget is one for the whole machine"),
    ("RX-03", "the limit of a flow is one for the whole machine"),
    ("RX-04", "only hardware has a receive ring"),
    ("RX-06", "only hardware has interrupts"),
    ("RX-13", "the size of the table is one for the whole machine"),
    ("ST-05", "orphans are counted and limited for the whole machine"),
    ("TX-04", "only drivers of hardware have byte queue limits"),
    ("TX-05", "only hardware has a transmit ring"),
    ("TX-08", "it needs the bonding driver"),
    ("WIN-14", "TCP's memory is one for the whole machine"),
];

/// Rules that fire because of another rule's fix, as that fix says. No command can set a key that
/// servers share.
const FOLLOWS: &[(&str, &str)] = &[("TFO-02", "TFO-08")];

/// Returns whether a rule judges the setup of a host, not its traffic, which continues during a
/// fix.
fn is_of_host(id: &str) -> bool {
    use doctor::Source::{Counters, Sockets};
    let needs = doctor::Rule::by_id(id).unwrap().needs;
    !needs.iter().any(|source| [Counters, Sockets].contains(source))
}

/// Progress of a rule.
#[derive(Debug)]
enum Part {
    Silent,
    Fires { commands: Vec<String>, obstacles: usize },
    Fixed(Fixed),
    Gone(Fixed),
}

/// Progress of the rules of a test.
pub(crate) struct Show {
    rules: Mutex<BTreeMap<String, Part>>,
    /// Rules that fired before anything was fixed.
    known: Mutex<BTreeSet<String>>,
    /// True if the test needs a program that is missing.
    skipped: Mutex<bool>,
}

impl Show {
    /// Part one: a host without this fault.
    #[track_caller]
    pub(crate) fn silent(&self, rules: &[&str], found: &[Finding]) {
        self.each(rules, |id, part| {
            assert!(matches!(part, None | Some(Part::Silent | Part::Gone(_))), "{id} was {part:?} before");
            assert!(of(found, id).is_empty(), "{id} in a host without it: {found:#?}");
            Part::Silent
        });
    }

    /// Part two: the host with the fault.
    #[track_caller]
    pub(crate) fn fires(&self, rules: &[&str], found: &[Finding]) {
        self.each(rules, |id, part| {
            assert!(matches!(part, Some(Part::Silent)), "{id} was {part:?} before");
            self.known.lock().unwrap().extend(found.iter().map(|finding| finding.id.clone()));
            let findings = of(found, id);
            assert!(!findings.is_empty(), "no {id} in {:?}", ids(found));
            let steps = findings.iter().flat_map(|finding| &finding.fix.steps);
            let (feasible, not): (Vec<_>, Vec<_>) = steps.partition(|step| step.obstacle.is_none());
            let mut commands: Vec<String> = Vec::new();
            for step in feasible {
                if !commands.contains(&step.command) {
                    commands.push(step.command.clone());
                }
            }
            Part::Fires { commands, obstacles: not.len() }
        });
    }

    /// Runs the commands of the findings in this thread's namespace.
    #[track_caller]
    pub(crate) fn run(&self, rules: &[&str]) {
        self.run_as(rules, str::to_owned);
    }

    /// Like [`Show::run`], with each command changed by `here`.
    #[track_caller]
    pub(crate) fn run_as(&self, rules: &[&str], here: impl Fn(&str) -> String) {
        self.each(rules, |id, part| {
            let Some(Part::Fires { commands, obstacles: 0 }) = part else {
                panic!("{id} is {part:?}: it has no commands that can be run")
            };
            assert!(!commands.is_empty(), "{id} has no command");
            commands.iter().for_each(|command| shell(&here(command)));
            Part::Fixed(Fixed::Command)
        });
    }

    /// Marks the rules as fixed by hand: they have no command, or none that this namespace allows.
    #[track_caller]
    pub(crate) fn by_hand(&self, rules: &[&str]) {
        self.each(rules, |id, part| {
            let Some(Part::Fires { commands, .. }) = part else { panic!("{id} was {part:?} before") };
            assert!(commands.is_empty(), "{id}: {commands:?} is to be run");
            Part::Fixed(Fixed::ByHand)
        });
    }

    /// Runs the commands if this kernel supports them, else calls `by_hand`.
    #[track_caller]
    pub(crate) fn run_or(&self, rules: &[&str], by_hand: impl Fn()) {
        self.each(rules, |id, part| {
            let Some(Part::Fires { commands, .. }) = part else { panic!("{id} was {part:?} before") };
            commands.iter().for_each(|command| shell(command));
            if commands.is_empty() {
                by_hand();
            }
            Part::Fixed(Fixed::ByHand)
        });
    }

    /// Marks the rule as fixed in a record, by these commands, or by its advice if there are none.
    #[track_caller]
    pub(crate) fn recorded(&self, id: &str, wanted: &[&str]) {
        self.each(&[id], |id, part| {
            let Some(Part::Fires { commands, .. }) = part else { panic!("{id} was {part:?} before") };
            assert_eq!(commands, wanted, "{id}");
            Part::Fixed(Fixed::Record)
        });
    }

    /// Part three: the host after the fix.
    #[track_caller]
    pub(crate) fn gone(&self, rules: &[&str], found: &[Finding]) {
        self.each(rules, |id, part| {
            let Some(Part::Fixed(fixed)) = part else { panic!("{id} was {part:?} before") };
            assert!(of(found, id).is_empty(), "{id} after the fix: {found:#?}");
            let known = self.known.lock().unwrap();
            let is_new = |finding: &&Finding| !known.contains(&finding.id) && is_of_host(&finding.id);
            let new: Vec<&Finding> =
                found.iter().filter(is_new).filter(|new| !FOLLOWS.contains(&(id, &new.id))).collect();
            assert!(fixed != Fixed::Command || new.is_empty(), "the fix of {id} brings {new:#?}");
            Part::Gone(fixed)
        });
    }

    /// Skips the test, with the reason.
    pub(crate) fn skip(&self, why: &str) {
        *self.skipped.lock().unwrap() = true;
        skipped(why);
    }

    #[track_caller]
    fn each(&self, rules: &[&str], next: impl Fn(&str, Option<Part>) -> Part) {
        for id in rules {
            // The lock is not held while commands run or a part fails.
            let part = self.rules.lock().unwrap().remove(*id);
            let part = next(id, part);
            self.rules.lock().unwrap().insert((*id).to_owned(), part);
        }
    }
}

fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Runs a test, and compares the rules that it has shown with those that it names.
fn show(test: &str, run: fn(&Show)) {
    let showing = SHOWINGS.iter().find(|showing| showing.test == test).unwrap();
    let record = showing.rules.iter().all(|(_, fixed)| *fixed == Fixed::Record);
    if let Err(reason) = testnet::can()
        && !record
    {
        return skipped(&format!("needs root and /dev/net/tun ({reason})"));
    }
    let show = Show { rules: Mutex::default(), known: Mutex::default(), skipped: Mutex::new(false) };
    run(&show);
    if *show.skipped.lock().unwrap() {
        return;
    }
    let shown: BTreeSet<(String, Fixed)> = show.rules.into_inner().unwrap().into_iter().map(whole).collect();
    let said = showing.rules.iter().map(|(id, fixed)| ((*id).to_owned(), *fixed)).collect();
    assert_eq!(shown, said);
}

/// Returns a rule that went through all three parts, and how it was fixed.
fn whole((id, part): (String, Part)) -> (String, Fixed) {
    let Part::Gone(fixed) = part else { panic!("{id} did not go through all parts: {part:?}") };
    (id, fixed)
}

/// Returns a host with a wrong setting, which has a command, and with an accept queue that fills,
/// which has none.
fn wrong() -> Vec<Finding> {
    let mut sample = doctor::Sample { kernel: "6.18.0".to_owned(), ..doctor::Sample::default() };
    sample.settings.insert("net.ipv4.tcp_window_scaling".to_owned(), "0".to_owned());
    sample.sockets.push(doctor::sample::Socket {
        state: doctor::sample::state::LISTEN,
        recv_queue: 9,
        send_queue: 10,
        ..doctor::sample::Socket::default()
    });
    doctor::Report::of(&doctor::Window::since_boot(&sample)).findings
}

fn shown(parts: impl FnOnce(&Show)) -> Result<Vec<(String, Fixed)>, ()> {
    let show = Show { rules: Mutex::default(), known: Mutex::default(), skipped: Mutex::new(false) };
    let ended = std::panic::AssertUnwindSafe(|| {
        parts(&show);
        show.rules.into_inner().unwrap().into_iter().map(whole).collect()
    });
    std::panic::catch_unwind(ended).map_err(drop)
}

#[test]
fn a_part_left_out_is_noticed() {
    let all = shown(|show| {
        show.silent(&["ACC-03"], &[]);
        show.fires(&["ACC-03"], &wrong());
        show.by_hand(&["ACC-03"]);
        show.gone(&["ACC-03"], &[]);
    });
    assert_eq!(all, Ok(vec![("ACC-03".to_owned(), Fixed::ByHand)]));
    type Parts = fn(&Show);
    let left_out: [(&str, Parts); 6] = [
        ("it was never silent", |show| show.fires(&["ACC-03"], &wrong())),
        ("it fired in the healthy host", |show| show.silent(&["ACC-03"], &wrong())),
        ("it did not fire", |show| {
            show.silent(&["ACC-03"], &[]);
            show.fires(&["ACC-03"], &[]);
        }),
        ("it was not fixed", |show| {
            show.silent(&["ACC-03"], &[]);
            show.fires(&["ACC-03"], &wrong());
            show.gone(&["ACC-03"], &[]);
        }),
        ("its command was not run", |show| {
            show.silent(&["WIN-01"], &[]);
            show.fires(&["WIN-01"], &wrong());
            show.by_hand(&["WIN-01"]);
            show.gone(&["WIN-01"], &[]);
        }),
        ("it is still there", |show| {
            show.silent(&["ACC-03"], &[]);
            show.fires(&["ACC-03"], &wrong());
            show.by_hand(&["ACC-03"]);
            show.gone(&["ACC-03"], &wrong());
        }),
    ];
    for (what, parts) in left_out {
        assert_eq!(shown(parts), Err(()), "{what}");
    }
}
