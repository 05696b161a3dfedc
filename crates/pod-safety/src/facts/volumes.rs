//! A pod's volumes that other nodes can reach, and what prevents two nodes from writing to them.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::evidence::{Cluster, Evidence, NodeFacts};
use super::pod::{namespace, node_name};
use super::source::persistent_claims;
use super::source::{Source, is_read_only, volumes};
use crate::bugs::{self, Bug};
use crate::controller::{Kind, controller};
use crate::known::{Known, Why};
use crate::wire::instant;

/// A volume that other nodes can reach, or for which this is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name of the claim, or of the volume in the pod.
    pub name: String,
    /// Its access modes, such as `ReadWriteOnce`.
    pub modes: Vec<String>,
    /// Its kind, such as `NFS`, if nothing prevents two nodes from writing to it. `None` if it is attached to
    /// one node at a time.
    pub unguarded: Known<Option<String>>,
    /// Its kind, if the node can still write after the detach, because no driver carries out the detach.
    pub writes_after_detach: Option<&'static str>,
    /// The name of its VolumeAttachment, or its name in the Node's status, if it is attached to the pod's
    /// node.
    pub attached: Known<Option<String>>,
}

/// A claim of a pod that is being deleted. Kubernetes keeps it only while a pod uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedClaim {
    /// Its name.
    pub name: String,
    /// Whether its volume is deleted with it, by the `reclaimPolicy` of the volume.
    pub with_volume: Known<bool>,
}

/// The names of the volumes of `pod` that are created for it alone and deleted with it (generic ephemeral
/// volumes). A pod that was never scheduled wrote nothing to them.
pub(super) fn ephemeral(pod: &Pod) -> Vec<String> {
    let is_placed = !node_name(pod).is_empty();
    let ephemeral = volumes(pod).filter(|volume| is_placed && volume.ephemeral.is_some());
    ephemeral.map(|volume| volume.name.clone()).collect()
}

/// The claims of `pod` that are being deleted. A pod that was never scheduled does not keep its claims.
pub(super) fn deleted_claims(pod: &Pod, evidence: &Evidence) -> Known<Vec<DeletedClaim>> {
    let names: Vec<&str> = persistent_claims(pod).collect();
    if names.is_empty() || node_name(pod).is_empty() {
        return Known::Yes(Vec::new());
    }
    let Some(namespace) = evidence.namespaces.get(namespace(pod)) else {
        return Known::Unknown(Why::NotRead);
    };
    namespace.claims.as_ref().map(|claims| {
        let deleted = claims.iter().filter(|claim| {
            let metadata = &claim.metadata;
            metadata.deletion_timestamp.is_some()
                && names
                    .iter()
                    .any(|name| metadata.name.as_deref() == Some(name))
        });
        let deleted = deleted.map(|claim| DeletedClaim {
            name: claim.metadata.name.clone().unwrap_or_default(),
            with_volume: goes_with_its_claim(claim, &evidence.cluster),
        });
        deleted.collect()
    })
}

/// Whether the volume of `claim` is deleted with it.
fn goes_with_its_claim(claim: &PersistentVolumeClaim, cluster: &Cluster) -> Known<bool> {
    let name = { claim.spec.as_ref() }.and_then(|spec| spec.volume_name.as_ref());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Known::Yes(false);
    };
    cluster.volumes.as_ref().map(|volumes| {
        let volume = volumes
            .iter()
            .find(|volume| volume.metadata.name.as_ref() == Some(name));
        let spec = volume.and_then(|volume| volume.spec.as_ref());
        let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        policy == Some("Delete")
    })
}

/// Whether a volume is unguarded, and how it is attached: [`Volume::unguarded`] and [`Volume::attached`].
type Guard = (Known<Option<String>>, Known<Option<String>>);

/// The pod's node, and the objects that describe the cluster's volumes.
struct VolumeContext<'a> {
    node: &'a str,
    /// The names in the Node's `status.volumesAttached`, in which in-tree disks are looked up.
    in_tree: Known<Vec<String>>,
    cluster: &'a Cluster,
    /// The replacement runs on the same node only.
    stays: bool,
}

