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
pub(super) enum Purpose {
    /// The heartbeat of this node's kubelet.
    Heartbeat { node: String },
    /// The maintenance lock of this node.
    Maintenance { node: String },
    /// The lock of a medik8s operator on this node.
    Remediation { node: String },
    /// The identity of an API server.
    ApiServer {
        program: String,
        host: Option<String>,
    },
    /// The election of one leader among several processes.
    Election {
        /// How the leader is chosen, if the API server does that.
        strategy: Option<String>,
    },
    /// A lock with a name that an application chose.
    Lock,
    /// It was never used.
    Unknown,
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
            namespace, labels, ..
        } = traits;
        let name = traits.name.to_owned();
        match traits.strategy {
            _ if namespace == HEARTBEATS => Self::Heartbeat { node: name },
            _ if namespace == NAMESPACE => Self::Maintenance { node: name },
            // medik8s names its Leases after the kind and the name of the object.
            _ if namespace == MEDIK8S_LEASES => match name.strip_prefix("node-") {
                Some(node) => Self::Remediation { node: node.into() },
                None => Self::Lock,
            },
            _ if labels.contains_key(IDENTITY) => Self::ApiServer {
                program: labels[IDENTITY].clone(),
                host: labels.get(HOSTNAME).cloned(),
            },
            Some(strategy) => Self::Election {
                strategy: Some(strategy.to_owned()),
            },
            None if traits.of_election => Self::Election { strategy: None },
            None if traits.ours => Self::Lock,
            None if traits.used => Self::Election { strategy: None },
            None => Self::Unknown,
        }
    }

    /// The word for programs.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Heartbeat { .. } => "Heartbeat",
            Self::Maintenance { .. } => "Maintenance",
            Self::Remediation { .. } => "Remediation",
            Self::ApiServer { .. } => "ApiServerIdentity",
            Self::Election { .. } => "LeaderElection",
            Self::Lock => "Lock",
            Self::Unknown => "Unknown",
        }
    }

    /// The words for people, without the Lease's name, which has a column of its own.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Heartbeat { .. } => "node heartbeat".to_owned(),
            Self::Maintenance { .. } => "node maintenance".to_owned(),
            Self::Remediation { .. } => "node remediation (medik8s)".to_owned(),
            Self::ApiServer { program, host } => {
                let program = match &program[..] {
                    "kube-apiserver" => "API server",
                    program => program,
                };
                match host {
                    Some(host) => format!("{program} on {host}"),
                    None => program.to_owned(),
                }
            }
            Self::Election { strategy: None } => "leader election".to_owned(),
            Self::Election {
                strategy: Some(strategy),
            } => format!("coordinated leader election ({strategy})"),
            Self::Lock => "lock of an application".to_owned(),
            Self::Unknown => "never used".to_owned(),
        }
    }

    /// The node that it is about.
    pub(super) fn node(&self) -> Option<&str> {
        match self {
            Self::Heartbeat { node } | Self::Maintenance { node } | Self::Remediation { node } => {
                Some(node)
            }
            _ => None,
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
        Purpose::of(traits).words()
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
