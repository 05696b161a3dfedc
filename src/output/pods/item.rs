//! One stuck object.

use pod_safety::stuck::{Stuck, StuckPod, StuckVolume};

/// One stuck object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Pod(&'a StuckPod),
    /// A Pending pod that waits for a stuck one.
    Waiting(&'a StuckPod),
    Volume(&'a StuckVolume),
}

/// All of them: the pods, what waits for them, and the volumes that they leave behind.
pub(super) fn items(stuck: &Stuck) -> impl Iterator<Item = Item<'_>> {
    let pods = stuck.pods.iter().map(Item::Pod);
    pods.chain(stuck.waiting.iter().map(Item::Waiting))
        .chain(stuck.volumes.iter().map(Item::Volume))
}

impl Item<'_> {
    /// The object's name in kubectl's form. A volume is known by its PersistentVolume: the names of
    /// attachments tell people nothing, and most are 68 characters long.
    pub(super) fn shown(self) -> String {
        match self {
            Self::Pod(pod) | Self::Waiting(pod) => format!("pod/{}", pod.name),
            Self::Volume(volume) => match &volume.attachment.volume {
                Some(name) => format!("pv/{name}"),
                None => format!("volumeattachment/{}", volume.attachment.name),
            },
        }
    }
}
