//! Options that select the kernel, in this network namespace or another, or a running stack.
use crate::control::ControlArgs;
use crate::failure::Failure;
use clap::Args;
use doctor::sources;

/// Selects the kernel or a running stack.
#[derive(Args, Debug)]
#[command(next_help_heading = "Source")]
pub(crate) struct SourceArgs {
    /// Use the kernel's TCP [default, unless --stack or --control is given]
    #[arg(long, conflicts_with_all = ["stack", "control"])]
    kernel: bool,
    /// Use the kernel's TCP in this network namespace of `ip netns` (needs root)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stack", "control"])]
    netns: Option<String>,
    /// Use the only running stack (`firstbyte serve`)
    #[arg(long)]
    stack: bool,
    #[command(flatten)]
    control: ControlArgs,
}

impl SourceArgs {
    /// Returns the selected stack.
    pub(crate) fn stack(&self) -> Option<&ControlArgs> {
        (self.stack || self.control.is_named()).then_some(&self.control)
    }

    /// Runs `read` in the selected network namespace.
    pub(crate) fn read<T: Send>(&self, read: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        in_namespace(self.netns.as_deref(), read)
    }
}

/// Selects a running stack, for verbs that the kernel cannot serve.
#[derive(Args, Debug)]
pub(crate) struct StackOnly {
    /// Use the only running stack (`firstbyte serve`)
    #[arg(long)]
    stack: bool,
    #[command(flatten)]
    control: ControlArgs,
}

impl StackOnly {
    /// Returns the selected stack.
    pub(crate) fn named(&self) -> Option<&ControlArgs> {
        (self.stack || self.control.is_named()).then_some(&self.control)
    }

    /// Returns the selected stack, or the only running one.
    pub(crate) fn control(&self) -> &ControlArgs {
        &self.control
    }
}

/// Selects the kernel, for verbs that a running stack cannot serve.
#[derive(Args, Debug)]
pub(crate) struct KernelArgs {
    /// Read this network namespace of `ip netns` (needs root)
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
}

impl KernelArgs {
    /// Runs `read` in the selected network namespace.
    pub(crate) fn read<T: Send>(&self, read: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        in_namespace(self.netns.as_deref(), read)
    }
}

/// Runs `read` in a network namespace, or in that of this process.
pub(crate) fn in_namespace<T: Send>(
    name: Option<&str>,
    read: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Some(name) = name else { return Ok(read()) };
    sources::in_namespace(name, read).map_err(|error| {
        Failure::failed(format!(
            "cannot enter network namespace {name}: {error} (`ip netns` lists them; entering one \
            needs root)"
        ))
    })
}
