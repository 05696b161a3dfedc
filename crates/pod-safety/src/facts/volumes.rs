//! A pod's volumes that other nodes can reach, and what keeps two nodes from writing to them.

use k8s_openapi::api::core::v1::{self as core, PersistentVolume, PersistentVolumeSpec, Pod};

use super::evidence::{Cluster, NamespaceEvidence};
use crate::known::{Known, Why};

/// A volume that other nodes can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The claim, or the volume of the pod.
    pub name: String,
    /// Its access modes, such as `ReadWriteOnce`.
    pub modes: Vec<String>,
    /// What it is, where nothing keeps two nodes from writing to it, such as `NFS`; `None`: it has to
    /// be attached first.
    pub unguarded: Known<Option<String>>,
    /// The VolumeAttachment by which it is attached to the pod's node.
    pub attached: Known<Option<String>>,
}

/// The volumes of `pod` that other nodes can reach and that it may write to.
pub(super) fn of(
    pod: &Pod,
    namespace: Option<&NamespaceEvidence>,
    cluster: &Cluster,
) -> Known<Vec<Volume>> {
    let Some(spec) = &pod.spec else {
        return Known::Yes(Vec::new());
    };
    let node = spec.node_name.as_deref().unwrap_or_default();
    let mut volumes = Vec::new();
    for volume in spec.volumes.iter().flatten() {
        if let Some(kind) = inline(volume) {
            volumes.push(Volume {
                name: volume.name.clone(),
                modes: Vec::new(),
                unguarded: Known::Yes(Some(kind.to_owned())),
                attached: Known::Yes(None),
            });
            continue;
        }
        let Some(claim) = claim_of(pod, volume) else {
            continue;
        };
        let claims = match namespace.map(|namespace| &namespace.claims) {
            Some(Known::Yes(claims)) => claims,
            Some(Known::Unknown(why)) => return Known::Unknown(why.clone()),
            None => return Known::Unknown(Why::NotRead),
        };
        let found = claims
            .iter()
            .find(|one| one.metadata.name.as_deref() == Some(&*claim));
        let claimed = found.and_then(|claim| claim.spec.as_ref());
        // What is not bound has no data yet.
        let Some(name) = claimed.and_then(|spec| spec.volume_name.as_deref()) else {
            continue;
        };
        let modes = claimed
            .and_then(|spec| spec.access_modes.clone())
            .unwrap_or_default();
        if !modes.is_empty() && modes.iter().all(|mode| mode == "ReadOnlyMany") {
            continue;
        }
        let (unguarded, attached) = match &cluster.volumes {
            Known::Unknown(why) => (Known::Unknown(why.clone()), Known::Unknown(why.clone())),
            Known::Yes(all) => {
                let named = |one: &&PersistentVolume| one.metadata.name.as_deref() == Some(name);
                let volume = all.iter().find(named).and_then(|one| one.spec.as_ref());
                let Some(volume) = volume.filter(|volume| leaves_the_node(volume)) else {
                    continue;
                };
                let unguarded = unguarded(volume, cluster);
                let attached = match unguarded {
                    Known::Yes(Some(_)) => Known::Yes(None),
                    _ => attached(name, node, cluster),
                };
                (unguarded, attached)
            }
        };
        volumes.push(Volume {
            name: claim,
            modes,
            unguarded,
            attached,
        });
    }
    Known::Yes(volumes)
}

/// Whether `pod` has a claim, so that claims and what is behind them have to be read.
pub(crate) fn has_claims(pod: &Pod) -> bool {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    volumes
        .into_iter()
        .any(|volume| claim_of(pod, volume).is_some())
}

/// The claim that `volume` is.
fn claim_of(pod: &Pod, volume: &core::Volume) -> Option<String> {
    match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) if claim.read_only != Some(true) => Some(claim.claim_name.clone()),
        (_, Some(_)) => {
            let pod = pod.metadata.name.as_deref().unwrap_or_default();
            Some(format!("{pod}-{}", volume.name))
        }
        _ => None,
    }
}

/// What an inline volume is, where many nodes reach it and nothing guards it.
fn inline(volume: &core::Volume) -> Option<&'static str> {
    let kinds = [
        (volume.nfs.as_ref().map(|nfs| nfs.read_only), "NFS"),
        (volume.iscsi.as_ref().map(|iscsi| iscsi.read_only), "iSCSI"),
        (volume.cephfs.as_ref().map(|ceph| ceph.read_only), "CephFS"),
        (volume.rbd.as_ref().map(|rbd| rbd.read_only), "RBD"),
        (volume.fc.as_ref().map(|fc| fc.read_only), "Fibre Channel"),
        (
            volume.azure_file.as_ref().map(|file| file.read_only),
            "Azure File",
        ),
        (
            volume.glusterfs.as_ref().map(|gluster| gluster.read_only),
            "GlusterFS",
        ),
    ];
    kinds
        .into_iter()
        .find_map(|(there, kind)| (there? != Some(true)).then_some(kind))
}

/// Whether other nodes reach it.
fn leaves_the_node(volume: &PersistentVolumeSpec) -> bool {
    volume.local.is_none() && volume.host_path.is_none()
}

/// What a volume is, where nothing keeps two nodes from writing to it. A driver that says nothing of
/// attachments attaches.
fn unguarded(volume: &PersistentVolumeSpec, cluster: &Cluster) -> Known<Option<String>> {
    let kinds = [
        (volume.nfs.is_some(), "NFS"),
        (volume.iscsi.is_some(), "iSCSI"),
        (volume.cephfs.is_some(), "CephFS"),
        (volume.rbd.is_some(), "RBD"),
        (volume.fc.is_some(), "Fibre Channel"),
        (volume.azure_file.is_some(), "Azure File"),
        (volume.glusterfs.is_some(), "GlusterFS"),
    ];
    if let Some((_, kind)) = kinds.into_iter().find(|(is, _)| *is) {
        return Known::Yes(Some(kind.to_owned()));
    }
    let Some(csi) = &volume.csi else {
        return Known::Yes(None);
    };
    cluster.drivers.as_ref().map(|drivers| {
        let attaches = drivers
            .iter()
            .find(|driver| driver.metadata.name.as_deref() == Some(&*csi.driver))
            .is_none_or(|driver| driver.spec.attach_required != Some(false));
        (!attaches).then(|| format!("{}, which attaches nothing", csi.driver))
    })
}

/// The VolumeAttachment by which the PersistentVolume `name` is attached to `node`.
fn attached(name: &str, node: &str, cluster: &Cluster) -> Known<Option<String>> {
    cluster.attachments.as_ref().map(|attachments| {
        let here = attachments.iter().find(|attachment| {
            attachment.spec.node_name == node
                && attachment.spec.source.persistent_volume_name.as_deref() == Some(name)
        });
        here.map(|attachment| attachment.metadata.name.clone().unwrap_or_default())
    })
}
