//! One who locks several nodes at once, sometimes nodes that it has locked before, and works when it has
//! them.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{Either, select};
use maintenance_lease::env::Env as _;
use maintenance_lease::{
    Acquire, Change, HeldLease, Hold, NodeLease, Release, SetError, SetOptions, SetOutcome, Target,
};

use super::agent::{Agent, acquisition, failure};
use super::earlier_locks::{GRACE, end_holds, lock_before, release_earlier, some_reason};
use super::{runner, waiter, worker};
use crate::history::{Call, CallOutcome, Event, LockSet, OnConflict};

/// How long to wait for releases after a call was dropped: they are tried for two seconds.
const RELEASES: std::ops::Range<u64> = 2_100..4_000;

/// How a call may end early, and when.
#[derive(Clone, Copy)]
enum Stop {
    Never,
    Interrupt(Duration),
    /// Its future is dropped.
    Drop(Duration),
}

pub(super) async fn live(agent: &mut Agent) {
    loop {
        agent.idle(50..3_000).await;
        end_holds(agent).await;
        let set = some_set(agent);
        let earlier = lock_before(agent, &set).await;
        let time_limit = Duration::from_millis(match agent.rng.u8(..3) {
            0 => agent.rng.u64(100..20_000),
            _ => 60_000,
        });
        let stop = some_stop(agent);
        let held = lock_all(agent, set, time_limit, stop).await;
        let millis = agent.rng.u64(100..10_000);
        if !held.is_empty() && runner::run(agent, &held, GRACE, millis).await {
            release_acquired(agent, held).await;
        } else {
            drop(held);
        }
        release_earlier(agent, earlier).await;
    }
}

/// Acquires some nodes and releases them. Returns whether it got them.
pub(super) async fn once(agent: &mut Agent) -> bool {
    let set = LockSet {
        nodes: some_nodes(agent),
        seconds: Some(3),
        manner: OnConflict::Waiting,
        reentry: false,
        confirmed: Vec::new(),
        reason: some_reason(agent),
    };
    let held = lock_all(agent, set, Duration::from_secs(3_600), Stop::Never).await;
    let got_in = !held.is_empty();
    release_acquired(agent, held).await;
    got_in
}

