//! Every public future, and the handle of a held lease, can be sent to another thread, as programs
//! on a multi-threaded runtime need it.
//!
//! The test is that this compiles. It is never run.
#![expect(dead_code, reason = "it is compiled, and never run")]

use std::convert::Infallible;
use std::time::Duration;

use futures::future::BoxFuture;
use maintenance_lease::{
    Acquire, Call, HeldLease, HeldState, Hold, Keep, LeaderElection, Lost, Maintenance,
    NodeAndLease, NodeEvent, NodeLease, Release, Renew, Requests, RowDetail, SetOptions,
};

fn may_be_spawned<T: Send + 'static>() {}

fn may_be_shared<T: Send + Sync + 'static>() {}

fn sendable(_: impl Send) {}

fn values() {
    may_be_shared::<Maintenance>();
    may_be_shared::<Requests>();
    may_be_shared::<LeaderElection>();
    may_be_shared::<HeldLease>();
    may_be_shared::<HeldState>();
    may_be_shared::<Lost>();
    may_be_spawned::<maintenance_lease::Error>();
}

fn reads(locks: &Maintenance) {
    sendable(locks.get("n"));
    sendable(locks.list());
    sendable(locks.read("n", true));
    sendable(locks.node("n"));
    sendable(locks.nodes(None, RowDetail::Cells));
    sendable(locks.server_version());
    sendable(locks.follow(["n"]).next());
    sendable(locks.follow_all());
    sendable(locks.watch_nodes(None, None, RowDetail::Cells));
}

fn requests(requests: &Requests, call: &Call) {
    sendable(requests.call(call));
    sendable(requests.list(call, |_, _| Ok(Some(()))));
    sendable(requests.list_pages(call, |_, _| Ok(Some(()))));
}

fn verbs(locks: &Maintenance, lease: &NodeLease, events: &[NodeEvent], seen: fn() -> NodeAndLease) {
    let (acquire, hold) = (Acquire::new(), Hold::new("why"));
    let (renew, release) = (Renew::new(), Release::new());
    sendable(locks.try_acquire("n", &acquire));
    sendable(locks.try_acquire(seen(), &acquire));
    sendable(locks.renew("n", &renew));
    sendable(locks.release("n", &release));
    sendable(locks.force_release(lease, &release));
    sendable(locks.hold("n", &hold));
    sendable(locks.unhold("n", Some(lease)));
    sendable(locks.post_events(events, Duration::ZERO));
}

fn waiting(locks: &Maintenance, election: &LeaderElection) {
    let (acquire, hold) = (Acquire::new(), Hold::new("why"));
    sendable(locks.acquire("n", &acquire));
    sendable(locks.acquire_when_free("n", &acquire, |_| ()));
    sendable(locks.hold_when_free("n", &hold, |_| ()));
    sendable(election.campaign(|_| ()));
    sendable(election.lead(&Keep::new(), |_| ()));
}

fn sets(locks: &Maintenance, options: &SetOptions) {
    let interrupt: BoxFuture<'static, ()> = Box::pin(std::future::ready(()));
    sendable(locks.lock_all(["n"], options, interrupt, |_| ()));
}

fn holding(held: HeldLease, held_state: &HeldState) {
    sendable(held.guard(async { Ok::<_, Infallible>(()) }));
    sendable(held.changed(held_state));
    sendable(held.expiry());
    sendable(held.release());
}
