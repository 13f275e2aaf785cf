//! `firstbyte fleet`: servers that share a name, and so must share cookie keys.
//!
//! - `fleet/check.rs`: tests Fast Open on every server, and compares keys;
//! - `fleet/plan.rs`: the keys of a fleet in a store: create, show, remove a host;
//! - `fleet/rotate.rs`: key rotation; `fleet/agent.rs`: the agent on each host; `fleet/keys.rs`:
//!   the keys in use on a host;
//! - `fleet/instance.rs`: distinguishes machines with the same name;
//! - `fleet/store.rs`: etcd over HTTP; `fleet/tls.rs`: TLS to etcd.
//!
//! The crate `fleet` decides the order of the steps.
#[cfg(feature = "fleet")]
mod agent;
mod check;
#[cfg(feature = "fleet")]
mod instance;
#[cfg(feature = "fleet")]
mod keys;
#[cfg(feature = "fleet")]
mod plan;
#[cfg(feature = "fleet")]
mod rotate;
#[cfg(feature = "fleet")]
mod store;
#[cfg(feature = "fleet")]
mod tls;

#[cfg(not(feature = "fleet"))]
use crate::absent::fleet::{agent, plan, rotate};
use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Test Fast Open on every server behind a name, and manage the cookie keys of all
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Example:\n  \
        firstbyte fleet example.org:443\n  \
        firstbyte fleet servers.txt --key-file keys\n\n\
        Cookies depend on the server's address, so only --key-file can tell whether two servers \
        have the same key: it checks\n\
        the cookie of each server. This needs a client whose own address the servers see, \
        without NAT.\n\
        The kernel's sockets make three visits to each address.\n\n\
        Keys of a whole fleet, stored in etcd:\n  \
        firstbyte fleet create web --store https://etcd1:2379,https://etcd2:2379 --cacert \
        ca.pem\n  \
        firstbyte fleet agent web --store …        on every server, as root\n  \
        firstbyte fleet rotate web --store …       anywhere\n  \
        firstbyte fleet status web --store …\n\n\
        Exit codes: 0 Fast Open works on every server, with the given key if there is one; 1 it \
        does not, or the test failed."
)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    check: check::CheckArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Create(plan::CreateArgs),
    Status(plan::StatusArgs),
    Forget(plan::ForgetArgs),
    Rotate(rotate::RotateArgs),
    Agent(agent::AgentArgs),
}

/// Runs the verb.
pub(crate) fn run(args: &FleetArgs) -> Result<ExitCode, Failure> {
    match &args.verb {
        None => check::run(&args.check),
        Some(Verb::Create(args)) => plan::create(args),
        Some(Verb::Status(args)) => plan::status(args),
        Some(Verb::Forget(args)) => plan::forget(args),
        Some(Verb::Rotate(args)) => rotate::run(args),
        Some(Verb::Agent(args)) => agent::run(args),
    }
}