/// The volumes of `pod` that other nodes can reach and that it may write to. A pod that was never scheduled
/// writes to nothing, and a claim that was never bound has no volume.
pub(super) fn of(pod: &Pod, evidence: &Evidence) -> Vec<Volume> {
    let node = node_name(pod);
    if node.is_empty() {
        return Vec::new();
    }
    let namespace = evidence.namespaces.get(namespace(pod));
    let context = VolumeContext {
        node,
        in_tree: in_tree(evidence.nodes.get(node)),
        cluster: &evidence.cluster,
        stays: controller(&pod.metadata).map(Kind::of) == Some(Kind::DaemonSet),
    };
    let unread = Known::Unknown(Why::NotRead);
    let claims = namespace.map_or(&unread, |namespace| &namespace.claims);
    let judged = volumes(pod).filter_map(|volume| {
        let source = Source::of_pod(pod, volume);
        let Source::Claim(claim) = source else {
            let (unguarded, attached) = context.guard(source, None)?;
            return Some(Volume {
                name: volume.name.clone(),
                modes: Vec::new(),
                unguarded,
                writes_after_detach: None,
                attached,
            });
        };
        let object = claims.as_ref().map(|claims| {
            let is_it = |name: Option<&str>| name == Some(&*claim);
            claims
                .iter()
                .find(|one| is_it(one.metadata.name.as_deref()))
        });
        let modes = object.value().copied().flatten();
        let modes = modes.and_then(|claim| claim.spec.as_ref()?.access_modes.clone());
        let modes = modes.unwrap_or_default();
        let volume = match bound(&claim, object, pod, context.cluster) {
            Known::Yes(None) => return None,
            Known::Yes(Some(volume)) => Known::Yes(volume),
            Known::Unknown(why) => Known::Unknown(why),
        };
        let writes_after_detach = volume
            .value()
            .and_then(|volume| writes_after_detach(volume));
        let (unguarded, attached) = match volume {
            Known::Yes(volume) => context.of_volume(volume, &modes)?,
            Known::Unknown(why) => unknown(why),
        };
        Some(Volume {
            name: claim,
            modes,
            unguarded,
            writes_after_detach,
            attached,
        })
    });
    judged.collect()
}

/// The names in the Node's `status.volumesAttached`.
fn in_tree(node: Option<&NodeFacts>) -> Known<Vec<String>> {
    match node.map(|node| &node.node) {
        None => Known::Unknown(Why::NotRead),
        Some(Known::Unknown(why)) => Known::Unknown(why.clone()),
        Some(Known::Yes(None)) => Known::Unknown(Why::Inconclusive("its Node is gone".to_owned())),
        Some(Known::Yes(Some(node))) => Known::Yes(node.volumes.clone()),
    }
}

/// The PersistentVolume that a claim of `pod` is bound to; `None` if it was never bound. `object` is the
/// claim with this name, if it exists.
fn bound<'a>(
    claim: &str,
    object: Known<Option<&PersistentVolumeClaim>>,
    pod: &Pod,
    cluster: &'a Cluster,
) -> Known<Option<&'a PersistentVolume>> {
    let inconclusive = |what: String| Known::Unknown(Why::Inconclusive(what));
    let object = match object {
        Known::Unknown(why) => return Known::Unknown(why),
        Known::Yes(None) => return inconclusive(format!("claim {claim} is missing")),
        Known::Yes(Some(object)) => object,
    };
    let spec = object.spec.as_ref();
    let name = spec.and_then(|spec| spec.volume_name.as_deref());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        // The API server does not allow anyone to clear the volume name of a claim. But if the claim was
        // replaced, the pod may use the volume of the earlier claim.
        let created = |metadata: &ObjectMeta| metadata.creation_timestamp.as_ref().map(instant);
        let is_older = created(&object.metadata) <= created(&pod.metadata);
        return match is_older || bugs::active(Bug::NewClaimWasNeverBound) {
            true => Known::Yes(None),
            false => inconclusive(format!(
                "claim {claim} is newer than the pod, and bound to no volume"
            )),
        };
    };
    match &cluster.volumes {
        Known::Unknown(why) => Known::Unknown(why.clone()),
        Known::Yes(all) => all
            .iter()
            .find(|one| one.metadata.name.as_deref() == Some(name))
            .map_or_else(
                || inconclusive(format!("{name}, the volume of claim {claim}, is missing")),
                |volume| Known::Yes(Some(volume)),
            ),
    }
}

