//! The source of a volume, which determines whether two nodes can write to it at the same time.

use k8s_openapi::api::core::v1::{CSIVolumeSource, PersistentVolumeSpec, Pod, Volume};
use serde::Serialize;
use serde_json::Value;

use crate::bugs::{self, Bug};

/// The source of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// No other node can reach it, the pod only reads it, or it is deleted with the pod.
    Harmless,
    /// The claim with this name.
    Claim(String),
    /// A path on the node. It may be a mount that other nodes can reach too.
    HostPath,
    /// Storage such as `NFS` that many nodes can reach. Nothing prevents two of them from writing.
    Shared(&'static str),
    /// A disk that the control plane attaches without a driver: its kind, and its name in the Node's
    /// `status.volumesAttached`.
    InTree(&'static str, String),
    /// A disk of a cloud or a data center. This driver attaches it to one node at a time.
    Disk(&'static str),
    /// A volume of this CSI driver. The driver determines the rules.
    Driver(String),
    /// An unknown kind: its name in the API, or `None` if it is newer than this program.
    Unknown(Option<&'static str>),
}

/// Storage that any node mounts by itself.
const SHARED: [(&str, &str); 6] = [
    ("azureFile", "Azure File"),
    ("cephfs", "CephFS"),
    ("glusterfs", "GlusterFS"),
    ("nfs", "NFS"),
    ("quobyte", "Quobyte"),
    ("rbd", "RBD"),
];

/// Disks, each with the CSI driver that Kubernetes uses for it (`k8s.io/csi-translation-lib`).
const DISKS: [(&str, &str); 6] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// Volumes that exist only on the node or are read-only.
const OF_THE_NODE: [&str; 8] = [
    "configMap",
    "downwardAPI",
    "emptyDir",
    "gitRepo",
    "image",
    "local",
    "projected",
    "secret",
];

/// Drivers of inline volumes that exist only on the node or are read-only: secrets, certificates, sockets and
/// images.
const INLINE_OF_THE_NODE: [&str; 8] = [
    "csi-image.warm-metal.tech",
    "csi.cert-manager.io",
    "csi.sharedresource.openshift.io",
    "csi.spiffe.io",
    "csi.tigera.io",
    "image.csi.k8s.io",
    "secrets-store.csi.k8s.io",
    "spiffe.csi.cert-manager.io",
];

/// Other legacy kinds, listed so that messages can name them.
const UNKNOWN: [&str; 5] = [
    "flexVolume",
    "flocker",
    "photonPersistentDisk",
    "scaleIO",
    "storageos",
];

impl Source {
    /// The source of a pod's volume.
    pub(crate) fn of_pod(pod: &Pod, volume: &Volume) -> Self {
        let reads = volume
            .persistent_volume_claim
            .as_ref()
            .is_some_and(|claim| claim.read_only == Some(true));
        match (claim_name(pod, volume), &volume.csi) {
            _ if reads => Self::Harmless,
            // The pod owns its claim, and its replacement gets another one.
            _ if volume.ephemeral.is_some() && !bugs::active(Bug::EphemeralIsShared) => {
                Self::Harmless
            }
            (Some(claim), _) => Self::Claim(claim),
            (None, Some(csi)) => Self::of_inline(csi),
            // If such a disk has no PersistentVolume, Kubernetes attaches it to any number of nodes.
            (None, None) => match Self::of(volume) {
                _ if is_read_only(volume) => Self::Harmless,
                Self::InTree(kind, _) => Self::Shared(kind),
                source => source,
            },
        }
    }

    /// The source of an inline volume, which a CSI driver creates for this pod alone. It may consist of files
    /// on the node, or of a share that other nodes can reach.
    fn of_inline(csi: &CSIVolumeSource) -> Self {
        let is_of_the_node = INLINE_OF_THE_NODE.contains(&&*csi.driver);
        match is_of_the_node || csi.read_only == Some(true) {
            true => Self::Harmless,
            false => Self::Driver(csi.driver.clone()),
        }
    }

    /// The source of a PersistentVolume. Its `readOnly` is ignored: the mount is writable unless the pod's
    /// own volume says `readOnly`.
    pub(crate) fn of_volume(volume: &PersistentVolumeSpec) -> Self {
        match &volume.csi {
            Some(csi) => Self::Driver(csi.driver.clone()),
            None => Self::of(volume),
        }
    }

    /// The source by its kind, which is the name of a field of `volume`.
    fn of(volume: &impl Serialize) -> Self {
        let fields = serde_json::to_value(volume).unwrap_or_default();
        let has = |kind: &str| fields.get(kind).is_some();
        let found = |kinds: &[(&'static str, &'static str)]| {
            kinds.iter().copied().find(|(kind, _)| has(kind))
        };
        if OF_THE_NODE.into_iter().any(has) {
            return Self::Harmless;
        }
        if has("hostPath") {
            return Self::HostPath;
        }
        if has("iscsi") {
            return Self::InTree("iSCSI", iscsi_name(&fields["iscsi"]));
        }
        if has("fc") {
            return Self::InTree("Fibre Channel", fc_name(&fields["fc"]));
        }
        match (found(&SHARED), found(&DISKS)) {
            (Some((_, words)), _) => Self::Shared(words),
            (_, Some((_, driver))) => Self::Disk(driver),
            (None, None) => Self::Unknown(UNKNOWN.into_iter().find(|kind| has(kind))),
        }
    }
}

/// Whether a volume is marked as read-only, in the pod or in its PersistentVolume.
pub(crate) fn is_read_only(volume: &impl Serialize) -> bool {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let mut kinds = fields.as_object().into_iter().flatten();
    kinds.any(|(_, source)| source["readOnly"] == Value::Bool(true))
}

/// The name of an iSCSI disk in a Node's `status.volumesAttached` (`GetVolumeName`).
fn iscsi_name(source: &Value) -> String {
    let text = |field: &str| source[field].as_str().unwrap_or_default();
    let lun = source["lun"].as_i64().unwrap_or(0);
    let (portal, iqn) = (text("targetPortal"), text("iqn"));
    format!("kubernetes.io/iscsi/{portal}:{iqn}:{lun}")
}

/// The name of a Fibre Channel disk in a Node's `status.volumesAttached`. Lists are formatted as Go prints
/// them.
fn fc_name(source: &Value) -> String {
    let list = |field: &str| {
        let items = source[field].as_array().into_iter().flatten();
        let items: Vec<&str> = items.filter_map(Value::as_str).collect();
        (!items.is_empty()).then(|| format!("[{}]", items.join(" ")))
    };
    let name = match (list("targetWWNs"), source["lun"].as_i64(), list("wwids")) {
        (Some(wwns), Some(lun), _) => format!("{wwns}:{lun}"),
        (_, _, wwids) => wwids.unwrap_or_default(),
    };
    format!("kubernetes.io/fc/{name}")
}

/// The sources of all volumes of `pod`.
pub(crate) fn sources(pod: &Pod) -> impl Iterator<Item = Source> + '_ {
    volumes(pod).map(move |volume| Source::of_pod(pod, volume))
}

/// The names of the claims that `pod` uses, including those that it only reads.
pub(crate) fn claims(pod: &Pod) -> impl Iterator<Item = String> + '_ {
    volumes(pod).filter_map(move |volume| claim_name(pod, volume))
}

/// The names of the claims that `pod` uses and does not own.
pub(crate) fn persistent_claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let used = volumes(pod).filter_map(|volume| volume.persistent_volume_claim.as_ref());
    used.map(|claim| &*claim.claim_name)
}

