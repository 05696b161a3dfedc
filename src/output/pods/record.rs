//! Stranded objects as data, which `docs/json.md` documents.

use maintenance_lease::protocol::Instant;
use pod_safety::node::Health;
use pod_safety::stranded::{Fate, Orphan, Stranded};
use serde::Serialize;

use super::{Item, items};
use crate::output::item::API_VERSION;
use crate::words::health;
use crate::words::time::rfc3339;

/// One stranded object.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    api_version: &'static str,
    /// StrandedPod, StrandedVolume or BlockedNamespace.
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    /// The node's health.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_health: Option<&'static str>,
    /// The fate of a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<&'static str>,
    /// The end of a pod's grace period, or since when a namespace is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminating_since: Option<String>,
    /// Whether a controller can't replace the pod before it is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    name_held: bool,
    /// About when a pod will be told to terminate.
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted_at: Option<String>,
    /// Who must agree before the pod is removed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    finalizers: &'a [String],
    /// A pod's controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    /// Why an attachment is not needed any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    orphan: Option<&'static str>,
    /// The PersistentVolume that is attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<&'a str>,
    /// The driver that attached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<&'a str>,
    /// How many stranded pods are in a namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<usize>,
}

/// A list of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Records<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Record<'a>>,
}

/// All stranded objects as data.
pub(crate) fn records(stranded: &Stranded) -> impl Serialize + '_ {
    Records {
        api_version: API_VERSION,
        kind: "StrandedList",
        items: items(stranded).map(Record::of).collect(),
    }
}

impl<'a> Record<'a> {
    fn of(item: Item<'a>) -> Self {
        let health = |node: &Health| Some(health::word(node));
        match item {
            Item::Pod(stranded) => Self {
                api_version: API_VERSION,
                kind: "StrandedPod",
                name: &stranded.pod.sight.name,
                namespace: Some(&stranded.pod.sight.namespace),
                node: Some(&stranded.pod.sight.node),
                node_health: health(&stranded.health),
                owner: stranded.pod.owner.as_deref(),
                ..Self::of_fate(&stranded.fate)
            },
            Item::Volume(stranded) => Self {
                api_version: API_VERSION,
                kind: "StrandedVolume",
                name: &stranded.attachment.name,
                node: Some(&stranded.attachment.node),
                node_health: health(&stranded.health),
                orphan: Some(match stranded.orphan {
                    Orphan::NodeGone => "NodeGone",
                    Orphan::Detaching => "Detaching",
                    Orphan::Unused => "Unused",
                }),
                volume: stranded.attachment.volume.as_deref(),
                driver: Some(&stranded.attachment.driver),
                ..Self::default()
            },
            Item::Namespace(namespace) => Self {
                api_version: API_VERSION,
                kind: "BlockedNamespace",
                name: &namespace.name,
                terminating_since: time(namespace.since),
                pods: Some(namespace.pods),
                ..Self::default()
            },
        }
    }

    fn of_fate(fate: &'a Fate) -> Self {
        let word = match fate {
            Fate::Ending { .. } => "Ending",
            Fate::Terminating { .. } => "Terminating",
            Fate::HeldByFinalizer { .. } => "HeldByFinalizer",
            Fate::Evicted { .. } => "Evicted",
            Fate::NeverEvicted => "NeverEvicted",
            Fate::Unevicted => "Unevicted",
            Fate::Collected => "Collected",
        };
        let mut record = Self {
            fate: Some(word),
            ..Self::default()
        };
        match fate {
            Fate::Ending { until } => record.terminating_since = time(*until),
            Fate::Terminating { since, name_held } => {
                record.terminating_since = time(*since);
                record.name_held = *name_held;
            }
            Fate::HeldByFinalizer { finalizers } => record.finalizers = finalizers,
            Fate::Evicted { at } => record.evicted_at = time(*at),
            Fate::NeverEvicted | Fate::Unevicted | Fate::Collected => {}
        }
        record
    }
}

fn time(instant: Instant) -> Option<String> {
    instant.to_chrono().map(rfc3339)
}
