//! What is left of a node that was fenced, until Kubernetes has taken all of it away.

use k8s_openapi::api::core::v1::{Pod, Toleration};
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::constants::{MIRROR, OUT_OF_SERVICE};

/// What is left of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Pods that have to go, as `NAMESPACE/NAME`.
    pub pods: Vec<String>,
    /// Of these, the ones that something else than the node keeps: their finalizers.
    pub finalized: Vec<String>,
    /// Pods that stay, because they tolerate the taint.
    pub tolerating: Vec<String>,
    /// Volumes that are attached to it, by their attachment.
    pub attachments: Vec<String>,
    /// Volumes stay attached for pods that stay.
    pub volumes_stay: bool,
}

impl Remains {
    /// What `pods`, which are all of the node's, and `attachments`, which may be others' too, leave,
    /// where the out-of-service taint has this `value`: tolerations name it.
    #[must_use]
    pub fn of(node: &str, value: &str, pods: &[Pod], attachments: &[VolumeAttachment]) -> Self {
        let mut remains = Self::default();
        for pod in pods {
            let meta = &pod.metadata;
            let is_terminating = meta.deletion_timestamp.is_some();
            let name = format!(
                "{}/{}",
                meta.namespace.as_deref().unwrap_or_default(),
                meta.name.as_deref().unwrap_or_default()
            );
            if !is_terminating && stays(pod, value) {
                remains.volumes_stay |= has_claims(pod);
                remains.tolerating.push(name);
                continue;
            }
            if is_terminating
                && meta
                    .finalizers
                    .as_ref()
                    .is_some_and(|list| !list.is_empty())
            {
                remains.finalized.push(name.clone());
            }
            remains.pods.push(name);
        }
        remains.attachments = attachments
            .iter()
            .filter(|attachment| attachment.spec.node_name == node)
            .filter_map(|attachment| attachment.metadata.name.clone())
            .collect();
        remains
    }

    /// Nothing is left that will still go.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pods.is_empty() && (self.attachments.is_empty() || self.volumes_stay)
    }
}

/// Mirror pods are pictures of what runs from files: nothing takes them away.
fn stays(pod: &Pod, value: &str) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    let is_mirror = annotations.is_some_and(|annotations| annotations.contains_key(MIRROR));
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref());
    is_mirror
        || tolerations
            .unwrap_or_default()
            .iter()
            .any(|toleration| tolerates(toleration, value))
}

/// Whether a toleration keeps a pod on a node that is out of service, be it for a time.
fn tolerates(toleration: &Toleration, taint: &str) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let value = toleration.value.as_deref().unwrap_or_default();
    let matches = match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => key.is_empty() || key == OUT_OF_SERVICE,
        "Equal" | "" => key == OUT_OF_SERVICE && value == taint,
        _ => false,
    };
    matches && (effect.is_empty() || effect == "NoExecute")
}

fn has_claims(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref());
    volumes
        .unwrap_or_default()
        .iter()
        .any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::constants::OUT_OF_SERVICE_VALUE;

    fn pod(name: &str, meta: &Value, spec: &Value) -> Pod {
        let mut pod =
            json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"containers": []}});
        for (part, more) in [("metadata", meta), ("spec", spec)] {
            for (key, value) in more.as_object().expect("fields") {
                pod[part][key] = value.clone();
            }
        }
        serde_json::from_value(pod).expect("a pod")
    }

    fn deleted() -> Value {
        json!({"deletionTimestamp": "2026-01-02T03:04:05Z"})
    }

    fn attachment(name: &str, node: &str) -> VolumeAttachment {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"attacher": "csi", "nodeName": node, "source": {"persistentVolumeName": "pv"}},
        }))
        .expect("an attachment")
    }

    #[test]
    fn pods_go_unless_they_tolerate_the_taint() {
        let everything = json!({"tolerations": [{"operator": "Exists"}]});
        let unreachable = json!({"tolerations": [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        ]});
        let mirror = json!({"annotations": {MIRROR: "hash"}});
        let pods = [
            pod("web-0", &deleted(), &json!({})),
            pod("web-1", &json!({}), &unreachable),
            pod("proxy", &json!({}), &everything),
            pod("leaving", &deleted(), &everything),
            pod("etcd", &mirror, &json!({})),
        ];
        let remains = Remains::of("worker-1", OUT_OF_SERVICE_VALUE, &pods, &[]);
        assert_eq!(remains.pods, ["shop/web-0", "shop/web-1", "shop/leaving"]);
        assert_eq!(remains.tolerating, ["shop/proxy", "shop/etcd"]);
        assert!(!remains.is_over());
    }

    #[test]
    fn each_form_of_toleration_is_read_as_kubernetes_does() {
        let key = OUT_OF_SERVICE;
        for (toleration, expected) in [
            (json!({"operator": "Exists"}), true),
            (json!({"operator": "Exists", "effect": "NoExecute"}), true),
            (json!({"operator": "Exists", "effect": "NoSchedule"}), false),
            (json!({"key": key, "operator": "Exists"}), true),
            (json!({"key": "other", "operator": "Exists"}), false),
            (json!({"key": key, "value": "nodeshutdown"}), true),
            (
                json!({"key": key, "operator": "Equal", "value": "nodeshutdown"}),
                true,
            ),
            (json!({"key": key}), false),
        ] {
            let read = serde_json::from_value(toleration.clone()).expect("a toleration");
            assert_eq!(
                tolerates(&read, OUT_OF_SERVICE_VALUE),
                expected,
                "{toleration}"
            );
        }
        let of_ours = json!({"key": key, "value": "nodeshutdown"});
        let read = serde_json::from_value(of_ours).expect("a toleration");
        assert!(!tolerates(&read, "theirs"), "the taint that stands counts");
    }

    #[test]
    fn it_is_over_once_nothing_is_left_that_will_go() {
        let of_others = [attachment("csi-2", "worker-2")];
        assert!(Remains::of("worker-1", OUT_OF_SERVICE_VALUE, &[], &of_others).is_over());
        let own = [attachment("csi-1", "worker-1")];
        let remains = Remains::of("worker-1", OUT_OF_SERVICE_VALUE, &[], &own);
        assert_eq!(remains.attachments, ["csi-1"]);
        assert!(!remains.is_over());
        let database = pod(
            "db-0",
            &json!({}),
            &json!({
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            }),
        );
        assert!(Remains::of("worker-1", OUT_OF_SERVICE_VALUE, &[database], &own).is_over());
    }

    #[test]
    fn a_pod_with_finalizers_is_named() {
        let mut meta = deleted();
        meta["finalizers"] = json!(["example.com/backup"]);
        let remains = Remains::of(
            "worker-1",
            OUT_OF_SERVICE_VALUE,
            &[pod("web-0", &meta, &json!({}))],
            &[],
        );
        assert_eq!(remains.finalized, ["shop/web-0"]);
        assert!(!remains.is_over());
    }
}
