//! The purpose of a Lease, derived from its namespace, name and contents. No I/O.

use std::collections::BTreeMap;

use maintenance_lease::{AnyLease, HEARTBEATS, NAMESPACE};
use pod_safety::constants::MEDIK8S_LEASES;

/// kube-apiserver's label for the Leases that API servers find each other by
/// (`k8s.io/apiserver/pkg/storage/…/identity`, `controlplane.IdentityLeaseComponentLabelKey`).
const IDENTITY: &str = "apiserver.kubernetes.io/identity";

/// The hostname label of a node, or of an object that belongs to one.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The parts of a Lease that show its purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) labels: &'a BTreeMap<String, String>,
    /// How coordinated leader election chooses the leader.
    pub(super) strategy: Option<&'a str>,
    /// Whether it was last acquired by this tool or its library.
    pub(super) ours: bool,
    /// Whether the library last used it for a leader election.
    pub(super) of_election: bool,
    /// Whether somebody has held it for some time.
    pub(super) used: bool,
}

/// The purpose of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Purpose {
    /// The word for programs.
    pub(super) word: &'static str,
    /// The words for people, without the Lease's name, which has a column of its own.
    pub(super) words: String,
    /// The node that it is about.
    pub(super) node: Option<String>,
}

impl<'a> Traits<'a> {
    pub(super) fn of(any: &'a AnyLease) -> Self {
        let lease = &any.lease;
        Self {
            namespace: &any.namespace,
            name: any.name(),
            labels: &any.labels,
            strategy: any.strategy.as_deref(),
            ours: lease.lock_id().is_some() || lease.last_holder().is_some(),
            of_election: lease.is_of_election(),
            used: lease.holder().is_some() || lease.duration_seconds() > 0,
        }
    }
}

impl Purpose {
    pub(super) fn of(traits: Traits<'_>) -> Self {
        let Traits {
            namespace,
            name,
            labels,
            ..
        } = traits;
        let of = |word, words: &str, node: Option<&str>| Self {
            word,
            words: words.to_owned(),
            node: node.map(ToOwned::to_owned),
        };
        let lock = of("Lock", "lock of an application", None);
        let election = of("LeaderElection", "leader election", None);
        match traits.strategy {
            _ if namespace == HEARTBEATS => of("Heartbeat", "node heartbeat", Some(name)),
            _ if namespace == NAMESPACE => of("Maintenance", "node maintenance", Some(name)),
            // medik8s names its Leases after the kind and the name of the object.
            _ if namespace == MEDIK8S_LEASES => match name.strip_prefix("node-") {
                Some(node) => of("Remediation", "node remediation (medik8s)", Some(node)),
                None => lock,
            },
            _ if labels.contains_key(IDENTITY) => {
                let program = match labels[IDENTITY].as_str() {
                    "kube-apiserver" => "API server",
                    program => program,
                };
                let host = labels.get(HOSTNAME).map(|host| format!(" on {host}"));
                let words = format!("{program}{}", host.unwrap_or_default());
                of("ApiServerIdentity", &words, None)
            }
            Some(strategy) => Self {
                words: format!("coordinated leader election ({strategy})"),
                ..election
            },
            None if traits.of_election => election,
            None if traits.ours => lock,
            None if traits.used => election,
            None => of("Unknown", "never used", None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The purpose of a used Lease, judged by its namespace and name alone.
    fn named(namespace: &str, name: &str) -> String {
        of(namespace, name, |_| {})
    }

    fn of(namespace: &str, name: &str, change: impl Fn(&mut Traits<'_>)) -> String {
        labelled(namespace, name, &[], change)
    }

    fn labelled(
        namespace: &str,
        name: &str,
        labels: &[(&str, &str)],
        change: impl Fn(&mut Traits<'_>),
    ) -> String {
        let labels = labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let mut traits = Traits {
            namespace,
            name,
            labels: &labels,
            strategy: None,
            ours: false,
            of_election: false,
            used: true,
        };
        change(&mut traits);
        Purpose::of(traits).words
    }

    #[test]
    fn what_a_lease_is_for_shows_in_its_namespace() {
        for (namespace, name, words) in [
            ("kube-node-lease", "worker-1", "node heartbeat"),
            ("kube-node-maintenance", "worker-1", "node maintenance"),
            (
                "medik8s-leases",
                "node-worker-1",
                "node remediation (medik8s)",
            ),
            ("medik8s-leases", "other", "lock of an application"),
            ("kube-system", "kube-scheduler", "leader election"),
            // The namespace matters too: the same name elsewhere proves nothing.
            ("default", "node-worker-1", "leader election"),
        ] {
            assert_eq!(named(namespace, name), words);
        }
    }

    #[test]
    fn api_servers_are_told_by_their_label() {
        let identity = (IDENTITY, "kube-apiserver");
        assert_eq!(
            labelled("kube-system", "apiserver-x", &[identity], |_| {}),
            "API server"
        );
        let host = (HOSTNAME, "master-1");
        assert_eq!(
            labelled("kube-system", "apiserver-x", &[identity, host], |_| {}),
            "API server on master-1"
        );
        // This label on a heartbeat does not make it the identity of an API server.
        assert_eq!(
            labelled("kube-node-lease", "a", &[identity], |_| {}),
            "node heartbeat"
        );
    }

    #[test]
    fn a_coordinated_election_is_one_whoever_had_it_before() {
        let strategy = |traits: &mut Traits<'_>| {
            traits.strategy = Some("OldestEmulationVersion");
            traits.ours = true;
        };
        assert_eq!(
            of("kube-system", "kube-scheduler", strategy),
            "coordinated leader election (OldestEmulationVersion)"
        );
    }

    #[test]
    fn locks_of_the_library_are_not_taken_for_elections() {
        assert_eq!(
            of("apps", "compaction", |traits| traits.ours = true),
            "lock of an application"
        );
    }

    #[test]
    fn elections_of_the_library_are_not_taken_for_locks() {
        let elected = |traits: &mut Traits<'_>| {
            traits.ours = true;
            traits.of_election = true;
        };
        assert_eq!(of("apps", "scheduler", elected), "leader election");
    }

    #[test]
    fn what_nobody_ever_used_has_no_use() {
        assert_eq!(
            of("apps", "empty", |traits| traits.used = false),
            "never used"
        );
    }
}
