//! A fencing and its records as data.

use node_keys::Finding;
use pod_safety::fencing::{Attempt, How, Record, Remains};
use pod_safety::owners::IncompleteOwner;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, List, ListEntry, Time, kind};
use super::item_error::ItemError;
use super::other_tool::OtherTool;

/// The nodes that were fenced or unfenced.
pub(crate) type FencingList = List<kind::FencingList, Fencing>;

/// A node that was fenced or unfenced. Of `fenced` and `error`, at least one is there.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("anyOf" = [{"required": ["fenced"]}, {"required": ["error"]}]))]
pub(crate) struct Fencing {
    api_version: ApiVersion,
    kind: kind::Fencing,
    /// The node's name.
    node: String,
    /// A dry run: nothing was done, this is the expected result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    /// Whether the node is out of service by our record; absent if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    fenced: Option<bool>,
    /// Who fenced the node, when, how and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_record: Option<FencingRecord>,
    /// What other tools did to the node before it was fenced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_tools: Vec<OtherTool>,
    /// Pods that stay, as NAMESPACE/NAME.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tolerating: Vec<String>,
    /// What still has to be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Left>,
    /// The owners of its pods that do not have all their pods ready, read once when nothing was left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    incomplete_owners: Vec<IncompleteOwner>,
    /// Why the command failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

/// What still has to be removed from a node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Left {
    /// As NAMESPACE/NAME.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pods: Vec<String>,
    /// Of these pods, the ones that are kept by finalizers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_by_finalizers: Vec<String>,
    /// By name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volume_attachments: Vec<String>,
}

/// Who fenced a node, when, how and why, as recorded on the Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FencingRecord {
    fenced_by: String,
    /// Absent if the record has no readable time.
    #[serde(skip_serializing_if = "Option::is_none")]
    fenced_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How it is known that nothing runs there any more.
    how: Proof,
    /// The boot ID of the Node at that time, if its kubelet had reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    /// The uid of the Node at that time.
    node_uid: String,
    /// The lock id of the hold that fencing placed; absent if `fence` ran under an earlier lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_id: Option<String>,
}

/// How it is known that nothing runs on a node. One of the fields is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Proof {
    /// Somebody confirmed that it is powered off, and says how they know.
    #[serde(skip_serializing_if = "Option::is_none")]
    powered_off: Option<String>,
    /// A program that powered it off or cut it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<HookProof>,
}

/// A program that powered a node off or cut it off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HookProof {
    program: String,
    /// The end of its output.
    #[serde(skip_serializing_if = "String::is_empty")]
    output: String,
    /// Whether it left the node running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    isolated: bool,
}

/// A hook that may be running for a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunningHook {
    started_by: String,
    program: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Time>,
    /// When it has ended at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
}

impl Proof {
    /// An enum would have a schema that refuses the fields of later releases.
    fn of(how: How) -> Self {
        match how {
            How::PoweredOff(how) => Self {
                powered_off: Some(how),
                ..Self::default()
            },
            How::Hook {
                program,
                output,
                isolated,
            } => Self {
                hook: Some(HookProof {
                    program,
                    output,
                    isolated,
                }),
                ..Self::default()
            },
        }
    }
}

impl FencingRecord {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            fenced_by: record.who.clone(),
            fenced_at: Time::parse(&record.when),
            reason: record.why.clone(),
            how: Proof::of(record.how.clone()),
            boot_id: Some(record.boot_id.clone()).filter(|id| !id.is_empty()),
            node_uid: record.node_uid.clone(),
            lock_id: record.hold.clone(),
        }
    }
}

impl RunningHook {
    pub(crate) fn of(hook: &Attempt) -> Self {
        Self {
            started_by: hook.who.clone(),
            program: hook.program.clone(),
            started_at: Time::of(hook.since),
            until: Time::of(hook.until),
        }
    }
}

impl Fencing {
    /// A node of which nothing is known yet.
    pub(crate) fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            ..Self::default()
        }
    }

    /// A fenced node on which only `remains` is left.
    pub(crate) fn fenced(node: &str, record: &Record, remains: &Remains) -> Self {
        Self {
            fenced: Some(true),
            fencing_record: Some(FencingRecord::of(record)),
            tolerating: remains.tolerating.clone(),
            left: (!remains.is_over()).then(|| Left {
                pods: remains.pods.clone(),
                held_by_finalizers: remains.finalized.clone(),
                volume_attachments: remains.attachments.value().cloned().unwrap_or_default(),
            }),
            ..Self::new(node)
        }
    }

    /// Adds the owners that do not have all their pods ready.
    pub(crate) fn with_incomplete(self, owners: Vec<IncompleteOwner>) -> Self {
        Self {
            incomplete_owners: owners,
            ..self
        }
    }

    /// Adds what other tools do to the node.
    pub(crate) fn with_findings(self, findings: &[Finding]) -> Self {
        Self {
            other_tools: findings.iter().map(OtherTool::of).collect(),
            ..self
        }
    }

    /// A node that is in service.
    pub(crate) fn unfenced(node: &str) -> Self {
        Self {
            fenced: Some(false),
            ..Self::new(node)
        }
    }

    /// The same for a dry run: the expected result.
    pub(crate) fn in_dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// Adds why the command failed, if it did.
    pub(crate) fn with_error(self, error: Option<ItemError>) -> Self {
        Self { error, ..self }
    }
}

impl ListEntry for Fencing {
    /// The node is fenced or unfenced, even if something is left on it, or the hold could not be ended.
    fn name(&self) -> Option<String> {
        let is_done = match self.fenced? {
            true => self.error.is_none() || self.left.is_some(),
            false => true,
        };
        is_done.then(|| format!("node/{}", self.node))
    }
}
