//! The loss of whole zones: compared with the real node lifecycle controller, which stops evicting in the same cases.

use crate::support::{HEARTBEAT_AGE, Plane, Run, Stage, eventually};

const ZONE: &str = "topology.kubernetes.io/zone";

fn fence(stage: &Stage, node: &str) -> Run {
    let words = ["fence", node, "--powered-off=dark", "--dry-run"];
    stage.maint(words).run()
}

#[track_caller]
fn is_suspect(run: &Run, words: &str) {
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains(words), "{run}");
}

/// Whether the control plane evicts the pods of an unreachable node.
fn is_evicted(stage: &Stage, node: &str) -> bool {
    let node = stage.node(node);
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| {
        taint["key"] == "node.kubernetes.io/unreachable" && taint["effect"] == "NoExecute"
    })
}

#[test]
fn zones_of_one_and_three_nodes_and_all_zones() {
    static PLANE: Plane = Plane::new();
    let stage = Stage::on(&PLANE, "zones");
    let _logs = stage.plane.keep_logs_on_panic("fencing-zones");
    let zones = [("a", 1), ("b", 3), ("c", 2)].map(|(zone, count)| {
        let names: Vec<String> = (1..=count)
            .map(|n| stage.name(&format!("{zone}-{n}")))
            .collect();
        let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
        let kubelets = stage
            .plane
            .kubelets(&nodes, &[(ZONE, zone)])
            .expect("nodes");
        (names, kubelets)
    });
    let stop_heartbeats = |zone: usize, number: usize| {
        let (names, kubelets) = &zones[zone];
        kubelets
            .stop_heartbeats(&names[number], HEARTBEAT_AGE)
            .expect("its heartbeats stop");
        stage.is_reported_unreachable(&names[number]);
        names[number].as_str()
    };

    // The loss of a small zone is not suspicious while other zones answer.
    let a = stop_heartbeats(0, 0);
    assert_eq!(fence(&stage, a).code, 0);
    eventually("its pods are evicted", || is_evicted(&stage, a));
    let b = stop_heartbeats(1, 0);
    stop_heartbeats(1, 1);
    assert_eq!(fence(&stage, b).code, 0);
    eventually("its pods are evicted", || is_evicted(&stage, b));
    stop_heartbeats(1, 2);
    is_suspect(
        &fence(&stage, b),
        "3 of 3 nodes of zone b are unreachable: ",
    );

    // Nodes that are fenced are not counted.
    stage.fence(a);
    stage
        .maint([
            "fence",
            b,
            "--powered-off=dark",
            "--accept-risk=mass-loss",
            "-m",
            "dark",
        ])
        .succeeds();
    assert_eq!(fence(&stage, &zones[1].0[1]).code, 0);

    // If no node answers, Kubernetes stops evicting too.
    let c = stop_heartbeats(2, 0);
    assert_eq!(fence(&stage, c).code, 0);
    stop_heartbeats(2, 1);
    is_suspect(
        &fence(&stage, c),
        "2 of 2 nodes of zone c are unreachable: ",
    );
    eventually("nothing is evicted any more", || !is_evicted(&stage, c));
}
