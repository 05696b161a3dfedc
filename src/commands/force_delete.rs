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

/// Delete pods, or a node, that are dead for sure: with the evidence first
///
/// To delete a pod by force, or the Node object of a silent node, tells Kubernetes that its processes
/// will never run again; nothing checks that it is true. This gathers what is known, prints a line a
/// check, names each guarantee that is given up, and deletes only with --confirm.
///
/// A check ends as ok, WARN, CONFIRM (a guarantee is given up), UNKNOWN (you may not read it, or it did
/// not answer: as CONFIRM) or REFUSE, which takes an --override of its own. The report ends with the
/// line to type next: it names the pods that were shown and the ids that they need. What has another id
/// by then, or gets worse before the deletion, was not confirmed: nothing is deleted, with exit code 6, as
/// without --confirm. With node/NAME an id is given up for every pod of the node, also one that came
/// since. docs/pod-safety.md says what each check means.
///
/// The node's maintenance lease is held meanwhile, where you may take it; one of your own is left as
/// found. Finalizers are never touched. An Event on the owner, or on the node, keeps the evidence.
#[derive(Args, Debug)]
#[command(
    arg = namespace("Namespace of the pods, instead of the context's"),
    mut_arg("format", offers_no_lock_id),
    after_help = "Examples:
  kubectl maint force-delete pod/web-0 -n shop
  kubectl maint force-delete pod/web-0 -n shop --confirm=owner -m \"unplugged\"
  kubectl maint force-delete -l app=web -n shop -o json
  kubectl maint force-delete node/worker-1 --confirm -m \"scrapped\"
  kubectl maint fence worker-1 --powered-off=\"unplugged\"    # the safer way")]
pub(crate) struct ForceDeleteArgs {
    /// pod/NAME, as many as you like, or one node/NAME: the Node object with all its pods
    #[arg(value_name = "KIND/NAME")]
    pub(crate) targets: Vec<String>,

    /// Pods whose labels match, such as app=web
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "targets")]
    pub(crate) selector: Option<String>,

    /// Give up what the report shows, or just these: what else appears is refused
    ///
    /// An ID is that of a line which says CONFIRM or UNKNOWN. Alone it gives up all that the report shows;
    /// --confirm=nothing gives up nothing, and deletes only where nothing has to be.
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

    /// Go on although this check refuses
    #[arg(
        long = "override",
        value_name = "ID",
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(checks::OVERRIDABLE)
    )]
    pub(crate) overrides: Vec<String>,

    /// Why, for the Event that keeps the evidence
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// How long to wait for the replacement, where one comes only now; 0 looks once
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
