//! Gathers the facts for the checks. All requests run in parallel. Their number depends on the number of
//! nodes, namespaces and kinds, not on the number of pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::join_all;
use futures::join;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::Now;
use maintenance_lease::{ApiError, Error, MEDIK8S_LEASES, Maintenance, NodeLease, escape};

use super::Reader;
use super::objects::needed;
use crate::constants::HEARTBEATS;
use crate::controller::{Kind, controller};
use crate::facts::owner::waiting_deployment;
use crate::facts::pod::{namespace, node_name};
use crate::facts::source::{Source, persistent_claims, sources};
use crate::facts::{
    Cluster, Evidence, Lock, NamespaceEvidence, NodeFacts, NodeRow, PodSnapshot, PresentNode,
    Remediation, Zone,
};
use crate::known::{Known, Why};
use crate::node_health::{Heartbeat, NodeState};

const LEASES: &str = "leases.coordination.k8s.io";

/// What must be read in one namespace because of its pods.
#[derive(Default)]
struct Needs {
    kinds: BTreeSet<Kind>,
    /// The uids of the ReplicaSets of the pods.
    replica_sets: BTreeSet<String>,
    claims: bool,
    attachments: bool,
    phases: bool,
}

impl Reader {
    /// Gathers what is known of `pods`, their nodes and `nodes`. Reads the maintenance Leases through
    /// `locks`; `is_own` returns whether the caller holds a Lease. `now` must be from before the reads. A
    /// node that is alive when it is read then counts as alive, even if the other reads take long.
    pub async fn gather(
        &self,
        locks: &Maintenance,
        is_own: impl Fn(&NodeLease) -> bool,
        pods: &[Pod],
        nodes: &[&str],
        now: Now,
    ) -> Evidence {
        let mut names: BTreeSet<&str> = nodes.iter().copied().collect();
        let mut needs: BTreeMap<&str, Needs> = BTreeMap::new();
        for pod in pods {
            names.extend(Some(node_name(pod)).filter(|node| !node.is_empty()));
            let needs = needs.entry(namespace(pod)).or_default();
            needs.claims |= persistent_claims(pod).next().is_some();
            for source in sources(pod) {
                needs.claims |= matches!(source, Source::Claim(_));
                needs.attachments |= matches!(
                    source,
                    Source::Claim(_) | Source::Disk(_) | Source::Driver(_)
                );
            }
            needs.phases |= PodSnapshot::of(pod).job_waits;
            if let Some(owner) = controller(&pod.metadata) {
                needs.kinds.insert(Kind::of(owner));
                if Kind::of(owner) == Kind::ReplicaSet {
                    needs.replica_sets.insert(owner.uid.clone());
                }
            }
        }
        let attachments = needs.values().any(|needs| needs.attachments);
        let (nodes, namespaces, cluster) = join!(
            self.nodes(locks, is_own, names, now),
            join_all(needs.into_iter().map(|(namespace, needs)| async move {
                let evidence = self.namespace(namespace, &needs).await;
                (namespace.to_owned(), evidence)
            })),
            async {
                match attachments {
                    true => self.volumes().await,
                    false => Cluster::default(),
                }
            },
        );
        Evidence {
            nodes,
            namespaces: namespaces.into_iter().collect(),
            cluster,
        }
    }