/// The volumes of `pod`.
pub(crate) fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| spec.volumes.iter().flatten())
}

/// The name of the claim of `volume`: a PersistentVolumeClaim, or the claim that Kubernetes creates for an
/// ephemeral volume.
fn claim_name(pod: &Pod, volume: &Volume) -> Option<String> {
    let made = |_| {
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        format!("{pod}-{}", volume.name)
    };
    let claim = volume.persistent_volume_claim.as_ref();
    claim
        .map(|claim| claim.claim_name.clone())
        .or_else(|| volume.ephemeral.as_ref().map(made))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inline(volume: &Value) -> Source {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "web-0"},
            "spec": {"containers": [], "volumes": [volume]},
        }));
        let pod: Pod = pod.expect("a pod");
        let source = sources(&pod).next();
        source.expect("a volume")
    }

    fn persistent(spec: &Value) -> Source {
        let spec: PersistentVolumeSpec = serde_json::from_value(spec.clone()).expect("a volume");
        Source::of_volume(&spec)
    }

    #[test]
    fn each_kind_of_pod_volume_is_known_or_reported_as_unknown() {
        use Source::{Claim, Disk, Driver, Harmless, HostPath, Shared, Unknown};
        let claim = |name: &str| Claim(name.to_owned());
        for (volume, expected) in [
            (json!({"emptyDir": {}}), Harmless),
            (json!({"configMap": {"name": "c"}}), Harmless),
            (json!({"hostPath": {"path": "/"}}), HostPath),
            (
                json!({"csi": {"driver": "secrets-store.csi.k8s.io"}}),
                Harmless,
            ),
            (
                json!({"csi": {"driver": "nfs.csi.k8s.io", "readOnly": true}}),
                Harmless,
            ),
            (
                json!({"csi": {"driver": "nfs.csi.k8s.io"}}),
                Driver("nfs.csi.k8s.io".to_owned()),
            ),
            (
                json!({"persistentVolumeClaim": {"claimName": "data"}}),
                claim("data"),
            ),
            (
                json!({"persistentVolumeClaim": {"claimName": "data", "readOnly": true}}),
                Harmless,
            ),
            (json!({"ephemeral": {}}), Harmless),
            (json!({"nfs": {"server": "s", "path": "/"}}), Shared("NFS")),
            (
                json!({"nfs": {"server": "s", "path": "/", "readOnly": true}}),
                Harmless,
            ),
            (json!({"fc": {"lun": 1}}), Shared("Fibre Channel")),
            (json!({"fc": {"lun": 1, "readOnly": true}}), Harmless),
            (
                json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}),
                Disk("ebs.csi.aws.com"),
            ),
            (
                json!({"gcePersistentDisk": {"pdName": "d", "readOnly": true}}),
                Harmless,
            ),
            (
                json!({"vsphereVolume": {"volumePath": "[a] b"}}),
                Disk("csi.vsphere.vmware.com"),
            ),
            (
                json!({"flexVolume": {"driver": "d"}}),
                Unknown(Some("flexVolume")),
            ),
            (json!({"ofTheFuture": {}}), Unknown(None)),
        ] {
            let mut volume = volume;
            volume["name"] = "v".into();
            assert_eq!(inline(&volume), expected, "{volume}");
        }
    }

    #[test]
    fn each_kind_of_persistent_volume_is_known_or_reported_as_unknown() {
        use Source::{Disk, Driver, Harmless, HostPath, InTree, Shared, Unknown};
        let in_tree = |kind, name: &str| InTree(kind, format!("kubernetes.io/{name}"));
        let csi = json!({"csi": {"driver": "disk.example.com", "volumeHandle": "v"}});
        for (spec, expected) in [
            (csi, Driver("disk.example.com".to_owned())),
            (json!({"local": {"path": "/mnt/a"}}), Harmless),
            (
                json!({"iscsi": {"targetPortal": "p", "iqn": "i", "lun": 0}}),
                in_tree("iSCSI", "iscsi/p:i:0"),
            ),
            (
                json!({"fc": {"targetWWNs": ["a", "b"], "lun": 2}}),
                in_tree("Fibre Channel", "fc/[a b]:2"),
            ),
            (
                json!({"fc": {"wwids": ["c"]}}),
                in_tree("Fibre Channel", "fc/[c]"),
            ),
            (json!({"hostPath": {"path": "/mnt/a"}}), HostPath),
            (
                json!({"nfs": {"server": "s", "path": "/", "readOnly": true}}),
                Shared("NFS"),
            ),
            (
                json!({"azureDisk": {"diskName": "d", "diskURI": "u"}}),
                Disk("disk.csi.azure.com"),
            ),
            (json!({}), Unknown(None)),
        ] {
            assert_eq!(persistent(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn a_claim_that_is_only_read_counts_as_used() {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "web-0"},
            "spec": {"containers": [], "volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "data", "readOnly": true}},
                {"name": "b", "ephemeral": {}},
                {"name": "c", "emptyDir": {}},
            ]},
        }));
        let pod: Pod = pod.expect("a pod");
        assert_eq!(claims(&pod).collect::<Vec<_>>(), ["data", "web-0-b"]);
    }
}
