//! The purpose of a Lease, derived from its namespace, name and contents.

use std::collections::BTreeMap;

use crate::any_lease::{AnyLease, HEARTBEATS};
use crate::repository::NAMESPACE;

/// The namespace in which medik8s' operators lock what they repair.
pub const MEDIK8S_LEASES: &str = "medik8s-leases";

/// kube-apiserver's label for the Leases that API servers find each other by
/// (`k8s.io/apiserver/pkg/storage/…/identity`, `controlplane.IdentityLeaseComponentLabelKey`).
const IDENTITY: &str = "apiserver.kubernetes.io/identity";

/// The hostname label of a node, or of an object that belongs to one.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What a Lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasePurpose<'a> {
    /// The heartbeat of this node's kubelet.
    Heartbeat {
        /// The node.
        node: &'a str,
    },
    /// The maintenance lock of this node.
    Maintenance {
        /// The node.
        node: &'a str,
    },
    /// An operator of medik8s repairs this node.
    Remediation {
        /// The node.
        node: &'a str,
    },
    /// An API server tells others that it exists.
    ApiServerIdentity {
        /// Its program, such as `kube-apiserver`.
        program: &'a str,
        /// The machine that it runs on.
        host: Option<&'a str>,
    },
    /// A leader election, coordinated by the API server with this strategy if there is one.
    LeaderElection {
        /// How the leader is chosen.
        strategy: Option<&'a str>,
    },
    /// A lock of an application.
    Lock,
    /// Nobody has used it.
    Unknown,
}

/// The parts of a Lease that show its purpose.
#[derive(Clone, Copy, Debug)]
struct Hints<'a> {
    namespace: &'a str,
    name: &'a str,
    labels: &'a BTreeMap<String, String>,
    strategy: Option<&'a str>,
    /// Whether it was last acquired by this library.
    ours: bool,
    /// Whether this library last used it for a leader election.
    of_election: bool,
    /// Whether somebody has held it for some time.
    used: bool,
}

impl AnyLease {
    /// What it is for.
    #[must_use]
    pub fn purpose(&self) -> LeasePurpose<'_> {
        let lease = &self.lease;
        purpose(Hints {
            namespace: &self.namespace,
            name: self.name(),
            labels: &self.labels,
            strategy: self.strategy.as_deref(),
            ours: lease.lock_id().is_some() || lease.last_holder().is_some(),
            of_election: lease.is_of_election(),
            used: lease.holder().is_some() || lease.duration_seconds() > 0,
        })
    }
}

fn purpose(hints: Hints<'_>) -> LeasePurpose<'_> {
    let Hints { name, labels, .. } = hints;
    let election = LeasePurpose::LeaderElection {
        strategy: hints.strategy,
    };
    match hints.namespace {
        HEARTBEATS => return LeasePurpose::Heartbeat { node: name },
        NAMESPACE => return LeasePurpose::Maintenance { node: name },
        // medik8s names its Leases after the kind and the name of the object.
        MEDIK8S_LEASES => {
            let node = name.strip_prefix("node-");
            return node.map_or(LeasePurpose::Lock, |node| LeasePurpose::Remediation {
                node,
            });
        }
        _ => {}
    }
    match labels.get(IDENTITY) {
        Some(program) => LeasePurpose::ApiServerIdentity {
            program,
            host: labels.get(HOSTNAME).map(String::as_str),
        },
        None if hints.strategy.is_some() || hints.of_election => election,
        None if hints.ours => LeasePurpose::Lock,
        None if hints.used => election,
        None => LeasePurpose::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELECTION: LeasePurpose<'_> = LeasePurpose::LeaderElection { strategy: None };

    /// A Lease without labels that somebody has used.
    fn used<'a>(
        namespace: &'a str,
        name: &'a str,
        labels: &'a BTreeMap<String, String>,
    ) -> Hints<'a> {
        Hints {
            namespace,
            name,
            labels,
            strategy: None,
            ours: false,
            of_election: false,
            used: true,
        }
    }

    fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        let labels = labels.iter();
        labels
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_lease_shows_its_purpose_by_its_namespace() {
        let node = "worker-1";
        for (namespace, name, expected) in [
            ("kube-node-lease", node, LeasePurpose::Heartbeat { node }),
            (
                "kube-node-maintenance",
                node,
                LeasePurpose::Maintenance { node },
            ),
            (
                "medik8s-leases",
                "node-worker-1",
                LeasePurpose::Remediation { node },
            ),
            ("medik8s-leases", "other", LeasePurpose::Lock),
            ("kube-system", "kube-scheduler", ELECTION),
            // The namespace matters too: the same name elsewhere proves nothing.
            ("default", "node-worker-1", ELECTION),
        ] {
            assert_eq!(purpose(used(namespace, name, &labels(&[]))), expected);
        }
    }

    #[test]
    fn api_server_leases_are_found_by_their_label() {
        let program = "kube-apiserver";
        let named = labels(&[(IDENTITY, program), (HOSTNAME, "master-1")]);
        let host = Some("master-1");
        assert_eq!(
            purpose(used("kube-system", "apiserver-x", &named)),
            LeasePurpose::ApiServerIdentity { program, host }
        );
        // This label on a heartbeat does not make it the identity of an API server.
        assert_eq!(
            purpose(used("kube-node-lease", "a", &named)),
            LeasePurpose::Heartbeat { node: "a" }
        );
    }

    #[test]
    fn elections_and_locks_are_distinguished() {
        let none = labels(&[]);
        let used = used("apps", "scheduler", &none);
        let strategy = Some("OldestEmulationVersion");
        for (hints, expected) in [
            // A Lease with a strategy is an election, even if it was a lock before.
            (
                Hints {
                    strategy,
                    ours: true,
                    ..used
                },
                LeasePurpose::LeaderElection { strategy },
            ),
            (Hints { ours: true, ..used }, LeasePurpose::Lock),
            (
                Hints {
                    ours: true,
                    of_election: true,
                    ..used
                },
                ELECTION,
            ),
            (
                Hints {
                    used: false,
                    ..used
                },
                LeasePurpose::Unknown,
            ),
        ] {
            assert_eq!(purpose(hints), expected, "{hints:?}");
        }
    }
}
