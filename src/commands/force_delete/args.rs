//! The arguments of `force-delete`.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use pod_safety::checks;
use pod_safety::consent::{Confirmed, Consent, NONE};

use crate::args::connection::namespace;
use crate::args::duration;
use crate::args::output::{OutputArgs, offers_no_lock_id, templates};
use crate::args::write::{WriteArgs, reason};
use crate::error::InvalidValue;
use crate::words::usage::blocker;

/// Check the risks, then force-delete pods or a node
///
/// A forced deletion tells Kubernetes that the processes of a pod or node will never run again. Nothing
/// checks that this is true. This command checks what can be known and prints it, the worst first. It
/// deletes only if you accept the risks: on a terminal it asks, and in scripts it needs --accept-risk (else
/// exit code 6).
///
/// A finding is a BLOCKER (only --override lets you continue), a RISK (accept it to continue) or info. What
/// could not be checked is the risk `unread`. The report ends with the command to run next. That command
/// repeats all checks, and deletes nothing if there is a new risk (exit code 6).
///
/// The node is locked during the deletion, if you may lock it. Finalizers are never removed. The result of the
/// checks is recorded in an Event. docs/pod-safety.md explains each check.
#[derive(Args, Clone, Debug)]
#[command(
    arg = namespace("Namespace of the pods [default: that of the context]"),
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].name}",
        "NAME:.name,OUTCOME:.outcome"
    )),
    after_help = "Examples:
  kubectl maint force-delete pod/web-0 -n shop
  kubectl maint force-delete pod/web-0 -n shop --accept-risk=owner -m \"dead\"
  kubectl maint force-delete -l app=web -n shop
  kubectl maint force-delete node/worker-1 --accept-risk -m \"scrapped\"
  kubectl maint fence worker-1 --powered-off=\"unplugged\"    # the safer way")]
pub(crate) struct ForceDeleteArgs {
    /// Pods as pod/NAME or pod NAME..., or one node/NAME: the Node with all its pods
    #[arg(value_name = "KIND/NAME")]
    pub(crate) targets: Vec<String>,

    /// Select pods by label (e.g. app=web)
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "targets")]
    pub(crate) selector: Option<String>,

    /// Accept these risks, by the IDs of the report, and delete; needs -m
    ///
    /// An ID is the one in a RISK line. docs/pod-safety.md explains each. --accept-risk without IDs accepts every
    /// risk found in this run, even if you have not seen it. --accept-risk=none accepts nothing, and deletes only if
    /// there is no risk to accept. For node/NAME, an ID counts for all pods of the node, also for those that came
    /// after the report.
    #[arg(
        long,
        value_name = "ID,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL,
        requires = "message",
        value_parser = risks
    )]
    pub(crate) accept_risk: Vec<Risks>,

    /// Override these blockers, by the IDs of the report; needs -m
    #[arg(
        long = "override",
        value_name = "ID,...",
        value_delimiter = ',',
        requires = "message",
        value_parser = blockers()
    )]
    pub(crate) overrides: Vec<String>,

    /// Reason, recorded in the Event
    #[arg(short = 'm', long, alias = "reason", value_name = "WHY", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// Stop waiting after this long for the pods to be gone; 0 checks once
    ///
    /// The exit code is then 4.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2m",
        value_parser = duration::length
    )]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Parses the id of a blocker.
fn blockers() -> PossibleValuesParser {
    let values = checks::BLOCKERS.map(|id| PossibleValue::new(id).help(blocker(id)));
    PossibleValuesParser::new(values)
}

/// What `--accept-risk` without a value stands for.
pub(super) const ALL: &str = "all";

/// The ids of one `--accept-risk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Risks(BTreeSet<String>);

/// Parses the ids of `--accept-risk`.
pub(super) fn risks(typed: &str) -> Result<Risks, InvalidValue> {
    if typed.is_empty() {
        return Err(InvalidValue::NoRisk);
    }
    let ids = typed.split(',').map(|id| risk(id.trim()));
    ids.collect::<Result<_, _>>().map(Risks)
}

fn risk(id: &str) -> Result<String, InvalidValue> {
    let typed = || id.to_owned();
    match id {
        ALL | NONE => Ok(typed()),
        _ if checks::RISKS.contains(&id) => Ok(typed()),
        _ if checks::BLOCKERS.contains(&id) => Err(InvalidValue::Blocker { id: typed() }),
        _ if checks::FINAL.contains(&id) => Err(InvalidValue::FinalBlocker { id: typed() }),
        _ if checks::INFOS.contains(&id) => Err(InvalidValue::Informational { id: typed() }),
        _ => Err(InvalidValue::UnknownRisk { typed: typed() }),
    }
}

