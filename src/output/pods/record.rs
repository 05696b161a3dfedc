//! What is stuck, as data, which `docs/json.md` documents.

use std::slice;

use maintenance_lease::protocol::Now;
use pod_safety::node_health::Health;
use pod_safety::stuck::{Orphan, Stuck, StuckPod};
use pod_safety::why::{Reason, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::item::{Item, items};
use crate::output::data::{ApiVersion, List, ListEntry, Time, kind};
use crate::output::why::StuckReason;
use crate::words::health;
use crate::words::hint_command::Program;
use crate::words::why::{Step, volume_steps};

/// All that is stuck.
pub(crate) type StuckList<'a> = List<kind::StuckList, Record<'a>>;

/// What is stuck around nodes, or waits for that.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Stuck")]
pub(crate) enum Record<'a> {
    Pod(Box<Pod<'a>>),
    Waiting(Replacement<'a>),
    Volume(Volume<'a>),
}

/// A stuck pod.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StuckPod")]
pub(crate) struct Pod<'a> {
    api_version: ApiVersion,
    kind: kind::StuckPod,
    namespace: &'a str,
    name: &'a str,
    node: &'a str,
    /// The health of the node. Values may be added.
    node_health: &'static str,
    /// What happens to the pod. Values may be added.
    state: &'static str,
    /// Why it is stuck, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<StuckReason>,
    /// The end of the pod's grace period, if the pod is being deleted. It may be in the future.
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_until: Option<Time>,
    /// Whether a controller can't replace the pod before it is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    name_held: bool,
    /// About when the pod is asked to end. It may have passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted_at: Option<Time>,
    /// Who must agree before the pod is removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<&'a str>,
    /// The pod's controller, as StatefulSet/web.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
}

/// A Pending pod that may wait for a stuck pod, because it has the same controller or the same volume.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PendingReplacement")]
pub(crate) struct Replacement<'a> {
    api_version: ApiVersion,
    kind: kind::PendingReplacement,
    namespace: &'a str,
    name: &'a str,
    /// Absent if it is not scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    /// Why it does not start, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<StuckReason>,
    /// The pod's controller, as ReplicaSet/web-7d4c.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
}

/// A volume that stays attached, although nobody needs it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "StuckVolume")]
pub(crate) struct Volume<'a> {
    api_version: ApiVersion,
    kind: kind::StuckVolume,
    /// The name of the VolumeAttachment.
    name: &'a str,
    node: &'a str,
    /// The health of the node. Values may be added.
    node_health: &'static str,
    /// Why nobody needs the attachment. Values may be added.
    state: &'static str,
    /// The PersistentVolume that is attached; absent if a pod brought its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<&'a str>,
    /// The driver that attached it.
    driver: &'a str,
    /// What to run next, the safest first.
    next: Vec<Step>,
}

/// All stuck objects as data.
pub(crate) fn list<'a>(stuck: &'a Stuck, program: &Program, now: Now) -> StuckList<'a> {
    let items = items(stuck);
    List::new(items.map(|item| Record::of(item, program, now)).collect())
}

impl<'a> Record<'a> {
    fn of(item: Item<'a>, program: &Program, now: Now) -> Self {
        let reasons = |pod: &StuckPod| {
            let reasons = pod.found.reasons.iter();
            reasons.map(|reason| StuckReason::of(reason, now)).collect()
        };
        match item {
            Item::Pod(pod) => Self::Pod(Box::new(Pod {
                namespace: &pod.namespace,
                name: &pod.name,
                node: pod.found.node.as_deref().unwrap_or_default(),
                node_health: pod.health.as_ref().map_or("Unknown", health::word),
                owner: pod.owner.as_deref(),
                reasons: reasons(pod),
                ..Pod::of_state(pod)
            })),
            Item::Waiting(pod) => Self::Waiting(Replacement {
                api_version: ApiVersion::V2,
                kind: kind::PendingReplacement::default(),
                namespace: &pod.namespace,
                name: &pod.name,
                node: pod.found.node.as_deref(),
                reasons: reasons(pod),
                owner: pod.owner.as_deref(),
            }),
            Item::Volume(stuck) => Self::Volume(Volume {
                api_version: ApiVersion::V2,
                kind: kind::StuckVolume::default(),
                name: &stuck.attachment.name,
                node: &stuck.attachment.node,
                node_health: health::word(&stuck.health),
                state: match stuck.orphan {
                    Orphan::NodeGone => "NodeGone",
                    Orphan::Detaching => "Detaching",
                    Orphan::Unused => "Unused",
                },
                volume: stuck.attachment.volume.as_deref(),
                driver: &stuck.attachment.driver,
                next: volume_steps(slice::from_ref(stuck), program),
            }),
        }
    }
}

impl<'a> Pod<'a> {
    fn of_state(pod: &'a StuckPod) -> Self {
        let found = &pod.found;
        let (state, grace_until) = match found.state {
            State::Ending { until } => ("Ending", Some(until)),
            State::Terminating { since } => ("Terminating", Some(since)),
            State::Finalizing { since } => ("HeldByFinalizer", Some(since)),
            _ if pod.health == Some(Health::Gone) => ("Collected", None),
            _ => ("Unevicted", None),
        };
        let mut shown = Self {
            state,
            grace_until: grace_until.and_then(Time::of),
            name_held: found.waiting_owner.is_some(),
            ..Self::default()
        };
        for reason in &found.reasons {
            match reason {
                Reason::Evicted { at } => {
                    shown.state = "Evicted";
                    shown.evicted_at = Time::of(*at);
                }
                Reason::NeverEvicted => shown.state = "NeverEvicted",
                Reason::Finalizer(finalizer) => shown.finalizers.push(&finalizer.name),
                _ => {}
            }
        }
        shown
    }
}

impl ListEntry for Record<'_> {
    fn name(&self) -> Option<String> {
        Some(match self {
            Self::Pod(pod) => format!("pod/{}", pod.name),
            // Names are for commands about what is stuck.
            Self::Waiting(_) => return None,
            Self::Volume(volume) => format!("volumeattachment/{}", volume.name),
        })
    }
}
