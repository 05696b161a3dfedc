//! Users with too few rights see which right is missing. Only the real server has users.

use control_plane::Rule;
use maintenance_lease::{
    Acquire, Change, Error, Hold, NodeLookup, Release, Renew, Right, RowDetail, SideEffect,
};
use serde_json::{Value, json};

use crate::support::{Cluster, alone_on_kubernetes, on_kubernetes};

/// The rights to acquire a lock if the namespace exists.
const LEASE_VERBS: [&str; 3] = ["get", "create", "patch"];

fn leases(verbs: &[&str]) -> Rule {
    Rule::new("coordination.k8s.io", &["leases"], verbs)
}

fn nodes(verbs: &[&str]) -> Rule {
    Rule::new("", &["nodes"], verbs)
}

fn missing<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::MissingRight { right, source }) => {
            assert!(source.is_forbidden());
            let right_to = right.to_string();
            let text = Error::MissingRight { right, source }.to_string();
            assert!(
                text.starts_with("Error from server (Forbidden): "),
                "{text}"
            );
            right_to
        }
        other => panic!("no right is missing: {other:?}"),
    }
}

#[test]
fn without_any_right_the_first_one_missing_is_to_read_leases() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let node = cluster.node("read-nothing").await;
        let user = cluster.user("nobody", &[]).await;
        let right = "get leases.coordination.k8s.io in namespace kube-node-maintenance";
        let acquired = user.try_acquire(&node, &Acquire::new()).await;
        assert_eq!(missing(acquired), right);
        assert_eq!(missing(user.get(&node).await), right);
        assert_eq!(missing(user.release(&node, &Release::new()).await), right);
        assert_eq!(
            missing(user.list().await),
            "list leases.coordination.k8s.io in namespace kube-node-maintenance"
        );
        let listed = user.nodes(None, RowDetail::Cells).await;
        assert_eq!(missing(listed), "list nodes");
        assert_eq!(user.node(&node).await.unwrap(), NodeLookup::Forbidden);
    });
}

#[test]
fn a_read_only_user_sees_which_right_is_missing() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        let node = cluster.node("read-only").await;
        cluster.make_namespace().await;
        let reader = cluster
            .user("reader", &[leases(&["get"]), nodes(&["get"])])
            .await;
        let acquired = reader.try_acquire(&node, &Acquire::new()).await;
        assert_eq!(
            missing(acquired),
            "create leases.coordination.k8s.io in namespace kube-node-maintenance"
        );
        cluster.write_lease(&node, json!({})).await;
        let patch = "patch leases.coordination.k8s.io in namespace kube-node-maintenance";
        let acquired = reader.try_acquire(&node, &Acquire::new()).await;
        assert_eq!(missing(acquired), patch);
        let held = reader.hold(&node, &Hold::new("disk")).await;
        assert_eq!(missing(held), patch);
    });
}

#[test]
fn without_the_right_to_read_nodes_acquire_works() {
    on_kubernetes(module_path!(), async |cluster: Cluster| {
        cluster.make_namespace().await;
        let node = cluster.node("unread").await;
        let user = cluster.user("blind", &[leases(&LEASE_VERBS)]).await;
        let change: Change = user.try_acquire(&node, &Acquire::new()).await.unwrap();
        assert_eq!(
            change.side_effects,
            [SideEffect::NodeUnreadable, SideEffect::LeaseCreated]
        );
        let lease = cluster.lease(&node).await;
        assert_eq!(lease["metadata"]["ownerReferences"], Value::Null);
        user.renew(&node, &Renew::new()).await.unwrap();
        user.release(&node, &Release::new()).await.unwrap();

        // The next acquisition by a user who may read Nodes adds the owner reference.
        let alice = cluster.holder("alice");
        alice.try_acquire(&node, &Acquire::new()).await.unwrap();
        let lease = cluster.lease(&node).await;
        assert_eq!(lease["metadata"]["ownerReferences"][0]["name"], node);
    });
}

#[test]
fn without_the_right_to_create_the_namespace_it_is_refused() {
    alone_on_kubernetes(module_path!(), async |cluster: Cluster| {
        let node = cluster.node("no-namespace").await;
        let rights = [leases(&LEASE_VERBS), nodes(&["get"])];
        let user = cluster.user("guest", &rights).await;
        let acquired = user.try_acquire(&node, &Acquire::new()).await;
        assert_eq!(missing(acquired), "create namespaces");
        cluster.make_namespace().await;
        user.try_acquire(&node, &Acquire::new()).await.unwrap();
    });
}

#[test]
fn a_right_names_its_verb_its_resource_and_where() {
    let right = Right {
        verb: "patch",
        resource: "leases.coordination.k8s.io",
        namespace: Some("kube-node-maintenance".to_owned()),
    };
    assert_eq!(
        right.to_string(),
        "patch leases.coordination.k8s.io in namespace kube-node-maintenance"
    );
}
