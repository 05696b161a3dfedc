//! Outside a tokio runtime, a client would panic. So no request is sent and no lock is kept.

use std::time::Duration;

use futures::FutureExt as _;
use futures::executor::block_on;
use maintenance_lease::{
    Acquire, ApiError, Error, Keep, LeaderElection, Maintenance, NodeEvent, Repository,
};
use sandbox::Sandbox;
use tokio::runtime::Runtime;

const NODE: &str = "worker-1";

/// A runtime for the client's background tasks, and a handle on the locks of a repository.
fn locks(repository: Repository) -> (Runtime, Maintenance) {
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(async {
        let sandbox = Sandbox::new();
        sandbox.add_node(NODE);
        sandbox.client()
    });
    let locks = Maintenance::builder(client, "alice").repository(repository);
    (runtime, locks.build().unwrap())
}

fn lacks_a_runtime<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Api(ApiError::NoRuntime(_))))
}

#[test]
fn a_lock_is_not_acquired_outside_a_runtime() {
    let (runtime, locks) = locks(Repository::default());
    let acquire = Acquire::new();
    assert!(lacks_a_runtime(&block_on(
        locks.try_acquire(NODE, &acquire)
    )));
    assert!(lacks_a_runtime(&block_on(locks.acquire(NODE, &acquire))));
    let lease = runtime.block_on(locks.get(NODE)).unwrap();
    assert!(lease.is_none(), "{lease:?}");
}

#[test]
fn nobody_leads_outside_a_runtime() {
    let (runtime, locks) = locks(Repository::new("default"));
    let election = LeaderElection::new(locks.clone(), "scheduler").unwrap();
    let leads = block_on(election.lead(&Keep::new(), |_| ()));
    assert!(lacks_a_runtime(&leads));
    let lease = runtime.block_on(locks.get("scheduler")).unwrap();
    assert!(lease.is_none(), "{lease:?}");
}

#[test]
fn locks_are_kept_only_within_a_runtime() {
    let (runtime, locks) = locks(Repository::default());
    let acquire = Acquire::new();
    let change = runtime.block_on(locks.try_acquire(NODE, &acquire)).unwrap();
    assert!(lacks_a_runtime(&block_on(
        locks.keep(&change, &Keep::new())
    )));
    let kept = runtime.block_on(locks.keep(&change, &Keep::new()));
    assert!(kept.is_ok());
}

#[test]
fn a_watch_says_once_that_there_is_no_runtime() {
    let (_runtime, locks) = locks(Repository::default());
    let mut follower = locks.follow_all();
    let first = block_on(follower.next());
    assert!(lacks_a_runtime(&first));
    assert!(follower.next().now_or_never().is_none());
}

#[test]
fn no_event_is_posted_outside_a_runtime() {
    let (_runtime, locks) = locks(Repository::default());
    let event = NodeEvent {
        node: NODE.to_owned(),
        uid: "of-the-node".to_owned(),
        reason: "MaintenanceHold",
        message: "a disk".to_owned(),
        warning: false,
    };
    let failure = block_on(locks.post_events(&[event], Duration::from_secs(2)));
    assert!(matches!(failure, Some(ApiError::NoRuntime(_))));
}
