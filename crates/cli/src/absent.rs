//! The verbs and options that this binary was built without: each is parsed, and fails with the
//! feature that it needs.

use crate::failure::Failure;
use clap::Args;
use std::ffi::OsString;

/// Arguments of a verb that this binary was built without. They are accepted and ignored.
#[cfg(any(test, not(all(feature = "fleet", feature = "watch"))))]
#[derive(Args, Debug)]
#[command(about = "(absent: this binary was built without it)", disable_help_flag = true)]
pub(crate) struct AbsentArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<OsString>,
}

/// Reports that `job` needs a feature of the build.
pub(crate) fn failure(job: &str, feature: &str) -> Failure {
    Failure::failed(format!(
        "cannot {job}: this binary was built without the feature `{feature}`; install it with \
         `cargo install --path crates/cli --features {feature}`, or use a packaged release"
    ))
}

/// Stands in for `watch`.
#[cfg(not(feature = "watch"))]
pub(crate) mod watch {
    use crate::failure::Failure;
    use std::process::ExitCode;

    pub(crate) type WatchArgs = super::AbsentArgs;

    pub(crate) fn run(_: &WatchArgs) -> Result<ExitCode, Failure> {
        Err(super::failure("run watch", "watch"))
    }
}

/// Stands in for the verbs of `fleet` that use a store of keys.
#[cfg(not(feature = "fleet"))]
pub(crate) mod fleet {
    pub(crate) mod agent {
        use crate::absent::{AbsentArgs, failure};
        use crate::failure::Failure;
        use std::process::ExitCode;

        pub(crate) type AgentArgs = AbsentArgs;

        pub(crate) fn run(_: &AgentArgs) -> Result<ExitCode, Failure> {
            Err(failure("run fleet agent", "fleet"))
        }
    }

    pub(crate) mod plan {
        use crate::absent::{AbsentArgs, failure};
        use crate::failure::Failure;
        use std::process::ExitCode;

        pub(crate) type CreateArgs = AbsentArgs;
        pub(crate) type StatusArgs = AbsentArgs;
        pub(crate) type ForgetArgs = AbsentArgs;

        pub(crate) fn create(_: &CreateArgs) -> Result<ExitCode, Failure> {
            Err(failure("run fleet create", "fleet"))
        }

        pub(crate) fn status(_: &StatusArgs) -> Result<ExitCode, Failure> {
            Err(failure("run fleet status", "fleet"))
        }

        pub(crate) fn forget(_: &ForgetArgs) -> Result<ExitCode, Failure> {
            Err(failure("run fleet forget", "fleet"))
        }
    }

    pub(crate) mod rotate {
        use crate::absent::{AbsentArgs, failure};
        use crate::failure::Failure;
        use std::process::ExitCode;

        pub(crate) type RotateArgs = AbsentArgs;

        pub(crate) fn run(_: &RotateArgs) -> Result<ExitCode, Failure> {
            Err(failure("run fleet rotate", "fleet"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Command {
        #[command(flatten)]
        absent: AbsentArgs,
    }

    #[test]
    fn an_absent_verb_accepts_every_argument() {
        for line in ["agent", "agent --help", "agent web --store https://etcd1:2379 -- -x"] {
            assert!(Command::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn a_failure_names_the_feature_and_the_command_that_adds_it() {
        let message = failure("run fleet agent", "fleet");
        let message = message.message();
        assert!(message.starts_with("cannot run fleet agent: "), "{message}");
        assert!(message.contains("--features fleet`"), "{message}");
    }
}
