//! `firstbyte fleet agent`: the agent on each host of a fleet.
use super::instance::instance;
use super::keys::{self, hold, uses};
use super::plan::{fleet_name, runtime, shown};
use super::store::{Store, StoreArgs, Trouble};
use crate::failure::{Failure, warn};
use crate::output::{check_writable, write_secret};
use crate::secret::{self, warn_if_shared};
use crate::source::SourceArgs;
use crate::terminal::print;
use crate::values;
use clap::Args;
use fleet::agent::Behind;
use fleet::layout::Claim;
use fleet::{Action, Agent, Layout, Plan, Quiet, Report, etcd};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Keep this host's cookie keys in step with its fleet
#[derive(Args, Debug)]
#[command(after_help = "Example (as root, on every server):\n  \
    firstbyte fleet agent web --store https://etcd1:2379 --cacert ca.pem\n  \
    firstbyte fleet agent web --store https://etcd1:2379 --cacert ca.pem --stack       for \
    `firstbyte serve`\n\n\
    The agent sets the key of the whole host: programs with their own keys (TCP_FASTOPEN_KEY) \
    are not affected. If the store\n\
    is down, the current keys stay. Run it with --once before the servers start at boot, so that \
    no client gets a cookie of\n\
    the kernel's random key.\n\n\
    Exit codes: 0 ended by a signal, or with --once the keys are in use; 1 they are not.")]
pub(crate) struct AgentArgs {
    /// Name of the fleet
    #[arg(value_name = "NAME", value_parser = fleet_name)]
    fleet: String,
    /// Name of this host in the fleet [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = fleet_name)]
    host: Option<String>,
    /// Time between two queries of the store
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::positive_duration)]
    interval: Duration,
    /// Apply the keys once, and exit
    #[arg(long)]
    once: bool,
    /// Save the keys here for the next start, readable only by root [default:
    /// /var/lib/firstbyte/FLEET.HOST]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    store: StoreArgs,
}

const FOLDER: &str = "/var/lib/firstbyte";

/// Most time that a store may need to end an expired lease.
const FREED_AFTER: Duration = Duration::from_secs(3);

/// Limit on the size of a saved plan: more than two keys take.
const STATE_MAX: u64 = 4096;

/// Runs the verb until a signal arrives.
pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode, Failure> {
    let host = match &args.host {
        Some(host) => host.clone(),
        None => fleet_name(&rustix::system::uname().nodename().to_string_lossy()).map_err(|why| {
            Failure::usage(format!("cannot find this host's name: {why}; give it with --host NAME"))
        })?,
    };
    let state =
        args.state.clone().unwrap_or_else(|| PathBuf::from(FOLDER).join(format!("{}.{host}", args.fleet)));
    let mut part = Part {
        agent: Agent::new(saved(&state)?),
        layout: Layout::new(&args.fleet),
        store: args.store.open()?,
        instance: instance(&args.source)?,
        is_taken: false,
        host,
        state,
        args,
        quiet: Quiet::default(),
        begun: Instant::now(),
        lease: None,
        trouble: String::new(),
        in_use: 0,
    };
    runtime()?.block_on(async {
        let failed = |error| Failure::failed(format!("cannot wait for signals: {error}"));
        let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let ended = tokio::select! {
            ended = part.take_part() => ended,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
            _ = terminated.recv() => Ok(ExitCode::SUCCESS),
        };
        part.leave().await;
        ended
    })
}

struct Part<'a> {
    args: &'a AgentArgs,
    agent: Agent,
    layout: Layout,
    store: Store,
    host: String,
    /// The identity of this machine and of the stack on it.
    instance: String,
    /// True if the last claim failed because another machine has the name.
    is_taken: bool,
    state: PathBuf,
    quiet: Quiet,
    begun: Instant,
    lease: Option<i64>,
    /// The last error, until the agent has recovered.
    trouble: String,
    /// The last version that was reported as in use.
    in_use: u64,
}

