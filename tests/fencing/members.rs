//! StatefulSets of three members, of both pod management policies, whose nodes become unreachable one after another.

use serde_json::{Value, json};

use crate::support::database::stateful_set;
use crate::support::{HEARTBEAT_AGE, Run, Stage, eventually};

const POLICIES: [(&str, &str); 2] = [("ordered", "OrderedReady"), ("parallel", "Parallel")];

fn set(stage: &Stage, name: &str, policy: &str) -> Value {
    let mut set = stateful_set(stage, name, 3, &json!([]));
    set["spec"]["podManagementPolicy"] = json!(policy);
    set
}

fn member(stage: &Stage, pod: &str) -> Option<Value> {
    stage.find_pod(pod)
}

fn uid(stage: &Stage, pod: &str) -> Value {
    member(stage, pod).map_or(Value::Null, |pod| pod["metadata"]["uid"].clone())
}

/// Waits for a member, binds it to `node`, and waits until it is ready.
fn place(stage: &Stage, pod: &str, node: &str) {
    eventually("the set makes the member", || {
        member(stage, pod).is_some_and(|pod| pod["spec"]["nodeName"].is_null())
    });
    stage
        .plane
        .bind_pod(stage.own(), pod, node)
        .expect("it is placed");
    eventually("the member runs", || {
        member(stage, pod).is_some_and(|pod| pod["status"]["phase"] == "Running")
    });
}

/// The report on a member, once nothing blocks its deletion.
fn report(stage: &Stage, pod: &str) -> String {
    let mut report = String::new();
    eventually("nothing is refused any more", || {
        let run = stage.maint(["force-delete", pod, "-n", stage.own()]).run();
        assert_eq!(run.code, 6, "{run}");
        report = run.to_string();
        !report.contains("BLOCKER")
    });
    report
}

fn force_delete(stage: &Stage, pod: &str) -> Run {
    let force = ["force-delete", pod, "-n", stage.own()];
    let confirmed = ["--accept-risk", "-m", "the rack burns"];
    stage.maint(force).args(confirmed).succeeds()
}

/// If a majority is left, a member is replaced at once. If not, the report says so, and with OrderedReady the
/// replacement waits for the members before it, as `why` says.
#[test]
fn a_member_is_replaced_by_the_rules_of_its_set() {
    let mut stage = Stage::new("members");
    let _logs = stage.plane.keep_logs_on_panic("fencing-members");
    let nodes = ["worker-0", "worker-1", "worker-2"].map(|name| stage.name(name));
    let names = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&names);
    stage.create(&[stage.namespace()]);
    stage.create(&POLICIES.map(|(name, policy)| set(&stage, name, policy)));
    for (name, _) in POLICIES {
        for (index, node) in names.iter().enumerate() {
            place(&stage, &format!("{name}-{index}"), node);
        }
    }
    let stops = |index: usize| {
        let stopped = kubelets.stop_heartbeats(names[index], HEARTBEAT_AGE);
        stopped.expect("its heartbeats stop");
        stage.is_reported_unreachable(names[index]);
    };
    stops(0);
    for (name, _) in POLICIES {
        let pod = format!("pod/{name}-0");
        let before = uid(&stage, &format!("{name}-0"));
        let report = report(&stage, &pod);
        for line in ["RISK     owner", "info     quorum"] {
            assert!(report.contains(line), "{line}: {report}");
        }
        let run = force_delete(&stage, &pod);
        let line = format!("StatefulSet/{name}: 2 of 3 ready (namespace members)\n");
        assert!(run.stderr.ends_with(&line), "{run}");
        eventually("the set makes the member", || {
            let now = uid(&stage, &format!("{name}-0"));
            !now.is_null() && now != before
        });
    }
    stops(1);
    for (name, _) in POLICIES {
        let pod = format!("pod/{name}-1");
        let report = report(&stage, &pod);
        assert!(report.contains("RISK     quorum"), "{report}");
        force_delete(&stage, &pod);
    }
    eventually("the set makes the member", || {
        !uid(&stage, "parallel-1").is_null()
    });
    let why = stage.maint(["why", "pod/ordered-1", "-n", stage.own()]);
    let run = why.args(["-o", "json"]).succeeds();
    assert_eq!(run.item()["reasons"][0]["code"], "OrderedReady", "{run}");
    place(&stage, "ordered-0", names[2]);
    place(&stage, "ordered-1", names[2]);
    stage.keep(kubelets);
}
