//! Gathers what the checks look at: everything side by side, and as many requests as there are nodes,
//! namespaces and kinds, however many pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::{join, join_all, join3, join5};
use k8s_openapi::api::core::v1::{Node, Pod};
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{ApiError, Error, Maintenance, NodeLease, NodeRow, RowDetail, escape};
use serde::de::DeserializeOwned;

use super::Reader;
use crate::constants::{HEARTBEATS, MEDIK8S_LEASES};
use crate::facts::owner::{Kind, controller};
use crate::facts::source::{Source, sources};
use crate::facts::{
    Cluster, Evidence, Lock, NamespaceEvidence, NodeEvidence, PodSight, Remediation, Zone,
};
use crate::known::{Known, Why};

const LEASES: &str = "leases.coordination.k8s.io";

/// What the pods of one namespace make necessary to read there.
#[derive(Default)]
struct Needs {
    kinds: BTreeSet<Kind>,
    claims: bool,
    attachments: bool,
    phases: bool,
}

impl Reader {
    /// Gathers what is known of `pods`, their nodes and `nodes`. Asks as `locks` for the maintenance
    /// Leases, of which `is_own` tells what the caller has. `now` is from before, so that what was
    /// alive when it was read stays so, however long other reads take.
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
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            names.extend(node.filter(|node| !node.is_empty()));
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let needs = needs.entry(namespace).or_default();
            for source in sources(pod) {
                needs.claims |= matches!(source, Source::Claim(_));
                needs.attachments |= matches!(
                    source,
                    Source::Claim(_) | Source::Disk(_) | Source::Driver(_)
                );
            }
            needs.phases |= PodSight::of(pod).job_waits;
            needs.kinds.extend(controller(&pod.metadata).map(Kind::of));
        }
        let attachments = needs.values().any(|needs| needs.attachments);
        let (nodes, namespaces, cluster) = join3(
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
        )
        .await;
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
    ) -> BTreeMap<String, NodeEvidence> {
        if names.is_empty() {
            return BTreeMap::new();
        }
        let leases = locks.repository().namespace();
        let (heartbeats, (may_patch, may_create), read) = join3(
            heartbeats(locks),
            join(
                self.may("patch", LEASES, Some(leases)),
                self.may("create", LEASES, Some(leases)),
            ),
            join_all(names.into_iter().map(|name| async move {
                let (rows, heartbeat, lock, remediation) = futures::future::join4(
                    self.node_in_its_zone(locks, name),
                    self.heartbeat(name),
                    locks.get(name),
                    self.remediation(name),
                )
                .await;
                (name.to_owned(), rows, heartbeat, lock, remediation)
            })),
        )
        .await;
        read.into_iter()
            .map(|(name, (node, rows), heartbeat, lock, remediation)| {
                let zone = zone(rows, &heartbeats, now);
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
                    Known::Unknown(why) => unless_running(remediation, why),
                };
                let evidence = NodeEvidence {
                    node,
                    heartbeat: Known::of(heartbeat, || {
                        format!("get {LEASES} in namespace {HEARTBEATS}")
                    }),
                    lock: takable(
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

    /// The Node, and the name and nodes of its zone. If it has no zone, the nodes of the cluster.
    async fn node_in_its_zone(
        &self,
        locks: &Maintenance,
        name: &str,
    ) -> (Known<Option<Node>>, Known<Rows>) {
        let node = Known::of(self.node(name).await, || "get nodes".to_owned());
        let rows = match &node {
            Known::Unknown(why) => Known::Unknown(why.clone()),
            Known::Yes(node) => rows(locks, node.as_ref()).await,
        };
        (node, rows)
    }

    /// How many nodes of `node`'s zone are silent at `now`, which is from before.
    pub async fn zone(&self, locks: &Maintenance, node: &Node, now: Now) -> Known<Zone> {
        let (rows, heartbeats) = join(rows(locks, Some(node)), heartbeats(locks)).await;
        zone(rows, &heartbeats, now)
    }

    /// Who remediates the node for medik8s.
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
        let needed = |kind| needs.kinds.contains(&kind);
        let may_patch_status = async {
            match needs.phases {
                true => self.may("patch", "pods/status", Some(namespace)).await,
                false => Known::Unknown(Why::NotRead),
            }
        };
        let ((stateful_sets, replica_sets, jobs, claims, budgets), may_delete, may_patch_status) =
            join3(
                join5(
                    self.all(
                        needed(Kind::StatefulSet),
                        "/apis/apps/v1",
                        namespace,
                        "statefulsets",
                    ),
                    self.all(
                        needed(Kind::ReplicaSet),
                        "/apis/apps/v1",
                        namespace,
                        "replicasets",
                    ),
                    self.all(needed(Kind::Job), "/apis/batch/v1", namespace, "jobs"),
                    self.all(needs.claims, "/api/v1", namespace, "persistentvolumeclaims"),
                    self.all(true, "/apis/policy/v1", namespace, "poddisruptionbudgets"),
                ),
                self.may("delete", "pods", Some(namespace)),
                may_patch_status,
            )
            .await;
        NamespaceEvidence {
            stateful_sets,
            replica_sets,
            jobs,
            claims,
            budgets,
            may_delete,
            may_patch_status,
        }
    }

    /// All objects of a kind in a namespace, if they are `needed`.
    async fn all<T: DeserializeOwned + Send>(
        &self,
        needed: bool,
        group: &str,
        namespace: &str,
        plural: &str,
    ) -> Known<Vec<T>> {
        if !needed {
            return Known::Unknown(Why::NotRead);
        }
        let path = format!("{group}/namespaces/{}/{plural}", escape(namespace));
        let read = self.list(&path, "").await;
        Known::of(read, || format!("list {plural} in namespace {namespace}"))
    }

    async fn volumes(&self) -> Cluster {
        let (volumes, attachments, drivers) = join3(
            self.list("/api/v1/persistentvolumes", ""),
            self.list("/apis/storage.k8s.io/v1/volumeattachments", ""),
            self.list("/apis/storage.k8s.io/v1/csidrivers", ""),
        )
        .await;
        Cluster {
            volumes: Known::of(volumes, || "list persistentvolumes".to_owned()),
            attachments: Known::of(attachments, || "list volumeattachments".to_owned()),
            drivers: Known::of(drivers, || "list csidrivers".to_owned()),
        }
    }
}

/// A lock that is free as long as nobody else takes it: who may not hold it meanwhile, which takes the
/// right to `verb` its Lease, does not know; nor does who may not even know that.
fn takable(lock: Known<Lock>, verb: &str, may_take: &Known<bool>) -> Known<Lock> {
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

/// What an operator's Lease says of a node that can't be read, as its taint can't be then.
fn unless_running(by_lease: Known<Remediation>, unread: &Why) -> Known<Remediation> {
    match by_lease {
        Known::Yes(Remediation::None) => Known::Unknown(unread.clone()),
        told => told,
    }
}

/// Rows of nodes with the heartbeats of all: how many of them are silent.
fn zone(rows: Known<Rows>, heartbeats: &Known<HashMap<String, Instant>>, now: Now) -> Known<Zone> {
    match (rows, heartbeats) {
        (Known::Unknown(why), _) => Known::Unknown(why),
        (_, Known::Unknown(why)) => Known::Unknown(why.clone()),
        (Known::Yes(rows), Known::Yes(heartbeats)) => {
            let nodes = rows.nodes.iter().map(|row| (&*row.name, row.is_ready()));
            Known::Yes(Zone::of(rows.zone, nodes, heartbeats, now))
        }
    }
}

/// The nodes of a zone.
struct Rows {
    zone: Option<String>,
    nodes: Vec<NodeRow>,
}

/// The nodes of `node`'s zone. If it has no zone or is gone, the nodes of the cluster.
async fn rows(locks: &Maintenance, node: Option<&Node>) -> Known<Rows> {
    let zone = node.and_then(Zone::name_of);
    let selector = Zone::selector(zone.as_deref());
    let rows = locks.nodes(selector.as_deref(), RowDetail::Cells).await;
    Known::of(rows.map_err(cause), || "list nodes".to_owned()).map(|nodes| Rows { zone, nodes })
}

/// When each kubelet last renewed its heartbeat.
async fn heartbeats(locks: &Maintenance) -> Known<HashMap<String, Instant>> {
    Known::of(locks.heartbeats().await, || {
        format!("list {LEASES} in namespace {HEARTBEATS}")
    })
}

/// What the server, or the way to it, said.
fn cause(error: Error) -> ApiError {
    match error {
        Error::Api(source) | Error::MissingRight { source, .. } => source,
        other => ApiError::Unreadable(other.to_string()),
    }
}
