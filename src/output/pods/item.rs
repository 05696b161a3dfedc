//! One stranded object.

use pod_safety::stranded::{BlockedNamespace, Stranded, StrandedPod, StrandedVolume};

/// One stranded object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Pod(&'a StrandedPod),
    Volume(&'a StrandedVolume),
    Namespace(&'a BlockedNamespace),
}

/// All of them: the pods, the volumes that they leave behind, and the namespaces that wait for them.
pub(super) fn items(stranded: &Stranded) -> impl Iterator<Item = Item<'_>> {
    let volumes = stranded.volumes.yes().into_iter().flatten();
    let namespaces = stranded.namespaces.yes().into_iter().flatten();
    let pods = stranded.pods.iter().map(Item::Pod);
    pods.chain(volumes.map(Item::Volume))
        .chain(namespaces.map(Item::Namespace))
}

impl Item<'_> {
    /// The object's name in kubectl's form.
    pub(super) fn name(self) -> String {
        match self {
            Self::Pod(stranded) => format!("pod/{}", stranded.pod.sight.name),
            Self::Volume(volume) => format!("volumeattachment/{}", volume.attachment.name),
            Self::Namespace(namespace) => format!("namespace/{}", namespace.name),
        }
    }
}
