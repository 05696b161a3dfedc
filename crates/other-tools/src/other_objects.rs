//! What a lock set on other objects than its Node, by the records on the Node. Without the records, nobody would know where to
//! remove it. Pure.

use k8s_openapi::api::core::v1::Node;

use crate::machine_record::{MachineRecord, RECORD};

/// The annotation that records that a lock holds the medik8s Lease of the Node, or is about to.
pub(crate) const LEASE_RECORD: &str = "kubectl-maint.dev/held-medik8s-lease";

/// What a lock set on other objects than its Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherObjects {
    /// The Machine with opt-outs.
    pub machine: Option<Box<MachineRecord>>,
    /// The lock holds the medik8s Lease of the Node.
    pub medik8s_lease: bool,
}

impl OtherObjects {
    /// By the records on `node`.
    #[must_use]
    pub fn on(node: &Node) -> Self {
        let annotations = node.metadata.annotations.as_ref();
        Self {
            machine: MachineRecord::on(node).map(Box::new),
            medik8s_lease: annotations.is_some_and(|all| all.contains_key(LEASE_RECORD)),
        }
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This, and what `other` has and this does not.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            machine: self.machine.or(other.machine),
            medik8s_lease: self.medik8s_lease || other.medik8s_lease,
        }
    }

    /// This, without what is `left`.
    #[must_use]
    pub(crate) fn without(self, left: &Self) -> Self {
        Self {
            machine: self.machine.filter(|_| left.machine.is_none()),
            medik8s_lease: self.medik8s_lease && !left.medik8s_lease,
        }
    }

    /// The annotations that record it.
    pub(crate) fn records(&self) -> impl Iterator<Item = (String, String)> {
        let machine = self.machine.as_ref();
        let machine = machine.map(|record| (RECORD.to_owned(), record.value()));
        let lease = self
            .medik8s_lease
            .then(|| (LEASE_RECORD.to_owned(), "true".to_owned()));
        machine.into_iter().chain(lease)
    }

    /// Whether `key` is the annotation that records a part of it.
    pub(crate) fn is_record(&self, key: &str) -> bool {
        match key {
            RECORD => self.machine.is_some(),
            LEASE_RECORD => self.medik8s_lease,
            _ => false,
        }
    }
}
