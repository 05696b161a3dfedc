//! What locks have left on the Machines of Nodes.

use k8s_openapi::api::core::v1::Node;
use other_tools::{MachineRef, machine_of, standing_lock_id};
use pod_safety::cluster::Reader;

use crate::run::session::Session;
use crate::words::doctor::{Discovery, Source};

/// The Machines of this cluster's nodes with opt-outs of a lock that has ended or expired. Their records on the Nodes stay.
pub(super) async fn check(session: &Session<'_>, reader: &Reader, fix: bool) -> Discovery {
    let with_machine = |node: Node| {
        let machine = machine_of(&node)?;
        Some((node.metadata.name?, machine))
    };
    let nodes = match reader.select_nodes(with_machine).await {
        Ok(nodes) => nodes,
        Err(error) => return Discovery::unread(Source::Nodes, &error.into()),
    };
    let all: Vec<MachineRef> = nodes.iter().map(|(_, machine)| machine.clone()).collect();
    let opted_out = match session.machines_with_opt_outs(&all).await {
        Ok(opted_out) => opted_out,
        Err(error) => {
            return Discovery::Unread {
                what: Source::Machines,
                is_forbidden: false,
                error,
            };
        }
    };
    // After the Machines: opt-outs are set while their lock is there.
    let leases = match session.locks.list().await {
        Ok(leases) => leases,
        Err(error) => return Discovery::unread(Source::Leases, &error.into()),
    };
    let now = session.locks.server_time().now();
    let (mut count, mut stale, mut repaired) = (0, Vec::new(), Vec::new());
    for (of_node, record, lock_id) in &opted_out {
        let is_its = |(node, of): &&(String, MachineRef)| {
            (node, of.api.tool, &of.namespace, &of.name)
                == (of_node, &*record.tool, &record.namespace, &record.name)
        };
        // The management cluster may have Machines of other clusters.
        let Some((node, _)) = nodes.iter().find(is_its) else {
            continue;
        };
        count += 1;
        if standing_lock_id(leases.get(node), now).as_ref() == Some(lock_id) {
            continue;
        }
        let name = format!("{}/{} of node/{node}", record.namespace, record.name);
        let shown = || session.standing_lock_id(node);
        if fix
            && session
                .remove_machine_opt_outs(node, record, lock_id, shown)
                .await
        {
            repaired.push(name);
        } else {
            stale.push(name);
        }
    }
    match (stale.is_empty(), repaired.is_empty()) {
        (true, true) => Discovery::Machines(count),
        (true, false) => Discovery::MachinesRepaired(repaired),
        (false, _) => Discovery::StaleMachines(stale),
    }
}
