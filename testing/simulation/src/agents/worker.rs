//! A client that acquires a free node, works, renews, and releases the lock or forgets to.

use std::sync::Arc;
use std::time::Duration;

use maintenance_lease::protocol::{Instant, Refusal};
use maintenance_lease::{Acquire, Change, Error, NodeLease, Release, Renew};

use super::agent::{Agent, Belief, acquisition, is_lost};
use crate::history::{Acquisition, Call};

pub(super) async fn live(agent: &mut Agent) {
    loop {
        agent.idle(100..3_000).await;
        let node = agent.some_node();
        let seconds = agent.rng.u32(2..=agent.longest);
        let options = Acquire::new().duration(Duration::from_secs(seconds.into()));
        let work = agent.maintenance.try_acquire(&*node, &options);
        match agent.call(&node, Call::Acquire(seconds), work).await {
            Ok(change) => hold(agent, &node, &change, seconds).await,
            Err(Error::Refused(refused))
                if refused.refusal == Refusal::HeldByCaller && agent.rng.bool() =>
            {
                // Somebody else on the account needs it for longer, and does not work under it.
                let end = refused.lease.as_ref().and_then(NodeLease::end);
                let _ = extend(agent, &node, end, Renew::new(), None).await;
            }
            // A trap that cleans up whatever may have been taken.
            Err(Error::Unknown { .. }) if !agent.shares_account && agent.rng.bool() => {
                release(agent, &node, Release::new(), None).await;
            }
            Err(_) => {}
        }
    }
}

/// Works under an acquisition for a while.
async fn hold(agent: &mut Agent, node: &Arc<str>, acquired: &Change, seconds: u32) {
    let mut beliefs: Vec<Belief> = agent.believe(acquired).into_iter().collect();
    let Some(lock_id) = acquired.lock_id() else {
        return;
    };
    let meant = acquired.lease.as_ref().and_then(acquisition);
    let mut end = acquired.until();
    let third = u64::from(seconds) * 1000 / 3;
    for _ in 0..agent.rng.u8(..4) {
        agent.idle(third / 2..third + 500).await;
        let options = Renew::new().lock_id(lock_id.clone());
        let extended = match agent.rng.bool() {
            true => extend(agent, node, end, options.clone(), meant.clone()).await,
            false => None,
        };
        let renewed = match extended {
            Some(extended) => extended,
            None => {
                let work = agent.maintenance.renew(&**node, &options);
                agent.call(node, Call::Renew(meant.clone()), work).await
            }
        };
        match renewed {
            Ok(change) => {
                end = change.until();
                beliefs.extend(agent.believe(&change));
            }
            Err(error) if is_lost(&error) => {
                for belief in beliefs {
                    belief.ends("learnt that it is lost");
                }
                return;
            }
            Err(_) => {}
        }
    }
    agent.idle(100..2_000).await;
    // Sometimes the client forgets it, and it expires.
    if agent.rng.u8(..5) == 0 {
        return;
    }
    for belief in beliefs {
        belief.ends("gives it back");
    }
    release(agent, node, Release::new().lock_id(lock_id), meant).await;
}

/// Adds time to what is left until `end`, and never so much that others wait for long. `None`: there is no room.
async fn extend(
    agent: &mut Agent,
    node: &Arc<str>,
    end: Option<Instant>,
    options: Renew,
    meant: Option<Acquisition>,
) -> Option<Result<Change, Error>> {
    let now = agent.maintenance.server_time().now().earliest;
    let left = u32::try_from((end? - now).ceil_seconds()).unwrap_or(0);
    let room = agent.longest.checked_sub(left).filter(|room| *room > 0)?;
    let seconds = agent.rng.u32(1..=room);
    let options = options.added(Duration::from_secs(seconds.into()));
    let work = agent.maintenance.renew(&**node, &options);
    Some(agent.call(node, Call::Extend(seconds, meant), work).await)
}

pub(super) async fn release(
    agent: &Agent,
    node: &Arc<str>,
    options: Release,
    meant: Option<Acquisition>,
) {
    let work = agent.maintenance.release(&**node, &options);
    // Whatever comes of it: nothing is believed any more.
    let _ = agent.call(node, Call::Release(meant), work).await;
}
