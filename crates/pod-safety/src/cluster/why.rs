//! Reads the objects that explain why an object is stuck. The object itself determines which ones to read.

use std::collections::BTreeSet;

use futures::future::{join, join_all};
use futures::join;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use maintenance_lease::protocol::Instant;
use maintenance_lease::{ApiError, Error, Right, escape};
use serde::Deserialize;

use super::Reader;
use super::objects::needed;
use crate::facts::PresentNode;
use crate::facts::members::{awaited, member, ordinals};
use crate::facts::pod::{namespace, node_name};
use crate::facts::selectors::is_limited;
use crate::facts::source::claims;
use crate::known::Known;
use crate::why::namespace::named;
use crate::why::{
    ClaimEvidence, Diagnosis, MissingEvidence, NamespaceEvidence, PodEvidence, Reason, State,
    diagnose_claim, diagnose_missing, diagnose_namespace, diagnose_pod,
};
use crate::wire::{instant, micro_instant};

impl Reader {
    /// Why a pod is stuck, or why its StatefulSet has not created it. `None` if there is no such pod and its
    /// name belongs to no StatefulSet.
    ///
    /// # Errors
    /// If the pod can't be read. Anything else that can't be read is listed in the result.
    pub async fn why_pod(&self, namespace: &str, name: &str) -> Result<Option<Diagnosis>, Error> {
        let Some(pod) = self.pod(namespace, name).await? else {
            return Ok(self.why_missing(namespace, name).await);
        };
        let evidence = self.pod_evidence(pod).await;
        Ok(Some(diagnose_pod(&evidence, self.now())))
    }

    async fn why_missing(&self, namespace: &str, name: &str) -> Option<Diagnosis> {
        let (set, ordinal) = member(name)?;
        let path = format!(
            "/apis/apps/v1/namespaces/{}/statefulsets/{}",
            escape(namespace),
            escape(set)
        );
        let set: StatefulSet = self.get(&path).await.ok()??;
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        // If the StatefulSet has several pods to create, only warnings about this pod count.
        let selector = format!("involvedObject.uid={uid},type=Warning");
        let is_after_others =
            ordinals(&set).contains(&ordinal) && !awaited(&set, ordinal).is_empty();
        let (ready, warning) = join(
            needed(is_after_others, || self.ready_members(namespace)),
            self.warning(namespace, &selector, &format!("Pod {name} ")),
        )
        .await;
        Some(diagnose_missing(&MissingEvidence {
            ordinal,
            set,
            ready,
            warning,
            now: self.now(),
        }))
    }

    /// Why a claim is stuck; `None` if there is no such claim.
    ///
    /// # Errors
    /// If the claim can't be read. Anything else that can't be read is listed in the result.
    pub async fn why_claim(&self, namespace: &str, name: &str) -> Result<Option<Diagnosis>, Error> {
        let read = self.one(namespace, "persistentvolumeclaims", name).await;
        let read = read.map_err(|error| {
            let right = Right {
                verb: "get",
                resource: "persistentvolumeclaims",
                namespace: Some(namespace.to_owned()),
            };
            right.explain(error)
        });
        let Some(claim) = read? else {
            return Ok(None);
        };
        let mut evidence = ClaimEvidence::of(claim);
        let state = evidence.state();
        let is_pending = state == State::Pending;
        let is_deleted = matches!(state, State::Terminating { .. });
        let uid = evidence.claim.metadata.uid.as_deref().unwrap_or_default();
        let selector = format!("involvedObject.uid={uid},type=Warning");
        let (volume, class) = match is_pending {
            true => (evidence.volume_name(), evidence.class_name()),
            false => (None, None),
        };
        let class = class.filter(|_| volume.is_none());
        let (pods, volume, class, warning) = join!(
            needed(is_deleted || class.is_some(), || {
                self.all_in(namespace, "/api/v1", "pods")
            }),
            needed(volume.is_some(), || {
                self.unplaced("/api/v1", "persistentvolumes", volume.unwrap_or_default())
            }),
            needed(class.is_some(), || {
                let group = "/apis/storage.k8s.io/v1";
                self.unplaced(group, "storageclasses", class.unwrap_or_default())
            }),
            needed(is_pending, || self.warning(namespace, &selector, "")),
        );
        evidence.pods = pods;
        evidence.volume = volume;
        evidence.class = class;
        evidence.warning = warning;
        Ok(Some(diagnose_claim(&evidence)))
    }

