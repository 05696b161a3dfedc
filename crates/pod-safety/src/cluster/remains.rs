//! Reads which pods and volumes remain on a fenced node.

use futures::future::join3;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{ApiError, escape};

use super::Reader;
use crate::facts::node::attached_to;
use crate::fencing::Remains;
use crate::fencing::remains::Attached;
use crate::known::{Known, Why};
use crate::taint::OutOfService;

/// The prefix of the names in a Node's `status.volumesAttached` that belong to CSI drivers.
const BY_DRIVER: &str = "kubernetes.io/csi/";

impl Reader {
    /// The pods and volumes that remain on a node with this out-of-service `taint`, and the Node; `None` if it does not exist
    /// any more.
    ///
    /// # Errors
    /// If the Node, its pods or the VolumeAttachments can't be read. Without the permission to list
    /// VolumeAttachments, they are unknown.
    pub async fn remains(
        &self,
        node: &str,
        taint: &OutOfService,
    ) -> Result<(Remains, Option<Node>), ApiError> {
        let on_node = format!("fieldSelector=spec.nodeName%3D{}", escape(node));
        let (pods, attachments, read) = join3(
            self.list("/api/v1/pods", &on_node),
            self.list("/apis/storage.k8s.io/v1/volumeattachments", ""),
            self.node(node),
        )
        .await;
        let (pods, read) = (pods?, read?);
        let attachments = match attachments {
            Err(error) if error.is_forbidden() => {
                let right = "list volumeattachments.storage.k8s.io".to_owned();
                Known::Unknown(Why::Forbidden(right))
            }
            attachments => Known::Yes(attachments?),
        };
        // A volume that a CSI driver attached has a VolumeAttachment, so it is not needed here.
        let mut in_tree = read.as_ref().map(attached_to).unwrap_or_default();
        in_tree.retain(|name| !name.starts_with(BY_DRIVER));
        let attached = Attached {
            attachments,
            in_tree: &in_tree,
        };
        Ok((Remains::of(node, taint, &pods, attached), read))
    }
}
