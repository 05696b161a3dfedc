//! Gathers what is stranded on nodes that are not well: a request a kind of object and page, however many
//! nodes and pods there are.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::join;
use k8s_openapi::api::core::v1::{self as core, Namespace, Node, PersistentVolume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use maintenance_lease::protocol::Instant;
use maintenance_lease::{Error, Right, escape};

use super::Reader;
use super::pods::on_pods;
use crate::known::{Known, Why};
use crate::node::{Health, Signs};
use crate::stranded::{
    Attachment, Orphan, Place, Pod, Stranded, StrandedPod, StrandedVolume, blocked, fate, orphan,
};
use crate::taint::NoExecute;
use crate::wire::instant;

const PODS: &str = "/api/v1/pods";
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// The nodes of a cluster.
struct Nodes {
    /// Those that are not well.
    ill: HashMap<String, Place>,
    /// Those that are.
    well: HashSet<String>,
}

impl Nodes {
    fn of(signs: Vec<(String, Signs, Vec<NoExecute>)>, health: impl Fn(&Signs) -> Health) -> Self {
        let mut nodes = Self {
            ill: HashMap::new(),
            well: HashSet::new(),
        };
        for (name, signs, taints) in signs {
            match health(&signs) {
                Health::Ready => {
                    nodes.well.insert(name);
                }
                health => {
                    nodes.ill.insert(name, Place { health, taints });
                }
            }
        }
        nodes
    }

    /// The node of this name, if it is not healthy or its Node is missing.
    fn place(&self, name: &str) -> Option<Place> {
        if self.well.contains(name) {
            return None;
        }
        Some(self.ill.get(name).cloned().unwrap_or(Place::gone()))
    }
}

impl Reader {
    /// What is stranded on `node`, or on all nodes that are not well and on those that are gone. A node
    /// that is well has nothing stranded.
    ///
    /// # Errors
    /// If Nodes or pods can't be read; what is known of heartbeats, volumes and namespaces may be
    /// missing.
    pub async fn stranded(&self, node: Option<&str>) -> Result<Stranded, Error> {
        let (nodes, pods, attachments, namespaces) = match node {
            Some(name) => {
                let on_node = format!("fieldSelector={}", escape(&format!("spec.nodeName={name}")));
                let (nodes, pods, attachments, namespaces) = join!(
                    self.one_node(name),
                    self.stranded_pods(&on_node, |_| true),
                    self.attachments(|attachment| attachment.node == name),
                    self.ending_namespaces(),
                );
                (nodes?, pods?, attachments, namespaces)
            }
            None => {
                let (nodes, attachments, namespaces) = join!(
                    self.all_nodes(),
                    self.attachments(|_| true),
                    self.ending_namespaces()
                );
                let nodes = nodes?;
                let is_ill = |pod: &Pod| !nodes.well.contains(&pod.sight.node);
                let pods = self.stranded_pods("", is_ill).await?;
                (nodes, pods, attachments, namespaces)
            }
        };
        let volumes = match attachments {
            Known::Yes(attachments) => Known::Yes(self.orphans(attachments, &nodes, &pods).await),
            Known::Unknown(why) => Known::Unknown(why),
        };
        let now = self.now();
        let stranded = pods.into_iter().filter_map(|pod| {
            let place = nodes.place(&pod.sight.node)?;
            Some(StrandedPod {
                fate: fate(&pod, &place, now)?,
                health: place.health,
                pod,
            })
        });
        let mut pods: Vec<StrandedPod> = stranded.collect();
        pods.sort_by(|a, b| a.pod.key().cmp(&b.pod.key()));
        let of_ill = nodes
            .ill
            .iter()
            .map(|(name, place)| (name.clone(), place.health.clone()));
        let of_pods = pods
            .iter()
            .map(|pod| (pod.pod.sight.node.clone(), pod.health.clone()));
        let of_volumes = volumes.yes().into_iter().flatten();
        let of_volumes =
            of_volumes.map(|volume| (volume.attachment.node.clone(), volume.health.clone()));
        let all: BTreeMap<String, Health> = of_ill.chain(of_pods).chain(of_volumes).collect();
        Ok(Stranded {
            namespaces: namespaces.map(|namespaces| blocked(namespaces, &pods)),
            nodes: all,
            pods,
            volumes,
        })
    }

    async fn one_node(&self, name: &str) -> Result<Nodes, Error> {
        let (node, heartbeat) = join!(self.node(name), self.heartbeat(name));
        let Some(node) = node.map_err(|error| Right::on_nodes("get").explain(error))? else {
            return Ok(Nodes {
                ill: HashMap::from([(name.to_owned(), Place::gone())]),
                well: HashSet::new(),
            });
        };
        let heartbeat = Known::of(heartbeat, || "get heartbeats".to_owned());
        let signs = Signs::of(&node, heartbeat);
        let now = self.now();
        Ok(Nodes::of(
            vec![(name.to_owned(), signs, NoExecute::of(&node))],
            |signs| signs.health(now),
        ))
    }

    async fn all_nodes(&self) -> Result<Nodes, Error> {
        let unread = || Known::Unknown(Why::NotRead);
        let nodes = self.select("/api/v1/nodes", "", |node: Node| {
            let name = node.metadata.name.clone().unwrap_or_default();
            Some((name, Signs::of(&node, unread()), NoExecute::of(&node)))
        });
        let (nodes, heartbeats) = join!(nodes, self.heartbeats());
        let mut signs = nodes.map_err(|error| Right::on_nodes("list").explain(error))?;
        let heartbeats = Known::of(heartbeats, || "list heartbeats".to_owned());
        for (name, signs, _) in &mut signs {
            signs.heartbeat = heartbeats.as_ref().map(|beats| beats.get(name).copied());
        }
        let now = self.now();
        Ok(Nodes::of(signs, |signs| signs.health(now)))
    }

    /// The pods that `query` selects and that are `wanted`.
    async fn stranded_pods(
        &self,
        query: &str,
        wanted: impl Fn(&Pod) -> bool + Send + Sync,
    ) -> Result<Vec<Pod>, Error> {
        let pods = self.select(PODS, query, |pod: core::Pod| Pod::of(&pod).filter(&wanted));
        pods.await
            .map_err(|error| on_pods("list", None).explain(error))
    }

    async fn attachments(
        &self,
        wanted: impl Fn(&Attachment) -> bool + Send + Sync,
    ) -> Known<Vec<Attachment>> {
        let listed = self.select(ATTACHMENTS, "", |attachment: VolumeAttachment| {
            Some(Attachment::from(attachment)).filter(&wanted)
        });
        Known::of(listed.await, || {
            "list volumeattachments.storage.k8s.io".to_owned()
        })
    }

    /// The namespaces that are being deleted, and since when.
    async fn ending_namespaces(&self) -> Known<Vec<(String, Instant)>> {
        let query = "fieldSelector=status.phase%3DTerminating";
        let listed = self.select("/api/v1/namespaces", query, |namespace: Namespace| {
            let since = namespace.metadata.deletion_timestamp.as_ref().map(instant);
            namespace.metadata.name.zip(since)
        });
        Known::of(listed.await, || "list namespaces".to_owned())
    }

    /// The attachments that nobody needs. The claims of volumes are read only if a node that is not
    /// healthy has attachments.
    async fn orphans(
        &self,
        attachments: Vec<Attachment>,
        nodes: &Nodes,
        pods: &[Pod],
    ) -> Vec<StrandedVolume> {
        let places = attachments.into_iter();
        let ill = places.filter_map(|attachment| {
            let place = nodes.place(&attachment.node)?;
            Some((attachment, place.health))
        });
        let ill: Vec<(Attachment, Health)> = ill.collect();
        let open = |(attachment, health): &(Attachment, Health)| {
            attachment.volume.is_some()
                && orphan(attachment, health, &Known::Unknown(Why::NotRead)).is_none()
        };
        let claims = if ill.iter().any(open) {
            self.claims().await
        } else {
            Known::Unknown(Why::NotRead)
        };
        let is_used = |attachment: &Attachment| match &attachment.volume {
            None => Known::Unknown(Why::NotRead),
            Some(volume) => claims.as_ref().map(|claims| {
                claims.get(volume).is_some_and(|(namespace, claim)| {
                    pods.iter().any(|pod| {
                        !pod.finished
                            && pod.sight.node == attachment.node
                            && pod.sight.namespace == *namespace
                            && pod.claims.contains(claim)
                    })
                })
            }),
        };
        let orphaned = ill.into_iter().filter_map(|(attachment, health)| {
            let orphan: Orphan = orphan(&attachment, &health, &is_used(&attachment))?;
            Some(StrandedVolume {
                attachment,
                health,
                orphan,
            })
        });
        let mut orphaned: Vec<StrandedVolume> = orphaned.collect();
        orphaned.sort_by(|a, b| a.attachment.key().cmp(&b.attachment.key()));
        orphaned
    }

    /// The namespace and name of the claim that each PersistentVolume is of.
    async fn claims(&self) -> Known<HashMap<String, (String, String)>> {
        let claim_of = |volume: PersistentVolume| {
            let claim = volume.spec.and_then(|spec| spec.claim_ref);
            let claim = claim.and_then(|claim| claim.namespace.zip(claim.name));
            volume.metadata.name.zip(claim)
        };
        let listed = self.select("/api/v1/persistentvolumes", "", claim_of);
        let listed = listed.await.map(|claims| claims.into_iter().collect());
        Known::of(listed, || "list persistentvolumes".to_owned())
    }
}

impl Pod {
    fn key(&self) -> (&str, &str, &str) {
        (&self.sight.node, &self.sight.namespace, &self.sight.name)
    }
}

impl Attachment {
    fn key(&self) -> (&str, &str) {
        (&self.node, &self.name)
    }
}
