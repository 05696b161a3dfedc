//! What prevents the pods of a node from running elsewhere once the node is fenced.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use futures::join;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::escape;
use maintenance_lease::protocol::Now;

use super::Reader;
use super::objects::needed;
use crate::controller::{Kind, controller};
use crate::facts::pod::namespace;
use crate::facts::replacement::{of_leaving, ordinal};
use crate::facts::source::claims;
use crate::facts::{Blocked, Cluster, Evidence, NamespaceEvidence};
use crate::fencing::cost::leaves;
use crate::known::Known;
use crate::taint::OutOfService;

/// What must be read in one namespace because of its pods.
#[derive(Default)]
struct Needs<'a> {
    claims: bool,
    sets: BTreeSet<&'a str>,
    members: bool,
}

impl Reader {
    /// The pods that leave a node once it is fenced, and whose replacements will not be created or will not
    /// run. What can't be read is not reported as an obstacle. Each kind is listed once per namespace. If
    /// StatefulSets can't be listed, each one is read by itself. `taint` is the out-of-service taint that the
    /// node has.
    pub async fn blocked_replacements(
        &self,
        pods: &[Pod],
        taint: &OutOfService,
        now: Now,
    ) -> Vec<Blocked> {
        let leaving: Vec<&Pod> = pods.iter().filter(|pod| leaves(pod, taint)).collect();
        let mut needs: BTreeMap<&str, Needs<'_>> = BTreeMap::new();
        for pod in &leaving {
            let Some(owner) = controller(&pod.metadata) else {
                continue;
            };
            let kind = Kind::of(owner);
            let needs = needs.entry(namespace(pod)).or_default();
            // A DaemonSet recreates its pod on the same node.
            needs.claims |= kind != Kind::DaemonSet && claims(pod).next().is_some();
            if kind == Kind::StatefulSet {
                needs.sets.insert(&owner.name);
                needs.members |= ordinal(pod) > Some(0);
            }
        }
        needs.retain(|_, needs| needs.claims || !needs.sets.is_empty());
        let has_claims = needs.values().any(|needs| needs.claims);
        let (volumes, rows, namespaces) = join!(
            needed(has_claims, || async {
                let volumes = self.list("/api/v1/persistentvolumes", "").await;
                Known::of(volumes, || "list persistentvolumes".to_owned())
            }),
            needed(has_claims, || async {
                Known::of(self.node_rows().await, || "list nodes".to_owned())
            }),
            join_all(needs.into_iter().map(|(namespace, needs)| async move {
                let evidence = self.controllers_and_claims(namespace, &needs).await;
                (namespace.to_owned(), evidence)
            })),
        );
        let evidence = Evidence {
            namespaces: namespaces.into_iter().collect(),
            cluster: Cluster {
                volumes,
                ..Cluster::default()
            },
            rows,
            ..Evidence::default()
        };
        of_leaving(&leaving, &evidence, now)
    }

    async fn controllers_and_claims(
        &self,
        namespace: &str,
        needs: &Needs<'_>,
    ) -> NamespaceEvidence {
        let core = "/api/v1";
        let has_sets = !needs.sets.is_empty();
        let (stateful_sets, claims, quotas, ready_members) = join!(
            needed(has_sets, || self.stateful_sets(namespace, &needs.sets)),
            needed(needs.claims, || self.all_in(
                namespace,
                core,
                "persistentvolumeclaims"
            )),
            needed(has_sets, || self.all_in(namespace, core, "resourcequotas")),
            needed(needs.members, || self.ready_members(namespace)),
        );
        NamespaceEvidence {
            stateful_sets,
            claims,
            quotas,
            ready_members,
            ..NamespaceEvidence::default()
        }
    }

    /// The StatefulSets of a namespace. If they can't be listed, those of these `names` that can be read. The
    /// user may have the permission to get them but not to list them.
    async fn stateful_sets(
        &self,
        namespace: &str,
        names: &BTreeSet<&str>,
    ) -> Known<Vec<StatefulSet>> {
        let apps = "/apis/apps/v1";
        let all = self.all_in(namespace, apps, "statefulsets").await;
        if all.value().is_some() {
            return all;
        }
        let reading = names.iter().map(|name| async move {
            let (namespace, name) = (escape(namespace), escape(name));
            let path = format!("{apps}/namespaces/{namespace}/statefulsets/{name}");
            self.get(&path).await.ok().flatten()
        });
        Known::Yes(join_all(reading).await.into_iter().flatten().collect())
    }
}
