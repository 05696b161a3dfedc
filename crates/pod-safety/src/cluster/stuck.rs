//! Gathers stuck pods and volumes, and the objects that explain them. Sends one request for each kind of
//! object, page, and namespace with stuck pods, regardless of the number of nodes and pods.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::join_all;
use futures::join;
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use maintenance_lease::protocol::Now;
use maintenance_lease::{Error, Right, escape};

use super::Reader;
use super::objects::needed;
use super::pods::on_pods;
use super::why::newest;
use crate::facts::pod::{has_ended, namespace, node_name};
use crate::facts::selectors::is_limited;
use crate::facts::source::claims;
use crate::facts::{NodeRow, PresentNode};
use crate::known::{Known, Why};
use crate::node_health::Health;
use crate::stuck::{
    Attachment, Stuck, StuckPod, StuckResources, StuckVolume, is_stuck, orphan, own_claims,
};
use crate::why::pod::{PodEvidence, has_kubelet, state};
use crate::why::{Diagnosis, State, Unread, diagnose_pod};

const PODS: &str = "/api/v1/pods";

/// The Nodes that were read.
struct Nodes {
    /// The Nodes by name; `None` if a Node does not exist.
    read: BTreeMap<String, Option<PresentNode>>,
    /// All Nodes were read, so a Node that is not in `read` does not exist.
    is_complete: bool,
}

impl Nodes {
    /// The Node with this name; the outer `None` means that it was not read.
    fn get(&self, name: &str) -> Option<Option<&PresentNode>> {
        match self.read.get(name) {
            Some(seen) => Some(seen.as_ref()),
            None => (self.is_complete && !name.is_empty()).then_some(None),
        }
    }

    fn health(&self, name: &str, now: Now) -> Option<Health> {
        let seen = self.get(name)?;
        Some(seen.map_or(Health::Gone, |seen| seen.state.health(now)))
    }
}

/// The objects that stuck pods may depend on.
struct RelatedObjects {
    nodes: Nodes,
    attachments: Known<Vec<VolumeAttachment>>,
    /// The claims, by namespace.
    claims: HashMap<String, Known<Vec<PersistentVolumeClaim>>>,
    volumes: Known<Vec<PersistentVolume>>,
    rows: Known<Vec<NodeRow>>,
    /// The warning Events about pods, by namespace.
    warnings: HashMap<String, Known<Vec<Event>>>,
}

impl Reader {
    /// What is stuck on `node`; on all nodes if it is `None`.
    ///
    /// # Errors
    /// If Nodes or pods can't be read. Anything else that can't be read is listed in the result.
    pub async fn stuck(&self, node: Option<&str>) -> Result<Stuck, Error> {
        let on_node = |name| format!("fieldSelector={}", escape(&format!("spec.nodeName={name}")));
        let (nodes, attachments, on_node) = match node {
            Some(name) => {
                let query = on_node(name);
                let (node, attachments, pods) = join!(
                    self.seen_node(name),
                    self.volume_attachments(),
                    self.pods_where(&query, |_| true),
                );
                let node = node.map_err(|error| Right::on_nodes("get").explain(error))?;
                let nodes = Nodes {
                    read: BTreeMap::from([(name.to_owned(), node)]),
                    is_complete: false,
                };
                (nodes, attachments, Some(pods?))
            }
            None => {
                let (nodes, attachments) = join!(self.all_nodes(), self.volume_attachments());
                (nodes?, attachments, None)
            }
        };
        let is_stuck = |pod: &Pod, now| {
            let health = nodes.health(node_name(pod), now);
            health.is_some_and(|health| is_stuck(state(pod, now), &health))
        };
        let is_pending = |pod: &Pod, now| state(pod, now) == State::Pending;
        let pods = match on_node {
            Some(pods) => pods,
            None => {
                let now = self.now();
                let is_wanted = |pod: &Pod| is_stuck(pod, now) || is_pending(pod, now);
                self.pods_where("", is_wanted).await?
            }
        };
        let now = self.now();
        let (stuck, others): (Vec<Pod>, Vec<Pod>) =
            pods.into_iter().partition(|pod| is_stuck(pod, now));
        let resources = StuckResources::of(stuck.iter());
        let is_waiting =
            |pod: &Pod| is_pending(pod, now) && !is_stuck(pod, now) && resources.is_needed_by(pod);
        let waiting: Vec<Pod> = match node {
            Some(_) if resources.is_empty() => Vec::new(),
            Some(_) => {
                let pending = "fieldSelector=status.phase%3DPending";
                self.pods_where(pending, is_waiting).await?
            }
            None => others.into_iter().filter(is_waiting).collect(),
        };
        let attached = self.attached(node, &nodes, &attachments);
        let mut related = RelatedObjects {
            nodes,
            attachments,
            claims: HashMap::new(),
            volumes: Known::Unknown(Why::NotRead),
            rows: Known::Unknown(Why::NotRead),
            warnings: HashMap::new(),
        };
        self.read_around(&mut related, &stuck, &waiting, &attached)
            .await;
        Ok(related.stuck(&stuck, &waiting, attached, self.now()))
    }

