//! A node and its lock as data: the versioned shape of `-o json` and `-o yaml`, which `docs/json.md`
//! documents.

use std::collections::BTreeMap;

use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{Change, NodeLease, NodeLookup, NodeRow};
use node_keys::{Finding, NodeKeys};
use pod_safety::node_health::Health;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, List, ListEntry, Term, Time, kind};
use super::fencing::{FencingRecord, RunningHook};
use super::item_error::ItemError;
use super::other_tool::OtherTool;
use crate::error::Failure;
use crate::error::lock_state::LockState;
use crate::words::cells::last_reason;
use crate::words::fencing_annotations::FencingAnnotations;
use crate::words::health;
use crate::words::state::LockFlag;

/// The nodes of a command.
pub(crate) type NodeList = List<kind::NodeMaintenanceList, Item>;

/// A node and its lock. Of `state` and `error`, at least one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    rename = "NodeMaintenance",
    extend("anyOf" = [{"required": ["state"]}, {"required": ["error"]}])
)]
pub(crate) struct Item {
    api_version: ApiVersion,
    kind: kind::NodeMaintenance,
    /// The node's name.
    pub(crate) node: String,
    /// The state of its lock; absent if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<LockState>,
    /// The holder, as written in the Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// Why it is locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The URL or id of the ticket that says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    /// When this acquisition began.
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired_at: Option<Time>,
    /// The last acquisition or renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed_at: Option<Time>,
    /// The end that the Lease states; absent for a hold, and if it can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    /// Whole seconds until then, if it is Locked. Others may acquire it 3 seconds later.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    /// Whole seconds since then, if it is Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_expired: Option<u64>,
    /// How long a renewal lasts; 0 if the Lease doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u32>,
    /// When the holder of a hold expects to be done. The hold does not end then.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_until: Option<Time>,
    /// Whether that time has passed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overdue: bool,
    /// The number of acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    transitions: Option<u32>,
    /// The holder before the current one, or the last holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_holder: Option<String>,
    /// When it was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    released_at: Option<Time>,
    /// Who released it, if that was not its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    released_by: Option<String>,
    /// The note of `release -m` for the next holder, else the reason of the last lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_reason: Option<String>,
    /// What is unusual about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<LockFlag>,
    /// kubectl's words for the node; absent if the caller may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_status: Option<String>,
    /// The Node does not exist any more; only its Lease is left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    node_gone: bool,
    /// How the node is: Ready, NotReady, Unreachable, OutOfService, Fenced, OutOfServiceKubeletAlive or
    /// Gone. Values may be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_health: Option<&'static str>,
    /// Whether the node's kubelet itself reports that the node is not ready.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    node_reporting: bool,
    /// Since when the node is unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreachable_since: Option<Time>,
    /// Who fenced the node, when, how and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_record: Option<FencingRecord>,
    /// The hook that may be running for the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<RunningHook>,
    /// What other tools do to the node. Absent also if the whole Node was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_tools: Vec<OtherTool>,
    /// What locks set on the Node and did not remove yet. Absent also if the whole Node was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by_locks: Option<SetByLocks>,
    /// When the node's kubelet last renewed its heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_at: Option<Time>,
    /// Whether the command labeled the Node; absent if it does not label Nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labeled: Option<bool>,
    /// The value for --lock-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_id: Option<String>,
    /// The resource version of the write that acquired the lock. It increases with every acquisition.
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_number: Option<u64>,
    /// Why the command failed for the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ItemError>,
}

impl Item {
    /// What a Lease (`None`: there is none) shows about `node` at `now`.
    pub(crate) fn new(node: &str, lease: Option<&NodeLease>, row: &NodeLookup, now: Now) -> Self {
        let state = lease.map_or(State::Free, |lease| lease.state(now));
        let held = lease.filter(|_| state != State::Free);
        let hold_until = held
            .filter(|_| state == State::AdminHold)
            .and_then(NodeLease::hold_until);
        let term = Term::of(state, now);
        Self {
            state: Some(state.into()),
            holder: held.and_then(NodeLease::holder).map(ToOwned::to_owned),
            reason: held.and_then(NodeLease::reason).map(ToOwned::to_owned),
            ticket: held.and_then(NodeLease::ticket).map(ToOwned::to_owned),
            acquired_at: held.and_then(NodeLease::acquired).map(Time::from),
            renewed_at: held.and_then(NodeLease::renewed).map(Time::from),
            until: term.until,
            seconds_left: term.seconds_left,
            seconds_expired: term.seconds_expired,
            duration_seconds: held
                .filter(|_| state != State::AdminHold)
                .map(NodeLease::duration_seconds),
            expected_until: hold_until.map(Time::from),
            overdue: hold_until.is_some() && held.is_some_and(|lease| lease.is_overdue(now)),
            transitions: lease.map(NodeLease::transitions),
            last_holder: lease
                .and_then(NodeLease::last_holder)
                .map(ToOwned::to_owned),
            released_at: lease
                .filter(|_| state == State::Free)
                .and_then(NodeLease::released_at)
                .map(Time::from),
            released_by: lease
                .filter(|_| state == State::Free)
                .and_then(NodeLease::released_by)
                .map(ToOwned::to_owned),
            last_reason: lease.and_then(last_reason).map(ToOwned::to_owned),
            flags: lease
                .map(|lease| LockFlag::all(lease, now))
                .unwrap_or_default(),
            node_status: row.row().map(|row: &NodeRow| row.status.clone()),
            node_gone: *row == NodeLookup::Missing,
            lock_id: held.and_then(NodeLease::lock_id).map(|id| id.to_string()),
            ..Self::unknown(node)
        }
    }

