//! Every verb in every situation: its result or refusal, and the Lease afterwards.

use std::fmt;
use std::time::Duration;

use maintenance_lease::protocol::Refusal::{
    self, AdminHold, Held, HeldByCaller, NotAHold, NotHeld, NotHolder, OwnHold,
};
use maintenance_lease::{Acquire, Change, Done, Error, Hold, Maintenance, Release, Renew};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{Cluster, annotation, micros, noon, noon_and, refusal};

on_both_servers! {
    acquire,
    acquire_with_reentry,
    renew,
    release,
    release_by_force,
    hold,
    hold_with_take_over,
    unhold,
    unhold_of_a_confirmed_hold,
}

/// The situation that alice finds at noon.
#[derive(Clone, Copy, Debug)]
enum Situation {
    Absent,
    Free,
    Mine,
    Bobs,
    MineExpired,
    BobsExpired,
    MyHold,
    AnothersHold,
}

impl Situation {
    const ALL: [Self; 8] = [
        Self::Absent,
        Self::Free,
        Self::Mine,
        Self::Bobs,
        Self::MineExpired,
        Self::BobsExpired,
        Self::MyHold,
        Self::AnothersHold,
    ];

    /// The holder, and the end of the lock in seconds after noon.
    fn holder_and_end(self) -> Option<(&'static str, i64)> {
        match self {
            Self::Absent => None,
            Self::Free => Some(("", -60)),
            Self::Mine => Some(("alice", 60)),
            Self::Bobs => Some(("bob", 60)),
            Self::MineExpired => Some(("alice", -60)),
            Self::BobsExpired => Some(("bob", -60)),
            Self::MyHold => Some(("kubeadm:alice", -60)),
            Self::AnothersHold => Some(("kubeadm-x", -60)),
        }
    }

    /// Creates a node in this situation, and returns its name and Lease.
    async fn arrange(self, cluster: &Cluster) -> (String, Value) {
        let node = cluster.node(&format!("{self:?}").to_lowercase()).await;
        let Some((holder, end)) = self.holder_and_end() else {
            cluster.make_namespace().await;
            return (node, Value::Null);
        };
        let metadata = json!({
            "name": node,
            "annotations": {
                "kubectl-maint.dev/acquisition": "7-n0",
                "kubectl-maint.dev/reason": "because",
            },
        });
        let spec = json!({
            "holderIdentity": holder,
            "acquireTime": micros(noon_and(end - 60)),
            "renewTime": micros(noon_and(end - 60)),
            "leaseDurationSeconds": 60,
            "leaseTransitions": 7,
        });
        let lease = cluster.write_lease_with(metadata, spec).await;
        (node, lease)
    }
}

/// The result of a verb in a situation. `None` if the verb can't be tried in it.
type Expected = Option<Result<Done, Refusal>>;

const ACQUIRED: Expected = Some(Ok(Done::Acquired));
const RENEWED: Expected = Some(Ok(Done::Renewed));
const RELEASED: Expected = Some(Ok(Done::Released));
const ALREADY_FREE: Expected = Some(Ok(Done::AlreadyFree));
const ALREADY_HELD: Expected = Some(Ok(Done::AlreadyHeld));

const fn refused(refusal: Refusal) -> Expected {
    Some(Err(refusal))
}

async fn acquire(cluster: Cluster) {
    let expected = [
        ACQUIRED,
        ACQUIRED,
        refused(HeldByCaller),
        refused(Held),
        ACQUIRED,
        ACQUIRED,
        refused(OwnHold),
        refused(AdminHold),
    ];
    try_all(&cluster, expected, async |alice, node| {
        alice.try_acquire(node, &Acquire::new()).await
    })
    .await;
}

async fn acquire_with_reentry(cluster: Cluster) {
    let expected = [
        ACQUIRED,
        ACQUIRED,
        RENEWED,
        refused(Held),
        ACQUIRED,
        ACQUIRED,
        ALREADY_HELD,
        refused(AdminHold),
    ];
    try_all(&cluster, expected, async |alice, node| {
        alice.try_acquire(node, &Acquire::new().reentry(true)).await
    })
    .await;
}

async fn renew(cluster: Cluster) {
    let expected = [
        refused(NotHeld),
        refused(NotHeld),
        RENEWED,
        refused(NotHolder),
        RENEWED,
        refused(NotHolder),
        refused(OwnHold),
        refused(NotHolder),
    ];
    try_all(&cluster, expected, async |alice, node| {
        alice.renew(node, &Renew::new()).await
    })
    .await;
}

async fn release(cluster: Cluster) {
    let expected = [
        ALREADY_FREE,
        ALREADY_FREE,
        RELEASED,
        refused(NotHolder),
        RELEASED,
        refused(NotHolder),
        refused(OwnHold),
        refused(NotHolder),
    ];
    try_all(&cluster, expected, async |alice, node| {
        alice.release(node, &Release::new()).await
    })
    .await;
}

async fn release_by_force(cluster: Cluster) {
    let expected = [
        None,
        ALREADY_FREE,
        RELEASED,
        RELEASED,
        RELEASED,
        RELEASED,
        refused(OwnHold),
        refused(AdminHold),
    ];
    try_all(&cluster, expected, async |alice, node| {
        let seen = alice.get(node).await?.expect("a Lease");
        alice.force_release(&seen, &Release::new()).await
    })
    .await;
}

