//! One who waits for several nodes at once, keeps those that it has meanwhile, and works when it has
//! all of them.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use maintenance_lease::{Acquire, Change, HeldLease, SetError, SetOptions};

use super::agent::{Agent, acquisition, failure};
use super::{runner, waiter};
use crate::history::{Call, CallOutcome, Event};

/// How long the command takes to end.
const GRACE: Duration = Duration::from_millis(300);

pub(super) async fn live(agent: &mut Agent) {
    loop {
        agent.idle(50..3_000).await;
        let nodes = some_nodes(agent);
        let seconds = agent.rng.u32(3..=agent.longest);
        let time_limit = Duration::from_millis(match agent.rng.u8(..3) {
            0 => agent.rng.u64(100..20_000),
            _ => 60_000,
        });
        let held = acquire_all(agent, &nodes, seconds, time_limit).await;
        let millis = agent.rng.u64(100..10_000);
        if !held.is_empty() && runner::run(agent, &held, GRACE, millis).await {
            release_acquired(agent, held).await;
        }
    }
}

/// Acquires some nodes and releases them. Returns whether it got them.
pub(super) async fn once(agent: &mut Agent) -> bool {
    let nodes = some_nodes(agent);
    let held = acquire_all(agent, &nodes, 3, Duration::from_secs(3_600)).await;
    let got_in = !held.is_empty();
    release_acquired(agent, held).await;
    got_in
}

async fn release_acquired(agent: &Agent, all: Vec<HeldLease>) {
    for held in all {
        let node: Arc<str> = held.node().into();
        if let Some(acquisition) = acquisition(&held.held_state().lease) {
            waiter::release_held(agent, &node, held, acquisition).await;
        }
    }
}

/// At least two, in the order of their names.
fn some_nodes(agent: &mut Agent) -> Vec<Arc<str>> {
    let mut nodes = agent.nodes.clone();
    let keep = agent.rng.usize(2..=nodes.len());
    while nodes.len() > keep {
        nodes.remove(agent.rng.usize(..nodes.len()));
    }
    nodes
}

/// Locks all of `nodes`, or none.
async fn acquire_all(
    agent: &mut Agent,
    nodes: &[Arc<str>],
    seconds: u32,
    time_limit: Duration,
) -> Vec<HeldLease> {
    let op = agent.called(&nodes[0], Call::AcquireAll(nodes.to_vec(), seconds));
    let options = Acquire::new().duration(Duration::from_secs(seconds.into()));
    let options = SetOptions::acquire(options).wait(Some(time_limit));
    // People name them in any order.
    let mut names: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    agent.rng.shuffle(&mut names);
    let outcome = agent
        .maintenance
        .lock_all(names, &options, pending(), |_| ())
        .await;
    agent.machine.set_op(None);
    let acquired = |(node, change): (&String, &Change)| {
        let acquisition = acquisition(change.lease.as_ref()?)?;
        Some((Arc::from(node.as_str()), acquisition))
    };
    let ending = match outcome
        .failed
        .values()
        .max_by_key(|error| is_unclear(error))
    {
        None => CallOutcome::AcquiredAll(outcome.held.iter().filter_map(acquired).collect()),
        Some(error) if is_unclear(error) => CallOutcome::Unknown(error.to_string()),
        Some(error) => CallOutcome::Refused(error.to_string()),
    };
    agent.recorder.record(Event::Returned { op, ending });
    agent.tell_time();
    let mut held = Vec::new();
    for change in outcome.held.values() {
        match agent.keep(change, GRACE).await {
            Ok(kept) => held.push(kept),
            Err(_) => {
                // The other locks are released by the agents that acquired them.
                let _ = agent.maintenance.release_acquired(change).await;
            }
        }
    }
    held
}

/// Whether something of the set may be held that is not known.
fn is_unclear(error: &SetError) -> bool {
    match error {
        SetError::Lock(error) => matches!(failure(error), CallOutcome::Unknown(_)),
        SetError::TimedOut(_) | SetError::TooSlow(_) => false,
        SetError::Interrupted { may_land } => *may_land,
        SetError::NotReleased { .. } => true,
    }
}