    /// Why a namespace is stuck; `None` if there is no such namespace.
    ///
    /// # Errors
    /// If the namespace can't be read. Anything else that can't be read is listed in the result.
    pub async fn why_namespace(&self, name: &str) -> Result<Option<Diagnosis>, Error> {
        let read = self
            .get(&format!("/api/v1/namespaces/{}", escape(name)))
            .await;
        let read = read.map_err(|error| {
            let right = Right {
                verb: "get",
                resource: "namespaces",
                namespace: None,
            };
            right.explain(error)
        });
        let Some(namespace) = read? else {
            return Ok(None);
        };
        let names = join_all(named(&namespace).into_iter().map(|kind| async move {
            let objects = self.all_in::<Named>(name, "/api/v1", kind).await;
            let names = objects.map(|all| all.into_iter().map(|one| one.metadata.name).collect());
            (kind, names)
        }));
        let evidence = NamespaceEvidence {
            names: names.await,
            namespace,
        };
        Ok(Some(diagnose_namespace(&evidence, self.now())))
    }

    async fn pod_evidence(&self, pod: Pod) -> PodEvidence {
        let mut evidence = PodEvidence::of(pod);
        match evidence.state(self.now()) {
            State::Ending { .. } | State::Terminating { .. } => {
                self.read_deleted(&mut evidence).await;
            }
            State::Pending => self.read_pending(&mut evidence).await,
            State::Running => {
                let namespace = namespace(&evidence.pod).to_owned();
                let (seen, budgets) = join(
                    self.seen(node_name(&evidence.pod)),
                    self.all_in(&namespace, "/apis/policy/v1", "poddisruptionbudgets"),
                )
                .await;
                evidence.nodes.extend(seen);
                evidence.budgets = budgets;
            }
            _ => {}
        }
        evidence
    }

    async fn read_deleted(&self, evidence: &mut PodEvidence) {
        let pod = &evidence.pod;
        let is_late = matches!(evidence.state(self.now()), State::Terminating { .. });
        let (seen, warning) = join(
            self.seen(node_name(pod)),
            needed(is_late, || self.warning_about(pod)),
        )
        .await;
        evidence.nodes.extend(seen);
        evidence.warning = warning;
    }

    async fn read_pending(&self, evidence: &mut PodEvidence) {
        let pod = &evidence.pod;
        let namespace = namespace(pod);
        let node = node_name(pod);
        let is_placed = !node.is_empty();
        let names: BTreeSet<String> = claims(pod).collect();
        let (seen, claims, warning) = join!(
            self.seen(node),
            join_all(names.into_iter().map(|name| async {
                let claim = self.one(namespace, "persistentvolumeclaims", &name).await;
                let right = || format!("get persistentvolumeclaims in namespace {namespace}");
                (name, Known::of(claim, right))
            })),
            needed(is_placed, || self.warning_about(pod)),
        );
        evidence.nodes.extend(seen);
        evidence.claims = claims.into_iter().collect();
        evidence.warning = warning;
        let volumes: BTreeSet<&str> = evidence.bound().map(|(_, volume)| volume).collect();
        if volumes.is_empty() {
            return;
        }
        let (volumes, attachments) = join(
            join_all(volumes.into_iter().map(|name| async move {
                let volume = self.unplaced("/api/v1", "persistentvolumes", name).await;
                (name.to_owned(), volume)
            })),
            needed(is_placed, || self.volume_attachments()),
        )
        .await;
        evidence.volumes = volumes.into_iter().collect();
        evidence.attachments = attachments;
        let mut read = { evidence.volumes.values() }.filter_map(|volume| volume.value()?.as_ref());
        if !is_placed && read.any(is_limited) {
            let rows = self.node_rows().await;
            evidence.rows = Known::of(rows, || "list nodes".to_owned());
        }
        let others: BTreeSet<String> = evidence
            .elsewhere()
            .into_iter()
            .map(|(_, _, attachment)| attachment.spec.node_name.clone())
            .collect();
        if others.is_empty() {
            return;
        }
        let namespace = self::namespace(&evidence.pod).to_owned();
        let (seen, neighbors) = join(
            join_all(others.iter().map(|other| self.seen(other))),
            self.all_in(&namespace, "/api/v1", "pods"),
        )
        .await;
        evidence.nodes.extend(seen.into_iter().flatten());
        evidence.neighbors = neighbors;
    }

