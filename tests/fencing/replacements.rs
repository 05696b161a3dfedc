//! After the pods of a fenced node are gone, `fence` waits until they run again on other nodes.

use control_plane::Kubelets;
use rexpect::session::spawn_command;
use serde_json::{Value, json};

use crate::support::database::{database, local_database, placed_on, pod, runs_on};
use crate::support::{HEARTBEAT_AGE, Run, Stage, eventually};

/// Creates three nodes with kubelets.
fn nodes(prefix: &str) -> (Stage, [String; 3], Kubelets) {
    let stage = Stage::new(prefix);
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let kubelets = stage.kubelets(&nodes.each_ref().map(String::as_str));
    (stage, nodes, kubelets)
}

/// Creates a Deployment of one pod in the namespace of the test. The pod is not evicted from a node
/// that is lost.
fn deployment(stage: &Stage) {
    let tolerations = ["unreachable", "not-ready"].map(|taint| {
        let key = format!("node.kubernetes.io/{taint}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute"})
    });
    stage.create(&[json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": stage.own()},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": tolerations,
                    "containers": [{"name": "c", "image": "none"}],
                },
            },
        },
    })]);
}

/// The names of the pods of the Deployment: those on `node`, or those without a node.
fn web(stage: &Stage, node: Option<&str>) -> Vec<String> {
    let pods = stage.pods_with("app=web").into_iter();
    let there = pods.filter(|pod| pod["spec"]["nodeName"].as_str() == node);
    let name = |pod: Value| pod["metadata"]["name"].as_str().expect("a name").to_owned();
    there.map(name).collect()
}

/// Binds the pod of the Deployment that has no node to `node`. Returns the name of the pod.
fn place_web(stage: &Stage, node: &str) -> String {
    eventually("the Deployment makes a pod", || {
        !web(stage, None).is_empty()
    });
    let name = web(stage, None).remove(0);
    let placed = stage.plane.bind_pod(stage.own(), &name, node);
    placed.expect("it is placed");
    name
}

