//! A node and its lock as data: the versioned shape of `-o json` and `-o yaml`, which `docs/json.md`
//! documents.

use maintenance_lease::protocol::{Instant, Now, State};
use maintenance_lease::{Change, NodeLease, NodeRow, Sight};
use pod_safety::fencing::Record;
use pod_safety::node::Health;
use serde::Serialize;

use crate::words::state::{flag_names, state_word};

use super::status::last_reason;
use crate::words::fencing_marks::{Hook, Marks};
use crate::words::health;
use crate::words::time::rfc3339;

/// The version of the shapes below. Fields may be added to it; none is removed or changes its meaning.
pub(crate) const API_VERSION: &str = "kubectl-maint.dev/v2";

/// What is known about a node and its lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    api_version: &'static str,
    kind: &'static str,
    /// The node's name.
    pub(crate) node: String,
    /// Free, Locked, Expired or OnHold.
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// When this acquisition began.
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed_at: Option<String>,
    /// The end that the Lease states; absent for a hold, and if it can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u32>,
    /// When an administrator expects to be done. Nothing happens at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_until: Option<String>,
    /// Whether that time has passed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overdue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    transitions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_at: Option<String>,
    /// Who released it, if that was not its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    released_by: Option<String>,
    /// The rest of the reason when it was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_reason: Option<String>,
    /// Oddities: unreadableTime, clockAhead, overlong, deleting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<&'static str>,
    /// kubectl's words for the node; absent if the caller may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_status: Option<String>,
    /// The Node does not exist any more; only its Lease is left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    node_gone: bool,
    /// How the node is: Ready, NotReady, Unreachable, OutOfService, Fenced, OutOfServiceKubeletAlive or
    /// Gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_health: Option<&'static str>,
    /// Whether the node's kubelet itself reports that the node is not ready.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    node_reporting: bool,
    /// Since when the node is unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreachable_since: Option<String>,
    /// Who states that nothing runs on the node any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    asserted_by: Option<String>,
    /// Who fenced the node, when, how and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_record: Option<Record>,
    /// The hook that may be running for the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<Hook>,
    /// When the node's kubelet last renewed its heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heartbeat_at: Option<String>,
    /// The value for --lock-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lock_id: Option<String>,
    /// The resource version of the write that acquired the lock. It increases with every acquisition.
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_number: Option<u64>,
}

/// A list of nodes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Item>,
}

impl Item {
    /// What a Lease (`None`: there is none) shows about `node` at `now`.
    pub(crate) fn new(node: &str, lease: Option<&NodeLease>, row: &Sight, now: Now) -> Self {
        let state = lease.map_or(State::Free, |lease| lease.state(now));
        let held = lease.filter(|_| state != State::Free);
        let hold_until = held
            .filter(|_| state == State::AdminHold)
            .and_then(NodeLease::hold_until);
        Self {
            api_version: API_VERSION,
            kind: "NodeMaintenance",
            node: node.to_owned(),
            state: state_word(state),
            holder: held.and_then(NodeLease::holder).map(ToOwned::to_owned),
            reason: held.and_then(NodeLease::reason).map(ToOwned::to_owned),
            acquired_at: held.and_then(NodeLease::acquired).map(rfc3339),
            renewed_at: held.and_then(NodeLease::renewed).map(rfc3339),
            until: state.end().and_then(Instant::to_chrono).map(rfc3339),
            duration_seconds: held
                .filter(|_| state != State::AdminHold)
                .map(NodeLease::duration_seconds),
            hold_until: hold_until.map(rfc3339),
            overdue: hold_until.is_some_and(|until| now.earliest > Instant::from(until)),
            transitions: lease.map(NodeLease::transitions),
            last_holder: lease
                .and_then(NodeLease::last_holder)
                .map(ToOwned::to_owned),
            released_at: lease
                .filter(|_| state == State::Free)
                .and_then(NodeLease::released_at)
                .map(rfc3339),
            released_by: lease
                .filter(|_| state == State::Free)
                .and_then(NodeLease::released_by)
                .map(ToOwned::to_owned),
            last_reason: lease.and_then(last_reason).map(ToOwned::to_owned),
            flags: lease
                .map(|lease| flag_names(lease, now))
                .unwrap_or_default(),
            node_status: row.row().map(|row: &NodeRow| row.status.clone()),
            node_gone: *row == Sight::Missing,
            node_health: None,
            node_reporting: false,
            unreachable_since: None,
            asserted_by: None,
            fencing_record: None,
            hook: None,
            heartbeat_at: None,
            lock_id: held.and_then(NodeLease::lock_id).map(|id| id.to_string()),
            fencing_number: None,
        }
    }

    /// Adds what is known about the node's health.
    pub(crate) fn with_health(self, health: Option<&Health>) -> Self {
        let Some(health) = health else {
            return self;
        };
        let since = health::unreachable_since(health);
        Self {
            node_health: Some(health::word(health)),
            node_reporting: *health == Health::NotReady { reporting: true },
            unreachable_since: since.and_then(Instant::to_chrono).map(rfc3339),
            asserted_by: health::asserted_by(health).map(ToOwned::to_owned),
            ..self
        }
    }

    /// Adds the fencing marks on the Node at `now`.
    pub(crate) fn with_marks(self, marks: Option<&Marks>, now: Now) -> Self {
        Self {
            fencing_record: marks.and_then(|marks| marks.record.clone()),
            hook: marks.and_then(|marks| marks.hook(now)),
            ..self
        }
    }

    /// The state after a change.
    pub(crate) fn of_change(change: &Change, now: Now) -> Self {
        Self {
            fencing_number: change.fencing,
            ..Self::new(&change.node, change.lease.as_ref(), &Sight::Unread, now)
        }
    }
}

impl List {
    pub(crate) fn new(items: Vec<Item>) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "NodeMaintenanceList",
            items,
        }
    }
}