/// Releases the locks that the set acquired. Those from before are left as they are.
async fn release_acquired(agent: &Agent, all: Vec<HeldLease>) {
    for held in all.into_iter().filter(|held| !held.was_found()) {
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

fn some_set(agent: &mut Agent) -> LockSet {
    let nodes = some_nodes(agent);
    let holds = agent.rng.u8(..6) == 0;
    LockSet {
        nodes,
        seconds: (!holds).then(|| agent.rng.u32(3..=agent.longest)),
        manner: match agent.rng.u8(..8) {
            0 => OnConflict::Partial,
            1 | 2 => OnConflict::AtOnce,
            _ => OnConflict::Waiting,
        },
        reentry: !holds && agent.rng.u8(..4) > 0,
        confirmed: Vec::new(),
        reason: some_reason(agent),
    }
}

fn some_stop(agent: &mut Agent) -> Stop {
    let after = Duration::from_millis(agent.rng.u64(10..6_000));
    match agent.rng.u8(..10) {
        0 | 1 => Stop::Interrupt(after),
        2 => Stop::Drop(after),
        _ => Stop::Never,
    }
}

/// Locks the nodes of `set`, and keeps what it got.
async fn lock_all(
    agent: &mut Agent,
    mut set: LockSet,
    time_limit: Duration,
    stop: Stop,
) -> Vec<HeldLease> {
    let targets = targets(agent, &set.nodes).await;
    // Somebody looks at the locks of others, and puts their nodes on hold all the same.
    let takes_over = set.holds() && set.manner != OnConflict::Waiting && agent.rng.bool();
    let confirmed = locks_of_others(agent, &targets).filter(|_| takes_over);
    let confirmed: Vec<NodeLease> = confirmed.collect();
    set.confirmed = confirmed.iter().filter_map(acquisition).collect();
    let options = match set.seconds {
        Some(seconds) => SetOptions::acquire(
            Acquire::new()
                .duration(Duration::from_secs(seconds.into()))
                .reason(&*set.reason)
                .reentry(set.reentry),
        ),
        None => SetOptions::hold(Hold::new(&*set.reason).take_over(confirmed)),
    };
    let options = match set.manner {
        OnConflict::Partial => options.partial(),
        OnConflict::AtOnce => options,
        OnConflict::Waiting => options.wait(Some(time_limit)),
    };
    let options = options.parallel(agent.rng.usize(1..=4));
    let op = agent.called(&set.nodes[0], Call::AcquireAll(set.clone()));
    let outcome = until_stopped(agent, targets, &options, stop).await;
    if outcome.is_none() {
        agent.idle(RELEASES).await;
    }
    agent.machine.set_op(None);
    let ending = match &outcome {
        Some(outcome) => ending(&set, outcome),
        None => CallOutcome::Unknown("dropped".to_owned()),
    };
    let is_locked = matches!(ending, CallOutcome::AcquiredAll(_));
    agent.recorder.record(Event::Returned { op, ending });
    agent.tell_time();
    let mut held = Vec::new();
    for change in outcome.iter().flat_map(|outcome| outcome.held.values()) {
        // What a failed set leaves on hold is ended later.
        if !is_locked {
            break;
        }
        match agent.keep(change, GRACE).await {
            Ok(kept) => held.push(kept),
            Err(_) => release_new(agent, change).await,
        }
    }
    held
}

/// People name them in any order, and commands have read some.
async fn targets(agent: &mut Agent, nodes: &[Arc<str>]) -> Vec<Target> {
    let reads = agent.rng.bool();
    let mut targets: Vec<Target> = nodes.iter().map(|node| Target::from(&**node)).collect();
    agent.rng.shuffle(&mut targets);
    for target in targets.iter_mut().filter(|_| reads) {
        target.seen = agent.maintenance.read(&target.node, true).await.ok();
    }
    targets
}

fn locks_of_others(agent: &Agent, targets: &[Target]) -> impl Iterator<Item = NodeLease> {
    let leases = targets
        .iter()
        .filter_map(|target| target.seen.as_ref()?.lease.clone());
    let identity = agent.maintenance.identity();
    leases.filter(|lease| lease.holder().is_some() && !lease.is_held_by(identity))
}

/// The outcome; `None`: the call was dropped.
async fn until_stopped(
    agent: &Agent,
    targets: Vec<Target>,
    options: &SetOptions,
    stop: Stop,
) -> Option<SetOutcome> {
    let (interrupt, dropped) = match stop {
        Stop::Never => (pending().boxed(), pending().boxed()),
        Stop::Interrupt(after) => (agent.machine.sleep(after), pending().boxed()),
        Stop::Drop(after) => (pending().boxed(), agent.machine.sleep(after)),
    };
    let maintenance = &agent.maintenance;
    let locking = maintenance.lock_all(targets, options, interrupt, |_| ());
    match select(pin!(locking), dropped).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

fn ending(set: &LockSet, outcome: &SetOutcome) -> CallOutcome {
    let acquired = |(node, change): (&String, &Change)| {
        let acquisition = acquisition(change.lease.as_ref()?)?;
        Some((Arc::from(node.as_str()), acquisition))
    };
    let is_locked = match set.manner {
        OnConflict::Partial => !outcome.held.is_empty(),
        OnConflict::AtOnce | OnConflict::Waiting => outcome.failed.is_empty(),
    };
    if is_locked && !outcome.interrupted {
        return CallOutcome::AcquiredAll(outcome.held.iter().filter_map(acquired).collect());
    }
    match outcome
        .failed
        .values()
        .max_by_key(|error| is_unclear(error))
    {
        None => CallOutcome::Refused("interrupted".to_owned()),
        Some(error) if is_unclear(error) => CallOutcome::Unknown(error.to_string()),
        Some(error) => CallOutcome::Refused(error.to_string()),
    }
}

/// Releases a lock that can't be kept, unless it is from before.
async fn release_new(agent: &Agent, change: &Change) {
    let meant = change.lease.as_ref().and_then(acquisition);
    let (node, lock_id) = (Arc::from(change.node.as_str()), change.lock_id());
    let is_hold = change.lease.as_ref().is_some_and(NodeLease::is_hold);
    if let Some(lock_id) = lock_id.filter(|_| agent.maintenance.is_new(change) && !is_hold) {
        worker::release(agent, &node, Release::new().lock_id(lock_id), meant).await;
    }
}

/// Whether something of the set may be held that is not known.
fn is_unclear(error: &SetError) -> bool {
    match error {
        SetError::Lock(error) => matches!(failure(error), CallOutcome::Unknown(_)),
        SetError::TimedOut(_) => false,
        SetError::Interrupted { may_land } => *may_land,
        SetError::NotReleased { .. } => true,
    }
}
