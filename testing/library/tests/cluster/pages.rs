//! HTML pages instead of answers, as from a proxy that requires a login.

use std::time::Duration;

use maintenance_lease::{ApiError, Error, Followed, LeaseScope, Maintenance, NodeEvent, RowDetail};

use crate::on_both_servers;
use crate::support::{Cluster, Fate, Wire, changed};

on_both_servers! {
    a_page_is_neither_an_empty_list_nor_a_missing_node,
    an_event_that_met_a_page_was_not_posted,
    a_watch_that_meets_a_page_says_so_and_goes_on_later,
}

fn behind_a_page(cluster: &Cluster) -> Maintenance {
    let wire = Wire::planned(|_| Fate::MetByPage);
    cluster.holder_on(&wire, "alice")
}

/// The request of this error, which says that the answer did not come from an API server.
fn request_of(error: Error) -> String {
    match error {
        Error::Api(ApiError::NotKubernetes { request, .. }) => request,
        other => panic!("{other}"),
    }
}

async fn a_page_is_neither_an_empty_list_nor_a_missing_node(cluster: Cluster) {
    let node = cluster.node("n").await;
    let alice = behind_a_page(&cluster);
    let of_locks = "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
    let read = [
        (
            request_of(alice.get(&node).await.unwrap_err()),
            format!("{of_locks}/{node}"),
        ),
        (
            request_of(alice.list().await.unwrap_err()),
            of_locks.to_owned(),
        ),
        (
            request_of(alice.node(&node).await.unwrap_err()),
            format!("/api/v1/nodes/{node}"),
        ),
        (
            request_of(alice.nodes(None, RowDetail::Cells).await.unwrap_err()),
            "/api/v1/nodes".to_owned(),
        ),
        (
            request_of(alice.any_leases(LeaseScope::Everywhere).await.unwrap_err()),
            "/apis/coordination.k8s.io/v1/leases".to_owned(),
        ),
        (
            request_of(alice.server_version().await.unwrap_err().into()),
            "/version".to_owned(),
        ),
    ];
    for (request, path) in read {
        assert_eq!(request, format!("GET {path}"));
    }
}

async fn an_event_that_met_a_page_was_not_posted(cluster: Cluster) {
    let event = NodeEvent {
        node: cluster.node("n").await,
        uid: "of-the-node".to_owned(),
        reason: "MaintenanceHold",
        message: "a disk".to_owned(),
        warning: false,
    };
    let alice = behind_a_page(&cluster);
    let failure = alice.post_events(&[event], Duration::from_secs(60)).await;
    let said = failure.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        said.contains(
            r#": the answer is text/html and begins with "<!DOCTYPE html> <title>Log in"#
        ),
        "{said}"
    );
}

async fn a_watch_that_meets_a_page_says_so_and_goes_on_later(cluster: Cluster) {
    let node = cluster.node("n").await;
    cluster.write_lease(&node, serde_json::json!({})).await;
    let wire = Wire::every_watch(|number| match number {
        0 => Fate::MetByPage,
        _ => Fate::Pass,
    });
    let alice = cluster.holder_on(&wire, "alice");
    let mut follower = alice.follow([&node]);
    assert!(changed(&mut follower).await[&node].is_some());
    let Followed::Unwatched(error) = follower.next().await.unwrap() else {
        panic!("it meets a page");
    };
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
    assert_eq!(request_of(error), format!("GET {path}"));
    cluster.touch_lease(&node).await;
    let sighted = follower.next().await.unwrap();
    assert!(matches!(sighted, Followed::Watched), "{sighted:?}");
    assert!(changed(&mut follower).await[&node].is_some());
}
