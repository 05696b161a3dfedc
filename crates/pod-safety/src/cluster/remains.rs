//! What is left of a node that was fenced.

use futures::future::{join, join_all};
use k8s_openapi::api::core::v1::PersistentVolume;
use maintenance_lease::{ApiError, escape};

use super::Reader;
use crate::fencing::Remains;
use crate::known::Known;
use crate::taint::OutOfService;

impl Reader {
    /// What is left of a node that has this out-of-service `taint`.
    ///
    /// # Errors
    /// If pods or volume attachments can't be listed. Volumes that can't be read are reported as ones
    /// that may stay.
    pub async fn remains(&self, node: &str, taint: &OutOfService) -> Result<Remains, ApiError> {
        let on_node = format!("fieldSelector=spec.nodeName%3D{}", escape(node));
        let (pods, attachments) = join(
            self.list("/api/v1/pods", &on_node),
            self.list("/apis/storage.k8s.io/v1/volumeattachments", ""),
        )
        .await;
        let (pods, attachments) = (pods?, attachments?);
        let open = Remains::open(node, taint, &pods, &attachments);
        let claims = join_all(open.into_iter().map(|volume| self.claim_of(volume))).await;
        let claims = claims.into_iter().collect();
        Ok(Remains::of(node, taint, &pods, &attachments, &claims))
    }

    /// The volume's name, and the claim that it is of.
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
