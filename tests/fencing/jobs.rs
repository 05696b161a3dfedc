//! Pods of Jobs on an unreachable node: the Job's finalizer keeps them until they have failed.

use serde_json::{Value, json};

use crate::support::{HEARTBEAT_AGE, Stage, eventually};

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Creates a Job with a failure policy, which replaces only failed pods.
fn job(stage: &Stage) {
    stage.create(&[
        stage.namespace(),
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "copy", "namespace": stage.own()},
            "spec": {
                "backoffLimit": 0,
                "podFailurePolicy": {"rules": [{
                    "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}],
                }]},
                "template": {"spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "c", "image": "none"}],
                }},
            },
        }),
    ]);
}

/// The pods of the Job, except the one with this uid.
fn others(stage: &Stage, uid: &Value) -> Vec<Value> {
    let mut pods = stage.pods_with("");
    pods.retain(|pod| pod["metadata"]["uid"] != *uid);
    pods
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().expect("a name")
}

/// Creates a pod of the Job that was evicted from a node that is unreachable by now. Returns its
/// name and uid.
fn stuck(stage: &mut Stage) -> (String, Value) {
    let nodes = ["worker-1", "worker-2", "worker-3"].map(|name| stage.name(name));
    let names = nodes.each_ref().map(String::as_str);
    let kubelets = stage.kubelets(&names);
    job(stage);
    eventually("the Job makes a pod", || {
        !others(stage, &Value::Null).is_empty()
    });
    let pod = others(stage, &Value::Null).remove(0);
    let pod_name = name(&pod).to_owned();
    stage
        .plane
        .bind_pod(stage.own(), &pod_name, names[0])
        .expect("it is placed");
    let read = || stage.find_pod(&pod_name);
    eventually("the pod runs", || {
        read().is_some_and(|pod| pod["status"]["phase"] == "Running")
    });
    kubelets
        .stop_heartbeats(names[0], HEARTBEAT_AGE)
        .expect("its heartbeats stop");
    eventually("the pod is evicted", || {
        read().is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
    });
    stage.keep(kubelets);
    (pod_name, pod["metadata"]["uid"].clone())
}

/// Force-deletes the pod and accepts every risk of its report, once there is no blocker.
fn force_delete(stage: &Stage, pod: &str) {
    let target = format!("pod/{pod}");
    let force = ["force-delete", &target, "-n", stage.own()];
    let mut report = String::new();
    eventually("nothing is refused any more", || {
        let run = stage.maint(force).run();
        assert_eq!(run.code, 6, "{run}");
        report = run.to_string();
        !report.contains("BLOCKER")
    });
    let phase = "info     finalizers        its phase is set to Failed first";
    assert!(report.contains(phase), "{report}");
    let words = ["--accept-risk=owner", "-m", "the rack burns"];
    let run = stage.maint(force).args(words).succeeds();
    let message = format!("{target} force-deleted\n");
    assert!(run.stdout.ends_with(&message), "{run}");
    assert_eq!(stage.find_pod(pod), None);
}

/// The Job waits for the result of the pod, but its kubelet will never report one.
#[test]
fn a_job_that_replaces_only_failed_pods_gets_one_that_has_failed() {
    let mut stage = Stage::new("job");
    let _logs = stage.plane.keep_logs_on_panic("fencing-job");
    let (pod, uid) = stuck(&mut stage);
    assert!(others(&stage, &uid).is_empty(), "it is not replaced yet");
    force_delete(&stage, &pod);
    eventually("the Job makes another", || !others(&stage, &uid).is_empty());
    // The failure policy ignores disruptions, so no failure is counted.
    let job = format!("/apis/batch/v1/namespaces/{}/jobs/copy", stage.own());
    let job = stage.get(&job).expect("it");
    assert_eq!(job["status"]["failed"], Value::Null, "{job:#}");
}

/// After `kubectl delete --force`, the pod stays and is not replaced.
#[test]
fn a_pod_that_a_bare_deletion_has_stuck_is_freed() {
    let mut stage = Stage::new("bare-deletion");
    let _logs = stage.plane.keep_logs_on_panic("fencing-bare");
    let (pod, uid) = stuck(&mut stage);
    let bare = ["delete", "pod", &pod, "-n", stage.own(), "--force"];
    stage.kubectl(&[&bare[..], &["--grace-period=0", "--wait=false"]].concat());
    let left = stage.find_pod(&pod);
    let left = left.expect("its finalizer keeps it");
    assert_eq!(left["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(left["metadata"]["finalizers"], json!([TRACKING]));
    assert_eq!(left["status"]["phase"], "Running");
    force_delete(&stage, &pod);
    eventually("the Job makes another", || !others(&stage, &uid).is_empty());
}
