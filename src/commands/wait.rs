//! `wait`: wait until nodes are free, locked, expired or on hold.

mod until;

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum as _};
use tokio::time::Instant;

use self::until::Wait;
use crate::args::duration;
use crate::args::nodes::NodeArgs;
use crate::args::output::OutputArgs;
use crate::error::lock_state::LockState;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::item::NodeList;
use crate::run::interruption::{in_time, or_interrupted};
use crate::run::problems::Problems;
use crate::run::session::Start;
use crate::run::targets;

/// Wait until nodes are free, locked, expired or on hold
///
/// Prints each node when it reaches the state. If a node does not reach it in time, the exit code is 4.
/// With --for=free, an expired lock counts as free. But if the node is then NotReady or cordoned, acquire needs
/// --take-expired.
///
/// Waiting does not lock the node: somebody else may lock it before you do. To lock it, use
/// acquire --wait instead.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint wait worker-1
  kubectl maint wait worker-1 --timeout=10m
  kubectl maint wait -l pool=gpu --timeout=1h
  kubectl maint wait worker-1 --for=locked --timeout=5m
  kubectl maint acquire worker-1 --wait    # if you want to lock it")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// State to wait for
    #[arg(
        long = "for",
        value_name = "STATE",
        value_parser = condition(),
        default_value = "free",
        ignore_case = true
    )]
    pub(crate) condition: LockState,

    /// Stop waiting after this long (e.g. 90s, 10m); 0 checks once [default: no limit]
    ///
    /// The exit code is then 4. A negative time means one week.
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = duration::timeout
    )]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Other names of the states, some of which earlier releases had.
const OTHER_NAMES: [(&str, LockState); 3] = [
    ("unlocked", LockState::Free),
    ("held", LockState::Locked),
    ("hold", LockState::OnHold),
];

fn condition() -> impl TypedValueParser<Value = LockState> {
    let values = LockState::value_variants().iter().filter_map(|state| {
        let others = OTHER_NAMES.iter().filter(|(_, of)| of == state);
        let value = state.to_possible_value()?;
        let value = match state {
            LockState::Free => value.help("No lock, or an expired one"),
            _ => value,
        };
        Some(value.aliases(others.map(|(name, _)| *name)))
    });
    PossibleValuesParser::new(values).try_map(|typed| {
        let mut others = OTHER_NAMES.iter();
        match others.find(|(name, _)| typed.eq_ignore_ascii_case(name)) {
            Some((_, state)) => Ok(*state),
            None => LockState::from_str(&typed, true),
        }
    })
}

pub(crate) async fn run(args: &WaitArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let format = args.output.format();
    if args.condition == LockState::Free && matches!(format, Format::LockId) {
        return Err(InputError::NoLockIdOfFree.into());
    }
    let selection = args.nodes.selection(None, start.terminal.stdin())?;
    let begun = Instant::now();
    let session = start.open_for_reading().await?;
    let problems = Problems::changing(&session, Verb::Wait);
    let parallel = args.nodes.parallel;
    let finding = async {
        let found = targets::find(&session, &selection, true, Verb::Wait, parallel).await?;
        targets::read(&session, found, true, Verb::Wait, parallel).await
    };
    // A limit of zero checks once.
    let limit = args.timeout.filter(|limit| !limit.is_zero());
    let targets = match or_interrupted(in_time(limit, finding)).await {
        Ok(targets) => targets,
        Err(failure) => {
            problems.report_for(selection.names(), &failure, format)?;
            return Ok(problems.end().await);
        }
    };
    let wait = Wait::new(&session, &problems, args.condition, format, targets);
    let items = wait.run(args.timeout, begun).await;
    let list = NodeList::new(items).single(selection.is_single());
    session.terminal.print(&list, format)?;
    Ok(problems.end().await)
}
