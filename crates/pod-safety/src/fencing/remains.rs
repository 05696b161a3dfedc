//! The pods and volumes that remain on a fenced node until Kubernetes has removed them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::facts::pod::{full_name, is_static, namespace};
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
    /// Volumes that Kubernetes still detaches: the name of the attachment, or the name in the Node's status.
    pub attachments: Vec<String>,
    /// Volumes that stay attached because pods that stay use them, named the same way.
    pub staying: Vec<String>,
    /// Set if some volumes in `attachments` may stay: why this could not be determined.
    pub unsure: Option<Why>,
    /// Why it is unknown which volumes drivers attached to the node.
    pub unread: Option<Why>,
}

/// The claim (namespace and name) of each PersistentVolume; `None` if it has none. Disks without a driver are
/// keyed by their name in the Node's status.
pub type Claims = BTreeMap<String, Known<Option<(String, String)>>>;

/// The volumes that are needed by pods that stay on a node.
#[derive(Debug, Default)]
struct Needs {
    /// The claims of the pods, by namespace and name.
    claims: BTreeSet<(String, String)>,
    /// The drivers that attach their volumes that have no claim.
    drivers: BTreeSet<&'static str>,
}

/// The volumes that are attached to a node.
#[derive(Clone, Copy, Debug)]
pub struct Attached<'a> {
    /// All VolumeAttachments, including those of other nodes.
    pub attachments: &'a [VolumeAttachment],
    /// The names of the disks that the control plane attached to the node without a driver.
    pub in_tree: &'a [String],
}

impl Remains {
    /// The PersistentVolumes whose claims must be read to know whether the volumes stay. Empty if no pod that
    /// stays has a claim.
    #[must_use]
    pub fn open<'a>(
        node: &str,
        taint: &OutOfService,
        pods: &[Pod],
        attachments: &'a [VolumeAttachment],
    ) -> Vec<&'a str> {
        if Needs::of(taint, pods).claims.is_empty() {
            return Vec::new();
        }
        of_node(node, attachments)
            .filter_map(|attachment| attachment.spec.source.persistent_volume_name.as_deref())
            .collect()
    }

    /// Whether claims must be read to know which disks without a driver stay.
    #[must_use]
    pub fn opens_in_tree(taint: &OutOfService, pods: &[Pod], in_tree: &[String]) -> bool {
        !in_tree.is_empty() && !Needs::of(taint, pods).claims.is_empty()
    }

    /// What remains of all `pods` of the node and of what is `attached` to it. `taint` is the out-of-service
    /// taint that pods may tolerate. `claims` are the claims of the volumes that are [`open`](Self::open).
    #[must_use]
    pub fn of(
        node: &str,
        taint: &OutOfService,
        pods: &[Pod],
        attached: Attached<'_>,
        claims: &Claims,
    ) -> Self {
        let mut remains = Self::default();
        for pod in pods {
            let meta = &pod.metadata;
            let name = full_name(pod);
            if stays(pod, taint) {
                remains.tolerating.push(name);
                continue;
            }
            let finalizers = meta.finalizers.as_deref().unwrap_or_default();
            if meta.deletion_timestamp.is_some() && !finalizers.is_empty() {
                remains.finalized.push(name.clone());
            }
            remains.pods.push(name);
        }
        let needs = Needs::of(taint, pods);
        let in_tree = attached.in_tree.iter();
        let in_tree = in_tree.map(|name| (name.clone(), needs.claim(name, claims)));
        let by_drivers = of_node(node, attached.attachments).map(|attachment| {
            let name = attachment.metadata.name.clone().unwrap_or_default();
            (name, needs.have(attachment, claims))
        });
        for (name, is_needed) in by_drivers.chain(in_tree) {
            match is_needed {
                Known::Yes(true) => remains.staying.push(name),
                Known::Yes(false) => remains.attachments.push(name),
                Known::Unknown(why) => {
                    remains.attachments.push(name);
                    remains.unsure = Some(why);
                }
            }
        }
        remains
    }

    /// Whether everything that Kubernetes removes is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pods.is_empty() && self.attachments.is_empty()
    }
}

impl Needs {
    fn of(taint: &OutOfService, pods: &[Pod]) -> Self {
        let mut needs = Self::default();
        for pod in pods.iter().filter(|pod| stays(pod, taint)) {
            let named = claims(pod).map(|claim| (namespace(pod).to_owned(), claim));
            needs.claims.extend(named);
            needs
                .drivers
                .extend(sources(pod).filter_map(|source| match source {
                    Source::Disk(driver) => Some(driver),
                    _ => None,
                }));
        }
        needs
    }

    /// Whether a pod that stays needs the attached volume.
    fn have(&self, attachment: &VolumeAttachment, claims: &Claims) -> Known<bool> {
        let spec = &attachment.spec;
        match &spec.source.persistent_volume_name {
            Some(volume) => self.claim(volume, claims),
            None => Known::Yes(self.drivers.contains(&*spec.attacher)),
        }
    }

