//! Reads which pods and volumes remain on a fenced node.

use futures::future::{join_all, join3};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeSpec};
use maintenance_lease::{ApiError, escape};

use super::Reader;
use crate::facts::node::attached_to;
use crate::facts::source::Source;
use crate::fencing::Remains;
use crate::fencing::remains::{Attached, Claims};
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
    /// VolumeAttachments, they are reported as unread. Volumes that can't be read are reported as volumes
    /// that may stay.
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
        let (attachments, unread) = match attachments {
            Err(error) if error.is_forbidden() => {
                let right = "list volumeattachments.storage.k8s.io".to_owned();
                (Vec::new(), Some(Why::Forbidden(right)))
            }
            attachments => (attachments?, None),
        };
        // A volume that a CSI driver attached has a VolumeAttachment, so it is not needed here.
        let mut in_tree = read.as_ref().map(attached_to).unwrap_or_default();
        in_tree.retain(|name| !name.starts_with(BY_DRIVER));
        let open = Remains::open(node, taint, &pods, &attachments);
        let claims = join_all(open.into_iter().map(|volume| self.claim_of(volume))).await;
        let mut claims: Claims = claims.into_iter().collect();
        if Remains::opens_in_tree(taint, &pods, &in_tree) {
            claims.extend(self.claims_in_tree(&in_tree).await);
        }
        let attached = Attached {
            attachments: &attachments,
            in_tree: &in_tree,
        };
        let remains = Remains {
            unread,
            ..Remains::of(node, taint, &pods, attached, &claims)
        };
        Ok((remains, read))
    }

    /// The claim of each of these disks. `in_tree` has their names in the Node's status.
    async fn claims_in_tree(&self, in_tree: &[String]) -> Claims {
        let read = self.list::<PersistentVolume>("/api/v1/persistentvolumes", "");
        let read = Known::of(read.await, || "list persistentvolumes".to_owned());
        let claim = |name: &String| {
            read.as_ref().map(|volumes| {
                let specs = volumes.iter().filter_map(|volume| volume.spec.as_ref());
                let is_it = |spec: &&PersistentVolumeSpec| {
                    matches!(Source::of_volume(spec), Source::InTree(_, own) if own == *name)
                };
                let claim = { specs }.find(is_it)?.claim_ref.clone()?;
                claim.namespace.zip(claim.name)
            })
        };
        let named = in_tree.iter();
        named.map(|name| (name.clone(), claim(name))).collect()
    }

    /// The volume's name, and the namespace and name of its claim.
    async fn claim_of(&self, volume: &str) -> (String, Known<Option<(String, String)>>) {
        let path = format!("/api/v1/persistentvolumes/{}", escape(volume));
        let read = self.get::<PersistentVolume>(&path).await;
        let read = Known::of(read, || "get persistentvolumes".to_owned());
        let claim = read.map(|volume| {
            let claim = volume?.spec?.claim_ref?;
            claim.namespace.zip(claim.name)
        });
        (volume.to_owned(), claim)
    }
}
