//! `firstbyte fleet rotate`: moves a fleet to a new key, step by step.
use super::plan::{fleet_name, runtime, shown};
use super::store::{Store, StoreArgs, Trouble};
use crate::failure::{Failure, warn};
use crate::key::random;
use crate::terminal::print;
use crate::values;
use clap::Args;
use fleet::{Fleet, Layout, Move, Plan, Rotation, Waiting, Why, etcd};
use std::process::ExitCode;
use std::time::Duration;

/// Rotate the cookie key of a fleet, without rejecting a valid cookie
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    firstbyte fleet rotate web --store https://etcd1:2379 --cacert ca.pem --quiet 6h\n\n\
    The new key becomes the backup on every host, then the primary; then the old key is removed. \
    Each step waits until every\n\
    host has applied the one before, so that no host rejects a cookie of another host. The old \
    key is removed when no host\n\
    has seen a cookie of it for --quiet; a client with an older cookie then makes an ordinary \
    handshake.\n\
    An interrupted rotation continues where it stopped. Remove a host that is gone for good \
    with `firstbyte fleet forget`.\n\n\
    Exit codes: 0 the rotation is complete, 1 it is not: run the command again to continue.")]
pub(crate) struct RotateArgs {
    /// Name of the fleet
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// Remove the old key when no host has seen a cookie of it for this long; 0 removes it as soon
    /// as all hosts use the new key
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = values::long_duration)]
    quiet: Duration,
    #[command(flatten)]
    store: StoreArgs,
}

/// Lifetime of the lock without renewal, seconds.
const LOCK: u64 = 5;
/// Time between two queries of the fleet.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs the verb.
pub(crate) fn run(args: &RotateArgs) -> Result<ExitCode, Failure> {
    let store = args.store.open()?;
    runtime()?.block_on(async {
        let mut operator = Operator {
            layout: Layout::new(&args.fleet),
            name: &args.fleet,
            store,
            rotation: Rotation::new(args.quiet),
            lease: None,
            said: String::new(),
        };
        let ended = tokio::select! {
            ended = operator.rotate() => ended,
            _ = tokio::signal::ctrl_c() => Err(Failure::failed(
                "stopped during a rotation; run the command again to continue",
            )),
        };
        operator.unlock().await;
        ended
    })
}

struct Operator<'a> {
    layout: Layout,
    name: &'a str,
    store: Store,
    rotation: Rotation,
    lease: Option<i64>,
    /// The last status printed.
    said: String,
}

impl Operator<'_> {
    async fn rotate(&mut self) -> Result<ExitCode, Failure> {
        loop {
            match self.step().await {
                Ok(true) => return Ok(ExitCode::SUCCESS),
                Ok(false) => {}
                // The store may come back, and it keeps the state of the rotation.
                Err(Problem::Store(Trouble::Unreachable(why))) if !self.said.is_empty() => {
                    self.say(&format!("waiting for the store: {why}\n"))?;
                }
                Err(Problem::Store(trouble)) => return Err(trouble.into()),
                Err(Problem::Other(failure)) => return Err(failure),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Takes the next step if possible. Returns true if the rotation is complete.
    async fn step(&mut self) -> Result<bool, Problem> {
        let lease = self.store.lease(self.lease, LOCK).await?;
        self.lease = Some(lease);
        let (mut fleet, mut stored) = self.store.fleet(&self.layout, self.name).await?;
        loop {
            match &stored.lock {
                Some(lock) if lock.lease == lease => {}
                Some(lock) => return Err(Problem::Other(is_locked(&lock.holder))),
                None => {
                    self.store.transact(&self.layout.lock(&holder(), lease)).await?;
                    (fleet, stored) = self.store.fleet(&self.layout, self.name).await?;
                    continue;
                }
            }
            let new = random()?;
            match self.rotation.next(&fleet, || new) {
                Move::Complete => {
                    print("done: every host has only the new key\n")?;
                    return Ok(true);
                }
                Move::Wait(waiting) => {
                    self.say(&words(&fleet, &waiting))?;
                    return Ok(false);
                }
                Move::Advance(plan) => {
                    if self.store.transact(&self.layout.advance(&stored, &plan)).await? {
                        self.tell(&plan)?;
                    }
                    (fleet, stored) = self.store.fleet(&self.layout, self.name).await?;
                }
            }
        }
    }

    fn tell(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.said.clear();
        self.say(&format!("version {}, {}: {}", plan.version(), plan.step(), shown(plan)))
    }

    /// Prints a text once, until it changes.
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        if self.said != text {
            print(text)?;
            text.clone_into(&mut self.said);
        }
        Ok(())
    }

    async fn unlock(&mut self) {
        if let Some(lease) = self.lease
            && self.store.call(&etcd::revoke(lease)).await.is_err()
        {
            warn(format!("cannot release the lock; it expires within {LOCK} s"));
        }
    }
}

enum Problem {
    Store(Trouble),
    Other(Failure),
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Problem {
        Problem::Store(trouble)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::Other(failure)
    }
}

fn is_locked(holder: &str) -> Failure {
    Failure::failed(format!(
        "{holder} is rotating the keys of this fleet; if that process is gone, its lock expires \
        within {LOCK} s"
    ))
}

/// Names this process for other operators.
fn holder() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{user} on {host} (process {})", std::process::id())
}

/// Describes the hosts that are waited for. Only whole minutes: seconds would print a new line each
/// second.
fn words(fleet: &Fleet, waiting: &[Waiting]) -> String {
    if fleet.members.is_empty() {
        return "waiting for the first host: start `firstbyte fleet agent` on each\n".to_owned();
    }
    let lines = waiting.iter().map(|Waiting { host, why }| match why {
        Why::Used(seconds) if *seconds < 60.0 => {
            format!("waiting: {host} has seen no cookie of the old key for less than a minute\n")
        }
        Why::Used(seconds) => {
            let minutes = (seconds / 60.0).floor();
            format!("waiting: {host} has seen no cookie of the old key for {minutes:.0} min\n")
        }
        why => format!("waiting: {host} {why}\n"),
    });
    lines.collect()
}
