//! `fence` and `unfence`, where the answers to their writes are lost. All else is in tests/fencing.

use http::Method;
use serde_json::json;

use crate::support::{Cluster, Treatment, ago, holder_of, on_real};

const HEARTBEATS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A silent node beside one that is well, in a zone of their own.
fn silent(cluster: &Cluster) -> String {
    let zone = json!({"topology.kubernetes.io/zone": cluster.name("zone")});
    cluster.node_with("worker-2", &zone, &json!({}));
    let node = cluster.node_with("worker-1", &zone, &json!({}));
    let status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "Unknown"}],
        "nodeInfo": {"bootID": "boot-1"},
    }});
    cluster.patch(&format!("/api/v1/nodes/{node}/status"), &status);
    cluster.create(
        HEARTBEATS,
        &json!({"metadata": {"name": node}, "spec": {"renewTime": ago(300)}}),
    );
    node
}

/// What is written to Nodes is written, and nobody hears of it.
fn loses(method: &Method, path: &str) -> Treatment {
    match method == Method::PATCH && path.starts_with("/api/v1/nodes/") {
        true => Treatment::LoseAnswer,
        false => Treatment::Pass,
    }
}

#[test]
fn a_lost_answer_ends_as_the_success_that_it_was() {
    on_real("fence-lost", |cluster| {
        let node = silent(cluster);
        let gate = cluster.gate(loses);
        let fence = ["fence", &node, "--powered-off=dark"];
        let run = cluster.maint(fence).kubeconfig(&gate.kubeconfig).succeeds();
        let fenced = format!("node/{node} fenced by alice@bastion, powered off: dark\n");
        assert_eq!(run.stdout, fenced);
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        assert!(seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"].is_string());
        assert_eq!(
            holder_of(cluster, &node).as_deref(),
            Some("kubeadm:alice@bastion")
        );

        let beat = json!({"spec": {"renewTime": ago(0)}});
        cluster.patch(&format!("{HEARTBEATS}/{node}"), &beat);
        let restarted = json!({"status": {"nodeInfo": {"bootID": "boot-2"}}});
        cluster.patch(&format!("/api/v1/nodes/{node}/status"), &restarted);
        let unfence = cluster.maint(["unfence", &node]);
        let run = unfence.kubeconfig(&gate.kubeconfig).succeeds();
        assert_eq!(run.stdout, format!("node/{node} unfenced\n"));
        let seen = cluster.get(&format!("/api/v1/nodes/{node}"));
        assert!(seen["metadata"]["annotations"]["kubectl-maint.dev/fenced"].is_null());
        assert_eq!(holder_of(cluster, &node), None);
    });
}