    async fn nodes(
        &self,
        locks: &Maintenance,
        is_own: impl Fn(&NodeLease) -> bool,
        names: BTreeSet<&str>,
        now: Now,
    ) -> BTreeMap<String, NodeFacts> {
        if names.is_empty() {
            return BTreeMap::new();
        }
        let leases = locks.repository().namespace();
        let (cluster_nodes, may_patch, may_create, read) = join!(
            self.cluster_nodes(now),
            self.may("patch", LEASES, Some(leases)),
            self.may("create", LEASES, Some(leases)),
            join_all(names.into_iter().map(|name| async move {
                let (node, heartbeat, lock, remediation) = join!(
                    self.node(name),
                    self.heartbeat(name),
                    locks.get(name),
                    self.remediation(name),
                );
                (name.to_owned(), node, heartbeat, lock, remediation)
            })),
        );
        read.into_iter()
            .map(|(name, node, heartbeat, lock, remediation)| {
                let node = Known::of(node, || "get nodes".to_owned());
                let zone = match &node {
                    Known::Unknown(why) => Known::Unknown(why.clone()),
                    Known::Yes(_) => cluster_nodes.as_ref().map(|all| all.zone_of(&name, now)),
                };
                let lease = Known::of(lock.map_err(cause), || {
                    format!("get {LEASES} in namespace {leases}")
                });
                let (verb, may_take) = match &lease {
                    Known::Yes(None) => ("create", &may_create),
                    _ => ("patch", &may_patch),
                };
                let remediation = match &node {
                    Known::Yes(Some(node)) => Remediation::on(node, remediation),
                    Known::Yes(None) => remediation,
                    Known::Unknown(why) => remediation_by_lease_alone(remediation, why),
                };
                let heartbeat = Known::of(heartbeat, || {
                    format!("get {LEASES} in namespace {HEARTBEATS}")
                });
                let present = |node| PresentNode::of(&node, heartbeat.clone());
                let evidence = NodeFacts {
                    node: node.map(|node| node.map(present)),
                    heartbeat,
                    lock: unknown_unless_lockable(
                        lease.map(|lease| {
                            let own = lease.as_ref().is_some_and(&is_own);
                            Lock::of(lease.as_ref(), own, now)
                        }),
                        verb,
                        may_take,
                    ),
                    remediation,
                    zone,
                };
                (name, evidence)
            })
            .collect()
    }

    /// How many nodes are unreachable at `now`, in `node`'s zone and in the other zones. `now` must be from
    /// before the reads.
    pub async fn zone(&self, node: &str, now: Now) -> Known<Zone> {
        let cluster_nodes = self.cluster_nodes(now).await;
        cluster_nodes.map(|all| all.zone_of(node, now))
    }

    /// All nodes, their heartbeats, and the nodes that are known to be fenced and whose kubelets are not
    /// alive at `now`.
    async fn cluster_nodes(&self, now: Now) -> Known<ClusterNodes> {
        let (rows, heartbeats) = join!(self.node_rows(), self.heartbeats());
        let rows = Known::of(rows, || "list nodes".to_owned());
        let heartbeats = Known::of(heartbeats, || {
            format!("list {LEASES} in namespace {HEARTBEATS}")
        });
        let (rows, heartbeats) = match (rows, heartbeats) {
            (Known::Unknown(why), _) | (_, Known::Unknown(why)) => return Known::Unknown(why),
            (Known::Yes(rows), Known::Yes(heartbeats)) => (rows, heartbeats),
        };
        let candidates = rows.iter().filter(|row| row.is_annotated);
        let fenced = join_all(candidates.map(|row| async {
            // A Node that can't be read counts as not fenced.
            let node = self.node(&row.name).await.ok().flatten()?;
            let state = NodeState::of(&node, Known::Yes(heartbeats.get(&row.name).copied()));
            let is_alive = state.is_fresh(now) == Some(true);
            (state.is_fenced() && !is_alive).then(|| row.name.clone())
        }));
        let fenced = fenced.await.into_iter().flatten().collect();
        Known::Yes(ClusterNodes {
            rows,
            heartbeats,
            fenced,
        })
    }

