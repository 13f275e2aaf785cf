//! `firstbyte route`: metrics per destination, of the kernel, or of a running stack, where they can
//! be changed.
use crate::control::ask;
use crate::failure::Failure;
use crate::source::{SourceArgs, StackOnly};
use crate::terminal::print;
use crate::values;
use clap::{Args, Subcommand};
use control::Request;
use doctor::show::routes;
use doctor::{Report, Window, sources};
use firstbyte::fast_open::Network;
use std::process::ExitCode;

/// Show routes like `ip route`, and change those of a running stack
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte route set default initcwnd 20\n  \
    firstbyte route set unreachable 192.0.2.0/24\n  \
    firstbyte route show --stack\n  \
    firstbyte route show --explain\n\n\
    The kernel's routes are only shown; set and del change a running Firstbyte stack. Open \
    connections keep their metrics.")]
pub(crate) struct RouteArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List one line per destination
    Show(ShowArgs),
    /// Set the route of a destination, and replace the old one
    Set {
        /// [blackhole|unreachable|prohibit] PREFIX, then mtu, advmss, initcwnd, initrwnd, cwnd,
        /// ssthresh, rto_min, quickack, congctl or fastopen_no_cookie, each with its value
        #[arg(required = true, value_name = "PREFIX METRIC VALUE")]
        route: Vec<String>,
        #[command(flatten)]
        stack: StackOnly,
    },
    /// Remove the route of exactly this prefix
    Del {
        /// Prefix of the route
        #[arg(value_name = "PREFIX")]
        prefix: String,
        #[command(flatten)]
        stack: StackOnly,
    },
}

#[derive(Args, Debug)]
struct ShowArgs {
    /// Show the kernel's IPv6 routes
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Show the kernel's routes of this table, by number; `all` for every table [default: main]
    #[arg(long, value_parser = table)]
    table: Option<Table>,
    /// Explain each metric below the list, and name the rules of `firstbyte doctor` that use it
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Clone, Copy, Debug)]
enum Table {
    One(u32),
    All,
}

fn table(text: &str) -> Result<Table, String> {
    match text {
        "main" => Ok(Table::One(routes::MAIN)),
        "local" => Ok(Table::One(routes::MAIN + 1)),
        "all" => Ok(Table::All),
        number => {
            number.parse().map(Table::One).map_err(|_| "expected main, local, all or a number".to_owned())
        }
    }
}

/// Runs the verb.
pub(crate) fn run(args: &RouteArgs) -> Result<ExitCode, Failure> {
    let (control, request) = match &args.verb {
        Verb::Show(args) => match args.source.stack() {
            Some(control) if !args.ipv6 && args.table.is_none() && !args.explain => {
                (control, Request::RouteShow { json: args.json })
            }
            Some(_) => {
                return Err(Failure::usage(
                    "-6, --table and --explain only work for the kernel's routes; leave them out, \
                    or leave out --stack",
                ));
            }
            None => return print(&kernel(args)?),
        },
        Verb::Set { route, stack } => {
            let route = values::route(&route.join(" ")).map_err(Failure::usage)?;
            (stack.control(), Request::RouteSet(route.destination, route.metrics))
        }
        Verb::Del { prefix, stack } => {
            let prefix: Network =
                prefix.parse().map_err(|error: firstbyte::RouteError| Failure::usage(error.to_string()))?;
            (stack.control(), Request::RouteDelete(prefix))
        }
    };
    print(&ask(control, &request)?)
}

fn kernel(args: &ShowArgs) -> Result<String, Failure> {
    let all = args.source.read(sources::routes)?;
    let all = all.map_err(|error| Failure::failed(format!("cannot read routes: {error}")))?;
    let table = match args.table {
        None => Some(routes::MAIN),
        Some(Table::One(number)) => Some(number),
        Some(Table::All) => None,
    };
    let family = if args.ipv6 { 6 } else { 4 };
    if args.json {
        return Ok(format!("{}\n", routes::json(&all, table, family)));
    }
    let text = routes::text(&all, table, family);
    if !args.explain {
        return Ok(text);
    }
    let now = args.source.read(sources::here)?;
    let findings = Report::of(&Window::since_boot(&now)).findings;
    Ok(format!("{text}\n{}", routes::explained(&all, table, family, &findings)))
}
