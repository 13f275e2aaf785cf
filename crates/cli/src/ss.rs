//! `firstbyte ss`: the sockets of a running stack, in the words of ss(8). The stack's own process makes the list (`control/listing.rs`).

use crate::control::{ControlArgs, ask};
use crate::failure::Failure;
use crate::terminal::print;
use clap::Args;
use control::{Listing, Request, Which};
use std::process::ExitCode;

/// List the sockets of a running stack as ss(8) does: queues, ends, and what a connection does just now.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  firstbyte serve &\n  firstbyte ss -l\n  firstbyte ss -i\n\n\
                  Without -a and -l: connections that are neither half open nor in TIME-WAIT.\n\
                  Recv-Q and Send-Q: of a listener, what waits to be accepted and the backlog;\n\
                  of a connection, bytes that were not read and bytes that were not acknowledged.")]
pub(crate) struct SsArgs {
    /// Every socket.
    #[arg(short, long, conflicts_with_all = ["listening", "summary"])]
    all: bool,
    /// Listeners.
    #[arg(short, long, conflicts_with = "summary")]
    listening: bool,
    /// What TCP knows of each connection, under the names of ss(8).
    #[arg(short, long, conflicts_with = "summary")]
    info: bool,
    /// How many sockets are in which state, and how much memory they take.
    #[arg(short, long)]
    summary: bool,
    /// Only IPv4.
    #[arg(short = '4', long, conflicts_with_all = ["ipv6", "summary"])]
    ipv4: bool,
    /// Only IPv6.
    #[arg(short = '6', long, conflicts_with = "summary")]
    ipv6: bool,
    /// JSON instead of columns.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &SsArgs) -> Result<ExitCode, Failure> {
    let which = match () {
        () if args.summary => Which::Summary,
        () if args.all => Which::All,
        () if args.listening => Which::Listening,
        () => Which::Connected,
    };
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => Some(4),
        (_, true) => Some(6),
        _ => None,
    };
    let listing = Listing { which, info: args.info, family, json: args.json };
    print(&ask(&args.control, &Request::Ss(listing))?)
}
