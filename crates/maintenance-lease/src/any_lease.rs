//! Leases of every namespace and purpose, for tools that show all of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cluster::wire;
use crate::lease::NodeLease;
use crate::protocol::Instant;
use crate::repository::Repository;

/// The namespace with the heartbeats of kubelets, one Lease per node.
pub const HEARTBEATS: &str = "kube-node-lease";

/// The Leases to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseScope<'a> {
    /// All Leases of one namespace.
    Namespace(&'a str),
    /// All Leases of all namespaces.
    Everywhere,
    /// All Leases of all namespaces except [`HEARTBEATS`], which has one per node.
    EverywhereButHeartbeats,
}

impl LeaseScope<'_> {
    /// The namespace, if it is a single one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Namespace(namespace) => Some(namespace),
            Self::Everywhere | Self::EverywhereButHeartbeats => None,
        }
    }
}

/// A Lease of any namespace and for any purpose.
#[derive(Clone, Debug)]
pub struct AnyLease {
    /// Its namespace.
    pub namespace: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When the object was made; `None` also if that can't be read.
    pub created: Option<Instant>,
    /// Whether the server records who wrote which of its fields.
    pub has_managed_fields: bool,
    /// How coordinated leader election chooses its holder; `None`: it is not such a Lease.
    pub strategy: Option<String>,
    /// Its content, by the rules of its namespace: administrators' holds exist in
    /// [`NAMESPACE`](crate::NAMESPACE) only. In other namespaces, `node` means the name of the Lease.
    pub lease: NodeLease,
}

/// A candidate in a coordinated leader election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When the object was made; `None` also if that can't be read.
    pub created: Option<Instant>,
    /// When it last renewed its candidacy; `None` also if it never did.
    pub renewed: Option<Instant>,
    /// The Lease that it wants to acquire.
    pub lease: String,
    /// The version of its program, such as `1.36.3`.
    pub version: Option<String>,
}

#[derive(Deserialize)]
struct Wire<S> {
    metadata: WireMetadata,
    #[serde(default = "none")]
    spec: Option<S>,
}

fn none<S>() -> Option<S> {
    None
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    creation_timestamp: Option<String>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    managed_fields: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct WireLease {
    #[serde(default)]
    strategy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCandidate {
    lease_name: String,
    renew_time: Option<String>,
    binary_version: Option<String>,
}

impl WireMetadata {
    fn created(&self) -> Option<Instant> {
        let instant = wire::parse(self.creation_timestamp.as_deref()?);
        (instant != Instant::UNREADABLE).then_some(instant)
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

impl AnyLease {
    /// Reads a Lease from the server's JSON.
    ///
    /// # Errors
    /// If it is not a Lease.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, String> {
        let wire: Wire<WireLease> =
            serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let created = wire.metadata.created();
        let repository = Repository::new(wire.metadata.namespace.as_str());
        Ok(Self {
            lease: NodeLease::from_json(json, &repository)?,
            namespace: wire.metadata.namespace,
            labels: wire.metadata.labels.unwrap_or_default(),
            created,
            has_managed_fields: !wire.metadata.managed_fields.unwrap_or_default().is_empty(),
            strategy: filled(wire.spec.and_then(|spec| spec.strategy)),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lease.node()
    }

    /// Whether the server has no record of who wrote it, and when. False for Leases of coordinated leader election, which are
    /// left alone.
    #[must_use]
    pub fn lacks_managed_fields(&self) -> bool {
        !self.has_managed_fields && self.strategy.is_none()
    }
}

impl Candidate {
    /// Reads a candidate from the server's JSON.
    ///
    /// # Errors
    /// If it is not a candidate.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, String> {
        let wire: Wire<WireCandidate> =
            serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let created = wire.metadata.created();
        let spec = wire.spec.unwrap_or_default();
        Ok(Self {
            namespace: wire.metadata.namespace,
            name: wire.metadata.name,
            created,
            renewed: spec.renew_time.as_deref().map(wire::parse),
            lease: spec.lease_name,
            version: filled(spec.binary_version),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Now, State};

    #[test]
    fn holds_are_of_nodes_only() {
        let read = |namespace: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"n","namespace":"{namespace}","resourceVersion":"5",
                    "creationTimestamp":"1970-01-01T00:00:07Z","labels":{{"a":"b"}}}},
                    "spec":{{"holderIdentity":"kubeadm:alice"}}}}"#
            );
            AnyLease::from_json(json.as_bytes()).expect("a Lease")
        };
        let now = Now::at(Instant::from_micros(0));
        let hold = read(crate::NAMESPACE);
        assert_eq!(hold.lease.state(now), State::AdminHold);
        assert_eq!(hold.created, Some(Instant::from_micros(7_000_000)));
        assert_eq!(hold.labels["a"], "b");
        assert_eq!(hold.strategy, None);
        assert!(hold.lacks_managed_fields());
        let other = read("kube-system");
        assert_eq!(other.lease.state(now), State::Expired { since: None });
    }

    #[test]
    fn a_lease_of_coordinated_leader_election_is_left_alone() {
        let lacks = |managed_fields: &str, spec: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"n","managedFields":{managed_fields}}},"spec":{spec}}}"#
            );
            let lease = AnyLease::from_json(json.as_bytes()).expect("a Lease");
            lease.lacks_managed_fields()
        };
        assert!(lacks("[]", "{}"));
        assert!(!lacks(r#"[{"manager":"kubectl"}]"#, "{}"));
        assert!(!lacks("[]", r#"{"strategy":"OldestEmulationVersion"}"#));
    }

    #[test]
    fn a_candidate_with_a_name_and_nothing_else_is_read() {
        let candidate =
            Candidate::from_json(br#"{"metadata":{"name":"c","namespace":"kube-system"}}"#);
        let candidate = candidate.expect("a candidate");
        assert_eq!(candidate.name, "c");
        assert_eq!(candidate.version, None);
    }
}