    /// Whether a pod that stays uses the claim of `volume`.
    fn claim(&self, volume: &str, claims: &Claims) -> Known<bool> {
        if self.claims.is_empty() {
            return Known::Yes(false);
        }
        match claims.get(volume) {
            None => Known::Unknown(Why::NotRead),
            Some(claim) => claim.as_ref().map(|claim| {
                let claim = claim.as_ref();
                claim.is_some_and(|claim| self.claims.contains(claim))
            }),
        }
    }
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

fn of_node<'a>(
    node: &str,
    attachments: &'a [VolumeAttachment],
) -> impl Iterator<Item = &'a VolumeAttachment> {
    let here = move |attachment: &&VolumeAttachment| attachment.spec.node_name == node;
    attachments.iter().filter(here)
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

    fn remains(pods: &[Pod], attachments: &[VolumeAttachment], claims: &Claims) -> Remains {
        let attached = Attached {
            attachments,
            in_tree: &[],
        };
        Remains::of("worker-1", &taint(), pods, attached, claims)
    }

    fn open<'a>(pods: &[Pod], attachments: &'a [VolumeAttachment]) -> Vec<&'a str> {
        Remains::open("worker-1", &taint(), pods, attachments)
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
        let remains = remains(&pods, &[], &Claims::new());
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
        assert!(remains(&[], &of_others, &Claims::new()).is_over());
        let own = [attachment("csi-1", "worker-1")];
        let left = remains(&[], &own, &Claims::new());
        assert_eq!(left.attachments, ["csi-1"]);
        assert!(!left.is_over());
    }

    /// A pod that tolerates everything and has this volume.
    fn staying(volume: &Value) -> Pod {
        let spec = json!({"tolerations": [{"operator": "Exists"}], "volumes": [volume]});
        pod("db-0", &json!({}), &spec)
    }

    #[test]
    fn only_the_volumes_of_pods_that_stay_stay_attached() {
        let claimed = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        let pods = [staying(&claimed)];
        let own = [
            attachment("csi-1", "worker-1"),
            attachment("csi-2", "worker-2"),
        ];
        assert_eq!(open(&pods, &own), ["pv"]);
        assert_eq!(open(&[], &own), [""; 0], "nobody stays who might need it");
        let claim =
            |namespace: &str, name: &str| Known::Yes(Some((namespace.to_owned(), name.to_owned())));
        let forbidden = || Why::Forbidden("get persistentvolumes".to_owned());
        for (claim, stays, unsure) in [
            (claim("shop", "data"), true, None),
            (claim("shop", "other"), false, None),
            (claim("bank", "data"), false, None),
            (Known::Yes(None), false, None),
            (Known::Unknown(forbidden()), false, Some(forbidden())),
        ] {
            let claims = Claims::from([("pv".to_owned(), claim)]);
            let left = remains(&pods, &own, &claims);
            assert_eq!(left.staying == ["csi-1"], stays, "{claims:?}");
            assert_eq!(left.attachments == ["csi-1"], !stays, "{claims:?}");
            assert_eq!((left.is_over(), left.unsure), (stays, unsure));
        }
    }

    #[test]
    fn a_volume_without_a_claim_stays_with_its_driver() {
        let pods = [staying(
            &json!({"name": "data", "cinder": {"volumeID": "v"}}),
        )];
        let inline = |name: &str, driver: &str| -> VolumeAttachment {
            let spec = json!({"csi": {"driver": driver, "volumeHandle": "v"}});
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"attacher": driver, "nodeName": "worker-1", "source": {"inlineVolumeSpec": spec}},
            }))
            .expect("an attachment")
        };
        let both = [
            inline("csi-1", "cinder.csi.openstack.org"),
            inline("csi-2", "ebs.csi.aws.com"),
        ];
        let left = remains(&pods, &both, &Claims::new());
        assert_eq!(
            (left.staying, left.attachments),
            (vec!["csi-1".to_owned()], vec!["csi-2".to_owned()])
        );
    }

    #[test]
    fn a_disk_without_a_driver_goes_unless_a_pod_that_stays_has_its_claim() {
        let claimed = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        let pods = [staying(&claimed)];
        let name = "kubernetes.io/iscsi/p:i:0".to_owned();
        let in_tree = std::slice::from_ref(&name);
        let left = |pods: &[Pod], claims: &Claims| {
            let attached = Attached {
                attachments: &[],
                in_tree,
            };
            Remains::of("worker-1", &taint(), pods, attached, claims)
        };
        assert!(Remains::opens_in_tree(&taint(), &pods, in_tree));
        assert!(!Remains::opens_in_tree(&taint(), &[], in_tree));
        assert_eq!(left(&[], &Claims::new()).attachments, in_tree);
        let claim = |name: &str| Known::Yes(Some(("shop".to_owned(), name.to_owned())));
        for (of, stays) in [("data", true), ("other", false)] {
            let left = left(&pods, &Claims::from([(name.clone(), claim(of))]));
            assert_eq!(left.is_over(), stays, "{left:?}");
        }
    }

    #[test]
    fn a_pod_with_finalizers_is_named() {
        let mut meta = deleted();
        meta["finalizers"] = json!(["example.com/backup"]);
        let remains = remains(&[pod("web-0", &meta, &json!({}))], &[], &Claims::new());
        assert_eq!(remains.finalized, ["shop/web-0"]);
        assert!(!remains.is_over());
    }
}
