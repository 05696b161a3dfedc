//! A machine, as its Node tells of it.

use k8s_openapi::api::core::v1::Node;

/// A machine as its Node tells of it. Behind the same name another may come up, or the same one again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The Node's uid.
    pub uid: String,
    /// `status.nodeInfo.bootID`; empty where its kubelet never said.
    pub boot_id: String,
    /// `spec.providerID`, what the cloud calls it; empty if nobody says.
    pub provider_id: String,
}

impl Machine {
    /// The one behind `node`.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        let info = node.status.as_ref().and_then(|it| it.node_info.as_ref());
        let provider_id = node.spec.as_ref().and_then(|it| it.provider_id.clone());
        Self {
            uid: node.metadata.uid.clone().unwrap_or_default(),
            boot_id: info.map(|info| info.boot_id.clone()).unwrap_or_default(),
            provider_id: provider_id.unwrap_or_default(),
        }
    }

    /// Whether `other` is the same one and was not started since, for all that the Node tells.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.uid == other.uid && self.boot_id == other.boot_id
    }
}
