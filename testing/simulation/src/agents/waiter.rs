//! A client that waits until the node is free, works under a kept lease, and releases it when done. As a
//! leader, it works for as long as the lease lasts.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use maintenance_lease::env::Env as _;
use maintenance_lease::{Change, Guarded, HeldLease, LostBy, Release};

use super::agent::{Agent, acquisition, ending, failure};
use crate::history::{
    Acquisition, BeliefEnd, BeliefId, Call, CallOutcome, ClientId, Event, Recorder,
};

pub(super) async fn live(agent: &mut Agent, leads: bool) {
    loop {
        agent.idle(50..3_000).await;
        let node = agent.some_node();
        // No time to renew would be left in less.
        let seconds = agent.rng.u32(3..=agent.longest);
        if let Some(change) = wait(agent, &node, seconds).await {
            work(agent, &node, &change, leads).await;
        }
    }
}

/// Waits until it is acquired, or until patience is over.
pub(super) async fn wait(agent: &mut Agent, node: &Arc<str>, seconds: u32) -> Option<Change> {
    let time_limit = match agent.rng.u8(..4) {
        0 => agent.rng.u64(100..20_000),
        _ => 3_600_000,
    };
    let op = agent.called(node, agent.waiting(seconds));
    let waited = tokio::select! {
        biased;
        result = agent.wait_for(node, seconds) => Some(result),
        () = agent.machine.sleep(Duration::from_millis(time_limit)) => None,
    };
    agent.machine.set_op(None);
    match waited {
        Some(result) => {
            agent.returned(op, &result);
            result.ok()
        }
        None => {
            let ending = match agent.maintenance.has_open_write(node) {
                true => CallOutcome::Unknown("gave up with a write under way".to_owned()),
                false => CallOutcome::Refused("gave up".to_owned()),
            };
            agent.recorder.record(Event::Returned { op, ending });
            if agent.maintenance.has_open_write(node) && !agent.shares_account {
                super::worker::release(agent, node, Release::new(), None).await;
            }
            None
        }
    }
}

/// Works under what was acquired.
async fn work(agent: &mut Agent, node: &Arc<str>, acquired: &Change, leads: bool) {
    let stop = Duration::from_millis(agent.rng.u64(50..1_000));
    let millis = if leads {
        3_600_000
    } else {
        agent.rng.u64(100..25_000)
    };
    // Otherwise the webhook left too little time; it expires.
    if let Ok(held) = agent.keep(acquired, stop).await {
        guard(agent, node, held, millis).await;
    }
}

/// Works for so long, or for as long as it is held.
pub(super) async fn guard(agent: &mut Agent, node: &Arc<str>, held: HeldLease, millis: u64) {
    let Some(acquisition) = acquisition(&held.held_state().lease) else {
        return;
    };
    let work = GuardedWork {
        client: agent.client,
        node: node.clone(),
        acquisition: acquisition.clone(),
        recorder: agent.recorder.clone(),
        belief: None,
        steps: Box::pin(steps(agent.machine.clone(), agent.rng.fork(), millis)),
    };
    match held.guard(work).await {
        Guarded::Completed(()) if agent.rng.u8(..8) > 0 => {
            release_held(agent, node, held, acquisition).await;
        }
        Guarded::Completed(()) => held.leave(),
        Guarded::Failed(never) => match never {},
        Guarded::Lost(lost) => agent.recorder.record(Event::Lost {
            client: agent.client,
            node: node.clone(),
            acquisition,
            by_time: lost.by == LostBy::Expiry,
            how: lost.to_string(),
        }),
    }
}

pub(super) async fn release_held(
    agent: &Agent,
    node: &Arc<str>,
    held: HeldLease,
    acquisition: Acquisition,
) {
    let op = agent.called(node, Call::Release(Some(acquisition)));
    let result = held.release().await;
    agent.machine.set_op(None);
    let ending = match result {
        Ok(Some(change)) => ending(&change),
        Ok(None) => CallOutcome::Nothing,
        Err(error) => failure(&error),
    };
    agent.recorder.record(Event::Returned { op, ending });
}

/// Something to do now and then, for so many milliseconds.
async fn steps(machine: crate::machine::Machine, mut rng: fastrand::Rng, millis: u64) {
    let mut left = millis;
    while left > 0 {
        let step = rng.u64(50..1_500).min(left);
        machine.sleep(Duration::from_millis(step)).await;
        left -= step;
    }
}

/// Work that records every continuation, and when it is done or dropped.
struct GuardedWork {
    client: ClientId,
    node: Arc<str>,
    acquisition: Acquisition,
    recorder: Recorder,
    /// What it goes on, since it began.
    belief: Option<BeliefId>,
    steps: BoxFuture<'static, ()>,
}

impl Future for GuardedWork {
    type Output = Result<(), std::convert::Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.belief {
            Some(belief) => self.recorder.record(Event::Acts { belief }),
            None => {
                let belief = self.recorder.next_belief();
                self.recorder.record(Event::Believes {
                    belief,
                    client: self.client,
                    node: self.node.clone(),
                    acquisition: self.acquisition.clone(),
                    ends: BeliefEnd::Guard,
                });
                self.belief = Some(belief);
            }
        }
        let poll = self.steps.as_mut().poll(context).map(Ok);
        if poll.is_ready() {
            self.ends("done");
        }
        poll
    }
}

impl GuardedWork {
    fn ends(&mut self, why: &'static str) {
        if let Some(belief) = self.belief.take() {
            self.recorder.record(Event::Ceases { belief, why });
        }
    }
}

impl Drop for GuardedWork {
    fn drop(&mut self) {
        self.ends("dropped");
    }
}
