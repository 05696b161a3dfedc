//! `wait`: until nodes are free, locked, expired or on hold.

mod until;

use std::time::Duration;

use clap::{Args, ValueEnum};
use maintenance_lease::protocol::{Now, State};
use maintenance_lease::{Acquire, Maintenance, Seen};

use self::until::Wait;
use crate::args::duration;
use crate::args::nodes::NodeArgs;
use crate::args::output::OutputArgs;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::output::print;
use crate::run::problems::Problems;
use crate::run::session::Start;
use crate::run::{parallel, targets};

/// Wait until nodes are free, locked, expired or on hold
///
/// Each node is told as it gets there; exit code 4 where one does not in time. A node is free where
/// acquire would succeed, so also where its lease expired.
///
/// A wait reserves nothing: by the time that you act, somebody else may have the node. To act, use
/// acquire --wait.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint wait worker-1
  kubectl maint wait worker-1 --for=locked --timeout=5m
  kubectl maint wait -l pool=gpu --for=free --timeout=-1s
  kubectl maint acquire worker-1 --wait    # where you mean to act")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// What to wait for
    #[arg(long = "for", value_name = "STATE", value_enum, default_value = "free")]
    pub(crate) condition: Condition,

    /// How long to wait, such as 90s or 10m. 0 checks once, a negative time is a week
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = duration::timeout
    )]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Condition {
    /// acquire would succeed
    Free,
    /// somebody has locked it
    #[value(alias = "held")]
    Locked,
    /// a lock on it has expired
    Expired,
    /// somebody has it on hold
    #[value(alias = "hold")]
    OnHold,
}

impl Condition {
    /// As a state of nodes.
    fn state(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Locked => "locked",
            Self::Expired => "expired",
            Self::OnHold => "on hold",
        }
    }

    /// Whether that is how the node stands.
    fn is_met(self, seen: &Seen, locks: &Maintenance, now: Now) -> bool {
        let state = seen
            .lease
            .as_ref()
            .map_or(State::Free, |lease| lease.state(now));
        match self {
            Self::Free => locks.check_acquire(seen, &Acquire::new()).is_ok(),
            Self::Locked => matches!(state, State::Held { .. }),
            Self::Expired => matches!(state, State::Expired { .. }),
            Self::OnHold => state == State::AdminHold,
        }
    }
}

pub(crate) async fn run(args: &WaitArgs, start: &Start<'_>) -> Result<Code, Failure> {
    if args.condition == Condition::Free {
        args.output.without_lock_ids()?;
    }
    let selection = args.nodes.selection(None, start.terminal.stdin())?;
    let session = start.reading().await?;
    let problems = Problems::changing(&session, Verb::Wait);
    let parallel = args.nodes.parallel;
    let finding = async {
        let found = targets::find(&session, selection, true, Verb::Wait, parallel).await?;
        targets::look(&session, found, true, parallel).await
    };
    let targets = match parallel::or_interrupted(finding).await {
        Ok(targets) => targets,
        Err(failure) => {
            problems.tell(&failure);
            return Ok(problems.end().await);
        }
    };
    let single = targets.single;
    let items = Wait::new(&session, &problems, args, targets).go_on().await;
    if let Some(text) = print::items(items, single, args.output.format())? {
        session.terminal.data(text);
    }
    Ok(problems.end().await)
}
