//! Reads how many pods of an owner are ready.

use std::collections::BTreeSet;

use futures::future::join_all;
use maintenance_lease::escape;
use serde::Deserialize;

use super::Reader;
use crate::controller::Kind;
use crate::owners::{IncompleteOwner, PodOwner};

/// The fields of an owner that are needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
struct Spec {
    replicas: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    ready_replicas: i32,
}

impl Reader {
    /// Those of `owners` that have fewer ready pods than they should have. Each kind is listed once per
    /// namespace. What can't be read is left out.
    pub async fn incomplete(&self, owners: &BTreeSet<PodOwner>) -> Vec<IncompleteOwner> {
        let lists: BTreeSet<(&str, Kind)> = owners.iter().map(PodOwner::list).collect();
        let reading = lists.into_iter().map(|list| async move {
            let (namespace, kind) = list;
            let namespace = escape(namespace);
            let path = match kind {
                Kind::ReplicationController => {
                    format!("/api/v1/namespaces/{namespace}/replicationcontrollers")
                }
                Kind::ReplicaSet => format!("/apis/apps/v1/namespaces/{namespace}/replicasets"),
                _ => format!("/apis/apps/v1/namespaces/{namespace}/statefulsets"),
            };
            let incomplete = |owner: Owner| {
                let name = owner.metadata.name;
                let mut of_list = owners.iter().filter(|owner| owner.list() == list);
                let is_one = of_list.any(|owner| owner.name == name);
                let (ready, replicas) = (
                    owner.status.ready_replicas,
                    owner.spec.replicas.unwrap_or(1),
                );
                (is_one && ready < replicas).then(|| IncompleteOwner {
                    namespace: list.0.to_owned(),
                    kind: format!("{kind:?}"),
                    name,
                    ready,
                    replicas,
                })
            };
            self.select(&path, "", incomplete).await.unwrap_or_default()
        });
        join_all(reading).await.into_iter().flatten().collect()
    }
}