async fn hold(cluster: Cluster) {
    let expected = [
        ACQUIRED,
        ACQUIRED,
        ACQUIRED,
        refused(Held),
        ACQUIRED,
        ACQUIRED,
        RENEWED,
        refused(AdminHold),
    ];
    try_all(&cluster, expected, async |alice, node| {
        alice.hold(node, &Hold::new("disk")).await
    })
    .await;
}

async fn hold_with_take_over(cluster: Cluster) {
    let expected = [
        None, ACQUIRED, ACQUIRED, ACQUIRED, ACQUIRED, ACQUIRED, ACQUIRED, ACQUIRED,
    ];
    try_all(&cluster, expected, async |alice, node| {
        let seen = alice.get(node).await?.expect("a Lease");
        let hold = Hold::new("disk").take_over([seen]);
        alice.hold(node, &hold).await
    })
    .await;
}

async fn unhold(cluster: Cluster) {
    let expected = [
        ALREADY_FREE,
        ALREADY_FREE,
        refused(NotAHold),
        refused(NotAHold),
        refused(NotAHold),
        refused(NotAHold),
        RELEASED,
        refused(AdminHold),
    ];
    try_all(&cluster, expected, async |alice, node| {
        alice.unhold(node, None).await
    })
    .await;
}

async fn unhold_of_a_confirmed_hold(cluster: Cluster) {
    let expected = [
        None,
        ALREADY_FREE,
        refused(NotAHold),
        refused(NotAHold),
        refused(NotAHold),
        refused(NotAHold),
        RELEASED,
        RELEASED,
    ];
    try_all(&cluster, expected, async |alice, node| {
        let seen = alice.get(node).await?.expect("a Lease");
        alice.unhold(node, Some(&seen)).await
    })
    .await;
}

/// Calls `verb` as alice in all situations.
async fn try_all<V>(cluster: &Cluster, expected: [Expected; 8], verb: V)
where
    V: AsyncFn(&Maintenance, &str) -> Result<Change, Error>,
{
    let alice = cluster.holder_at(noon(), "alice");
    for (situation, expected) in Situation::ALL.into_iter().zip(expected) {
        let Some(expected) = expected else { continue };
        let (node, before) = situation.arrange(cluster).await;
        let result = verb(&alice, &node).await;
        let after = cluster.lease(&node).await;
        match expected {
            Ok(done) => {
                let change = result.unwrap_or_else(|error| panic!("{situation:?}: {error}"));
                assert_eq!(change.done, done, "{situation:?}");
                assert_left_behind(&situation, done, &before, &after);
            }
            Err(expected) => {
                let refused = refusal(result);
                assert_eq!(refused.refusal, expected, "{situation:?}");
                assert_eq!(refused.node, node);
                let holder = situation.holder_and_end().map(|(holder, _)| holder);
                let holder = holder.filter(|holder| !holder.is_empty());
                let named = refused.lease.as_ref().and_then(|lease| lease.holder());
                assert_eq!(named, holder, "{situation:?}");
                assert_eq!(after, before, "{situation:?}");
            }
        }
    }
}

/// Checks the Lease afterwards: it must match what the verb did.
fn assert_left_behind(situation: &dyn fmt::Debug, done: Done, before: &Value, after: &Value) {
    let (old, new) = (&before["spec"], &after["spec"]);
    let time = micros(noon());
    match done {
        Done::Acquired => {
            let count = |spec: &Value| spec["leaseTransitions"].as_i64();
            assert_eq!(count(new), Some(count(old).unwrap_or(0) + 1));
            assert_eq!(new["acquireTime"], time, "{situation:?}");
            assert_eq!(new["renewTime"], time, "{situation:?}");
            let mark = annotation(after, "acquisition").as_str().unwrap();
            assert_eq!(
                new["leaseTransitions"].to_string(),
                mark.split_once('-').unwrap().0
            );
            assert_ne!(mark.split_once('-').unwrap().1, "n0", "{situation:?}");
            assert_ne!(annotation(after, "reason"), "because", "{situation:?}");
        }
        Done::Renewed => {
            for field in ["holderIdentity", "acquireTime", "leaseTransitions"] {
                assert_eq!(new[field], old[field], "{situation:?}");
            }
            // A renewal in the same instant as the last one still changes the time.
            let time = if old["renewTime"] == time {
                micros(noon() + Duration::from_micros(1))
            } else {
                time
            };
            assert_eq!(new["renewTime"], time, "{situation:?}");
            assert_eq!(annotation(after, "acquisition"), "7-n0", "{situation:?}");
        }
        Done::Released => {
            assert_eq!(new["holderIdentity"], "", "{situation:?}");
            assert_eq!(new["leaseDurationSeconds"], 1, "{situation:?}");
            assert_eq!(new["leaseTransitions"], old["leaseTransitions"]);
            assert!(new["renewTime"].as_str() <= old["renewTime"].as_str());
            assert_eq!(annotation(after, "last-holder"), &old["holderIdentity"]);
            assert_eq!(annotation(after, "released-at"), &time, "{situation:?}");
            assert!(annotation(after, "acquisition").is_null());
            assert!(annotation(after, "reason").is_null(), "{situation:?}");
        }
        Done::AlreadyFree | Done::AlreadyHeld => assert_eq!(after, before, "{situation:?}"),
    }
}
