//! One who runs a command beside its locks, as `kubectl maint with` does: it begins when no lock is in
//! doubt, stands still while one is, and is ended in time.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select_all;
use maintenance_lease::env::Env as _;
use maintenance_lease::protocol::BootInstant;
use maintenance_lease::{HeldLease, HeldState, LostBy};

use super::agent::{Agent, Belief, acquisition};
use super::waiter;
use crate::history::{BeliefEnd, Event};

pub(super) async fn live(agent: &mut Agent) {
    loop {
        agent.idle(50..3_000).await;
        let node = agent.some_node();
        let seconds = agent.rng.u32(3..=agent.longest);
        let Some(change) = waiter::wait(agent, &node, seconds).await else {
            continue;
        };
        let grace = Duration::from_millis(agent.rng.u64(50..1_000));
        let Ok(held) = agent.keep(&change, grace).await else {
            // The webhook left too little time; it expires.
            continue;
        };
        let millis = agent.rng.u64(100..25_000);
        let is_done = run(agent, std::slice::from_ref(&held), grace, millis).await;
        if let Some(acquisition) = acquisition(&held.held_state().lease).filter(|_| is_done) {
            waiter::release_held(agent, &node, held, acquisition).await;
        }
    }
}

/// Runs a command for so long, and ends it within `grace` where a lock is lost. Returns whether none
/// was.
pub(super) async fn run(
    agent: &mut Agent,
    held: &[HeldLease],
    grace: Duration,
    millis: u64,
) -> bool {
    let mut locks = Locks {
        held,
        held_states: held.iter().map(HeldLease::held_state).collect(),
    };
    while locks.is_checking() && !locks.is_lost() {
        locks.changed().await;
    }
    let mut command: Option<Vec<Belief>> = None;
    let mut left = millis;
    let ended_by = loop {
        let now = agent.machine.boot();
        if locks.is_lost() || now >= locks.stop_at() {
            break Some(now);
        }
        match (locks.is_checking(), &command) {
            (true, _) => stand_still(command.take()),
            (false, None) => command = Some(go_on(agent, &locks)),
            (false, Some(command)) => command.iter().for_each(Belief::acts),
        }
        if left == 0 {
            break None;
        }
        let step = agent.rng.u64(50..1_500).min(left);
        let until_stop = locks.stop_at().since(now).to_duration();
        let length = Duration::from_millis(step).min(until_stop);
        tokio::select! {
            biased;
            () = locks.changed() => {}
            () = agent.machine.sleep(length) => {
                if !locks.is_checking() {
                    left -= step;
                }
            }
        }
    };
    if let Some(stopped_at) = ended_by {
        // It takes a while to end, and is killed when its time is over, or in doubt.
        let gone = stopped_at.plus(grace.mul_f32(agent.rng.f32()).into());
        let mut killed = stopped_at.plus(grace.into());
        let acts = loop {
            killed = killed.min(locks.stop_at().plus(grace.into()));
            let now = agent.machine.boot();
            if locks.is_checking() || now >= killed {
                break false;
            }
            if now >= gone {
                break true;
            }
            tokio::select! {
                biased;
                () = locks.changed() => {}
                () = agent.machine.sleep(gone.min(killed).since(now).to_duration()) => {}
            }
        };
        if acts {
            command.iter().flatten().for_each(Belief::acts);
        }
        locks.tell_losses(agent);
    }
    for belief in command.into_iter().flatten() {
        belief.ends("the command has ended");
    }
    ended_by.is_none()
}

fn stand_still(command: Option<Vec<Belief>>) {
    for belief in command.into_iter().flatten() {
        belief.ends("stands still");
    }
}

/// The command begins, or goes on.
fn go_on(agent: &Agent, locks: &Locks<'_>) -> Vec<Belief> {
    let held_states = locks.held.iter().zip(&locks.held_states);
    held_states
        .filter_map(|(held, held_state)| {
            let acquisition = acquisition(&held_state.lease)?;
            let belief = agent.recorder.next_belief();
            agent.recorder.record(Event::Believes {
                belief,
                client: agent.client,
                node: held.node().into(),
                acquisition,
                ends: BeliefEnd::Notification,
            });
            Some(Belief {
                id: belief,
                recorder: agent.recorder.clone(),
            })
        })
        .collect()
}

/// The locks that a command runs under, and how they stand.
struct Locks<'a> {
    held: &'a [HeldLease],
    held_states: Vec<HeldState>,
}

impl Locks<'_> {
    fn is_checking(&self) -> bool {
        self.held_states
            .iter()
            .any(|held_state| held_state.checking)
    }

    fn is_lost(&self) -> bool {
        self.held_states
            .iter()
            .any(|held_state| held_state.lost.is_some())
    }

    /// When the command is asked to end.
    fn stop_at(&self) -> BootInstant {
        let stops = self.held_states.iter().map(|held_state| held_state.stop_at);
        stops.min().unwrap_or(BootInstant::from_micros(i64::MAX))
    }

    /// Waits until the state of one of them changes.
    async fn changed(&mut self) {
        let changes = self.held.iter().zip(&self.held_states);
        let changes = changes.map(|(held, known)| held.changed(known).boxed());
        let (held_state, index, _) = select_all(changes).await;
        self.held_states[index] = held_state;
    }

    fn tell_losses(&self, agent: &Agent) {
        for (held, held_state) in self.held.iter().zip(&self.held_states) {
            let (Some(lost), Some(acquisition)) =
                (&held_state.lost, acquisition(&held_state.lease))
            else {
                continue;
            };
            agent.recorder.record(Event::Lost {
                client: agent.client,
                node: held.node().into(),
                acquisition,
                by_time: lost.by == LostBy::Expiry,
                how: lost.to_string(),
            });
        }
    }
}
