//! A Lease of any kind as data, which `docs/json.md` documents.

use maintenance_lease::protocol::{Now, State};
use maintenance_lease::{Candidate, LeasePurpose};
use schemars::JsonSchema;
use serde::Serialize;

use super::entry::LeaseEntry;
use crate::error::lock_state::LockState;
use crate::output::data::{self, ApiVersion, List, Term, Time, kind};
use crate::words::leases::purpose_word;

/// The Leases of a namespace or cluster.
pub(crate) type LeaseList<'a> = List<kind::LeaseSummaryList, LeaseSummary<'a>>;

/// A Lease of any kind, or a candidate of a coordinated leader election.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseSummary<'a> {
    api_version: ApiVersion,
    kind: kind::LeaseSummary,
    /// The Lease's namespace.
    namespace: &'a str,
    /// The Lease's name.
    name: &'a str,
    /// What it is for. Values may be added.
    purpose: &'static str,
    /// The same in words for people, which may change.
    about: String,
    /// The node that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// OnHold in namespace kube-node-maintenance only; absent for a candidate, and for nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<LockState>,
    /// The holder, as written in the Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Time>,
    /// When its holder acquired it.
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired_at: Option<Time>,
    /// When its holder last renewed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed_at: Option<Time>,
    /// The end that the Lease states.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    /// Whole seconds until then, if it is Locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    /// Whole seconds since then, if it is Expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_expired: Option<u64>,
    /// How long a renewal lasts; 0 if the Lease doesn't say. Absent if it is Free or OnHold.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u32>,
    /// The number of acquisitions; absent for a candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    transitions: Option<u32>,
    /// How coordinated leader election chooses the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'a str>,
    /// The version of a candidate's program.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

/// `entries` as data.
pub(crate) fn list(entries: &[LeaseEntry], now: Now) -> LeaseList<'_> {
    let items = entries.iter().map(|entry| LeaseSummary::of(entry, now));
    List::new(items.collect())
}

impl<'a> LeaseSummary<'a> {
    fn of(entry: &'a LeaseEntry, now: Now) -> Self {
        let mut summary = Self {
            namespace: entry.namespace(),
            name: entry.name(),
            purpose: "ElectionCandidate",
            about: entry.words(),
            holder: entry.holder(),
            created_at: entry.created().and_then(Time::of),
            renewed_at: entry.renewed().and_then(Time::of),
            ..Self::default()
        };
        match entry {
            LeaseEntry::Candidate(Candidate { version, .. }) => {
                summary.version = version.as_deref();
            }
            LeaseEntry::Lease(any) => {
                let lease = &any.lease;
                let state = lease.state(now);
                let purpose = any.purpose();
                let term = Term::of(state, now);
                let has_term = matches!(state, State::Held { .. } | State::Expired { .. });
                summary.purpose = purpose_word(purpose);
                summary.node = match purpose {
                    LeasePurpose::Heartbeat { node }
                    | LeasePurpose::Maintenance { node }
                    | LeasePurpose::Remediation { node } => Some(node.to_owned()),
                    _ => None,
                };
                summary.state = Some(state.into());
                summary.acquired_at = lease.acquired().map(Time::from);
                summary.until = term.until;
                summary.seconds_left = term.seconds_left;
                summary.seconds_expired = term.seconds_expired;
                summary.duration_seconds = has_term.then(|| lease.duration_seconds());
                summary.transitions = Some(lease.transitions());
                summary.strategy = any.strategy.as_deref();
            }
        }
        summary
    }
}

impl data::ListEntry for LeaseSummary<'_> {
    fn name(&self) -> Option<String> {
        let kind = match self.state {
            Some(_) => "lease",
            None => "leasecandidate",
        };
        Some(format!("{kind}.coordination.k8s.io/{}", self.name))
    }
}
