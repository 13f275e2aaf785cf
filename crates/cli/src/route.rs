//! `firstbyte route`: what connections of a running stack begin with, per destination.
use crate::control::{ControlArgs, ask};
use crate::failure::Failure;
use crate::terminal::print;
use crate::values;
use clap::{Args, Subcommand};
use control::Request;
use firstbyte::fast_open::Network;
use std::process::ExitCode;

/// Show and change what connections of a running stack begin with, per destination, in the words of `ip route`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  firstbyte route set default initcwnd 20\n  firstbyte route set unreachable 192.0.2.0/24\n  firstbyte route show\n\n\
                  Connections that are open keep what they began with."
)]
pub(crate) struct RouteArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// One line per destination.
    Show {
        /// JSON instead of lines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Say what holds for a destination, in place of what held before.
    Set {
        /// [blackhole|unreachable|prohibit] PREFIX, then mtu, advmss, initcwnd, initrwnd, cwnd, ssthresh, rto_min, quickack, congctl or
        /// fastopen_no_cookie, each with its value.
        #[arg(required = true, value_name = "PREFIX METRIC VALUE")]
        route: Vec<String>,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Take it back, for exactly this prefix.
    Del {
        /// The destination.
        #[arg(value_name = "PREFIX")]
        prefix: String,
        #[command(flatten)]
        control: ControlArgs,
    },
}

/// Runs the verb.
pub(crate) fn run(args: &RouteArgs) -> Result<ExitCode, Failure> {
    let (control, request) = match &args.verb {
        Verb::Show { json, control } => (control, Request::RouteShow { json: *json }),
        Verb::Set { route, control } => {
            let route = values::route(&route.join(" ")).map_err(Failure::usage)?;
            (control, Request::RouteSet(route.destination, route.metrics))
        }
        Verb::Del { prefix, control } => {
            let prefix: Network =
                prefix.parse().map_err(|error: firstbyte::RouteError| Failure::usage(error.to_string()))?;
            (control, Request::RouteDelete(prefix))
        }
    };
    print(&ask(control, &request)?)
}
