//! Whom a verb asks: the kernel, of this network namespace or another, or a stack of ours that runs.
use crate::control::ControlArgs;
use crate::failure::Failure;
use clap::Args;
use doctor::sources;

/// Whom to ask.
#[derive(Args, Debug)]
#[command(next_help_heading = "Whom to ask")]
pub(crate) struct WhomArgs {
    /// The kernel's TCP [default, unless --stack or --control is given].
    #[arg(long, conflicts_with_all = ["stack", "control"])]
    kernel: bool,
    /// The kernel's TCP in this network namespace of `ip netns` (needs root).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stack", "control"])]
    netns: Option<String>,
    /// The one stack of ours that runs (`firstbyte serve`).
    #[arg(long)]
    stack: bool,
    #[command(flatten)]
    control: ControlArgs,
}

impl WhomArgs {
    /// The stack of ours that was named.
    pub(crate) fn stack(&self) -> Option<&ControlArgs> {
        (self.stack || self.control.is_named()).then_some(&self.control)
    }

    /// Reads the kernel where it was said.
    pub(crate) fn read<T: Send>(&self, read: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        in_namespace(self.netns.as_deref(), read)
    }
}

/// A stack of ours, where only such a one has what is asked.
#[derive(Args, Debug)]
pub(crate) struct StackOnly {
    /// The one stack of ours that runs (`firstbyte serve`).
    #[arg(long)]
    stack: bool,
    #[command(flatten)]
    control: ControlArgs,
}

impl StackOnly {
    /// Whom to ask, if a stack was named.
    pub(crate) fn named(&self) -> Option<&ControlArgs> {
        (self.stack || self.control.is_named()).then_some(&self.control)
    }

    /// Whom to ask.
    pub(crate) fn control(&self) -> &ControlArgs {
        &self.control
    }
}

/// Whose kernel to read, where only the kernel has what is asked.
#[derive(Args, Debug)]
pub(crate) struct KernelArgs {
    /// Read this network namespace of `ip netns` (needs root).
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
}

impl KernelArgs {
    /// Reads the kernel where it was said.
    pub(crate) fn read<T: Send>(&self, read: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        in_namespace(self.netns.as_deref(), read)
    }
}

/// Reads the kernel in a network namespace, or in that of this process.
pub(crate) fn in_namespace<T: Send>(
    name: Option<&str>,
    read: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Some(name) = name else { return Ok(read()) };
    sources::in_namespace(name, read).map_err(|error| {
        Failure::failed(format!(
            "network namespace {name}: {error} (ip netns lists them; entering one needs root)"
        ))
    })
}
