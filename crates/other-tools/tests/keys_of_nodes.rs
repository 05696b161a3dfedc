//! What locks have left on Nodes, and what holds lack there.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{Maintenance, NAMESPACE};
use other_tools::{KeysOfNodes, KeysOnNode, LocksByNode};
use sandbox::Sandbox;
use serde_json::{Value, json};

/// 2026-03-01T12:00:00Z.
const NOON: Instant = Instant::from_micros(1_772_366_400_000_000);

const OPT_OUT: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// A Lease of `node` that was renewed at this time of the day and lasts for ten minutes, unless it is a hold.
fn lease(node: &str, holder: &str, renewed: &str) -> Value {
    let time = format!("2026-03-01T{renewed}:00.000000Z");
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node,
            "namespace": NAMESPACE,
            "annotations": {"kubectl-maint.dev/acquisition": "1-abc"},
        },
        "spec": {
            "holderIdentity": holder,
            "acquireTime": time,
            "renewTime": time,
            "leaseDurationSeconds": 600,
            "leaseTransitions": 1,
        },
    })
}

async fn locks(leases: &[Value]) -> LocksByNode {
    let sandbox = Sandbox::new();
    for lease in leases {
        sandbox.put(lease.clone());
    }
    let maintenance = Maintenance::new(sandbox.client(), "anybody").expect("an identity");
    maintenance.list().await.expect("a list")
}

/// The keys of a lock on a Node: its label if it `is_labeled`, and the opt-out if it `is_opted_out`.
fn keys(node: &str, lock_id: &str, is_labeled: bool, is_opted_out: bool) -> KeysOnNode {
    let mut metadata = json!({
        "name": node,
        "labels": {},
        "annotations": {
            "kubectl-maint.dev/held-lock-id": lock_id,
            "kubectl-maint.dev/held-set": OPT_OUT,
        },
    });
    if is_labeled {
        metadata["labels"]["kubectl-maint.dev/held"] = "true".into();
    }
    if is_opted_out {
        metadata["annotations"][OPT_OUT] = "true".into();
    }
    let node: Node = serde_json::from_value(json!({"metadata": metadata})).expect("a Node");
    KeysOnNode::of(&node).expect("keys")
}

fn labeled_by_hand() -> KeysOnNode {
    let metadata = json!({"name": "by-hand", "labels": {"kubectl-maint.dev/held": "true"}});
    let node: Node = serde_json::from_value(json!({"metadata": metadata})).expect("a Node");
    KeysOnNode::of(&node).expect("keys")
}

#[tokio::test]
async fn keys_of_ended_locks_are_left_over_and_holds_lack_what_was_removed() {
    let now = Now::at(NOON);
    let locks = locks(&[
        lease("held", "alice@bastion", "11:55"),
        lease("expired", "alice@bastion", "11:00"),
        lease("hold", "kubeadm:alice@bastion", "09:00"),
        lease("bare-hold", "kubeadm:alice@bastion", "09:00"),
        lease("gone-hold", "kubeadm:alice@bastion", "09:00"),
    ])
    .await;
    let id = |node: &str| locks[node].lock_id().expect("a lock id").to_string();
    let mut nodes: KeysOfNodes = [
        keys("held", &id("held"), true, false),
        keys("expired", &id("expired"), true, true),
        keys("hold", &id("hold"), true, false),
        keys("ended", "another", false, true),
        labeled_by_hand(),
    ]
    .into_iter()
    .map(|keys| (keys.node.clone(), Some(keys)))
    .chain([("bare-hold".to_owned(), None)])
    .collect();

    let left_over = |nodes: &KeysOfNodes| -> Vec<String> {
        let left = nodes.left_over(&locks, now).into_iter();
        left.map(|keys| keys.node).collect()
    };
    assert_eq!(left_over(&nodes), ["ended", "expired"]);
    assert_eq!(nodes.without_lock_id(), ["by-hand"]);
    assert_eq!(nodes.labeled(), 4);
    let missing = nodes.missing_opt_outs(&locks, now);
    assert_eq!(missing, [("hold".to_owned(), vec![OPT_OUT.to_owned()])]);
    assert_eq!(nodes.unlabeled_holds(&locks), ["bare-hold"]);

    let mut kept = nodes.clone();
    kept.keep_label("expired");
    assert_eq!(left_over(&kept), ["ended"]);
    assert_eq!(kept.without_lock_id(), ["by-hand", "expired"]);

    nodes.clear("expired");
    assert_eq!(left_over(&nodes), ["ended"]);
    assert_eq!(nodes.labeled(), 3);
}
