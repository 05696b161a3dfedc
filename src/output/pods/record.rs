//! What is stranded, as data, which `docs/json.md` documents.

use pod_safety::stranded::{Fate, Orphan, Stranded};
use schemars::JsonSchema;
use serde::Serialize;

use super::item::{Item, items};
use crate::output::data::{ApiVersion, Entry, List, Time, kind};
use crate::words::health;

/// All that is stranded.
pub(crate) type StrandedList<'a> = List<kind::StrandedList, Record<'a>>;

/// What is stranded on a node that is not well, or blocked by that.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Stranded")]
pub(crate) enum Record<'a> {
    Pod(Pod<'a>),
    Volume(Volume<'a>),
    Namespace(Namespace<'a>),
}

/// A pod on a node that is not well.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StrandedPod")]
pub(crate) struct Pod<'a> {
    api_version: ApiVersion,
    kind: kind::StrandedPod,
    namespace: &'a str,
    name: &'a str,
    node: &'a str,
    /// The health of the node. Values may be added.
    node_health: &'static str,
    /// What happens to the pod. Values may be added.
    fate: &'static str,
    /// The end of the pod's grace period.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminating_since: Option<Time>,
    /// Whether a controller can't replace the pod before it is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    name_held: bool,
    /// About when the pod is asked to end. It may have passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted_at: Option<Time>,
    /// Who must agree before the pod is removed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    finalizers: &'a [String],
    /// The pod's controller, as StatefulSet/web.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
}

/// A volume that stays attached, although nobody needs it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StrandedVolume")]
pub(crate) struct Volume<'a> {
    api_version: ApiVersion,
    kind: kind::StrandedVolume,
    /// The name of the VolumeAttachment.
    name: &'a str,
    node: &'a str,
    /// The health of the node. Values may be added.
    node_health: &'static str,
    /// Why nobody needs the attachment. Values may be added.
    orphan: &'static str,
    /// The PersistentVolume that is attached; absent if a pod brought its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<&'a str>,
    /// The driver that attached it.
    driver: &'a str,
}

/// A namespace that can't be deleted before stranded pods are gone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BlockedNamespace")]
pub(crate) struct Namespace<'a> {
    api_version: ApiVersion,
    kind: kind::BlockedNamespace,
    name: &'a str,
    /// Since when it is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminating_since: Option<Time>,
    /// The number of stranded pods in it.
    pods: usize,
}

/// All stranded objects as data.
pub(crate) fn list(stranded: &Stranded) -> StrandedList<'_> {
    List::new(items(stranded).map(Record::of).collect())
}

impl<'a> Record<'a> {
    fn of(item: Item<'a>) -> Self {
        match item {
            Item::Pod(stranded) => Self::Pod(Pod {
                namespace: &stranded.pod.sight.namespace,
                name: &stranded.pod.sight.name,
                node: &stranded.pod.sight.node,
                node_health: health::word(&stranded.health),
                owner: stranded.pod.owner.as_deref(),
                ..Pod::of_fate(&stranded.fate)
            }),
            Item::Volume(stranded) => Self::Volume(Volume {
                api_version: ApiVersion::V2,
                kind: kind::StrandedVolume::default(),
                name: &stranded.attachment.name,
                node: &stranded.attachment.node,
                node_health: health::word(&stranded.health),
                orphan: match stranded.orphan {
                    Orphan::NodeGone => "NodeGone",
                    Orphan::Detaching => "Detaching",
                    Orphan::Unused => "Unused",
                },
                volume: stranded.attachment.volume.as_deref(),
                driver: &stranded.attachment.driver,
            }),
            Item::Namespace(namespace) => Self::Namespace(Namespace {
                api_version: ApiVersion::V2,
                kind: kind::BlockedNamespace::default(),
                name: &namespace.name,
                terminating_since: Time::of(namespace.since),
                pods: namespace.pods,
            }),
        }
    }
}

impl<'a> Pod<'a> {
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
        let mut pod = Self {
            fate: word,
            ..Self::default()
        };
        match fate {
            Fate::Ending { until } => pod.terminating_since = Time::of(*until),
            Fate::Terminating { since, name_held } => {
                pod.terminating_since = Time::of(*since);
                pod.name_held = *name_held;
            }
            Fate::HeldByFinalizer { finalizers } => pod.finalizers = finalizers,
            Fate::Evicted { at } => pod.evicted_at = Time::of(*at),
            Fate::NeverEvicted | Fate::Unevicted | Fate::Collected => {}
        }
        pod
    }
}

impl Entry for Record<'_> {
    fn name(&self) -> Option<String> {
        Some(match self {
            Self::Pod(pod) => format!("pod/{}", pod.name),
            Self::Volume(volume) => format!("volumeattachment/{}", volume.name),
            Self::Namespace(namespace) => format!("namespace/{}", namespace.name),
        })
    }
}
