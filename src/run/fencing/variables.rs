//! The environment of a hook: the lock, as for a command of `with`, and what is needed to reach the node's
//! machine.

use k8s_openapi::api::core::v1::{Node, NodeAddress};
use maintenance_lease::NodeLease;
use supervisor::Command;

use super::target::Observed;
use crate::run::variables::{Variables, set};

/// All addresses of the node, as `TYPE=ADDRESS`, separated by spaces.
const ADDRESSES: &str = "MAINT_NODE_ADDRESSES";
/// The variables for the first address of each type.
const OF_TYPE: [(&str, &str); 3] = [
    ("InternalIP", "MAINT_NODE_INTERNAL_IP"),
    ("ExternalIP", "MAINT_NODE_EXTERNAL_IP"),
    ("Hostname", "MAINT_NODE_HOSTNAME"),
];
/// The cloud provider's id of the machine.
const PROVIDER_ID: &str = "MAINT_NODE_PROVIDER_ID";

/// Sets the variables, and removes inherited ones. `fencing` is the number of an acquisition by this
/// command.
pub(super) fn set_all(command: Command, observed: &Observed, fencing: Option<u64>) -> Command {
    let node = &observed.evidence.node;
    let lease = observed.lease.as_ref();
    let name = node.metadata.name.clone().unwrap_or_default();
    let lock_id = lease.and_then(NodeLease::lock_id);
    let variables = Variables {
        nodes: name.clone(),
        holder: lease.and_then(|lease| lease.holder().map(ToOwned::to_owned)),
        lock_id: lock_id.map(|id| id.to_string()),
        node: Some(name),
        lease_uid: lease.map(|lease| lease.uid().to_owned()),
        fencing,
        transitions: lease.map(NodeLease::transitions),
    };
    let all: Vec<String> = addresses(node)
        .iter()
        .map(|address| format!("{}={}", address.type_, address.address))
        .collect();
    let first = OF_TYPE.map(|(kind, name)| {
        let mut addresses = addresses(node).iter();
        let first = addresses.find(|address| address.type_ == kind);
        (name, first.map(|address| address.address.clone()))
    });
    let provider = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    let outside = [
        (ADDRESSES, (!all.is_empty()).then(|| all.join(" "))),
        (PROVIDER_ID, provider),
    ];
    let command = variables.set_all(command);
    outside.into_iter().chain(first).fold(command, set)
}

fn addresses(node: &Node) -> &[NodeAddress] {
    let status = node.status.as_ref();
    status
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default()
}
