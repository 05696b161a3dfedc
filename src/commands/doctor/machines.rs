//! What locks have left on the Machines of Nodes.

use k8s_openapi::api::core::v1::Node;
use other_tools::{
    KeysOnNode, LocksByNode, MachineRecord, MachineRef, OptedOutMachine, current_lock_id,
    machine_of,
};

use crate::error::ProtectionError;
use crate::run::session::Session;
use crate::words::doctor::finding::Finding;
use crate::words::machine::of_node;

/// A Node with a Machine.
pub(super) struct WithMachine {
    name: String,
    machine: MachineRef,
    /// The lock that set opt-outs on the Machine, and where.
    recorded: Option<(String, MachineRecord)>,
}

impl WithMachine {
    /// `node`, on which locks have set `keys`; `None`: it has no Machine.
    pub(super) fn new(node: &Node, keys: Option<&KeysOnNode>) -> Option<Self> {
        let lock_id = keys.and_then(|keys| keys.lock_id.clone());
        Some(Self {
            machine: machine_of(node)?,
            recorded: lock_id.zip(MachineRecord::on(node)),
            name: node.metadata.name.clone()?,
        })
    }
}

/// Reads the Machines of `nodes` with opt-outs of a lock.
///
/// # Errors
/// If they can't be read.
pub(super) async fn read(
    session: &Session<'_>,
    nodes: &[WithMachine],
) -> Result<Vec<OptedOutMachine>, ProtectionError> {
    let all = nodes.iter().map(|node| (&*node.name, &node.machine));
    let writer = session.protection();
    Ok(writer
        .machines_with_opt_outs(&all.collect::<Vec<_>>())
        .await?)
}

/// The Machines of these nodes that have opt-outs of a lock that has ended or expired, or lack those of a hold.
/// The records on the Nodes stay.
pub(super) async fn check(
    session: &Session<'_>,
    nodes: &[WithMachine],
    opted_out: &[OptedOutMachine],
    leases: &LocksByNode,
    fix: bool,
) -> Vec<Finding> {
    let now = session.locks.server_time().now();
    let (mut count, mut stale, mut repaired) = (0, Vec::new(), Vec::new());
    for OptedOutMachine {
        node,
        record,
        lock_id,
    } in opted_out
    {
        count += 1;
        if current_lock_id(leases.get(node), now).as_ref() == Some(lock_id) {
            continue;
        }
        let name = of_node(record, node);
        if fix && session.remove_machine_opt_outs(node, record, lock_id).await {
            repaired.push(name);
        } else {
            stale.push(name);
        }
    }
    let server = session.management.given_server();
    let is_missing = |node: &&WithMachine| {
        let lease = leases.get(&node.name).filter(|lease| lease.is_hold());
        let current = current_lock_id(lease, now);
        node.recorded.as_ref().is_some_and(|(lock_id, record)| {
            current.as_ref() == Some(lock_id)
                && server.as_ref() == Some(&record.server)
                && !opted_out
                    .iter()
                    .any(|it| (&it.node, &it.lock_id) == (&node.name, lock_id))
        })
    };
    let missing = nodes.iter().filter(is_missing);
    let missing: Vec<_> = missing
        .map(|node| (node.name.clone(), vec![node.machine.api.tool.to_owned()]))
        .collect();
    let mut found = vec![match (stale.is_empty(), repaired.is_empty()) {
        (true, true) => Finding::Machines(count),
        (true, false) => Finding::MachinesRepaired(repaired),
        (false, _) => Finding::StaleMachines(stale),
    }];
    if !missing.is_empty() {
        found.push(Finding::MissingOptOuts(missing));
    }
    found
}
