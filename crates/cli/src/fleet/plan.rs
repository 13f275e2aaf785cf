//! The keys of a fleet in a store: create, show, remove a host.
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

/// Create a fleet in the store, with a new key or the keys of a file
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
        firstbyte fleet create web --store https://etcd1:2379 --cacert ca.pem\n  \
        firstbyte fleet create web --store https://etcd1:2379 --cacert ca.pem --key-file \
        /proc/sys/net/ipv4/tcp_fastopen_key")]
pub(crate) struct CreateArgs {
    /// Name of the fleet: letters, digits, dots, hyphens and underscores
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// Key file that the servers already use, as `firstbyte key` and Linux write it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Show the key fingerprints of a fleet, the step of a rotation, and the state of each host
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte fleet status web --store https://etcd1:2379 --cacert ca.pem")]
pub(crate) struct StatusArgs {
    /// Name of the fleet
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Remove a host that will not return, so that rotations do not wait for it
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
        firstbyte fleet forget web web7 --store https://etcd1:2379 --cacert ca.pem")]
pub(crate) struct ForgetArgs {
    /// Name of the fleet
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// Name of the host, as in `firstbyte fleet status`
    #[arg(value_parser = fleet_name)]
    host: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// Creates a fleet.
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
            "fleet {0} already exists; `firstbyte fleet status {0}` shows it",
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

/// Removes a host.
pub(super) fn forget(args: &ForgetArgs) -> Result<ExitCode, Failure> {
    let mut store = args.store.open()?;
    match runtime()?.block_on(store.transact(&Layout::new(&args.fleet).forget(&args.host)))? {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::failed(format!("fleet {} has no host {}", args.fleet, args.host))),
    }
}

/// Parses the name of a fleet or a host.
pub(super) fn fleet_name(text: &str) -> Result<String, String> {
    layout::name(text)
}

/// Creates a runtime on this thread.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
}

/// Formats the fingerprints of a plan's keys as a line.
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
                "the backup key was used {} times, quiet for {:.0} s",
                report.backup_uses, report.quiet_seconds
            ),
            None if member.is_unreadable => "cannot read its entry in the store".to_owned(),
            None if member.is_live => "running, has not reported yet".to_owned(),
            None => "away: its agent is not running".to_owned(),
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
