//! Reports on the risks of a deletion: lines for people, data for programs.

use pod_safety::checks::{Level, Verdict};
use pod_safety::constants::POD_GC;
use pod_safety::report::{Report, Target};
use pod_safety::words::few;
use serde::Serialize;

use super::grid::hanging;
use super::item::API_VERSION;
use super::print;
use crate::error::Failure;
use crate::output::format::Format;
use crate::text::escape;
use crate::words::fencing::count;
use crate::words::time::length;

/// The outcome of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub(crate) enum Outcome {
    /// It is gone.
    Deleted,
    /// Somebody else deleted it first.
    WasGone,
    /// It was a dry run.
    WouldBeDeleted,
    /// It is gone, and the expected replacement did not appear in time.
    Unreplaced,
    /// It was deleted; its replacement could not be read.
    Unseen { error: String },
    /// It was deleted; the wait for its replacement was interrupted.
    Unwatched,
    /// The request got no answer: it may have taken effect, or still may.
    Unknown { error: String },
    /// The object is kept by its finalizers.
    Held { finalizers: Vec<String> },
    /// It was already deleted and is kept by its finalizers; nothing was done.
    StillHeld { finalizers: Vec<String> },
    /// The Node is gone, and these pods of it are still there, as `NAMESPACE/NAME`.
    #[serde(rename_all = "camelCase")]
    PodsLeft {
        pods: Vec<String>,
        /// There is a Node of that name again.
        registered_again: bool,
    },
    /// A replacement exists.
    Replaced {
        name: String,
        uid: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<String>,
    },
}

impl Outcome {
    /// Whether something is still expected to happen.
    pub(crate) fn is_unfinished(&self) -> bool {
        match self {
            Self::Unreplaced
            | Self::Held { .. }
            | Self::StillHeld { .. }
            | Self::PodsLeft { .. } => true,
            Self::Deleted
            | Self::WasGone
            | Self::WouldBeDeleted
            | Self::Unseen { .. }
            | Self::Unwatched
            | Self::Unknown { .. }
            | Self::Replaced { .. } => false,
        }
    }

    /// The words that follow the name of `target`.
    pub(crate) fn words(&self, target: &Target) -> String {
        let done = "force-deleted";
        let is_node = target.kind == "node";
        match self {
            Self::WasGone => "was already gone".to_owned(),
            Self::Deleted if is_node => {
                format!("{done}; its lease and its pods are deleted with it")
            }
            Self::Deleted | Self::WouldBeDeleted => done.to_owned(),
            Self::PodsLeft {
                pods,
                registered_again,
            } => {
                let left = format!(
                    "{done}; {} left: {}",
                    count(pods.len(), "pod"),
                    escape(&few(pods))
                );
                match registered_again {
                    true => format!(
                        "{left}; it has registered again, so they stay until its kubelet ends them"
                    ),
                    false => format!("{left}; usually deleted within about {}", length(POD_GC)),
                }
            }
            Self::Unreplaced => format!("{done}; not replaced yet"),
            Self::Unseen { error } if is_node => {
                format!("{done}; could not check its pods: {}", escape(error))
            }
            Self::Unseen { error } => {
                format!(
                    "{done}; could not check for a replacement: {}",
                    escape(error)
                )
            }
            Self::Unwatched if is_node => format!("{done}; interrupted before its pods were gone"),
            Self::Unwatched => format!("{done}; interrupted before the check for a replacement"),
            Self::Unknown { error } => {
                format!(
                    "may have been {done}: the outcome is unknown: {}",
                    escape(error)
                )
            }
            Self::Held { finalizers } if is_node => format!(
                "is marked for deletion, but held by {}; its pods stay until it is gone",
                held_by(finalizers)
            ),
            Self::Held { finalizers } => format!("{done}, but held by {}", held_by(finalizers)),
            Self::StillHeld { finalizers } => {
                let freed = if is_node {
                    "it is gone"
                } else {
                    "its name is free"
                };
                format!(
                    "is already deleted, but held by {}; {freed} when its controller removes the finalizer",
                    held_by(finalizers)
                )
            }
            Self::Replaced { name, node, .. } => {
                let node = match node {
                    Some(node) => format!("on node/{}", escape(node)),
                    None => "that has no node yet".to_owned(),
                };
                match *name == target.name {
                    true => format!("{done}; replaced by a pod {node}"),
                    false => format!("{done}; replaced by pod/{} {node}", escape(name)),
                }
            }
        }
    }
}