impl ForceDeleteArgs {
    pub(super) fn consent(&self) -> Consent {
        let confirmed = match self.accepted().next() {
            None => Confirmed::Nothing,
            Some(_) if self.accepts(ALL) => Confirmed::All,
            Some(_) => Confirmed::These(self.accepted().map(ToOwned::to_owned).collect()),
        };
        Consent::new(confirmed, self.overrides.iter().cloned().collect())
    }

    /// The same after the risks with these ids were accepted, for this reason.
    pub(super) fn with_answers(&self, ids: &[&str], message: String) -> Self {
        let mut args = self.clone();
        let ids = match ids {
            [] => BTreeSet::from([NONE.to_owned()]),
            ids => ids.iter().map(|&id| id.to_owned()).collect(),
        };
        args.accept_risk.push(Risks(ids));
        args.message = Some(message);
        args
    }

    /// The ids that were typed.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &str> {
        let given = self.accept_risk.iter();
        given.flat_map(|Risks(ids)| ids).map(String::as_str)
    }

    /// Whether this id was typed.
    pub(super) fn accepts(&self, id: &str) -> bool {
        self.accepted().any(|accepted| accepted == id)
    }

    /// The ids of blockers that the caller overrides.
    pub(super) fn overridden(&self) -> impl Iterator<Item = &str> {
        self.overrides.iter().map(String::as_str)
    }

    /// Whether the caller overrides this blocker.
    pub(super) fn overrides(&self, id: &str) -> bool {
        self.overridden().any(|overridden| overridden == id)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::app::{Cli, VerbArgs};

    #[test]
    fn each_blocker_is_explained() {
        for id in checks::BLOCKERS {
            assert!(blocker(id).is_some(), "{id}");
        }
    }

    #[test]
    fn only_the_risk_of_a_check_can_be_accepted() {
        let these = |ids: &[&str]| {
            let ids = ids.iter().map(|&id| id.to_owned());
            Ok(Risks(ids.collect()))
        };
        assert_eq!(risks("all"), these(&["all"]));
        assert_eq!(risks("owner,unread"), these(&["owner", "unread"]));
        assert_eq!(risks("none"), these(&["none"]));
        assert_eq!(risks("owner, quorum"), these(&["owner", "quorum"]));
        for (typed, why) in [
            (
                "",
                "no ID given: --accept-risk alone accepts all risks, --accept-risk=none accepts none",
            ),
            ("owner,", "unknown ID \"\"; valid IDs are owner, no-owner, "),
            ("mirror", "`mirror` cannot be accepted"),
            ("lease", "`lease` is a blocker: use --override=lease"),
            (
                "owner,finalizers",
                "`finalizers` is informational and needs no confirmation",
            ),
            ("All", "unknown ID \"All\"; valid IDs are owner, "),
            ("ownr", "unknown ID \"ownr\"; valid IDs are owner, "),
        ] {
            let error = risks(typed).expect_err(typed).to_string();
            assert!(error.contains(why), "{typed:?}: {error}");
        }
    }

    #[test]
    fn a_blocker_takes_an_override() {
        let consent = |words: &[&str]| {
            let line = ["kubectl-maint", "force-delete", "pod/a", "-m", "why"];
            let line = line.iter().chain(words);
            match Cli::parse_from(line).verb {
                VerbArgs::ForceDelete(args) => args.consent(),
                other => panic!("{other:?}"),
            }
        };
        let set = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<BTreeSet<_>>();
        let these = |ids: &[&str], overridden: &[&str]| {
            Consent::new(Confirmed::These(set(ids)), set(overridden))
        };
        assert_eq!(consent(&[]), Consent::default());
        let all = Consent::new(Confirmed::All, set(&[]));
        assert_eq!(consent(&["--accept-risk"]), all);
        assert_eq!(
            consent(&["--accept-risk=owner", "--accept-risk=quorum"]),
            these(&["owner", "quorum"], &[])
        );
        assert_eq!(
            consent(&["--accept-risk=owner", "--override=lease,in-grace"]),
            these(&["owner"], &["lease", "in-grace"])
        );
        assert_eq!(
            consent(&["--override=lease"]),
            Consent::new(Confirmed::Nothing, set(&["lease"]))
        );
    }
}
