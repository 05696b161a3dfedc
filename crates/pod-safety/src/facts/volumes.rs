//! A pod's volumes that other nodes can reach, and what keeps two nodes from writing to them.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaimSpec, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;

use super::evidence::{Cluster, NamespaceEvidence};
use super::source::{Source, volumes};
use crate::known::{Known, Why};

/// A volume that other nodes can reach, or of which nobody knows whether they can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The claim, or the volume of the pod.
    pub name: String,
    /// Its access modes, such as `ReadWriteOnce`.
    pub modes: Vec<String>,
    /// The type of the volume, such as `NFS`, if nothing prevents two nodes from writing to it. `None`:
    /// it has to be attached first.
    pub unguarded: Known<Option<String>>,
    /// The VolumeAttachment by which it is attached to the pod's node.
    pub attached: Known<Option<String>>,
}

/// What guards a volume, and by what it is attached.
type Guard = (Known<Option<String>>, Known<Option<String>>);

/// The volumes of `pod` that other nodes can reach and that it may write to. One that was never placed
/// writes to nothing.
pub(super) fn of(
    pod: &Pod,
    namespace: Option<&NamespaceEvidence>,
    cluster: &Cluster,
) -> Vec<Volume> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let Some(node) = node.filter(|node| !node.is_empty()) else {
        return Vec::new();
    };
    let unread = Known::Unknown(Why::NotRead);
    let claims = namespace.map_or(&unread, |namespace| &namespace.claims);
    let judged = volumes(pod).filter_map(|volume| {
        let source = Source::of_pod(pod, volume);
        let Source::Claim(claim) = source else {
            let (unguarded, attached) = of_source(source, None, node, cluster)?;
            return Some(Volume {
                name: volume.name.clone(),
                modes: Vec::new(),
                unguarded,
                attached,
            });
        };
        let spec = claims.as_ref().map(|claims| {
            let is_it = |name: Option<&str>| name == Some(&*claim);
            claims
                .iter()
                .find(|one| is_it(one.metadata.name.as_deref()))
                .and_then(|claim| claim.spec.as_ref())
        });
        let modes = spec.yes().copied().flatten();
        let modes = modes.and_then(|spec| spec.access_modes.clone());
        let modes = modes.unwrap_or_default();
        if !modes.is_empty() && modes.iter().all(|mode| mode == "ReadOnlyMany") {
            return None;
        }
        let (unguarded, attached) = match bound(&claim, spec, cluster) {
            Known::Yes(volume) => of_volume(volume, node, cluster)?,
            Known::Unknown(why) => unknown(why),
        };
        Some(Volume {
            name: claim,
            modes,
            unguarded,
            attached,
        })
    });
    judged.collect()
}

/// The PersistentVolume that the claim of this name and spec (`None`: there is none) is bound to.
fn bound<'a>(
    claim: &str,
    spec: Known<Option<&PersistentVolumeClaimSpec>>,
    cluster: &'a Cluster,
) -> Known<&'a PersistentVolume> {
    let untold = |what: String| Known::Unknown(Why::Untold(what));
    let name = match spec {
        Known::Unknown(why) => return Known::Unknown(why),
        Known::Yes(None) => return untold(format!("claim {claim} is missing")),
        Known::Yes(Some(spec)) => spec.volume_name.as_deref().unwrap_or_default(),
    };
    if name.is_empty() {
        return untold(format!("claim {claim} is bound to no volume"));
    }
    match &cluster.volumes {
        Known::Unknown(why) => Known::Unknown(why.clone()),
        Known::Yes(all) => all
            .iter()
            .find(|one| one.metadata.name.as_deref() == Some(name))
            .map_or_else(
                || untold(format!("{name}, the volume of claim {claim}, is missing")),
                Known::Yes,
            ),
    }
}

/// How a PersistentVolume is guarded; `None` if no other node reaches it.
fn of_volume(volume: &PersistentVolume, node: &str, cluster: &Cluster) -> Option<Guard> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let spec = volume.spec.as_ref();
    let source = spec.map_or(Source::Unknown(None), Source::of_volume);
    of_source(source, Some(name), node, cluster)
}

/// How a volume of this source is guarded; `None` if no other node reaches it. `persistent` is the
/// name of its PersistentVolume, if it has one.
fn of_source(
    source: Source,
    persistent: Option<&str>,
    node: &str,
    cluster: &Cluster,
) -> Option<Guard> {
    Some(match source {
        Source::Harmless | Source::Claim(_) => return None,
        Source::Shared(kind) => (Known::Yes(Some(kind.to_owned())), Known::Yes(None)),
        Source::Disk(driver) => (
            Known::Yes(None),
            attached(persistent, driver, node, cluster),
        ),
        Source::Driver(driver) => {
            let unguarded = unguarded(&driver, cluster);
            let attached = match unguarded {
                Known::Yes(Some(_)) => Known::Yes(None),
                _ => attached(persistent, &driver, node, cluster),
            };
            (unguarded, attached)
        }
        Source::Unknown(kind) => {
            let named = kind.map_or_else(String::new, |kind| format!(": {kind}"));
            unknown(Why::Untold(format!("its kind is unknown{named}")))
        }
    })
}

fn unknown(why: Why) -> Guard {
    (Known::Unknown(why.clone()), Known::Unknown(why))
}

/// The type of a driver's volumes, if nothing prevents two nodes from writing to them. A driver that says
/// nothing about attachments is assumed to attach.
fn unguarded(driver: &str, cluster: &Cluster) -> Known<Option<String>> {
    cluster.drivers.as_ref().map(|drivers| {
        let attaches = drivers
            .iter()
            .find(|one| one.metadata.name.as_deref() == Some(driver))
            .is_none_or(|one| one.spec.attach_required != Some(false));
        (!attaches).then(|| format!("{driver}, which does not attach volumes"))
    })
}

/// The VolumeAttachment by which the volume is attached to `node`. That of a volume without a
/// PersistentVolume names only its driver: any such on the node may be it.
fn attached(
    persistent: Option<&str>,
    driver: &str,
    node: &str,
    cluster: &Cluster,
) -> Known<Option<String>> {
    let is_it = |attachment: &&VolumeAttachment| {
        let spec = &attachment.spec;
        let attached = spec.source.persistent_volume_name.as_deref();
        spec.node_name == node
            && attached == persistent
            && (persistent.is_some() || spec.attacher == driver)
    };
    cluster.attachments.as_ref().map(|attachments| {
        let here = attachments.iter().find(is_it);
        here.map(|attachment| attachment.metadata.name.clone().unwrap_or_default())
    })
}