    async fn all_nodes(&self) -> Result<Nodes, Error> {
        let nodes = self.select_nodes(None, |node| {
            let name = node.metadata.name.clone().unwrap_or_default();
            let seen = PresentNode::of(&node, Known::Unknown(Why::NotRead));
            Some((name, Some(seen)))
        });
        let (nodes, heartbeats) = join!(nodes, self.heartbeats());
        let nodes = nodes.map_err(|error| Right::on_nodes("list").explain(error))?;
        let mut read: BTreeMap<String, Option<PresentNode>> = nodes.into_iter().collect();
        let heartbeats = Known::of(heartbeats, || "list heartbeats".to_owned());
        for (name, seen) in &mut read {
            if let Some(seen) = seen {
                seen.state.heartbeat = heartbeats.as_ref().map(|beats| beats.get(name).copied());
            }
        }
        Ok(Nodes {
            read,
            is_complete: true,
        })
    }

    /// The pods that `query` selects and for which `wanted` returns true.
    async fn pods_where(
        &self,
        query: &str,
        wanted: impl Fn(&Pod) -> bool + Send + Sync,
    ) -> Result<Vec<Pod>, Error> {
        let pods = self.select(PODS, query, |pod: Pod| Some(pod).filter(&wanted));
        pods.await
            .map_err(|error| on_pods("list", None).explain(error))
    }

    /// The attachments to nodes that are not ready, each with the node's health. If `node` is given, only its
    /// attachments.
    fn attached(
        &self,
        node: Option<&str>,
        nodes: &Nodes,
        attachments: &Known<Vec<VolumeAttachment>>,
    ) -> Vec<(Attachment, Health)> {
        let all = attachments.value().into_iter().flatten();
        let all = all.map(|attachment| Attachment::from(attachment.clone()));
        let ill = all.filter_map(|attachment| {
            let health = nodes.health(&attachment.node, self.now())?;
            (health != Health::Ready && node.is_none_or(|node| node == attachment.node))
                .then_some((attachment, health))
        });
        ill.collect()
    }

