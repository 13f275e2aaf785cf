//! Chooses between the kernel's sockets and our own stack.
use crate::failure::Failure;
use clap::ValueEnum;
use firstbyte::Backend;

/// The value of `--backend`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendName {
    /// The sockets of this machine's kernel; needs no root
    Kernel,
    /// Our own stack, a host of its own behind a TUN device
    Stack,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Backend {
        match name {
            BackendName::Kernel => Backend::Kernel,
            BackendName::Stack => Backend::Stack,
        }
    }
}

/// Chooses the backend: `asked` on the command line, then the environment's, then `default`.
/// `stack_only` are the options in use that only our own stack has.
///
/// # Errors
/// The kernel's sockets are asked for together with such an option.
pub(crate) fn choose(
    asked: Option<BackendName>,
    stack_only: &[&str],
    default: Backend,
) -> Result<Backend, Failure> {
    let variable = match asked {
        None => Backend::from_env().map_err(|error| Failure::usage(error.to_string()))?,
        Some(_) => None,
    };
    decide(asked.map(Backend::from), variable, stack_only, default)
}

fn decide(
    asked: Option<Backend>,
    variable: Option<Backend>,
    stack_only: &[&str],
    default: Backend,
) -> Result<Backend, Failure> {
    let source = match (asked, variable) {
        (Some(Backend::Kernel), _) => "--backend kernel",
        (None, Some(Backend::Kernel)) => "FIRSTBYTE_BACKEND=kernel",
        _ => return Ok(asked.or(variable).unwrap_or(default)),
    };
    match stack_only.first() {
        None => Ok(Backend::Kernel),
        Some(option) => Err(Failure::usage(format!(
            "cannot use {option} with {source}: only our own stack has it; remove {option}, or use \
             --backend stack"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Backend::{Kernel, Stack};

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_default() {
        assert_eq!(decide(None, None, &["--tun"], Stack), Ok(Stack));
        assert_eq!(decide(None, None, &[], Kernel), Ok(Kernel));
        assert_eq!(decide(None, Some(Kernel), &[], Stack), Ok(Kernel));
        assert_eq!(decide(Some(Stack), Some(Kernel), &["--tun"], Kernel), Ok(Stack));
        for (asked, variable, source) in [
            (Some(Kernel), Some(Stack), "--backend kernel"),
            (None, Some(Kernel), "FIRSTBYTE_BACKEND=kernel"),
        ] {
            let refused = decide(asked, variable, &["--pcap", "--tun"], Stack).unwrap_err();
            let start = format!("cannot use --pcap with {source}: ");
            assert!(refused.message().starts_with(&start), "{refused:?}");
        }
    }
}
