//! The machine that a Node represents.

use k8s_openapi::api::core::v1::Node;

/// The machine that a Node represents. Another machine may register with the same name, or the same machine
/// may restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The Node's uid.
    pub uid: String,
    /// `status.nodeInfo.bootID`; empty if the kubelet never reported it.
    pub boot_id: String,
    /// `spec.providerID`, the machine's id at the cloud provider; empty if it is not set.
    pub provider_id: String,
}

impl Machine {
    /// The machine that `node` represents.
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

    /// Whether `other` is the same machine in the same boot, as far as the Node shows.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.uid == other.uid && self.boot_id == other.boot_id
    }
}