    /// Reads only the objects that explain the pods and show which attachments are in use.
    async fn read_around(
        &self,
        related: &mut RelatedObjects,
        stuck: &[Pod],
        waiting: &[Pod],
        attached: &[(Attachment, Health)],
    ) {
        let now = self.now();
        let all = || stuck.iter().chain(waiting);
        let pending = || all().filter(|pod| state(pod, now) == State::Pending);
        let claimed: BTreeSet<&str> = { pending() }
            .filter(|pod| claims(pod).next().is_some())
            .map(namespace)
            .collect();
        let warned: BTreeSet<&str> = all()
            .filter(|pod| {
                let node = node_name(pod);
                let health = related.nodes.health(node, now);
                let is_alive = health.is_none_or(|health| has_kubelet(&health));
                let state = state(pod, now);
                let is_unfinished = matches!(state, State::Terminating { .. } | State::Pending);
                !node.is_empty() && is_alive && is_unfinished
            })
            .map(namespace)
            .collect();
        let (claims, warnings) = join!(
            join_all(claimed.into_iter().map(|name| async move {
                let claims = self.all_in(name, "/api/v1", "persistentvolumeclaims");
                (name.to_owned(), claims.await)
            })),
            join_all(warned.into_iter().map(|name| async move {
                let of_pods = "involvedObject.kind=Pod,type=Warning";
                (name.to_owned(), self.events(name, of_pods).await)
            })),
        );
        related.claims = claims.into_iter().collect();
        related.warnings = warnings.into_iter().collect();
        let bound: BTreeSet<String> = pending()
            .flat_map(|pod| {
                let evidence = related.evidence(pod.clone());
                let bound = evidence.bound().map(|(_, volume)| volume.to_owned());
                bound.collect::<Vec<_>>()
            })
            .collect();
        let unread = Known::Unknown(Why::NotRead);
        let open = |(attachment, health): &(Attachment, Health)| {
            attachment.volume.is_some() && orphan(attachment, health, &unread).is_none()
        };
        let open = attached.iter().filter(|one| open(one));
        let open = open.filter_map(|(attachment, _)| attachment.volume.clone());
        let names: BTreeSet<String> = bound.iter().cloned().chain(open).collect();
        related.volumes = needed(!names.is_empty(), || async {
            let volumes = self.select(
                "/api/v1/persistentvolumes",
                "",
                |volume: PersistentVolume| {
                    let name = volume.metadata.name.as_ref();
                    name.is_some_and(|name| names.contains(name))
                        .then_some(volume)
                },
            );
            Known::of(volumes.await, || "list persistentvolumes".to_owned())
        })
        .await;
        let mut volumes = related.volumes.value().into_iter().flatten();
        let is_placed_by_volume = volumes.any(|volume| {
            let name = volume.metadata.name.as_ref();
            name.is_some_and(|name| bound.contains(name)) && is_limited(volume)
        });
        related.rows = needed(is_placed_by_volume, || async {
            Known::of(self.node_rows().await, || "list nodes".to_owned())
        })
        .await;
    }
}

impl RelatedObjects {
    /// The objects that were read for `pod`.
    fn evidence(&self, pod: Pod) -> PodEvidence {
        let mut evidence = PodEvidence::of(pod);
        let pod = &evidence.pod;
        let namespace = namespace(pod);
        let unread = Known::Unknown(Why::NotRead);
        let in_namespace = self.claims.get(namespace).unwrap_or(&unread);
        let claim = |name: String| {
            let claim = find(in_namespace, &name);
            (name, claim)
        };
        evidence.claims = claims(pod).map(claim).collect();
        let volumes: Vec<String> = evidence.bound().map(|(_, name)| name.to_owned()).collect();
        let volume = |name: &String| (name.clone(), find(&self.volumes, name));
        evidence.volumes = volumes.iter().map(volume).collect();
        evidence.attachments = self.attachments.as_ref().map(|all| {
            let of_volumes = all.iter().filter(|attachment| {
                let source = attachment.spec.source.persistent_volume_name.as_ref();
                source.is_some_and(|source| volumes.contains(source))
            });
            of_volumes.cloned().collect()
        });
        if node_name(&evidence.pod).is_empty() {
            evidence.rows = self.rows.clone();
        }
        if let Some(warnings) = self.warnings.get(namespace) {
            let uid = &evidence.pod.metadata.uid;
            evidence.warning = warnings
                .as_ref()
                .map(|all| newest(all.iter().filter(|event| event.involved_object.uid == *uid)));
        }
        let attached = evidence.attachments.value().into_iter().flatten();
        let holders = attached.map(|attachment| attachment.spec.node_name.clone());
        let names: BTreeSet<String> = holders
            .chain([node_name(&evidence.pod).to_owned()])
            .collect();
        for name in names {
            if let Some(seen) = self.nodes.get(&name) {
                evidence.nodes.insert(name, Known::Yes(seen.cloned()));
            }
        }
        evidence
    }