fn held_by(finalizers: &[String]) -> String {
    format!("finalizer {}", escape(&few(finalizers)))
}

/// Which findings of the reports are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// All of them.
    All,
    /// All findings of the first report; of the others, those that are not ok.
    Brief,
    /// Findings that are not ok, and only reports that have any.
    NotOk,
}

impl Lines {
    fn shows(self, verdict: &Verdict, index: usize) -> bool {
        match self {
            Self::All => true,
            Self::Brief => index == 0 || verdict.level != Level::Ok,
            Self::NotOk => verdict.level != Level::Ok,
        }
    }
}

/// Lines of the reports, of at most `columns`.
pub(crate) fn text(reports: &[Report], shown: Lines, columns: Option<usize>) -> String {
    let width = reports
        .iter()
        .flat_map(|report| &report.checks)
        .map(|verdict| verdict.id.len())
        .max();
    let mut lines = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let checks = report.checks.iter();
        let checks = checks.filter(|verdict| shown.shows(verdict, index));
        let checks: Vec<String> = checks
            .map(|verdict| line(verdict, width.unwrap_or(0), columns))
            .collect();
        if checks.is_empty() && shown == Lines::NotOk {
            continue;
        }
        lines.push(heading(&report.target));
        if checks.is_empty() {
            lines.push("  ok".to_owned());
        }
        lines.extend(checks);
    }
    lines.join("\n")
}

fn heading(target: &Target) -> String {
    let namespace = target
        .namespace
        .as_ref()
        .map(|namespace| format!(" in namespace {namespace}"))
        .unwrap_or_default();
    let node = match (target.kind, &target.node) {
        (_, Some(node)) => format!(" on node/{node}"),
        ("pod", None) => ", which has no node".to_owned(),
        _ => String::new(),
    };
    escape(&format!("{target}{namespace}{node}"))
}

fn line(verdict: &Verdict, width: usize, columns: Option<usize>) -> String {
    let level = match verdict.level {
        Level::Ok => "ok",
        Level::Warn => "WARN",
        Level::Unknown => "UNKNOWN",
        Level::Confirm => "CONFIRM",
        Level::Refuse => "REFUSE",
    };
    let way_out = match verdict.level {
        Level::Refuse if verdict.is_final => " (cannot be accepted)".to_owned(),
        Level::Refuse => format!(" (--accept-risk={})", verdict.id),
        _ => String::new(),
    };
    let (id, words) = (verdict.id, escape(&verdict.words));
    hanging(
        &format!("  {level:<7}  {id:<width$}  "),
        &format!("{words}{way_out}"),
        columns,
    )
}

/// A report and the outcome of its target.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    outcome: Option<&'a Outcome>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    api_version: &'static str,
    kind: &'static str,
    /// The flag that accepts exactly the risks in the reports.
    confirm: &'a str,
    items: Vec<Row<'a>>,
}

/// The reports and the outcomes of their targets, for programs; `None` if the output is for people.
///
/// # Errors
/// If they can't be serialized.
pub(crate) fn data(
    reports: &[&Report],
    outcomes: &[(&Target, &Outcome)],
    confirm: &str,
    format: Format,
) -> Result<Option<String>, Failure> {
    let outcome = |target: &Target| {
        let of = outcomes
            .iter()
            .find(|(one, _)| (one.kind, &one.uid) == (target.kind, &target.uid));
        of.map(|(_, outcome)| *outcome)
    };
    let data = Data {
        api_version: API_VERSION,
        kind: "ForceDeletion",
        confirm,
        items: reports
            .iter()
            .map(|&report| Row {
                outcome: outcome(&report.target),
                report,
            })
            .collect(),
    };
    Ok(match format {
        Format::Json => Some(print::json(&data)?),
        Format::Yaml => Some(print::yaml(&data)?),
        Format::Text | Format::Wide | Format::Name | Format::LockId => None,
    })
}
