//! An administrator: looks, makes up their mind slowly, then holds, takes over, or breaks a lock.

use std::sync::Arc;
use std::time::Duration;

use maintenance_lease::{Hold, NodeLease, Release};

use super::agent::{Agent, acquisition};
use super::waiter;
use crate::history::{Call, Event};

pub(super) async fn live(agent: &mut Agent) {
    loop {
        // Some look often, and make up their mind at once.
        let is_quick = agent.rng.bool();
        agent
            .idle(if is_quick { 100..2_000 } else { 2_000..12_000 })
            .await;
        let node = agent.some_node();
        if agent.rng.u8(..3) == 0 {
            list(agent).await;
        }
        let Ok(seen) = agent.maintenance.get(&node).await else {
            continue;
        };
        // It takes a while to read what the prompt says.
        agent.idle(if is_quick { 1..100 } else { 50..4_000 }).await;
        match seen.filter(|lease| lease.holder().is_some()) {
            Some(lease) => meet(agent, &node, &lease).await,
            None => hold(agent, &node, None).await,
        }
    }
}

/// Looks at all Leases.
async fn list(agent: &Agent) {
    let since = agent.recorder.now();
    if let Ok(leases) = agent.maintenance.list().await {
        let mut nodes: Vec<Arc<str>> = leases.into_keys().map(Into::into).collect();
        nodes.sort_unstable();
        agent.recorder.record(Event::Listed {
            client: agent.client,
            since,
            nodes,
        });
    }
}

/// Ends or takes over an existing lease or hold.
async fn meet(agent: &mut Agent, node: &Arc<str>, lease: &NodeLease) {
    let Some(confirmed) = acquisition(lease) else {
        return;
    };
    if confirmed.is_hold() {
        let work = agent.maintenance.unhold(&**node, Some(lease));
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
    let options = Hold::new("a disk").take_over(confirmed.cloned());
    let work = agent.maintenance.hold(&**node, &options);
    let call = Call::Hold(confirmed.and_then(acquisition));
    let Ok(change) = agent.call(node, call, work).await else {
        return;
    };
    if agent.rng.u8(..4) > 0 {
        let stop = Duration::from_millis(agent.rng.u64(50..1_000));
        if let Ok(held) = agent.keep(&change, stop).await {
            let millis = agent.rng.u64(500..15_000);
            waiter::guard(agent, node, held, millis).await;
            return;
        }
    }
    let belief = agent.believe(&change);
    agent.idle(500..6_000).await;
    if let Some(belief) = belief {
        belief.ends("lets go");
    }
    let work = agent.maintenance.unhold(&**node, None);
    // Whatever comes of it: nothing is believed any more.
    let _ = agent.call(node, Call::Unhold(None), work).await;
}