/// The kind of an in-tree volume. The control plane only records its detach; no driver carries it out.
fn writes_after_detach(volume: &PersistentVolume) -> Option<&'static str> {
    match Source::of_volume(volume.spec.as_ref()?) {
        Source::InTree(kind, _) => Some(kind),
        _ => None,
    }
}

/// Whether Kubernetes attaches a volume with these modes to several nodes at a time (`IsMultiAttachAllowed`).
pub(crate) fn is_multi(modes: &[String]) -> bool {
    if bugs::active(Bug::AccessModesPrevent) {
        return false;
    }
    let mut modes = modes.iter();
    modes.len() == 0 || modes.any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany")
}

/// The access modes of a PersistentVolume.
pub(crate) fn modes(volume: &PersistentVolume) -> &[String] {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.access_modes.as_deref())
        .unwrap_or_default()
}

impl VolumeContext<'_> {
    /// How a PersistentVolume is guarded, for a claim with these `modes`; `None` if no other node can reach
    /// it.
    fn of_volume(&self, volume: &PersistentVolume, modes: &[String]) -> Option<Guard> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let spec = volume.spec.as_ref();
        let source = spec.map_or(Source::Unknown(None), Source::of_volume);
        let own = self::modes(volume);
        let attaches = matches!(
            source,
            Source::Disk(_) | Source::Driver(_) | Source::InTree(..)
        );
        let (unguarded, attached) = self.guard(source, Some(name))?;
        let (unguarded, attached) = match unguarded {
            Known::Yes(None) | Known::Unknown(_) if attaches && is_multi(own) => {
                let modes = match own {
                    [] => "no access mode".to_owned(),
                    modes => modes.join(", "),
                };
                let kind = format!("{modes}: Kubernetes attaches it to a second node immediately");
                (Known::Yes(Some(kind)), Known::Yes(None))
            }
            unguarded => (unguarded, attached),
        };
        let reads = !modes.is_empty() && modes.iter().all(|mode| mode == "ReadOnlyMany");
        let reads = reads || spec.is_some_and(is_read_only);
        Some(match unguarded {
            Known::Yes(Some(_)) if reads => (
                Known::Unknown(Why::Inconclusive(
                    "it should only be read, but nothing prevents writing".to_owned(),
                )),
                attached,
            ),
            unguarded => (unguarded, attached),
        })
    }

    /// How a volume of this source is guarded; `None` if no other node can reach it. `persistent` is the name
    /// of its PersistentVolume, if it has one.
    fn guard(&self, source: Source, persistent: Option<&str>) -> Option<Guard> {
        let Self { node, cluster, .. } = *self;
        Some(match source {
            Source::Harmless | Source::Claim(_) => return None,
            Source::HostPath if self.stays => return None,
            Source::HostPath => (
                Known::Unknown(Why::Inconclusive(
                    "a path of the node may be a mount that other nodes reach".to_owned(),
                )),
                Known::Yes(None),
            ),
            Source::Shared(kind) => (Known::Yes(Some(kind.to_owned())), Known::Yes(None)),
            Source::InTree(_, name) => {
                let is_it = |all: &Vec<String>| all.contains(&name).then(|| name.clone());
                (Known::Yes(None), self.in_tree.as_ref().map(is_it))
            }
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
                unknown(Why::Inconclusive(format!("its kind is unknown{named}")))
            }
        })
    }
}

fn unknown(why: Why) -> Guard {
    (Known::Unknown(why.clone()), Known::Unknown(why))
}

/// The description of a driver whose volumes nothing guards against writes from two nodes. A driver whose
/// CSIDriver does not say whether it attaches volumes is assumed to attach them.
fn unguarded(driver: &str, cluster: &Cluster) -> Known<Option<String>> {
    cluster.drivers.as_ref().map(|drivers| {
        let attaches = drivers
            .iter()
            .find(|one| one.metadata.name.as_deref() == Some(driver))
            .is_none_or(|one| one.spec.attach_required != Some(false));
        (!attaches).then(|| format!("{driver}, which does not attach volumes"))
    })
}

/// The VolumeAttachment that attaches the volume to `node`. An attachment of a volume without a
/// PersistentVolume names only its driver, so any attachment of that driver on the node may be the one.
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
