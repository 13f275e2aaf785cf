//! A fleet's keys in a store: made, shown, a host taken out.
use super::store::StoreArgs;
use crate::escape::line;
use crate::failure::Failure;
use crate::key::{fingerprint, random};
use crate::serve::key::read;
use crate::terminal::print;
use clap::Args;
use firstbyte::KeyRing;
use fleet::layout::Stored;
use fleet::{Fleet, Layout, Plan, layout};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// Put the first keys of a fleet into the store: a new one, or those of a file.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte fleet create web --store https://etcd1:2379 --cacert ca.pem\n  \
                  firstbyte fleet create web --store https://etcd1:2379 --cacert ca.pem --key-file /proc/sys/net/ipv4/tcp_fastopen_key"
)]
pub(crate) struct CreateArgs {
    /// The fleet: letters, digits, dots, hyphens and underscores.
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// The keys that its servers have already, as `firstbyte key` and Linux write them.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Show which keys a fleet has, in which step of a rotation it is, and what each host has of it. Keys themselves are never shown.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte fleet status web --store https://etcd1:2379 --cacert ca.pem")]
pub(crate) struct StatusArgs {
    /// The fleet.
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Wait for a host no more: it serves nobody, and will not again with the keys that it has.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte fleet forget web web7 --store https://etcd1:2379 --cacert ca.pem"
)]
pub(crate) struct ForgetArgs {
    /// The fleet.
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// The host, as `firstbyte fleet status` names it.
    #[arg(value_parser = fleet_name)]
    host: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// Makes a fleet.
pub(super) fn create(args: &CreateArgs) -> Result<ExitCode, Failure> {
    let keys = match &args.key_file {
        Some(file) => read(file)?,
        None => KeyRing::new(random()?),
    };
    let plan = Plan::first(keys);
    let mut store = args.store.open()?;
    let layout = Layout::new(&args.fleet);
    if !runtime()?.block_on(store.transact(&layout.create(&plan)))? {
        return Err(Failure::failed(format!(
            "there is a fleet {0} already; `firstbyte fleet status {0}` shows it",
            args.fleet
        )));
    }
    print(&format!("version 1, {}: {}", plan.step(), shown(&plan)))
}

/// Shows a fleet.
pub(super) fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let mut store = args.store.open()?;
    let (fleet, stored) = runtime()?.block_on(store.fleet(&Layout::new(&args.fleet), &args.fleet))?;
    print(&if args.json { json(&fleet, &stored) } else { text(&args.fleet, &fleet, &stored) })
}

/// Takes a host out.
pub(super) fn forget(args: &ForgetArgs) -> Result<ExitCode, Failure> {
    let mut store = args.store.open()?;
    match runtime()?.block_on(store.transact(&Layout::new(&args.fleet).forget(&args.host)))? {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::failed(format!("fleet {} has no host {}", args.fleet, args.host))),
    }
}

/// The name of a fleet or of a host.
pub(super) fn fleet_name(text: &str) -> Result<String, String> {
    layout::name(text)
}

/// One that runs on this thread alone.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
}

/// The fingerprints of a plan's keys, and a line's end.
pub(super) fn shown(plan: &Plan) -> String {
    let primary = fingerprint(plan.keys().primary());
    match plan.keys().backup() {
        Some(backup) => format!("primary {primary}, backup {}\n", fingerprint(backup)),
        None => format!("primary {primary}\n"),
    }
}

fn text(name: &str, fleet: &Fleet, stored: &Stored) -> String {
    let Fleet { plan, members } = fleet;
    let mut text = format!("{name}: version {}, {}: {}", plan.version(), plan.step(), shown(plan));
    if let Some(lock) = &stored.lock {
        text += &format!("{} rotates it\n", lock.holder);
    }
    if members.is_empty() {
        text += "no host yet: start `firstbyte fleet agent` on each\n";
    }
    let width = members.keys().map(String::len).max().unwrap_or(0);
    for (host, member) in members {
        let report = match member.report {
            Some(report) => format!(
                "the backup key was used {} times, not for {:.0} s",
                report.backup_uses, report.quiet_seconds
            ),
            None if member.is_unreadable => "its entry in the store cannot be read".to_owned(),
            None if member.is_live => "runs, and has not reported yet".to_owned(),
            None => "away: its agent does not run".to_owned(),
        };
        let host = line(host);
        text += &format!("{host:width$}  version {}  {report}\n", member.applied);
    }
    text
}

fn json(fleet: &Fleet, stored: &Stored) -> String {
    let Fleet { plan, members } = fleet;
    let hosts: Vec<_> = members
        .iter()
        .map(|(host, member)| {
            json!({
                "host": host, "version": member.applied, "report": member.report,
                "running": member.is_live, "readable": !member.is_unreadable,
            })
        })
        .collect();
    let object = json!({
        "version": plan.version(),
        "step": plan.step(),
        "primary": fingerprint(plan.keys().primary()),
        "backup": plan.keys().backup().map(fingerprint),
        "lock": stored.lock.as_ref().map(|lock| &lock.holder),
        "hosts": hosts,
    });
    format!("{object}\n")
}
