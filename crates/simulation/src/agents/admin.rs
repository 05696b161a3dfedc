//! An administrator: looks, makes up their mind slowly, then holds, takes over, or breaks a lock.

use std::sync::Arc;

use maintenance_lease::{Hold, NodeLease, Release};

use super::{Agent, acquisition};
use crate::history::Call;

pub(super) async fn live(agent: &mut Agent) {
    loop {
        agent.idle(2_000..12_000).await;
        let node = agent.some_node();
        let Ok(seen) = agent.maintenance.get(&node).await else {
            continue;
        };
        // It takes a while to read what the prompt says.
        agent.idle(50..4_000).await;
        match seen.filter(|lease| lease.holder().is_some()) {
            Some(lease) => meet(agent, &node, &lease).await,
            None => hold(agent, &node, None).await,
        }
    }
}

/// Does something about a lease, or a hold, that stands there.
async fn meet(agent: &mut Agent, node: &Arc<str>, lease: &NodeLease) {
    let Some(confirmed) = acquisition(lease) else {
        return;
    };
    if confirmed.is_hold() {
        let work = agent.maintenance.unhold_seen(node, Some(lease), None);
        // It is tried once; there is always another day.
        let _ = agent.call(node, Call::Unhold(Some(confirmed)), work).await;
        return;
    }
    match agent.rng.u8(..4) {
        0 => {
            let options = Release::new().reason("on a plane");
            let work = agent.maintenance.force_release(lease, &options);
            let _ = agent.call(node, Call::ForceRelease(confirmed), work).await;
        }
        1 => hold(agent, node, Some(lease)).await,
        _ => hold(agent, node, None).await,
    }
}

/// Holds for a while.
async fn hold(agent: &mut Agent, node: &Arc<str>, confirmed: Option<&NodeLease>) {
    let options = Hold::new("a disk");
    let work = agent.maintenance.hold_seen(node, &options, confirmed, None);
    let call = Call::Hold(confirmed.and_then(acquisition));
    let Ok(change) = agent.call(node, call, work).await else {
        return;
    };
    let belief = agent.believe(&change);
    agent.idle(500..6_000).await;
    if let Some(belief) = belief {
        belief.ends("lets go");
    }
    let work = agent.maintenance.unhold(node);
    // Whatever comes of it: nothing is believed any more.
    let _ = agent.call(node, Call::Unhold(None), work).await;
}
