//! A Lease of any kind as data, which `docs/json.md` documents.

use maintenance_lease::Candidate;
use maintenance_lease::protocol::{Instant, Now};
use serde::Serialize;

use super::Entry;
use super::purpose::{Purpose, Traits};
use crate::output::item::API_VERSION;
use crate::words::state::state_word;
use crate::words::time::rfc3339;

/// What is known about a Lease.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    api_version: &'static str,
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    /// The purpose in one word.
    purpose: &'static str,
    /// The same in words for people.
    about: String,
    /// The node that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Free, Locked, Expired or OnHold.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquired_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed_at: Option<String>,
    /// The end that the Lease states.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transitions: Option<u32>,
    /// How coordinated leader election chooses the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'a str>,
    /// The version of a candidate's program.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

/// A list of Leases.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Records<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Record<'a>>,
}

/// `entries` as data.
pub(crate) fn records(entries: &[Entry], now: Now) -> impl Serialize + '_ {
    Records {
        api_version: API_VERSION,
        kind: "LeaseSummaryList",
        items: entries.iter().map(|entry| Record::of(entry, now)).collect(),
    }
}

impl<'a> Record<'a> {
    fn of(entry: &'a Entry, now: Now) -> Self {
        let instant = |instant: Instant| instant.to_chrono().map(rfc3339);
        let mut record = Self {
            api_version: API_VERSION,
            kind: "LeaseSummary",
            namespace: entry.namespace(),
            name: entry.name(),
            purpose: "ElectionCandidate",
            about: entry.words(),
            node: None,
            state: None,
            holder: entry.holder(),
            created_at: entry.created().and_then(instant),
            acquired_at: None,
            renewed_at: entry.renewed().and_then(instant),
            until: None,
            duration_seconds: None,
            transitions: None,
            strategy: None,
            version: None,
        };
        match entry {
            Entry::Candidate(Candidate { version, .. }) => record.version = version.as_deref(),
            Entry::Lease(any) => {
                let lease = &any.lease;
                let state = lease.state(now);
                let purpose = Purpose::of(Traits::of(any));
                record.purpose = purpose.word();
                record.node = purpose.node().map(ToOwned::to_owned);
                record.state = Some(state_word(state));
                record.acquired_at = lease.acquired().map(rfc3339);
                record.until = state.end().and_then(instant);
                record.duration_seconds = Some(lease.duration_seconds());
                record.transitions = Some(lease.transitions());
                record.strategy = any.strategy.as_deref();
            }
        }
        record
    }
}
