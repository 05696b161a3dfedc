//! `verify`: whether an acquisition still holds, for scripts to check between two steps.

use clap::Args;
use futures::future::join_all;

use crate::args::lock_id::{LockIdArgs, VARIABLE};
use crate::args::nodes;
use crate::error::{Failure, InputError, Verb};
use crate::exit::Code;
use crate::run::interruption::or_interrupted;
use crate::run::problems::Problems;
use crate::run::session::Start;
use crate::words::node_state;

/// Check that a lock is still held
///
/// Use this command between two steps of a script. Continue only if the exit code is 0: the lock with
/// this id is still held. On any other code, stop: docs/scripts.md explains
/// the codes.
///
/// Give the lock with --lock-id, or with MAINT_LOCK_ID. Inside of `with`, MAINT_LOCK_ID is set, and you need
/// no arguments. This command reads one Lease per node and writes nothing.
#[derive(Args, Debug)]
#[command(mut_arg("lock_id", |id| {
    let help = "Check the lock with this id, from acquire -o lock-id [env: MAINT_LOCK_ID]";
    id.help(help).long_help(format!(
        "{help}\n\nFor multiple nodes, give the whole output of acquire: one line for each node, with its name and its id."
    ))
}))]
#[command(after_help = "Examples:
  kubectl maint verify worker-1 --lock-id \"$LOCK_ID\" && \\
      ssh worker-1 sudo systemctl reboot
  kubectl maint with worker-1 -- sh -ec \\
      './firmware.sh; kubectl maint verify; ssh worker-1 sudo reboot'")]
pub(crate) struct VerifyArgs {
    /// Node name, as NAME or node/NAME [default: the nodes that the lock ids name, as inside of `with`]
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,

    #[command(flatten)]
    pub(crate) lock_id: LockIdArgs,

    /// Print only warnings and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

pub(crate) async fn run(args: &VerifyArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let node = args.node.as_deref().map(nodes::single_node).transpose()?;
    let ids = args.lock_id.given(start.environment)?;
    let missing = InputError::MissingLockId { variable: VARIABLE };
    let ids = ids.ok_or(missing)?.into_verified(node)?;
    let session = start.open_for_reading().await?;
    let locks = &session.locks;
    let reading = join_all(ids.iter().map(|(node, id)| async move {
        match locks.get(node).await? {
            Some(lease) if lease.uid() == id.uid() => {
                let checked = locks.check_held(&lease, id);
                checked.map_err(|error| Failure::of_lock_id(error, Some(id)))?;
                Ok(lease)
            }
            other => Err(Failure::WrongLockId {
                node: node.clone(),
                lease: other.map(Box::new),
            }),
        }
    }));
    let results = or_interrupted(async { Ok(reading.await) }).await?;
    let now = || locks.server_time().now();
    let problems = Problems::changing(&session, Verb::Verify);
    for result in results {
        match result {
            Ok(lease) => {
                session
                    .terminal
                    .result(node_state::still_locked(&lease, now()));
            }
            Err(failure) => {
                problems.report(&failure);
            }
        }
    }
    Ok(problems.end().await)
}
