//! What is stranded on nodes that are not well: pods that neither run for sure nor make room for others,
//! volumes that stay attached, and namespaces that can't go for them.

pub mod attachment;
pub mod fate;
pub mod pod;

use std::collections::BTreeMap;

use maintenance_lease::protocol::Instant;

pub use self::attachment::{Attachment, Orphan, orphan};
pub use self::fate::{Fate, fate};
pub use self::pod::Pod;
use crate::known::Known;
use crate::node::Health;
use crate::taint::NoExecute;

/// A node that is not well, as far as its pods are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// How it is.
    pub health: Health,
    /// Its taints that evict pods.
    pub taints: Vec<NoExecute>,
}

impl Place {
    /// The place of a Node that no longer exists.
    #[must_use]
    pub const fn gone() -> Self {
        Self {
            health: Health::Gone,
            taints: Vec::new(),
        }
    }
}

/// A pod on a node that is not well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrandedPod {
    /// The pod.
    pub pod: Pod,
    /// How its node is.
    pub health: Health,
    /// What becomes of it.
    pub fate: Fate,
}

/// A volume that stays attached to a node that is not well, for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrandedVolume {
    /// The attachment.
    pub attachment: Attachment,
    /// How its node is.
    pub health: Health,
    /// Why nobody needs it there.
    pub orphan: Orphan,
}

/// A namespace that is being deleted and can't go before stranded pods do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedNamespace {
    /// Its name.
    pub name: String,
    /// Since when it is being deleted.
    pub since: Instant,
    /// How many stranded pods are in it.
    pub pods: usize,
}

/// All that is stranded on some nodes.
#[derive(Clone, Debug)]
pub struct Stranded {
    /// The nodes that are not well, and those of which only pods or volumes are left.
    pub nodes: BTreeMap<String, Health>,
    /// By node, namespace and name.
    pub pods: Vec<StrandedPod>,
    /// By node and name.
    pub volumes: Known<Vec<StrandedVolume>>,
    /// By name.
    pub namespaces: Known<Vec<BlockedNamespace>>,
}

impl Stranded {
    /// Neither `node` nor anything on it is there.
    #[must_use]
    pub fn is_of_nothing(&self, node: &str) -> bool {
        self.nodes.get(node) == Some(&Health::Gone)
            && self.pods.is_empty()
            && self.volumes.yes().is_none_or(Vec::is_empty)
    }
}

/// The `namespaces` that are being deleted in which there are stranded `pods`.
#[must_use]
pub fn blocked(namespaces: Vec<(String, Instant)>, pods: &[StrandedPod]) -> Vec<BlockedNamespace> {
    let blocked = namespaces
        .into_iter()
        .map(|(name, since)| BlockedNamespace {
            pods: pods
                .iter()
                .filter(|pod| pod.pod.sight.namespace == name)
                .count(),
            name,
            since,
        });
    let mut blocked: Vec<_> = blocked.filter(|namespace| namespace.pods > 0).collect();
    blocked.sort_by(|a, b| a.name.cmp(&b.name));
    blocked
}
