//! The arguments of `with`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use maintenance_lease::protocol::Terms;

use crate::args::change::ChangingArgs;
use crate::args::duration::{self, shortest_lease};
use crate::args::nodes::NodeArgs;
use crate::args::output::OutputArgs;
use crate::args::protect::ProtectArgs;
use crate::args::take_expired::TakeExpiredArgs;
use crate::args::wait::WaitingArgs;
use crate::args::write::{ReasonArgs, WriteArgs};
use crate::error::InputError;

/// Run a command on this machine while nodes are locked
///
/// Locks the nodes, runs COMMAND on this machine and renews the locks meanwhile. The locks are
/// released when COMMAND and everything that it started have ended. COMMAND runs once, without a
/// shell. To work on a node, it has to connect to the node, for example with ssh.
///
/// If a lock is lost, COMMAND and everything that it started on this machine get TERM, and KILL after
/// --grace. The exit code is then 5. What COMMAND started on other machines keeps running. This command
/// uses its own holder name, so your existing lock is refused: use --reentry.
///
/// Unless a lock is lost, the exit code is that of COMMAND. If COMMAND was not run, it is 3 (a node is already locked),
/// 4 (the wait timed out), 6 (see --take-expired, --strict) or 125 (another error). It is 126 if COMMAND cannot be
/// executed, and 127 if not found.
/// docs/with.md explains signals, times, variables, macOS and Windows.
#[derive(Args, Debug)]
#[command(
    // Unlike `mut_arg`, this keeps the order of the flags.
    mut_args(|arg| match arg.get_id().as_str() {
        "take_expired" => arg.long_help(
            "Take expired locks of NotReady or cordoned nodes\n\n\
             The old holder may have stopped in the middle of something: check the node first. Without this flag, \
             you are asked on a terminal. Without a terminal, the exit code is 6."
        ),
        "wait" => arg.long_help(
            "Wait for the nodes to be unlocked\n\n\
             Your own locks are refused at once: use --reentry. A dry run does not wait."
        ),
        _ => arg,
    }),
    override_usage = "kubectl maint with [OPTIONS] NODE... -- COMMAND [ARGUMENT]...",
    after_help = "Examples:
  kubectl maint with worker-1 -m \"disk errors\" -- bash    # then: ssh worker-1
  kubectl maint with worker-1 -m \"new kernel\" -- \\
      ssh worker-1 sudo apt-get -y dist-upgrade
  kubectl maint with worker-1 --wait --timeout 1h -- ./reboot.sh
  kubectl maint with worker-1 worker-2 -- \\
      sh -c 'for n in $MAINT_NODES; do ssh $n sudo fstrim -a; done'"
)]
pub(crate) struct WithArgs {
    /// Nodes to lock, as NAME or node/NAME
    #[arg(value_name = "NODE", required = true)]
    pub(crate) nodes: Vec<String>,

    #[command(flatten)]
    pub(crate) why: ReasonArgs,

    /// Time until the lock expires if this machine crashes, at most 1h
    ///
    /// The shortest time is 3/2 × (--request-timeout + --grace + 1s). A renewal is due after a third
    /// of it. If the renewal fails, there must be time to end COMMAND.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        value_parser = duration::renewal
    )]
    pub(crate) lease_duration: Duration,

    /// Time between TERM and KILL if a lock is lost
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = duration::length
    )]
    pub(crate) grace: Duration,

    /// Use a lock that you already hold; renew it, but do not release it
    ///
    /// -m, --ticket, --cordon and --opt-outs change that lock, and stay until it ends. A hold stays as it is.
    #[arg(long)]
    pub(crate) reentry: bool,

    #[command(flatten)]
    pub(crate) protect: ProtectArgs,

    #[command(flatten)]
    pub(crate) take: TakeExpiredArgs,

    /// Exit code if a node is not free, instead of 3 and 4 (1 to 255)
    #[arg(
        short = 'E',
        long,
        value_name = "CODE",
        hide_short_help = true,
        value_parser = clap::value_parser!(u8).range(1..)
    )]
    pub(crate) conflict_exit_code: Option<u8>,

    #[command(flatten)]
    pub(crate) limit: WaitingArgs,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    /// Print only warnings and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Command to run on this machine, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl WithArgs {
    /// The nodes and how to lock them, in the form that other verbs share.
    pub(super) fn changing(&self) -> ChangingArgs {
        ChangingArgs {
            nodes: NodeArgs {
                nodes: self.nodes.clone(),
                ..NodeArgs::default()
            },
            write: self.write.clone(),
            // `with` has no flag that answers its question.
            yes: false,
            output: OutputArgs {
                format: None,
                quiet: self.quiet,
            },
        }
    }

    /// How long before the deadline COMMAND gets its stop signal.
    pub(super) fn stop(&self) -> Duration {
        supervisor::under_lease::stop(self.grace)
    }

    /// Refuses a lease that is too short to be renewed in time if each request takes `request`.
    pub(super) fn check(&self, request: Duration) -> Result<(), InputError> {
        let shortest = Terms::shortest(request.into(), self.stop().into());
        if self.lease_duration.as_secs() >= u64::from(shortest) {
            return Ok(());
        }
        Err(InputError::ShortLease {
            lease: self.lease_duration,
            request,
            grace: self.grace,
            shortest: shortest_lease(shortest),
        })
    }
}