#[test]
fn the_pods_of_a_fenced_node_are_followed_until_they_run_again() {
    let (mut stage, [unreachable, other, _], kubelets) = nodes("back");
    let _logs = stage.plane.keep_logs_on_panic("fencing-back");
    database(&stage);
    deployment(&stage);
    runs_on(&stage, &unreachable);
    let web_before = place_web(&stage, &unreachable);
    kubelets
        .stop_heartbeats(&unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    stage.is_reported_unreachable(&unreachable);

    let fence = ["fence", &unreachable, "--powered-off=dark", "-o", "json"];
    let mut running = stage.maint(fence).start();
    running.says("for 2 pods to run again");
    let db_after = runs_on(&stage, &other);
    if running.is_over() {
        panic!("it did not wait for the other pod: {}", running.ends());
    }
    let web_after = place_web(&stage, &other);
    let run = running.ends();
    assert_eq!(run.code, 0, "{run}");
    let told = format!("node/{unreachable}: 2 pods run again\n");
    assert!(run.stderr.ends_with(&told), "{run}");
    let item = run.item();
    let removed = item["removedPods"].as_array().expect("a list");
    let replacement = |name: &str| {
        let pod = removed.iter().find(|pod| pod["name"] == name);
        let pod = pod.unwrap_or_else(|| panic!("{name}: {item:#}"));
        assert_eq!(pod["outcome"], "Replaced", "{item:#}");
        assert_eq!(pod["replacement"]["node"], *other, "{item:#}");
        assert_eq!(pod["replacement"]["running"], true, "{item:#}");
        pod["replacement"].clone()
    };
    assert_eq!(replacement("db-0")["uid"], db_after);
    assert_eq!(replacement(&web_before)["name"], *web_after);

    // A later run reads from the record which pods the node had.
    let run = stage.maint(fence).succeeds();
    assert!(run.stderr.ends_with(&told), "{run}");
    let item = run.item();
    let removed = item["removedPods"].as_array().expect("a list");
    assert_eq!(removed.len(), 2, "{item:#}");

    // The record of an earlier version does not name them.
    let mut record = stage.record(&unreachable).expect("a record");
    record["removed"].take();
    stage.annotate(&unreachable, "kubectl-maint.dev/fenced", &record);
    let run = stage.maint(fence).succeeds();
    assert!(run.stderr.contains("not checked whether pods"), "{run}");
    assert_eq!(run.item()["removedPods"], Value::Null, "{run}");
    stage.keep(kubelets);
}

/// The role of a fencer is enough to read the reason.
#[test]
fn a_pod_that_cannot_run_elsewhere_is_told_with_its_reason() {
    let (mut stage, [unreachable, ..], kubelets) = nodes("stuck");
    let _logs = stage.plane.keep_logs_on_panic("fencing-stuck");
    let fencer = stage.fencer("fay");
    stage.kubectl(&[
        "label",
        "node",
        &unreachable,
        &format!("disk={}", stage.own()),
    ]);
    local_database(&stage);
    placed_on(&stage, &unreachable);
    let before = pod(&stage).expect("it runs")["metadata"]["uid"].clone();
    kubelets
        .stop_heartbeats(&unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    stage.is_reported_unreachable(&unreachable);

    let fence = ["fence", &unreachable, "--powered-off=dark", "-o", "json"];
    let blocked = |run: &Run| {
        let claim = format!("{}/db-0 with db", stage.own());
        let told = format!(
            "node/{unreachable}: 1 pod will stay Pending when recreated, because no other ready node can reach the \
             volume: {claim}\n"
        );
        assert_eq!(run.stderr.matches(&told).count(), 1, "{run}");
        let item = run.item();
        let pod = json!([{
            "namespace": stage.own(), "name": "db-0", "reasons": [{
                "code": "VolumeNodeAffinity",
                "message": "No other ready node can reach its volume: db.",
            }],
        }]);
        assert_eq!(item["blockedReplacements"], pod, "{run}");
        told
    };
    let dry_run = stage.maint(fence).arg("--dry-run=server");
    blocked(&dry_run.kubeconfig(&fencer).succeeds());
    let mut running = stage
        .maint(fence)
        .arg("--timeout=60s")
        .kubeconfig(&fencer)
        .start();
    running.says("for 1 pod to run again");
    let run = running.ends();
    assert_eq!(run.code, 4, "{run}");
    let said_first = blocked(&run);
    let (before_hold, _) = run.stderr.split_once("on hold until").expect("a hold");
    assert!(before_hold.contains(&said_first), "{run}");
    let name = format!("{}/db-0", stage.own());
    let told = format!(
        "{name} does not run again yet: Volume {} (claim db) can only be used on node/{unreachable} (not ready). \
         Its scheduler, default-scheduler, has not reported on it yet: check that it runs.\n",
        stage.name("db")
    );
    assert!(run.stderr.contains(&told), "{run}");
    let told = format!(
        "error: timed out after 1m: node/{unreachable} is fenced, but 1 pod ({name}) \
         does not run again yet\nhint: see why with `kubectl maint why pod/db-0 -n {}`\n",
        stage.own()
    );
    assert!(run.stderr.ends_with(&told), "{run}");
    let item = run.item();
    assert_eq!(
        (&item["fenced"], &item["error"]["code"]),
        (&json!(true), &json!("TimedOut"))
    );
    let removed = &item["removedPods"][0];
    assert_eq!(removed["outcome"], "Replaced", "{item:#}");
    assert_ne!(removed["replacement"]["uid"], before, "{item:#}");
    assert_eq!(removed["replacement"]["running"], false, "{item:#}");
    assert_eq!(
        removed["reasons"][0]["code"], "VolumeNodeAffinity",
        "{item:#}"
    );

    let again = stage.maint(fence).arg("--timeout=1s").kubeconfig(&fencer);
    let run = again.run();
    assert_eq!(run.code, 4, "{run}");
    assert_eq!(&run.item()["removedPods"][0], removed, "{run}");

    let on_terminal = stage.maint(fence).args(["--yes", "--timeout=5s"]);
    let on_terminal = on_terminal.kubeconfig(&fencer).env("TERM", "xterm");
    let mut terminal = spawn_command(on_terminal.command(), Some(60_000)).expect("a terminal");
    for seconds in 1..=2 {
        let shown = format!("waiting for replacements ({seconds}s)");
        terminal.exp_string(&shown).expect("the time so far");
    }
    terminal.exp_eof().expect("it ends");
    stage.keep(kubelets);
}

/// There will be no replacement, so the command does not wait for one.
#[test]
fn a_pod_that_its_controller_no_longer_wants_is_not_awaited() {
    let (mut stage, [unreachable, ..], kubelets) = nodes("unwanted");
    let _logs = stage.plane.keep_logs_on_panic("fencing-unwanted");
    stage.create(&[stage.namespace()]);
    deployment(&stage);
    let pod = place_web(&stage, &unreachable);
    kubelets
        .stop_heartbeats(&unreachable, HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    stage.is_reported_unreachable(&unreachable);
    let down = [
        "scale",
        "deployment",
        "web",
        "--replicas=0",
        "-n",
        stage.own(),
    ];
    stage.kubectl(&down);
    let fence = ["fence", &unreachable, "--powered-off=dark", "-o", "json"];
    let run = stage.maint(fence).succeeds();
    let removed = &run.item()["removedPods"][0];
    assert_eq!(
        (&removed["name"], &removed["outcome"]),
        (&json!(pod), &json!("Deleted"))
    );
    stage.keep(kubelets);
}

/// The control plane does not change the phase of such a pod, so the phase does not show that its
/// node is lost.
#[test]
fn a_replacement_on_a_node_that_is_lost_too_does_not_count() {
    let (mut stage, [unreachable, other, _], kubelets) = nodes("lost-too");
    let _logs = stage.plane.keep_logs_on_panic("fencing-lost-too");
    stage.create(&[stage.namespace()]);
    deployment(&stage);
    let lose = |node: &str| {
        kubelets
            .stop_heartbeats(node, HEARTBEAT_AGE)
            .expect("its heartbeats stop");
        stage.is_reported_unreachable(node);
    };
    let before = place_web(&stage, &unreachable);
    lose(&unreachable);
    stage.kubectl(&["delete", "pod", &before, "--wait=false", "-n", stage.own()]);
    let after = place_web(&stage, &other);
    let status = |kind: &str| {
        let conditions = stage.find_pod(&after).unwrap_or_default()["status"]["conditions"].clone();
        let mut conditions = conditions.as_array().into_iter().flatten();
        let found = conditions.find(|condition| condition["type"] == kind);
        found.map(|condition| condition["status"].clone())
    };
    eventually("it runs", || status("Ready") == Some(json!("True")));
    lose(&other);
    eventually("it is marked", || status("Ready") == Some(json!("False")));
    let fence = [
        "fence",
        &unreachable,
        "--powered-off=dark",
        "-o",
        "json",
        "--timeout=60s",
    ];
    let run = stage.maint(fence).run();
    assert_eq!(run.code, 4, "{run}");
    let removed = &run.item()["removedPods"][0];
    assert_eq!(removed["replacement"]["name"], *after, "{removed:#}");
    assert_eq!(removed["replacement"]["running"], false, "{removed:#}");
    let told = format!(
        "{}/{before} (now {after}) does not run again yet: ",
        stage.own()
    );
    assert!(run.stderr.contains(&told), "{run}");
    assert!(run.stderr.contains(&format!("node/{other}")), "{run}");
    stage.keep(kubelets);
}