    /// A node for which the command failed, with what is known of it by the failure.
    pub(crate) fn failed(node: &str, failure: &Failure, error: ItemError, now: Now) -> Self {
        let item = match failure.lock() {
            Some(lease) => Self::new(node, lease, &NodeLookup::Unread, now),
            None => Self::unknown(node),
        };
        Self {
            lock_id: match failure {
                Failure::ReleaseFailed { lock_id, .. } => lock_id.as_ref().map(ToString::to_string),
                _ => item.lock_id.clone(),
            },
            ..item.with_error(error)
        }
    }

    /// A node of which nothing is known.
    pub(crate) fn skipped(node: &str, error: ItemError) -> Self {
        Self::unknown(node).with_error(error)
    }

    fn unknown(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            ..Self::default()
        }
    }

    /// Adds why the command failed for the node.
    pub(crate) fn with_error(self, error: ItemError) -> Self {
        Self {
            error: Some(error),
            ..self
        }
    }

    /// What changes by more than time: without the seconds, and without the heartbeat, which changes every
    /// few seconds.
    pub(crate) fn without_clock(self) -> Self {
        Self {
            seconds_left: None,
            seconds_expired: None,
            heartbeat_at: None,
            ..self
        }
    }

    /// Adds what is known about the node's health.
    pub(crate) fn with_health(self, health: Option<&Health>) -> Self {
        let Some(health) = health else {
            return self;
        };
        Self {
            node_health: Some(health::word(health)),
            node_reporting: *health == Health::NotReady { reporting: true },
            unreachable_since: health.unreachable_since().and_then(Time::of),
            ..self
        }
    }

    /// Adds when the node's kubelet last renewed its heartbeat.
    pub(crate) fn with_heartbeat(self, heartbeat: Option<Instant>) -> Self {
        Self {
            heartbeat_at: heartbeat.and_then(Time::of),
            ..self
        }
    }

    /// Adds the fencing annotations on the Node at `now`.
    pub(crate) fn with_annotations(
        self,
        annotations: Option<&FencingAnnotations>,
        now: Now,
    ) -> Self {
        Self {
            fencing_record: annotations
                .and_then(|annotations| annotations.record.as_deref().map(FencingRecord::of)),
            hook: annotations.and_then(|annotations| annotations.hook(now).map(RunningHook::of)),
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

    /// Adds what locks set on the Node.
    pub(crate) fn with_keys(self, keys: Option<&NodeKeys>) -> Self {
        let keys = keys.cloned().map(NodeKeys::without_notes);
        let keys = keys.filter(|keys| !keys.is_empty());
        Self {
            set_by_locks: keys.map(SetByLocks::of),
            ..self
        }
    }

    /// The state after a change.
    pub(crate) fn of_change(change: &Change, now: Now) -> Self {
        Self {
            fencing_number: change.fencing,
            ..Self::new(
                &change.node,
                change.lease.as_ref(),
                &NodeLookup::Unread,
                now,
            )
        }
    }
}

/// What locks set on a Node: the held label, opt-outs and a cordon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetByLocks {
    /// Labels with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// Annotations with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    /// Whether a lock cordoned the node.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cordoned: bool,
}

impl SetByLocks {
    fn of(keys: NodeKeys) -> Self {
        Self {
            labels: keys.labels,
            annotations: keys.annotations,
            cordoned: keys.cordon,
        }
    }
}

impl ListEntry for Item {
    fn name(&self) -> Option<String> {
        let is_done = self.error.is_none();
        is_done.then(|| format!("node/{}", self.node))
    }

    fn lock_id(&self) -> Option<(&str, &str)> {
        let id = self.lock_id.as_deref().filter(|_| self.error.is_none())?;
        Some((&self.node, id))
    }
}
