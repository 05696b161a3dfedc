//! `with`: run a command on this machine while nodes are locked.

mod codes;
mod ending;
mod locking;
mod messages;

use std::ffi::OsString;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, value_parser};
use futures::{join, poll};
use maintenance_lease::protocol::Terms;
use maintenance_lease::{Change, DEFAULT_REQUEST_TIMEOUT, NodeEvent};
use supervisor::Signals;
use under_lease::{CommandOutcome, Progress};

use self::codes::Codes;
use self::locking::Locking;
use self::messages::Messages;
use crate::args::change::ChangingArgs;
use crate::args::duration;
use crate::args::nodes::NodeArgs;
use crate::args::output::OutputArgs;
use crate::args::take_expired::TakeExpiredArgs;
use crate::args::wait::WaitingArgs;
use crate::args::write::{WriteArgs, reason};
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::change::VerbRun;
use crate::run::session::{Session, Start};
use crate::run::side_effects::SideEffects;
use crate::run::{events, problems, variables};
use crate::signals::asked_to_end;
use crate::words::change::{self, dry_run_suffix};
use crate::words::holder::HoldingCommand;
use crate::words::with::With;

/// Run a command on this machine while nodes are locked
///
/// Locks the nodes, runs COMMAND on this machine and renews the locks meanwhile. The nodes are
/// released when COMMAND and everything that it started have ended. COMMAND runs once, without a
/// shell. To work on a node, it has to connect to the node, for example with ssh.
///
/// If a lock is lost, COMMAND and everything that it started on this machine get TERM, and KILL after
/// --grace. The exit code is then 5. What COMMAND started on other machines keeps running. The lock
/// is held under a name of its own, so a node that you have already locked is refused: use --reentry.
///
/// Otherwise, the exit code is the one of COMMAND. If COMMAND was not run, it is 3 (a node is locked
/// by somebody else), 4 (the wait timed out), 6 (see --take-expired), 125 (another error), 126 or 127. docs/with.md explains
/// the exit codes, signals and times, and the variables for COMMAND, such as MAINT_NODES.
#[derive(Args, Debug)]
#[command(
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

    /// Reason for the lock, shown to others
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Time until the lock expires if this machine crashes, at most 1h
    ///
    /// The shortest time is 3/2 × (--request-timeout + --grace + 1s): a renewal is due after a third
    /// of it and, if that fails, there must be time to end COMMAND.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        allow_hyphen_values = true,
        value_parser = duration::renewal
    )]
    pub(crate) lease_duration: Duration,

    /// Time between TERM and KILL if a lock is lost
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = duration::length
    )]
    pub(crate) grace: Duration,

    /// Use a lock that you already hold; renew it, but do not release it
    #[arg(long)]
    pub(crate) reentry: bool,

    #[command(flatten)]
    pub(crate) take: TakeExpiredArgs,

    /// Exit code if a node is not free, instead of 3 and 4 (1 to 255)
    #[arg(short = 'E', long, value_name = "CODE", hide_short_help = true, value_parser = value_parser!(u8).range(1..))]
    pub(crate) conflict_exit_code: Option<u8>,

    /// Exit code if a lock is lost, instead of 5 (1 to 255)
    #[arg(
        long,
        value_name = "CODE",
        default_value_t = Code::LOST.number(),
        hide_default_value = true,
        hide_short_help = true,
        value_parser = value_parser!(u8).range(1..)
    )]
    pub(crate) lost_exit_code: u8,

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
    fn changing(&self) -> ChangingArgs {
        ChangingArgs {
            nodes: NodeArgs {
                nodes: self.nodes.clone(),
                parallel: 32,
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
    fn stop(&self) -> Duration {
        under_lease::stop(self.grace)
    }

    /// Refuses a lease that is too short to be renewed in time if each request takes `request`.
    fn check(&self, request: Duration) -> Result<(), InputError> {
        let shortest = Terms::shortest(request.into(), self.stop().into());
        if self.lease_duration.as_secs() >= u64::from(shortest) {
            return Ok(());
        }
        Err(InputError::ShortLease {
            lease: self.lease_duration,
            request,
            grace: self.grace,
            shortest: Duration::from_secs(shortest.into()),
        })
    }
}

pub(crate) async fn run(args: &WithArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let codes = Codes::new(args);
    Ok(with(args, codes, start).await.unwrap_or_else(|failure| {
        problems::report(start.terminal, start.program, &failure);
        codes.of_failure(Code::of(&failure, None))
    }))
}

async fn with(args: &WithArgs, codes: Codes, start: &Start<'_>) -> Result<Code, Failure> {
    supervisor::supports("\"with\"").map_err(anyhow::Error::new)?;
    let changing = args.changing();
    let selection = changing.selection(None, start.terminal)?;
    let mut work = VerbRun::begin(start, &changing, Verb::With).await?;
    let request = work.session.connection.request_timeout;
    args.check(request.unwrap_or(DEFAULT_REQUEST_TIMEOUT))?;
    let own = work.session.locks.clone();
    work.session.locks = own
        .as_holder(HoldingCommand::With.holder(own.identity()))
        .map_err(InputError::Holder)?;
    supervisor::check().map_err(anyhow::Error::new)?;
    let locking = Locking {
        args,
        work: &work,
        own: &own,
        outer: start.environment.get(variables::HOLDER),
    };

    // From here on Ctrl-C is noticed, also between two steps.
    let mut interrupt = pin!(asked_to_end());
    let _ = poll!(&mut interrupt);
    let changes = locking.all(&selection).await?;
    let words = With {
        changes: &changes,
        command: &args.command,
    };
    let session = &work.session;
    if work.is_dry_run() {
        let suffix = dry_run_suffix(args.write.dry_run);
        session.terminal.result(words.would() + suffix);
        return Ok(Code::DONE);
    }
    let held = tokio::select! {
        biased;
        held = locking.keep(&changes) => held?,
        () = &mut interrupt => {
            locking.give_back(&changes).await?;
            return Err(Failure::Interrupted);
        }
    };
    if poll!(&mut interrupt).is_ready() {
        ending::give_back(session, held, &CommandOutcome::nothing()).await;
        return Err(Failure::Interrupted);
    }
    session.terminal.remark(words.begins());
    let events = reported(session, &changes);
    session.connection.leave_stdin();
    let command = supervisor::Command::new(args.command.clone());
    let command = variables::set_all(command, &held);
    let mut messages = Messages::new(session);
    let running = async {
        let signals = Signals::new().context("could not listen for signals")?;
        let report = |news: Progress<'_>| messages.report(news);
        let outcome = under_lease::run(&held, command, args.grace, signals, report).await;
        Ok::<_, Failure>(outcome.map_err(anyhow::Error::new)?)
    };
    let (outcome, ()) = join!(running, events::post(session, events));
    messages.repeat();
    let (outcome, failure) = match outcome {
        Ok(outcome) => (outcome, None),
        Err(failure) => (CommandOutcome::nothing(), Some(failure)),
    };
    let is_lost = ending::give_back(session, held, &outcome).await || outcome.is_lost();
    match failure {
        Some(failure) => Err(failure),
        None => Ok(codes.of_command(&outcome, is_lost)),
    }
}

/// Reports side effects of the locks; returns the Events for the nodes.
fn reported(session: &Session<'_>, changes: &[Change]) -> Vec<NodeEvent> {
    let now = session.locks.server_time().now();
    let mut side_effects = SideEffects::default();
    let mut events = Vec::new();
    for change in changes {
        if let Some(expired) = change::expired(change, now) {
            session.terminal.warn(expired);
        }
        if let Some(note) = change::note(change) {
            session.terminal.remark(note);
        }
        side_effects.add(change);
        let caller = session.locks.identity();
        events.extend(events::of(change, Verb::With, caller, false, None));
    }
    side_effects.print(session.terminal, "");
    events
}