    /// The medik8s operator that repairs the node, by its Lease.
    pub(super) async fn remediation(&self, node: &str) -> Known<Remediation> {
        let path = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{MEDIK8S_LEASES}/leases/{}",
            escape(&format!("node-{node}"))
        );
        let read = self.get(&path).await;
        Known::of(read, || {
            format!("get {LEASES} in namespace {MEDIK8S_LEASES}")
        })
        .map(|lease| Remediation::of(lease.as_ref(), self.now()))
    }

    async fn namespace(&self, namespace: &str, needs: &Needs) -> NamespaceEvidence {
        let has = |kind| needs.kinds.contains(&kind);
        let (apps, core) = ("/apis/apps/v1", "/api/v1");
        let (
            stateful_sets,
            (replica_sets, deployments),
            daemon_sets,
            replication_controllers,
            jobs,
            claims,
            budgets,
            may_delete,
            may_patch_status,
        ) = join!(
            needed(has(Kind::StatefulSet), || self.all_in(
                namespace,
                apps,
                "statefulsets"
            )),
            self.replica_sets(namespace, &needs.replica_sets),
            needed(has(Kind::DaemonSet), || self.all_in(
                namespace,
                apps,
                "daemonsets"
            )),
            needed(has(Kind::ReplicationController), || self.all_in(
                namespace,
                core,
                "replicationcontrollers"
            )),
            needed(has(Kind::Job), || self.all_in(
                namespace,
                "/apis/batch/v1",
                "jobs"
            )),
            needed(needs.claims, || self.all_in(
                namespace,
                core,
                "persistentvolumeclaims"
            )),
            self.all_in(namespace, "/apis/policy/v1", "poddisruptionbudgets"),
            self.may("delete", "pods", Some(namespace)),
            needed(needs.phases, || self.may(
                "patch",
                "pods/status",
                Some(namespace)
            )),
        );
        NamespaceEvidence {
            stateful_sets,
            replica_sets,
            deployments,
            daemon_sets,
            replication_controllers,
            jobs,
            claims,
            budgets,
            may_delete,
            may_patch_status,
        }
    }

    /// The ReplicaSets of a namespace, and its Deployments if one of them may wait for the pods of the
    /// ReplicaSets with these `uids`.
    async fn replica_sets(
        &self,
        namespace: &str,
        uids: &BTreeSet<String>,
    ) -> (Known<Vec<ReplicaSet>>, Known<Vec<Deployment>>) {
        let apps = "/apis/apps/v1";
        let sets = needed(!uids.is_empty(), || {
            self.all_in::<ReplicaSet>(namespace, apps, "replicasets")
        });
        let sets = sets.await;
        let is_awaited = |set: &ReplicaSet| {
            let is_ours = set
                .metadata
                .uid
                .as_ref()
                .is_some_and(|uid| uids.contains(uid));
            is_ours && waiting_deployment(set).is_some()
        };
        let has_awaited = sets.value().into_iter().flatten().any(is_awaited);
        let deployments = needed(has_awaited, || self.all_in(namespace, apps, "deployments"));
        (sets, deployments.await)
    }

    async fn volumes(&self) -> Cluster {
        let (volumes, attachments, drivers) = join!(
            self.list("/api/v1/persistentvolumes", ""),
            self.volume_attachments(),
            self.list("/apis/storage.k8s.io/v1/csidrivers", ""),
        );
        Cluster {
            volumes: Known::of(volumes, || "list persistentvolumes".to_owned()),
            attachments,
            drivers: Known::of(drivers, || "list csidrivers".to_owned()),
        }
    }
}

/// Returns `lock`, or unknown if the caller may not lock the node: somebody else could then lock it during
/// the deletion.
fn unknown_unless_lockable(lock: Known<Lock>, verb: &str, may_take: &Known<bool>) -> Known<Lock> {
    if !matches!(lock, Known::Yes(Lock::Free | Lock::Expired { .. })) {
        return lock;
    }
    match may_take {
        Known::Yes(true) => lock,
        Known::Yes(false) => Known::Unknown(Why::Forbidden(format!(
            "{verb} {LEASES} to lock it during the deletion"
        ))),
        Known::Unknown(why) => Known::Unknown(why.clone()),
    }
}

/// The remediation that the medik8s Lease shows. If it shows none, the result is unknown, because the taints
/// of the Node could not be read.
fn remediation_by_lease_alone(by_lease: Known<Remediation>, unread: &Why) -> Known<Remediation> {
    match by_lease {
        Known::Yes(Remediation::None) => Known::Unknown(unread.clone()),
        told => told,
    }
}

/// The nodes of the cluster.
struct ClusterNodes {
    rows: Vec<NodeRow>,
    /// The heartbeats of the kubelets, by node.
    heartbeats: HashMap<String, Heartbeat>,
    /// The nodes that were fenced and have not come back.
    fenced: BTreeSet<String>,
}

impl ClusterNodes {
    fn zone_of(&self, node: &str, now: Now) -> Zone {
        Zone::of(node, &self.rows, &self.fenced, &self.heartbeats, now)
    }
}

/// The API error that caused `error`.
fn cause(error: Error) -> ApiError {
    match error {
        Error::Api(source) | Error::MissingRight { source, .. } => source,
        other => ApiError::Unreadable(other.to_string()),
    }
}
