//! `firstbyte fleet`: servers that share a name, and so cookie keys.
//!
//! - `fleet/check.rs`: visits all, and says where Fast Open works and whose key is another;
//! - `fleet/plan.rs`: a fleet's keys in a store: made, shown, a host taken out;
//! - `fleet/rotate.rs`: an operator's rotation; `fleet/agent.rs`: a host's part in it, `fleet/keys.rs`: the keys that are in use there;
//! - `fleet/instance.rs`: tells machines with the same name apart;
//! - `fleet/store.rs`: etcd, over HTTP; `fleet/tls.rs`: TLS to it.
//!
//! What may be done when is decided by the crate `fleet`.
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

/// Visit every address behind a name, or of a list, and say where Fast Open works, where backends differ, and whose key is another; keep and
/// rotate the keys of all.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Example:\n  firstbyte fleet example.org:443\n  firstbyte fleet servers.txt --key-file keys\n\n\
                  A cookie depends on the server's address, so that only --key-file tells whether two addresses have the same key: the\n\
                  cookies of all are held beside it. That needs a client that servers see by its own address, without a NAT.\n\
                  Three visits by the kernel's sockets for each address.\n\n\
                  Keys of a whole fleet, with etcd as their store:\n  \
                  firstbyte fleet create web --store https://etcd1:2379,https://etcd2:2379 --cacert ca.pem\n  \
                  firstbyte fleet agent web --store …        on every server, as root\n  \
                  firstbyte fleet rotate web --store …       anywhere\n  \
                  firstbyte fleet status web --store …\n\n\
                  Exit codes: 0 it works everywhere, and with the key where one was given; 1 it does not, or it could not be tried."
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
