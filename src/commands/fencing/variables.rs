//! What a hook is told: the lock, as a command of `with` is, and what it takes to reach the node from
//! outside.

use k8s_openapi::api::core::v1::{Node, NodeAddress};
use maintenance_lease::NodeLease;
use supervisor::Command;

use super::Look;
use crate::commands::with::variables::{
    FENCING_TOKEN, HOLDER, LEASE_UID, NODE, NODES, TOKEN, TRANSITIONS,
};

/// All addresses of the node, as `TYPE=ADDRESS`, separated by spaces.
const ADDRESSES: &str = "MAINT_NODE_ADDRESSES";
/// The first address of a type:
const OF_TYPE: [(&str, &str); 3] = [
    ("InternalIP", "MAINT_NODE_INTERNAL_IP"),
    ("ExternalIP", "MAINT_NODE_EXTERNAL_IP"),
    ("Hostname", "MAINT_NODE_HOSTNAME"),
];
/// What the cloud calls the machine.
const PROVIDER_ID: &str = "MAINT_NODE_PROVIDER_ID";

/// Sets the variables, and takes away what may have been inherited of them. `fencing` is the number of
/// an acquisition of this command's own.
pub(super) fn tell(command: Command, look: &Look, fencing: Option<u64>) -> Command {
    let set = |command: Command, name: &str, value: Option<String>| match value {
        Some(value) => command.env(name, value),
        None => command.env_remove(name),
    };
    let node = &look.evidence.node;
    let lease = look.lease.as_ref();
    let name = node.metadata.name.clone();
    let token = lease
        .and_then(NodeLease::token)
        .map(|token| token.to_string());
    let command = set(command, NODES, name.clone());
    let command = set(command, NODE, name);
    let command = set(
        command,
        HOLDER,
        lease.and_then(|lease| lease.holder().map(ToOwned::to_owned)),
    );
    let command = set(command, TOKEN, token);
    let command = set(
        command,
        LEASE_UID,
        lease.map(|lease| lease.uid().to_owned()),
    );
    let command = set(
        command,
        TRANSITIONS,
        lease.map(|lease| lease.transitions().to_string()),
    );
    let command = set(
        command,
        FENCING_TOKEN,
        fencing.map(|number| number.to_string()),
    );
    let all = addresses(node)
        .iter()
        .map(|address| format!("{}={}", address.type_, address.address))
        .collect::<Vec<_>>();
    let command = set(command, ADDRESSES, (!all.is_empty()).then(|| all.join(" ")));
    let command = OF_TYPE.iter().fold(command, |command, (kind, name)| {
        let first = addresses(node)
            .iter()
            .find(|address| address.type_ == *kind);
        set(command, name, first.map(|address| address.address.clone()))
    });
    let provider = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    set(command, PROVIDER_ID, provider)
}

fn addresses(node: &Node) -> &[NodeAddress] {
    let status = node.status.as_ref();
    status
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default()
}