    /// Reads the Node with this name; `None` if the name is empty.
    async fn seen(&self, node: &str) -> Option<(String, Known<Option<PresentNode>>)> {
        if node.is_empty() {
            return None;
        }
        let seen = Known::of(self.seen_node(node).await, || "get nodes".to_owned());
        Some((node.to_owned(), seen))
    }

    /// Reads the Node with this name and its heartbeat; `None` if there is no such Node.
    pub(super) async fn seen_node(&self, name: &str) -> Result<Option<PresentNode>, ApiError> {
        let (node, heartbeat) = join(self.node(name), self.heartbeat(name)).await;
        let heartbeat = Known::of(heartbeat, || "get heartbeats".to_owned());
        Ok(node?.map(|node| PresentNode::of(&node, heartbeat)))
    }

    async fn warning_about(&self, pod: &Pod) -> Known<Option<Reason>> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let selector = format!("involvedObject.uid={uid},type=Warning");
        self.warning(namespace(pod), &selector, "").await
    }

    /// The newest of the namespace's Events that `selector` selects and whose message contains `words`.
    async fn warning(&self, namespace: &str, selector: &str, words: &str) -> Known<Option<Reason>> {
        let events = self.events(namespace, selector).await;
        events.map(|events| newest(events.iter().filter(|event| says(event, words))))
    }

    /// The namespace's Events that `selector` selects.
    pub(super) async fn events(&self, namespace: &str, selector: &str) -> Known<Vec<Event>> {
        let path = format!("/api/v1/namespaces/{}/events", escape(namespace));
        let query = format!("fieldSelector={}", escape(selector));
        let events = self.list(&path, &query).await;
        Known::of(events, || format!("list events in namespace {namespace}"))
    }
}

fn says(event: &Event, words: &str) -> bool {
    let message = event.message.as_deref().unwrap_or_default();
    message.contains(words)
}

/// The newest of these Events, as a reason.
pub(super) fn newest<'a>(events: impl Iterator<Item = &'a Event>) -> Option<Reason> {
    let newest = events.max_by_key(|event| last(event))?;
    Some(Reason::Event {
        at: last(newest),
        reason: newest.reason.clone().unwrap_or_default(),
        message: newest.message.clone().unwrap_or_default(),
    })
}

/// An object, of which only the name is read.
#[derive(Deserialize)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Deserialize)]
struct NamedMetadata {
    name: String,
}

/// When an Event last occurred.
fn last(event: &Event) -> Option<Instant> {
    let series = event.series.as_ref();
    let of_series = series.and_then(|series| series.last_observed_time.as_ref());
    [
        of_series.map(micro_instant),
        event.last_timestamp.as_ref().map(instant),
        event.event_time.as_ref().map(micro_instant),
    ]
    .into_iter()
    .flatten()
    .max()
}
