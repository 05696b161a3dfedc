//! Volumes that stay attached to nodes that are not ready.

use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::known::Known;
use crate::node_health::Health;

/// A volume that is attached to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The name of the VolumeAttachment.
    pub name: String,
    /// The node.
    pub node: String,
    /// The PersistentVolume; `None` for an inline volume of a pod.
    pub volume: Option<String>,
    /// The driver that attached it.
    pub driver: String,
    /// The VolumeAttachment is being deleted, so the volume is to be detached.
    pub deleting: bool,
    /// Why the driver could not detach it.
    pub detach_error: Option<String>,
}

/// Why no pod needs an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// The Node does not exist any more.
    NodeGone,
    /// It is to be detached, so its VolumeAttachment is being deleted. The driver has not finished.
    Detaching,
    /// No pod on the node uses the volume.
    Unused,
}

impl From<VolumeAttachment> for Attachment {
    fn from(attachment: VolumeAttachment) -> Self {
        Self {
            name: attachment.metadata.name.unwrap_or_default(),
            deleting: attachment.metadata.deletion_timestamp.is_some(),
            detach_error: { attachment.status }
                .and_then(|status| status.detach_error?.message)
                .filter(|message| !message.is_empty()),
            node: attachment.spec.node_name,
            volume: attachment.spec.source.persistent_volume_name,
            driver: attachment.spec.attacher,
        }
    }
}

/// Why no pod needs an attachment to a node with this `health`; `None` if a pod may need it. `used`: a pod on
/// the node uses the volume.
#[must_use]
pub fn orphan(attachment: &Attachment, health: &Health, used: &Known<bool>) -> Option<Orphan> {
    match health {
        _ if attachment.deleting => Some(Orphan::Detaching),
        Health::Gone => Some(Orphan::NodeGone),
        _ if *used == Known::Yes(false) => Some(Orphan::Unused),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Why;

    #[test]
    fn an_attachment_is_orphaned_only_for_sure() {
        let attachment = |deleting| Attachment {
            name: "csi-1".to_owned(),
            node: "worker-1".to_owned(),
            volume: Some("pv-1".to_owned()),
            driver: "csi.example.com".to_owned(),
            deleting,
            detach_error: None,
        };
        let down = Health::Unreachable { since: None };
        let unread = || Known::Unknown(Why::NotRead);
        for (deleting, health, used, expected) in [
            (false, &Health::Gone, unread(), Some(Orphan::NodeGone)),
            (true, &Health::Gone, unread(), Some(Orphan::Detaching)),
            (true, &down, Known::Yes(true), Some(Orphan::Detaching)),
            (false, &down, Known::Yes(false), Some(Orphan::Unused)),
            (false, &down, Known::Yes(true), None),
            (false, &down, unread(), None),
        ] {
            let orphan = orphan(&attachment(deleting), health, &used);
            assert_eq!(orphan, expected, "{deleting} {health:?} {used:?}");
        }
    }
}