impl Part<'_> {
    async fn take_part(&mut self) -> Result<ExitCode, Failure> {
        loop {
            let action = self.agent.action();
            if action == Action::Rest {
                if self.args.once && !self.may_be_freed() {
                    return Ok(ExitCode::from(u8::from(!self.trouble.is_empty())));
                }
                tokio::time::sleep(self.args.interval).await;
                self.agent.wake();
                continue;
            }
            let ends_the_turn = matches!(action, Action::Report(_));
            match self.act(action).await {
                Ok(()) if ends_the_turn && !self.trouble.is_empty() => {
                    self.trouble.clear();
                    print("recovered\n")?;
                }
                Ok(()) => {}
                Err(failure) => {
                    self.agent.failed();
                    self.complain(failure.message());
                }
            }
        }
    }

    async fn act(&mut self, action: Action) -> Result<(), Failure> {
        match action {
            Action::Hold(keys) => {
                hold(&self.args.source, &keys)?;
                self.agent.holds();
                self.tell()?;
            }
            Action::Check => {
                self.make_folder()?;
                check_writable(&self.state)?;
                keys::check(&self.args.source)?;
                self.agent.checked();
            }
            Action::Join => {
                self.claim().await?;
                // The result does not matter: an existing entry is fine.
                self.store.transact(&self.layout.join(&self.host)).await?;
                self.agent.joined();
            }
            Action::Fetch => {
                let (fleet, stored) = self.store.fleet(&self.layout, &self.args.fleet).await?;
                let is_claimed = stored.claims.get(&self.host).is_some_and(|claim| self.is_ours(claim));
                let member = fleet.members.get(&self.host).filter(|_| is_claimed);
                let applied = member.map(|member| member.applied);
                self.agent.fetched(fleet.plan, applied).map_err(|behind| self.behind(behind))?;
            }
            Action::Save(plan) => {
                self.save(&plan)?;
                self.agent.saved();
            }
            Action::Confirm(version) => {
                let is_entered = self.store.transact(&self.layout.confirm(&self.host, version)).await?;
                self.agent.confirmed(is_entered);
            }
            Action::Report(version) => {
                let uses = uses(&self.args.source)?;
                let quiet = self.quiet.observe(self.begun.elapsed(), version, uses.uptime, uses.count);
                let report = Report { version, quiet_seconds: quiet.as_secs_f64(), backup_uses: uses.count };
                self.report(&report).await?;
                self.agent.reported();
            }
            Action::Rest => {}
        }
        Ok(())
    }

    async fn report(&mut self, report: &Report) -> Result<(), Trouble> {
        let lease = self.alive().await?;
        self.store.transact(&self.layout.report(&self.host, report, lease)).await?;
        Ok(())
    }

    /// The lease of this agent, kept alive.
    async fn alive(&mut self) -> Result<i64, Trouble> {
        let seconds = lease_of(self.args.interval).as_secs();
        let lease = self.store.lease(self.lease.take(), seconds).await?;
        self.lease = Some(lease);
        Ok(lease)
    }

    /// Claims the host for this agent, unless the agent of another machine has claimed it.
    async fn claim(&mut self) -> Result<(), Failure> {
        let lease = self.alive().await?;
        let (_, stored) = self.store.fleet(&self.layout, &self.args.fleet).await?;
        let claim = stored.claims.get(&self.host);
        self.is_taken = claim.is_some_and(|claim| claim.instance != self.instance);
        if self.is_taken {
            return Err(Failure::failed(format!(
                "cannot join fleet {1} as {0}: the agent of another machine uses this name; give \
                one of the two another name with --host",
                self.host, self.args.fleet
            )));
        }
        match claim {
            Some(claim) if self.is_ours(claim) => Ok(()),
            before => {
                let call = self.layout.claim(&self.host, &self.instance, lease, before);
                match self.store.transact(&call).await? {
                    true => Ok(()),
                    false => Err(Failure::failed(format!(
                        "cannot claim the name {}: another agent claimed it at the same time",
                        self.host
                    ))),
                }
            }
        }
    }

    fn is_ours(&self, claim: &Claim) -> bool {
        claim.instance == self.instance && Some(claim.lease) == self.lease
    }

    /// Returns whether an older claim of this host may soon end, for --once.
    fn may_be_freed(&self) -> bool {
        self.is_taken && self.begun.elapsed() < lease_of(self.args.interval) + FREED_AFTER
    }

    /// Ends the claim and the report at once instead of with the lease.
    async fn leave(&mut self) {
        if let Some(lease) = self.lease.take() {
            // Without the store both expire a little later.
            let _ = self.store.call(&etcd::revoke(lease)).await;
        }
    }

    fn make_folder(&self) -> Result<(), Failure> {
        if let Some(folder) = self.state.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|error| Failure::file("make", folder, &error))?;
        }
        Ok(())
    }

    fn save(&self, plan: &Plan) -> Result<(), Failure> {
        self.make_folder()?;
        write_secret(&self.state, &(plan.text() + "\n"))
    }

    fn behind(&self, Behind { store, here }: Behind) -> Failure {
        Failure::failed(format!(
            "cannot follow the store: it has version {store} of the keys, this host has {here}; was \
            the store restored from a backup? The current keys stay. To follow the store anyway, \
            delete {} and restart the agent",
            self.state.display()
        ))
    }

    fn tell(&mut self) -> Result<(), Failure> {
        if let Some(plan) = self.agent.plan()
            && plan.version() != self.in_use
        {
            self.in_use = plan.version();
            print(&format!("version {}, {}, is in use: {}", plan.version(), plan.step(), shown(plan)))?;
        }
        Ok(())
    }

    /// Reports an error once, until the agent recovers or the error changes.
    fn complain(&mut self, why: &str) {
        if self.trouble != why {
            warn(format!("{why}; the current keys stay"));
            why.clone_into(&mut self.trouble);
        }
    }
}

/// Returns the lifetime of a lease that is not renewed. A host is away after three failed turns.
fn lease_of(interval: Duration) -> Duration {
    Duration::from_secs((interval * 3).as_secs().max(5))
}

/// Reads the plan that an earlier run saved.
fn saved(state: &Path) -> Result<Option<Plan>, Failure> {
    if fs::symlink_metadata(state).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let text = secret::read(state, STATE_MAX, "the keys")?;
    let plan = Plan::read(&text).map_err(|why| {
        Failure::failed(format!("cannot read {}: {why}; delete it to start again", state.display()))
    })?;
    warn_if_shared(state, "the keys");
    Ok(Some(plan))
}
