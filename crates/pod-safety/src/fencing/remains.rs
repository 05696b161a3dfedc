//! The pods and volumes that remain on a fenced node until Kubernetes has removed them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::facts::pod::{full_name, is_static};
use crate::facts::source::{Source, claims, sources};
use crate::known::{Known, Why};
use crate::taint::OutOfService;

/// The pods and volumes that remain on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Pods that Kubernetes still removes, as `NAMESPACE/NAME`.
    pub pods: Vec<String>,
    /// The pods among `pods` that are kept by their finalizers, not by the node.
    pub finalized: Vec<String>,
    /// Pods that stay, because they tolerate the taint or are static.
    pub tolerating: Vec<String>,
    /// Volumes that Kubernetes still detaches: the name of the attachment, or the name in the Node's status. Unknown
    /// if they could not be read, or if some may stay because pods that stay use them.
    pub attachments: Known<Vec<String>>,
}

/// The volumes that are attached to a node.
#[derive(Clone, Debug)]
pub struct Attached<'a> {
    /// All VolumeAttachments, including those of other nodes.
    pub attachments: Known<Vec<VolumeAttachment>>,
    /// The names of the disks that the control plane attached to the node without a driver.
    pub in_tree: &'a [String],
}

impl Remains {
    /// What remains of all `pods` of the node and of what is `attached` to it. `taint` is the out-of-service
    /// taint that pods may tolerate.
    #[must_use]
    pub fn of(node: &str, taint: &OutOfService, pods: &[Pod], attached: Attached<'_>) -> Self {
        let mut remains = Self::default();
        let mut volumes_stay = false;
        for pod in pods {
            let name = full_name(pod);
            if stays(pod, taint) {
                volumes_stay |= has_attached_volumes(pod);
                remains.tolerating.push(name);
                continue;
            }
            let meta = &pod.metadata;
            let finalizers = meta.finalizers.as_deref().unwrap_or_default();
            if meta.deletion_timestamp.is_some() && !finalizers.is_empty() {
                remains.finalized.push(name.clone());
            }
            remains.pods.push(name);
        }
        remains.attachments = match volumes_stay {
            true => Known::Unknown(Why::Inconclusive("pods that stay use volumes".to_owned())),
            false => attached.attachments.map(|attachments| {
                let here = attachments
                    .into_iter()
                    .filter(|attachment| attachment.spec.node_name == node)
                    .map(|attachment| attachment.metadata.name.unwrap_or_default());
                here.chain(attached.in_tree.iter().cloned()).collect()
            }),
        };
        remains
    }

    /// Whether everything that Kubernetes removes is gone, as far as it is known.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pods.is_empty() && self.attachments.value().is_none_or(Vec::is_empty)
    }
}

/// Whether `pod` has volumes that are attached to its node.
fn has_attached_volumes(pod: &Pod) -> bool {
    claims(pod).next().is_some() || sources(pod).any(|source| matches!(source, Source::Disk(_)))
}

/// Whether `pod` stays on its node. Static pods run from files and their objects are only mirrors, so
/// Kubernetes does not remove them. A pod that tolerates the taint also stays, unless it was already
/// terminating.
pub(super) fn stays(pod: &Pod, taint: &OutOfService) -> bool {
    let spec = pod.spec.as_ref();
    let tolerations = spec.and_then(|spec| spec.tolerations.as_deref());
    let is_spared = is_static(&pod.metadata) || taint.spares(tolerations.unwrap_or_default());
    pod.metadata.deletion_timestamp.is_none() && is_spared
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::constants::{MIRROR, OUT_OF_SERVICE, OUT_OF_SERVICE_VALUE};
    use crate::taint::NoExecute;

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

    fn taint() -> OutOfService {
        OutOfService::Evicting(NoExecute {
            key: OUT_OF_SERVICE.to_owned(),
            value: OUT_OF_SERVICE_VALUE.to_owned(),
            added: None,
        })
    }

    fn remains(pods: &[Pod], attachments: &[VolumeAttachment]) -> Remains {
        let attached = Attached {
            attachments: Known::Yes(attachments.to_vec()),
            in_tree: &[],
        };
        Remains::of("worker-1", &taint(), pods, attached)
    }

    #[test]
    fn pods_go_unless_they_tolerate_the_taint() {
        let everything = json!({"tolerations": [{"operator": "Exists"}]});
        let unreachable = json!({"tolerations": [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        ]});
        // The taint on the node counts, including its value.
        let of_another = json!({"tolerations": [{"key": OUT_OF_SERVICE, "value": "theirs"}]});
        let mirror = json!({"annotations": {MIRROR: "hash"}});
        let pods = [
            pod("web-0", &deleted(), &json!({})),
            pod("web-1", &json!({}), &unreachable),
            pod("proxy", &json!({}), &everything),
            pod("leaving", &deleted(), &everything),
            pod("etcd", &mirror, &json!({})),
            pod("theirs", &json!({}), &of_another),
        ];
        let remains = remains(&pods, &[]);
        assert_eq!(
            remains.pods,
            ["shop/web-0", "shop/web-1", "shop/leaving", "shop/theirs"]
        );
        assert_eq!(remains.tolerating, ["shop/proxy", "shop/etcd"]);
        assert!(!remains.is_over());
    }

    #[test]
    fn it_is_over_once_nothing_is_left_that_will_go() {
        let of_others = [attachment("csi-2", "worker-2")];
        assert!(remains(&[], &of_others).is_over());
        let own = [attachment("csi-1", "worker-1")];
        let left = remains(&[], &own);
        assert_eq!(left.attachments, Known::Yes(vec!["csi-1".to_owned()]));
        assert!(!left.is_over());
        let in_tree = ["kubernetes.io/iscsi/p:i:0".to_owned()];
        let attached = Attached {
            attachments: Known::Yes(Vec::new()),
            in_tree: &in_tree,
        };
        assert!(!Remains::of("worker-1", &taint(), &[], attached).is_over());
    }

    /// It is not worth a look at each claim: such a pod is rare.
    #[test]
    fn volumes_are_not_awaited_if_a_pod_that_stays_has_some() {
        let own = [attachment("csi-1", "worker-1")];
        let staying = |volume: Value| {
            let spec = json!({"tolerations": [{"operator": "Exists"}], "volumes": [volume]});
            pod("db-0", &json!({}), &spec)
        };
        for (volume, is_over) in [
            (
                json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}),
                true,
            ),
            (json!({"name": "data", "cinder": {"volumeID": "v"}}), true),
            (json!({"name": "data", "emptyDir": {}}), false),
        ] {
            let left = remains(&[staying(volume.clone())], &own);
            assert_eq!(left.is_over(), is_over, "{volume}");
        }
    }

    #[test]
    fn a_pod_with_finalizers_is_named() {
        let mut meta = deleted();
        meta["finalizers"] = json!(["example.com/backup"]);
        let remains = remains(&[pod("web-0", &meta, &json!({}))], &[]);
        assert_eq!(remains.finalized, ["shop/web-0"]);
        assert!(!remains.is_over());
    }
}
