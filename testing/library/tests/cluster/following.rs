//! Following Leases, even while they can't be watched.

use std::time::Duration;

use http::StatusCode;
use maintenance_lease::{Acquire, Error, Followed, Follower, Maintenance, NodeLease, Release};

use crate::on_both_servers;
use crate::support::{
    Cluster, Fate, Passing, Wire, changed, in_the_sandbox, noon_and, on_kubernetes,
};

on_both_servers! {
    selected_leases_are_reported_first_and_on_changes,
    a_known_lease_is_reported_again_only_after_a_change,
    a_watch_that_is_too_old_shows_only_changes,
}

async fn acquire(who: &Maintenance, node: &str) {
    who.try_acquire(node, &Acquire::new()).await.unwrap();
}

/// The next reported changes of these nodes, each as `node: holder`.
async fn holders(follower: &mut Follower) -> Vec<String> {
    let leases = changed(follower).await.into_iter();
    let line = |(node, lease): (String, Option<NodeLease>)| match lease {
        Some(lease) => format!("{node}: {}", lease.holder().unwrap_or("nobody")),
        None => format!("{node}: no Lease"),
    };
    leases.map(line).collect()
}

async fn blind(follower: &mut Follower) -> String {
    match follower.next().await {
        Ok(Followed::Unwatched(error)) => error.to_string(),
        other => panic!("it can watch: {other:?}"),
    }
}

async fn selected_leases_are_reported_first_and_on_changes(cluster: Cluster) {
    let [a, b, other] = [
        cluster.node("a").await,
        cluster.node("b").await,
        cluster.node("other").await,
    ];
    let bob = cluster.holder("bob");
    acquire(&bob, &a).await;
    let mut follower = cluster.holder("alice").follow([&a, &b]);
    let first = [format!("{a}: bob"), format!("{b}: no Lease")];
    assert_eq!(holders(&mut follower).await, first);
    acquire(&bob, &other).await;
    bob.release(&a, &Release::new()).await.unwrap();
    assert_eq!(holders(&mut follower).await, [format!("{a}: nobody")]);
    acquire(&bob, &b).await;
    assert_eq!(holders(&mut follower).await, [format!("{b}: bob")]);
    cluster.delete_lease(&a).await;
    assert_eq!(holders(&mut follower).await, [format!("{a}: no Lease")]);
}

async fn a_known_lease_is_reported_again_only_after_a_change(cluster: Cluster) {
    let [a, b] = [cluster.node("a").await, cluster.node("b").await];
    let bob = cluster.holder("bob");
    acquire(&bob, &a).await;
    let wire = Wire::clear();
    let alice = cluster.holder_on(&wire, "alice");
    let seen = alice.get(&a).await.unwrap();
    let mut one = alice.follow([&a]).after(&seen);
    let mut both = alice.follow([&a, &b]).after(&seen);
    acquire(&bob, &b).await;
    assert_eq!(holders(&mut both).await, [format!("{b}: bob")]);
    bob.release(&a, &Release::new()).await.unwrap();
    assert_eq!(holders(&mut one).await, [format!("{a}: nobody")]);
    assert_eq!(holders(&mut both).await, [format!("{a}: nobody")]);
    let requests = ["GET lease", "GET lease", "WATCH lease", "WATCH lease"];
    assert_eq!(wire.requests(), requests, "a list, and one watch each");
}

async fn a_watch_that_is_too_old_shows_only_changes(cluster: Cluster) {
    let [a, b] = [cluster.node("a").await, cluster.node("b").await];
    let bob = cluster.holder("bob");
    acquire(&bob, &a).await;
    acquire(&bob, &b).await;
    let wire = Wire::every_watch(|number| match number {
        0 => Fate::Refused(StatusCode::GONE, None),
        _ => Fate::Pass,
    });
    let mut follower = cluster.holder_on(&wire, "alice").follow([&a, &b]);
    assert_eq!(holders(&mut follower).await.len(), 2);
    bob.release(&b, &Release::new()).await.unwrap();
    assert_eq!(holders(&mut follower).await, [format!("{b}: nobody")]);
}

fn is_list(passing: &Passing) -> bool {
    !passing.is_watch() && passing.path.ends_with("/leases")
}

