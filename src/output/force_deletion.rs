//! A forced deletion as data.

use pod_safety::checks::{Level, Verdict};
use pod_safety::outcome;
use pod_safety::owners::IncompleteOwner;
use pod_safety::report::{DeletionTarget, Report};
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, Data, ListEntry, kind};
use super::item_error::ItemError;
use super::outcome::DeletionOutcome;
use crate::output::error_code::ErrorCode;
use crate::words::force_deletion::no_answer;

/// What was to be deleted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForceDeletionList {
    api_version: ApiVersion,
    kind: kind::ForceDeletionList,
    /// The flag that accepts the risks of `items`, and no others.
    accept_risk: String,
    items: Vec<ForceDeletion>,
    /// The owners of deleted pods that do not have all their pods ready, read once at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    incomplete_owners: Vec<IncompleteOwner>,
}

/// A pod or Node: the checks, and the outcome if its deletion was requested.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForceDeletion {
    api_version: ApiVersion,
    kind: kind::ForceDeletion,
    resource: Resource,
    /// The namespace of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// The name of the pod or Node.
    name: String,
    uid: String,
    resource_version: String,
    /// The node of the pod, if it has one; or the Node.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    checks: Vec<Check>,
    /// Absent if its deletion was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<DeletionOutcome>,
    /// The finalizers that must be removed before it is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<String>,
    /// The pods of a Node that are left, as `NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pods: Vec<String>,
    /// There is a new Node of that name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    registered_again: bool,
    /// Why it is not deleted, or why the outcome is not known in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

/// What is to be deleted.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum Resource {
    Pod,
    Node,
}

/// The result of one check.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Check {
    /// As --accept-risk takes it, or --override for a `Blocker`. Values may be added.
    id: &'static str,
    level: Level,
    /// What it found, in words that may change.
    message: String,
    /// A blocker that can't be overridden.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_final: bool,
}

impl ForceDeletionList {
    /// The reports and the outcomes of their targets; of those without one, why they are `refused`.
    /// `accept_risk` is the flag that accepts exactly the risks in the reports.
    pub(crate) fn new(
        reports: &[Report],
        outcomes: &[(&DeletionTarget, &outcome::Outcome)],
        refused: impl Fn(&Report) -> Option<ItemError>,
        incomplete: &[IncompleteOwner],
        accept_risk: String,
    ) -> Self {
        let outcome = |target: &DeletionTarget| {
            let of = outcomes
                .iter()
                .find(|(one, _)| (one.kind, &one.uid) == (target.kind, &target.uid));
            of.map(|(_, outcome)| *outcome)
        };
        let item = |report: &Report| match outcome(&report.target) {
            Some(outcome) => ForceDeletion::of(report).with(outcome),
            None => ForceDeletion {
                error: refused(report),
                ..ForceDeletion::of(report)
            },
        };
        Self {
            api_version: ApiVersion::V2,
            kind: kind::ForceDeletionList::default(),
            accept_risk,
            items: reports.iter().map(item).collect(),
            incomplete_owners: incomplete.to_vec(),
        }
    }
}

impl ForceDeletion {
    fn of(report: &Report) -> Self {
        let target = report.target.clone();
        let (resource, node) = match target.kind {
            "node" => (Resource::Node, Some(target.name.clone())),
            _ => (Resource::Pod, target.node),
        };
        Self {
            api_version: ApiVersion::V2,
            kind: kind::ForceDeletion::default(),
            resource,
            namespace: target.namespace,
            name: target.name,
            uid: target.uid,
            resource_version: target.resource_version,
            node,
            checks: report.checks.iter().map(Check::of).collect(),
            outcome: None,
            finalizers: Vec::new(),
            pods: Vec::new(),
            registered_again: false,
            error: None,
        }
    }

    fn with(mut self, outcome: &outcome::Outcome) -> Self {
        let failed = |code, error: &str| Some(ItemError::of(code, error.to_owned()));
        self.outcome = Some(DeletionOutcome::of(outcome));
        match outcome {
            outcome::Outcome::Unseen { error } | outcome::Outcome::Marked { error } => {
                self.error = failed(ErrorCode::Failed, error);
            }
            outcome::Outcome::Unknown { error } => {
                self.error = failed(ErrorCode::Unknown, no_answer(error.as_ref()));
            }
            outcome::Outcome::Held { finalizers } => {
                self.finalizers.clone_from(finalizers);
            }
            outcome::Outcome::PodsLeft {
                pods,
                registered_again,
            } => {
                self.pods.clone_from(pods);
                self.registered_again = *registered_again;
            }
            _ => {}
        }
        self
    }
}

impl Check {
    fn of(verdict: &Verdict) -> Self {
        Self {
            id: verdict.id,
            level: verdict.level,
            message: verdict.to_string(),
            is_final: verdict.is_final,
        }
    }
}

impl Data for ForceDeletionList {
    fn names(&self) -> Vec<String> {
        self.items.iter().filter_map(ListEntry::name).collect()
    }

    fn lock_ids(&self) -> Vec<String> {
        Vec::new()
    }
}

impl ListEntry for ForceDeletion {
    /// What was deleted, or would be.
    fn name(&self) -> Option<String> {
        let resource = match self.resource {
            Resource::Pod => "pod",
            Resource::Node => "node",
        };
        match self.outcome? {
            DeletionOutcome::Unknown => None,
            _ => Some(format!("{resource}/{}", self.name)),
        }
    }
}
