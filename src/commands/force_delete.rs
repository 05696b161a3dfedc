//! `force-delete`: pods or a Node, with the evidence first.

mod asked;
mod carry_out;
mod evidence;
mod locks;
mod look;
mod next;
mod note;
mod request;
mod sequel;
mod standing;
mod tell;

use std::time::Duration;

use clap::Args;
use pod_safety::checks;
use pod_safety::cluster::Reader;
use pod_safety::consent::{Confirmed, Consent, NOTHING};

use self::asked::Asked;
use self::carry_out::Work;
use crate::args::connection::namespace;
use crate::args::duration;
use crate::args::output::{OutputArgs, offers_no_lock_id};
use crate::args::write::{WriteArgs, reason};
use crate::error::Failure;
use crate::exit::Code;
use crate::output::format::Format;
use crate::run::session::Start;
use crate::text::shown;
use crate::words::holder::Running;

/// Check the risks, then force-delete pods or a node
///
/// A forced deletion tells Kubernetes that the processes of a pod or node will never run again. Nothing
/// checks that this is true. This command checks what can be known and prints one line per check. It
/// deletes only if you accept the risks with --confirm; without it, the exit code is 6.
///
/// A check is ok, WARN, CONFIRM (accept the risk to continue), UNKNOWN (it could not be checked: treated
/// as CONFIRM) or REFUSE (needs its own --override). The report ends with the command to run next. That
/// command repeats all checks, and deletes nothing if there is a new risk (exit code 6).
///
/// The node is locked during the deletion, if you may lock it. Finalizers are never removed. The result of the
/// checks is recorded in an Event. docs/pod-safety.md explains each check.
#[derive(Args, Debug)]
#[command(
    arg = namespace("Namespace of the pods [default: that of the context]"),
    mut_arg("format", offers_no_lock_id),
    after_help = "Examples:
  kubectl maint force-delete pod/web-0 -n shop
  kubectl maint force-delete pod/web-0 -n shop --confirm=owner -m \"unplugged\"
  kubectl maint force-delete -l app=web -n shop
  kubectl maint force-delete node/worker-1 --confirm -m \"scrapped\"
  kubectl maint fence worker-1 --powered-off=\"unplugged\"    # the safer way")]
pub(crate) struct ForceDeleteArgs {
    /// Pods as pod/NAME, or one node/NAME: the Node with all its pods
    #[arg(value_name = "KIND/NAME")]
    pub(crate) targets: Vec<String>,

    /// Select pods by label (e.g. app=web)
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "targets")]
    pub(crate) selector: Option<String>,

    /// Accept these risks, by the IDs of the report, and delete
    ///
    /// An ID is the one in a CONFIRM or UNKNOWN line. --confirm without IDs accepts everything that the
    /// report shows. --confirm=nothing accepts nothing, and deletes only if there is no risk to accept.
    /// For node/NAME, an ID counts for all pods of the node, also for those that came after the report.
    #[arg(
        long,
        value_name = "ID,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL,
        requires = "message",
        value_parser = confirmed
    )]
    pub(crate) confirm: Option<Confirmed>,

    /// Continue even if this check refuses
    #[arg(
        long = "override",
        value_name = "ID",
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(checks::OVERRIDABLE)
    )]
    pub(crate) overrides: Vec<String>,

    /// Reason, recorded in the Event
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Stop waiting for the replacement after this long; 0 checks once
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = duration::timeout
    )]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What `--confirm` alone stands for.
const ALL: &str = "all";

/// Reads the ids of `--confirm`.
fn confirmed(typed: &str) -> Result<Confirmed, String> {
    match typed {
        ALL => Ok(Confirmed::All),
        "" => Err(format!(
            "it is empty: --confirm alone gives up all that the report shows, --confirm={NOTHING} nothing"
        )),
        ids => {
            let ids = ids.split(',').map(|id| confirmable(id.trim()));
            ids.collect::<Result<_, _>>().map(Confirmed::These)
        }
    }
}

fn confirmable(id: &str) -> Result<String, String> {
    match id {
        _ if id == NOTHING || checks::CONFIRMABLE.contains(&id) => Ok(id.to_owned()),
        _ if checks::OVERRIDABLE.contains(&id) => {
            Err(format!("{id} refuses: it takes --override={id}"))
        }
        _ if checks::FINAL.contains(&id) => {
            Err(format!("{id} refuses, and nothing overrides that"))
        }
        _ if checks::TOLD.contains(&id) => {
            Err(format!("{id} is told and gives nothing up: leave it away"))
        }
        _ => Err(format!(
            "{:?} is none of {}",
            shown(id),
            checks::CONFIRMABLE.join(", ")
        )),
    }
}

impl ForceDeleteArgs {
    fn consent(&self) -> Consent {
        Consent::new(
            self.confirm.clone().unwrap_or_default(),
            self.overrides.iter().cloned().collect(),
        )
    }

    /// Whether `--confirm` names this id.
    fn gives_up(&self, id: &str) -> bool {
        matches!(&self.confirm, Some(Confirmed::These(ids)) if ids.contains(id))
    }
}

pub(crate) async fn run(args: &ForceDeleteArgs, start: &Start<'_>) -> Result<Code, Failure> {
    if args.output.format() == Format::LockId {
        return Err(Failure::usage(
            "force-delete has no lock id for -o lock-id",
            "use -o json or -o name",
        ));
    }
    let asked = Asked::of(args)?;
    let session = start.writing(&args.write).await?;
    let process = Running::ForceDelete.holder(session.locks.identity());
    let process = session.locks.as_holder(process);
    let process =
        process.map_err(|error| Failure::usage(error.to_string(), "give another --holder"))?;
    let reader = Reader::new(session.locks.requests().clone());
    let work = Work {
        session: &session,
        process: &process,
        reader: &reader,
        args,
        asked: &asked,
    };
    let result = work.run().await;
    session.warn_of_clocks();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_confirmed_is_a_check_that_can_be() {
        let these = |ids: &[&str]| {
            let ids = ids.iter().map(|&id| id.to_owned());
            Ok(Confirmed::These(ids.collect()))
        };
        assert_eq!(confirmed("all"), Ok(Confirmed::All));
        assert_eq!(
            confirmed("owner,lease-unknown"),
            these(&["owner", "lease-unknown"])
        );
        assert_eq!(confirmed("nothing"), these(&["nothing"]));
        assert_eq!(confirmed("owner, pdb"), these(&["owner", "pdb"]));
        for (typed, why) in [
            ("", "--confirm=nothing nothing"),
            ("owner,", " is none of owner, "),
            ("node-alive", "it takes --override=node-alive"),
            ("mirror", "nothing overrides that"),
            ("owner,finalizers", "finalizers is told"),
            ("All", "\"All\" is none of owner, "),
            ("ownr", "\"ownr\" is none of owner, "),
        ] {
            let error = confirmed(typed).expect_err(typed);
            assert!(error.contains(why), "{typed:?}: {error}");
        }
    }
}