#[test]
fn without_the_right_to_watch_it_warns_once_and_reads_until_granted() {
    for all in [false, true] {
        in_the_sandbox(module_path!(), async |cluster: Cluster| {
            let node = cluster.node("n").await;
            let (env, granted) = (cluster.env.clone(), noon_and(100));
            let wire = Wire::every_watch(move |_| match env.wall() < granted.into() {
                true => Fate::Refused(StatusCode::FORBIDDEN, None),
                false => Fate::Pass,
            });
            let alice = cluster.holder_on(&wire, "alice");
            let bob = cluster.holder("bob");
            acquire(&bob, &node).await;
            let mut follower = match all {
                true => alice.follow_all(),
                false => alice.follow([&node]),
            };
            assert_eq!(holders(&mut follower).await, [format!("{node}: bob")]);
            assert!(blind(&mut follower).await.contains("Forbidden"));
            bob.release(&node, &Release::new()).await.unwrap();
            assert_eq!(holders(&mut follower).await, [format!("{node}: nobody")]);
            assert!(cluster.now() < noon_and(15));
            let sighted = follower.next().await.unwrap();
            assert!(matches!(sighted, Followed::Watched), "{sighted:?}");
            assert!(cluster.now() >= granted);
            let requests = wire.requests().len();
            assert!(requests <= 2 * 13, "{requests} in 100 s");
            acquire(&bob, &node).await;
            assert_eq!(holders(&mut follower).await, [format!("{node}: bob")]);
        });
    }
}

#[test]
fn with_the_right_to_get_only_single_leases_are_read() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let rights = [control_plane::Rule::new(
            "coordination.k8s.io",
            &["leases"],
            &["get"],
        )];
        let user = cluster.user("reader", &rights).await;
        read_one_by_one(&cluster, &user).await;
    });
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let wire = Wire::planned(|passing| match passing.is_watch() || is_list(passing) {
            true => Fate::Refused(StatusCode::FORBIDDEN, None),
            false => Fate::Pass,
        });
        let alice = cluster.holder_on(&wire, "alice");
        read_one_by_one(&cluster, &alice).await;
        let before = wire.requests().len();
        let mut follower = alice.follow(["a", "b"]);
        let told = async { while follower.next().await.is_ok() {} };
        let minutes = Duration::from_secs(120);
        assert!(tokio::time::timeout(minutes, told).await.is_err());
        let requests = wire.requests().len() - before;
        assert!(requests <= 3 * 16, "{requests} in 120 s");
    });
}

async fn read_one_by_one(cluster: &Cluster, who: &Maintenance) {
    let [a, b] = [cluster.node("a").await, cluster.node("b").await];
    let bob = cluster.holder("bob");
    acquire(&bob, &a).await;
    let (mut one, mut both) = (who.follow([&a]), who.follow([&a, &b]));
    for follower in [&mut one, &mut both] {
        assert!(blind(follower).await.contains("Forbidden"));
        let [first, ..] = &holders(follower).await[..] else {
            panic!("one at least")
        };
        assert_eq!(*first, format!("{a}: bob"));
    }
    bob.release(&a, &Release::new()).await.unwrap();
    for follower in [&mut one, &mut both] {
        assert_eq!(holders(follower).await, [format!("{a}: nobody")]);
    }
}

#[test]
fn without_the_right_to_read_it_is_refused() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let wire = Wire::planned(|_| Fate::Refused(StatusCode::FORBIDDEN, None));
        let alice = cluster.holder_on(&wire, "alice");
        let mut all = alice.follow_all();
        let mut some = alice.follow(["a", "b"]);
        blind(&mut some).await;
        for (follower, verb) in [(&mut all, "list"), (&mut some, "get")] {
            for _ in 0..3 {
                match follower.next().await {
                    Err(Error::MissingRight { right, .. }) => assert_eq!(right.verb, verb),
                    other => panic!("{other:?}"),
                }
            }
        }
    });
}

#[test]
fn an_unreachable_server_is_reported_once_and_no_event_is_missed() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let node = cluster.node("n").await;
        let (env, back) = (cluster.env.clone(), noon_and(300));
        let wire = Wire::planned(move |_| match env.wall() < back.into() {
            true => Fate::Reset,
            false => Fate::Pass,
        });
        let bob = cluster.holder("bob");
        acquire(&bob, &node).await;
        let mut follower = cluster.holder_on(&wire, "alice").follow([&node]);
        blind(&mut follower).await;
        assert_eq!(holders(&mut follower).await, [format!("{node}: bob")]);
        let sighted = follower.next().await.unwrap();
        assert!(matches!(sighted, Followed::Watched), "{sighted:?}");
        assert!(cluster.now() >= back);
        assert!(wire.requests().len() < 2 * 300);
    });
}