    fn stuck(
        self,
        stuck: &[Pod],
        waiting: &[Pod],
        attached: Vec<(Attachment, Health)>,
        now: Now,
    ) -> Stuck {
        let mut unread = Vec::new();
        let volumes = self.orphans(attached, stuck);
        let mut explained = |pod: &Pod, neighbors: &[Pod]| {
            let mut evidence = self.evidence(pod.clone());
            let own: Vec<_> = own_claims(pod).collect();
            let users = { neighbors.iter() }
                .filter(|other| own_claims(other).any(|claim| own.contains(&claim)));
            evidence.neighbors = Known::Yes(users.cloned().collect());
            let found: Diagnosis = diagnose_pod(&evidence, now);
            for Unread { what, why } in &found.unread {
                Unread::note(&mut unread, what, &Known::<()>::Unknown(why.clone()));
            }
            StuckPod::new(pod, self.nodes.health(node_name(pod), now), found)
        };
        let mut pods: Vec<StuckPod> = stuck.iter().map(|pod| explained(pod, &[])).collect();
        let mut waiting: Vec<StuckPod> = { waiting.iter() }
            .map(|pod| explained(pod, stuck))
            .collect();
        pods.sort_by(|a, b| a.key().cmp(&b.key()));
        waiting.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        Unread::note(&mut unread, "volume attachments", &self.attachments);
        Unread::note(&mut unread, "volumes", &self.volumes);
        let of_read = self.nodes.read.keys();
        let of_pods = pods.iter().filter_map(|pod| pod.found.node.as_ref());
        let of_volumes = volumes.iter().map(|volume| &volume.attachment.node);
        let names = of_read.chain(of_pods).chain(of_volumes);
        let nodes = names.filter_map(|name| {
            let health = self.nodes.health(name, now)?;
            (health != Health::Ready).then(|| (name.clone(), health))
        });
        Stuck {
            nodes: nodes.collect(),
            pods,
            waiting,
            volumes,
            unread,
        }
    }

    /// The attachments that no pod needs. `pods` are those on nodes that are not ready.
    fn orphans(&self, attached: Vec<(Attachment, Health)>, pods: &[Pod]) -> Vec<StuckVolume> {
        let users = pods.iter().filter(|pod| !has_ended(pod));
        let used: BTreeSet<(&str, (String, String))> = users
            .flat_map(|pod| own_claims(pod).map(|claim| (node_name(pod), claim)))
            .collect();
        let is_used = |attachment: &Attachment| match &attachment.volume {
            None => Known::Unknown(Why::NotRead),
            Some(name) => find(&self.volumes, name).map(|volume| {
                let claim = volume.and_then(|volume| volume.spec?.claim_ref);
                let claim = claim.and_then(|claim| claim.namespace.zip(claim.name));
                claim.is_some_and(|claim| used.contains(&(&*attachment.node, claim)))
            }),
        };
        let orphaned = attached.into_iter().filter_map(|(attachment, health)| {
            let orphan = orphan(&attachment, &health, &is_used(&attachment))?;
            Some(StuckVolume {
                attachment,
                health,
                orphan,
            })
        });
        let mut orphaned: Vec<StuckVolume> = orphaned.collect();
        orphaned.sort_by(|a, b| a.key().cmp(&b.key()));
        orphaned
    }
}

/// The object with this name; `None` if it does not exist.
fn find<T>(all: &Known<Vec<T>>, name: &str) -> Known<Option<T>>
where
    T: Metadata<Ty = ObjectMeta> + Clone,
{
    all.as_ref().map(|all| {
        let mut all = all.iter();
        all.find(|one| one.metadata().name.as_deref() == Some(name))
            .cloned()
    })
}

impl StuckPod {
    fn key(&self) -> (Option<&str>, &str, &str) {
        (self.found.node.as_deref(), &self.namespace, &self.name)
    }
}

impl StuckVolume {
    fn key(&self) -> (&str, &str) {
        (&self.attachment.node, &self.attachment.name)
    }
}
