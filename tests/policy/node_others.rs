//! The node policy and the requests of other programs: it refuses some of them on a held node, and admits all others.
//! Each program has the rights that it needs, and sends the requests that its source code sends.

use control_plane::{ControlPlane, NodeSpec, Rule};
use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, MERGE, NODES, Person, STRATEGIC, admin, admitted, denying, person, refused_by, run,
};

const JSON_PATCH: &str = "application/json-patch+json";

/// A request that a program sends about a node.
struct Act {
    /// The program, and what it does.
    what: &'static str,
    by: &'static str,
    /// The rule that refuses the request on a held node. `None` if it is always admitted.
    code: Option<&'static str>,
    request: fn(&Person, &str) -> Answer,
}

fn strategic(by: &Person, node: &str, patch: &Value) -> Answer {
    by.send(Method::PATCH, &format!("{NODES}/{node}"), STRATEGIC, patch)
}

fn status(by: &Person, node: &str, patch: &Value) -> Answer {
    let path = format!("{NODES}/{node}/status");
    by.send(Method::PATCH, &path, STRATEGIC, patch)
}

/// Replaces the node's taints as client-go's helpers do, on the resource version that was read.
fn taint(by: &Person, node: &str, key: &str, effect: &str) -> Answer {
    let path = format!("{NODES}/{node}");
    let seen = by.get(&path);
    let mut taints = seen["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    taints.retain(|taint| taint["key"] != key || taint["effect"] != effect);
    taints.push(json!({"key": key, "value": "1790000000", "effect": effect}));
    let patch = json!({
        "metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]},
        "spec": {"taints": taints},
    });
    by.send(Method::PATCH, &path, MERGE, &patch)
}

/// Changes the node's spec and replaces the node by PUT, as cluster-autoscaler does.
fn put(by: &Person, node: &str, change: impl Fn(&mut Value)) -> Answer {
    let path = format!("{NODES}/{node}");
    let mut seen = by.get(&path);
    change(&mut seen["spec"]);
    by.put(&path, &seen)
}

const KUBELET: &str = "system:node:kubelet";
const LIFECYCLE: &str = "system:serviceaccount:kube-system:node-controller";
const CLOUD: &str = "system:cloud-controller-manager";
const CILIUM: &str = "system:serviceaccount:kube-system:cilium-operator";
const AUTOSCALER: &str = "system:serviceaccount:kube-system:cluster-autoscaler";
const KARPENTER: &str = "system:serviceaccount:kube-system:karpenter";
const KURED: &str = "system:serviceaccount:kube-system:kured";
const PROGRAMS: [&str; 7] = [
    KUBELET, LIFECYCLE, CLOUD, CILIUM, AUTOSCALER, KARPENTER, KURED,
];

const ACTS: [Act; 23] = [
    Act {
        what: "kubelet: heartbeat",
        by: KUBELET,
        code: None,
        request: |by, node| {
            let condition = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": null});
            status(by, node, &json!({"status": {"conditions": [condition]}}))
        },
    },
    Act {
        what: "kubelet: labels and annotations at its start",
        by: KUBELET,
        code: None,
        request: |by, node| {
            let labels = json!({"kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a"});
            let notes = json!({"volumes.kubernetes.io/controller-managed-attach-detach": "true"});
            let patch = json!({"metadata": {"labels": labels, "annotations": notes}});
            status(by, node, &patch)
        },
    },
    Act {
        what: "node lifecycle: unreachable",
        by: LIFECYCLE,
        code: None,
        request: |by, node| taint(by, node, "node.kubernetes.io/unreachable", "NoExecute"),
    },
    Act {
        what: "node lifecycle: not ready",
        by: LIFECYCLE,
        code: None,
        request: |by, node| taint(by, node, "node.kubernetes.io/not-ready", "NoSchedule"),
    },
    Act {
        what: "node lifecycle: unschedulable",
        by: LIFECYCLE,
        code: None,
        request: |by, node| taint(by, node, "node.kubernetes.io/unschedulable", "NoSchedule"),
    },
    Act {
        what: "node lifecycle: the node is ready again",
        by: LIFECYCLE,
        code: None,
        request: |by, node| {
            let patch = json!({"spec": {"taints": [
                {"$patch": "delete", "key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
            ]}});
            strategic(by, node, &patch)
        },
    },
    Act {
        what: "node ipam: podCIDR",
        by: LIFECYCLE,
        code: None,
        request: |by, node| {
            let patch = json!({"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}});
            strategic(by, node, &patch)
        },
    },
    Act {
        what: "cloud: addresses",
        by: CLOUD,
        code: None,
        request: |by, node| {
            let address = json!({"type": "InternalIP", "address": "10.0.0.9"});
            status(by, node, &json!({"status": {"addresses": [address]}}))
        },
    },
    Act {
        what: "cloud: provider id and labels",
        by: CLOUD,
        code: None,
        request: |by, node| {
            let patch = json!({
                "metadata": {"labels": {"node.kubernetes.io/instance-type": "m"}},
                "spec": {"providerID": format!("cloud:///{node}")},
            });
            strategic(by, node, &patch)
        },
    },
    Act {
        what: "cloud: shut down",
        by: CLOUD,
        code: None,
        request: |by, node| {
            let key = "node.cloudprovider.kubernetes.io/shutdown";
            taint(by, node, key, "NoSchedule")
        },
    },
    Act {
        what: "cilium: agent not ready",
        by: CILIUM,
        code: None,
        request: |by, node| taint(by, node, "node.cilium.io/agent-not-ready", "NoExecute"),
    },
    Act {
        what: "cilium: agent ready",
        by: CILIUM,
        code: None,
        request: |by, node| {
            let path = format!("{NODES}/{node}");
            let taints = by.get(&path)["spec"]["taints"].clone();
            let rest: Vec<Value> = taints
                .as_array()
                .into_iter()
                .flatten()
                .filter(|taint| taint["key"] != "node.cilium.io/agent-not-ready")
                .cloned()
                .collect();
            let patch = json!([
                {"op": "test", "path": "/spec/taints", "value": taints},
                {"op": "replace", "path": "/spec/taints", "value": rest},
            ]);
            by.send(Method::PATCH, &path, JSON_PATCH, &patch)
        },
    },
    Act {
        what: "cilium: network available",
        by: CILIUM,
        code: None,
        request: |by, node| {
            let condition = json!({"type": "NetworkUnavailable", "status": "False"});
            status(by, node, &json!({"status": {"conditions": [condition]}}))
        },
    },
    Act {
        what: "cluster-autoscaler: candidate",
        by: AUTOSCALER,
        code: None,
        request: |by, node| {
            let key = "DeletionCandidateOfClusterAutoscaler";
            taint(by, node, key, "PreferNoSchedule")
        },
    },
    Act {
        what: "kured: prefer no schedule",
        by: KURED,
        code: None,
        request: |by, node| {
            taint(
                by,
                node,
                "weave.works/kured-node-reboot",
                "PreferNoSchedule",
            )
        },
    },
    Act {
        what: "kured: annotations",
        by: KURED,
        code: None,
        request: |by, node| {
            let note = json!({"weave.works/kured-reboot-in-progress": "2026-11-22T15:04:05Z"});
            strategic(by, node, &json!({"metadata": {"annotations": note}}))
        },
    },
    Act {
        what: "karpenter: disrupted",
        by: KARPENTER,
        code: Some("maint-held-taint"),
        request: |by, node| taint(by, node, "karpenter.sh/disrupted", "NoSchedule"),
    },
    Act {
        what: "cluster-autoscaler: to be deleted",
        by: AUTOSCALER,
        code: Some("maint-held-cordon"),
        request: |by, node| {
            put(by, node, |spec| {
                let key = "ToBeDeletedByClusterAutoscaler";
                spec["taints"] =
                    json!([{"key": key, "value": "1790000000", "effect": "NoSchedule"}]);
                spec["unschedulable"] = json!(true);
            })
        },
    },
    Act {
        what: "cluster-autoscaler: to be deleted, without a cordon",
        by: AUTOSCALER,
        code: Some("maint-held-taint"),
        request: |by, node| {
            put(by, node, |spec| {
                let key = "ToBeDeletedByClusterAutoscaler";
                spec["taints"] =
                    json!([{"key": key, "value": "1790000001", "effect": "NoExecute"}]);
            })
        },
    },
    Act {
        what: "cluster-autoscaler: rolled back",
        by: AUTOSCALER,
        code: None,
        request: |by, node| {
            put(by, node, |spec| {
                spec["taints"] = json!([]);
                spec["unschedulable"] = json!(false);
            })
        },
    },
    Act {
        what: "kured: cordon",
        by: KURED,
        code: Some("maint-held-cordon"),
        request: |by, node| strategic(by, node, &json!({"spec": {"unschedulable": true}})),
    },
    Act {
        what: "kured: uncordon of no hold's cordon",
        by: KURED,
        code: None,
        request: |by, node| strategic(by, node, &json!({"spec": {"unschedulable": null}})),
    },
    Act {
        what: "cloud: the instance is gone",
        by: CLOUD,
        code: Some("maint-held-delete"),
        request: |by, node| by.delete(&format!("{NODES}/{node}")),
    },
];

/// The programs, with the rights on nodes that they need.
fn programs(plane: &ControlPlane) -> Vec<(&'static str, Person)> {
    let on = |resource: &str, verbs: &[&str]| Rule::new("", &[resource], verbs);
    let each = PROGRAMS.into_iter().map(|name| {
        let rules = match name {
            KUBELET => vec![on("nodes", &["get"]), on("nodes/status", &["patch"])],
            CILIUM => vec![
                on("nodes", &["get", "patch"]),
                on("nodes/status", &["patch"]),
            ],
            CLOUD => vec![
                on("nodes", &["get", "patch", "delete"]),
                on("nodes/status", &["patch"]),
            ],
            AUTOSCALER => vec![on("nodes", &["get", "update", "patch"])],
            _ => vec![on("nodes", &["get", "patch", "delete"])],
        };
        plane.grant(name, &rules).expect("rights");
        (name, person(plane, name, &[]))
    });
    each.collect()
}

/// The label and annotations of a hold by `user`.
pub(crate) fn hold(lock_id: &str, user: &str) -> Value {
    json!({"metadata": {
        "labels": {"kubectl-maint.dev/held": "true"},
        "annotations": {
            "kubectl-maint.dev/held-by": "alice@bastion",
            "kubectl-maint.dev/held-lock-id": lock_id,
            "kubectl-maint.dev/held-reason": "bad DIMM",
            "kubectl-maint.dev/held-user": user,
        },
    }})
}

/// Repeats the request after a conflict, because the real controller manager writes to the same nodes.
fn until_no_conflict(mut request: impl FnMut() -> Answer) -> Answer {
    loop {
        match request() {
            Err(refused) if refused.code == 409 => {}
            answer => return answer,
        }
    }
}

#[test]
fn programs_are_refused_what_disrupts_a_held_node_and_nothing_else() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("programs");
    let programs = programs(plane);
    let holder = admin(plane);
    for is_held in [false, true] {
        let node = format!("programs-{is_held}");
        holder
            .post(NODES, &json!({"metadata": {"name": node}}))
            .expect("a node");
        if is_held {
            let path = format!("{NODES}/{node}");
            admitted(holder.patch(&path, &hold("u.1.n", "admin")), "a hold");
        }
        for act in ACTS {
            let what = format!("{} ({node})", act.what);
            let (_, by) = programs
                .iter()
                .find(|(name, _)| *name == act.by)
                .expect("a program");
            let answer = until_no_conflict(|| (act.request)(by, &node));
            match act.code.filter(|_| is_held) {
                Some(code) => refused_by(code, &answer, &what),
                None => drop(admitted(answer, &what)),
            }
        }
    }
}

#[test]
fn kubectl_neither_cordons_nor_deletes_a_held_node() {
    let Some(plane) = denying() else { return };
    let _logs = plane.keep_logs_on_panic("kubectl");
    let names = ["kubectl-held", "kubectl-free"];
    plane
        .create_nodes(&names.map(NodeSpec::ready))
        .expect("nodes");
    let alice = person(plane, "alice", &["system:masters"]);
    let bob = person(plane, "bob", &["system:masters"]);
    let path = format!("{NODES}/kubectl-held");
    admitted(alice.patch(&path, &hold("u.1.n", "alice")), "a hold");
    let kubectl = |by: &Person, arguments: &[&str]| {
        let mut command = plane.kubectl_command().expect("kubectl");
        run(command.env("KUBECONFIG", &by.kubeconfig).args(arguments))
    };
    let says = "the node is on hold by alice@bastion (bad DIMM)";
    // kubectl prints the refusal and exits with 0 (kubernetes/kubernetes#89008).
    for arguments in [["cordon", "kubectl-held"], ["drain", "kubectl-held"]] {
        let refused = kubectl(&bob, &arguments);
        assert!(refused.stderr.contains(says), "{refused:?}");
        assert!(alice.get(&path)["spec"]["unschedulable"].is_null());
    }
    let refused = kubectl(&bob, &["delete", "node", "kubectl-held"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains(says), "{refused:?}");
    for arguments in [
        [
            "taint",
            "node",
            "kubectl-held",
            "example.com/x=y:NoSchedule",
        ],
        ["label", "node", "kubectl-held", "example.com/x=y"],
    ] {
        let run = kubectl(&bob, &arguments);
        assert_eq!(run.code, 0, "{run:?}");
    }
    let refused = kubectl(
        &bob,
        &["label", "node", "kubectl-held", "kubectl-maint.dev/held-"],
    );
    assert!(refused.stderr.contains("maint-held-record"), "{refused:?}");
    for arguments in [
        &["drain", "kubectl-free"][..],
        &["uncordon", "kubectl-free"],
        &["delete", "node", "kubectl-free"],
    ] {
        let run = kubectl(&bob, arguments);
        assert_eq!(run.code, 0, "{run:?}");
    }
    // The holder may send these requests.
    for arguments in [
        &["cordon", "kubectl-held"][..],
        &["uncordon", "kubectl-held"],
        &["delete", "node", "kubectl-held"],
    ] {
        let run = kubectl(&alice, arguments);
        assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
    }
}
