//! `why`, for objects that are stuck as in real clusters.

mod controllers;

use std::time::Duration;

use control_plane::{Readiness, Rule};
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::fixture::{Fixture, fixture};
use crate::support::{Run, requests};

impl Fixture {
    /// Runs `why` with these arguments in the namespace of the test.
    fn why(&self, words: &[&str]) -> Run {
        let run = self
            .cluster
            .maint(["why", "-n", &self.namespace])
            .args(words);
        run.succeeds()
    }

    /// The codes of all reasons.
    fn codes(&self, object: &str) -> Vec<String> {
        codes(&self.why(&[object, "-o", "json"]))
    }

    /// Patches the status of a pod.
    fn report(&self, pod: &str, status: &Value) {
        let path = format!("{}/status", self.pod_path(pod));
        self.cluster.patch(&path, &json!({"status": status}));
    }

    /// Creates a claim that is bound to a volume with this spec.
    fn bound_claim(&self, name: &str, change: &Value) {
        let volume = self.cluster.name(name);
        let mut spec = json!({
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "none",
        });
        for (field, value) in change.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let volume_object = json!({"metadata": {"name": volume}, "spec": spec});
        self.cluster
            .create("/api/v1/persistentvolumes", &volume_object);
        let claims = self.at("/api/v1", "persistentvolumeclaims");
        self.cluster.create(
            &claims,
            &json!({
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "none",
                    "volumeName": volume,
                },
            }),
        );
        let bound = json!({"status": {"phase": "Bound"}});
        self.cluster
            .patch(&format!("{claims}/{name}/status"), &bound);
    }
}

/// The codes of all reasons in a run's JSON.
fn codes(run: &Run) -> Vec<String> {
    let item = run.item();
    let reasons = item["reasons"].as_array().into_iter().flatten();
    let codes = reasons.map(|reason| reason["code"].as_str().expect("a code").to_owned());
    codes.collect()
}

/// The part of a pod's spec that uses a claim.
fn using(claim: &str) -> Value {
    json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]})
}

#[test]
fn a_pod_of_an_unreachable_node_waits_for_its_kubelet() {
    fixture("why-down", |fixture| {
        fixture.ended_member(3, 2);
        let run = fixture.why(&["pod/web-0", "-v6"]);
        // The requests: Pod, Node, heartbeat and Events.
        assert_eq!(requests(&run), ["GET"; 4], "{run}");
        let run = fixture.why(&["pod/web-0"]);
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/web-0
        pod/web-0 should have ended [length] ago. node/worker-1 has been unreachable for 10m, so its
        kubelet cannot end the pod or confirm that it ended. StatefulSet/web cannot replace it before it is
        gone.

        Next:
          # show the state of the node, and who works on it
          kubectl maint describe worker-1
          # power it off, then let its pods run elsewhere
          kubectl maint fence worker-1 -- HOOK
          # if you cannot fence it, check the risks: this deletes nothing yet
          kubectl maint force-delete pod/web-0 -n shop
        -- exit code 0
        ");
        let run = fixture.why(&["pod/web-0", "-o", "json"]);
        let item = run.item();
        assert_eq!(item["state"], "Terminating");
        assert_eq!(item["node"], fixture.node);
        assert!(item["graceUntil"].is_string(), "{run}");
        assert_eq!(item["terminatingSince"], Value::Null, "{run}");
        let next = item["next"].as_array().expect("commands");
        let last = next.last().expect("a command")["command"].as_str();
        assert!(
            last.is_some_and(|last| last.contains(" force-delete pod/web-0 ")),
            "{run}"
        );
        fixture
            .cluster
            .delete(&format!("/api/v1/namespaces/{}", fixture.namespace));
        let namespace = format!("namespace/{}", fixture.namespace);
        let run = fixture.why(&[&namespace, "-o", "json"]);
        let item = run.item();
        assert!(item["terminatingSince"].is_string(), "{run}");
        assert_eq!(item["graceUntil"], Value::Null, "{run}");
    });
}

#[test]
fn a_pod_that_was_not_asked_to_end_says_when_it_will_be() {
    fixture("why-tolerating", |fixture| {
        let taint = json!({"spec": {"taints": [{
            "key": "node.kubernetes.io/unreachable", "effect": "NoExecute",
            "timeAdded": crate::support::ago(60).split('.').next().map(|time| format!("{time}Z")),
        }]}});
        fixture
            .cluster
            .patch(&format!("/api/v1/nodes/{}", fixture.node), &taint);
        fixture.make_pod("web-1", &json!({}));
        let run = fixture.why(&["pod/web-1"]);
        // Line breaks depend on the length of the node's name.
        let text = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("It will be evicted in "), "{run}");
        assert!(!run.stdout.contains("force-delete"), "{run}");
        let forever = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        fixture.make_pod("logs", &forever);
        assert_eq!(
            fixture.codes("pod/logs"),
            ["NodeUnreachable", "NeverEvicted"]
        );
    });
}

#[test]
fn a_finalizer_is_named_with_who_removes_it() {
    fixture("why-finalizer", |fixture| {
        let finalizers = json!(["batch.kubernetes.io/job-tracking", "example.com/backup"]);
        fixture.make_pod("job-1", &json!({}));
        // The Job removes its finalizer only after the pod is in such a phase.
        fixture.report("job-1", &json!({"phase": "Failed"}));
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let path = format!("{}?fieldManager=backup-operator", fixture.pod_path("job-1"));
        fixture.cluster.patch(&path, &patch);
        let path = format!("{}?gracePeriodSeconds=0", fixture.pod_path("job-1"));
        fixture.cluster.delete(&path);
        let run = fixture.why(&["pod/job-1", "-v6"]);
        assert_eq!(requests(&run), ["GET"; 1], "{run}");
        let run = fixture.why(&["pod/job-1"]);
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/job-1
        pod/job-1 ended [length] ago, and only its finalizers keep it. Finalizer batch.kubernetes.io/job-tracking:
        the Job controller removes it when the pod is in phase Succeeded or Failed and was counted.
        Finalizer example.com/backup: the controller of this finalizer has to remove it; backup-operator
        added it.

        Next:
          # see who added it, and check that this controller runs
          kubectl get pod job-1 -o yaml --show-managed-fields -n shop
        -- exit code 0
        ");
        assert_eq!(fixture.codes("pod/job-1"), ["Finalizer", "Finalizer"]);
    });
}

#[test]
fn a_force_deleted_pod_is_not_called_ended_before_its_kubelet_says_so() {
    fixture("why-forced", |fixture| {
        let kept = json!({"metadata": {"finalizers": ["example.com/backup"]}});
        fixture.make_pod("web-2", &kept);
        let path = format!("{}?gracePeriodSeconds=0", fixture.pod_path("web-2"));
        fixture.cluster.delete(&path);
        let run = fixture.why(&["pod/web-2"]);
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/web-2
        pod/web-2 should have ended [length] ago. node/worker-1 has been unreachable for 10m, so its
        kubelet cannot end the pod or confirm that it ended. Finalizer example.com/backup: the controller of
        this finalizer has to remove it; unknown added it.

        Next:
          # show the state of the node, and who works on it
          kubectl maint describe worker-1
          # see who added it, and check that this controller runs
          kubectl get pod web-2 -o yaml --show-managed-fields -n shop
          # power it off, then let its pods run elsewhere
          kubectl maint fence worker-1 -- HOOK
        -- exit code 0
        ");
        fixture.report("web-2", &json!({"phase": "Failed"}));
        let run = fixture.why(&["pod/web-2", "-o", "json"]);
        assert_eq!(run.item()["state"], "HeldByFinalizer");
    });
}

#[test]
fn on_a_live_node_the_kubelet_has_time_or_hangs() {
    fixture("why-alive", |fixture| {
        fixture.heartbeat();
        let node = fixture.make_node("worker-4", Readiness::Ready, Duration::ZERO);
        let hook = json!({"exec": {"command": ["sleep", "60"]}});
        let container = json!([{"name": "main", "image": "none", "lifecycle": {"preStop": hook}}]);
        fixture.make_pod(
            "slow",
            &json!({"spec": {
                "nodeName": node, "containers": container, "terminationGracePeriodSeconds": 7200,
            }}),
        );
        fixture.cluster.delete(&fixture.pod_path("slow"));
        let run = fixture.why(&["pod/slow"]);
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/slow
        pod/slow is being deleted. It has 2h of its grace period left, in which the preStop hook of
        container main may still run.

        Next:
          # wait until it is gone
          kubectl wait --for=delete pod/slow --timeout=121m -n shop
        -- exit code 0
        ");

        fixture.bound_claim(
            "data",
            &json!({"csi": {"driver": "d", "volumeHandle": "h"}}),
        );
        let mut spec = using("data");
        spec["nodeName"] = json!(node);
        fixture.ended_pod("hung", None, &json!({"spec": spec}));
        assert_eq!(fixture.codes("pod/hung"), ["Unconfirmed"]);
        let state = |state: &Value| {
            json!({"containerStatuses": [{
                "name": "main", "image": "none", "imageID": "", "ready": false,
                "restartCount": 0, "state": state,
            }]})
        };
        fixture.report("hung", &state(&json!({"running": {}})));
        let run = fixture.why(&["pod/hung"]);
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/hung
        pod/hung should have ended [length] ago. The kubelet on node/worker-4 has not been able to end
        container main. Often a process hangs in the kernel, for example on storage that does not answer.

        Next:
          # read its events
          kubectl describe pod hung -n shop
          # lock the node, then drain and restart it
          kubectl maint acquire worker-4 -m WHY
        -- exit code 0
        ");
        let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
        fixture.report("hung", &state(&waiting));
        let run = fixture.why(&["pod/hung"]);
        assert!(
            run.stdout.contains("containers were never started"),
            "{run}"
        );
        fixture.report("hung", &state(&json!({"terminated": {"exitCode": 137}})));
        assert_eq!(fixture.codes("pod/hung"), ["Unconfirmed"]);
        fixture.report("hung", &json!({"phase": "Failed"}));
        assert_eq!(fixture.codes("pod/hung"), ["Unmount"]);
    });
}

#[test]
fn a_volume_of_a_node_that_is_down_keeps_a_pod_pending() {
    fixture("why-affinity", |fixture| {
        let affinity = |node: &str| {
            json!({
                "local": {"path": "/mnt/a"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
                ]}]}},
            })
        };
        for (claim, node) in [("down", &*fixture.node), ("nowhere", "none-such")] {
            fixture.bound_claim(claim, &affinity(node));
            let mut spec = using(claim);
            spec["nodeName"] = Value::Null;
            fixture.make_pod(claim, &json!({"spec": spec}));
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 node(s) had volume node affinity conflict.",
            });
            let status = json!({"phase": "Pending", "conditions": [condition]});
            fixture.report(claim, &status);
        }
        let run = fixture.why(&["pod/down", "-v6"]);
        // The requests: Pod, claim, volume and nodes.
        assert_eq!(requests(&run), ["GET"; 4], "{run}");
        let run = fixture.why(&["pod/down"]);
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/down
        pod/down is Pending and has no node. The scheduler says: 0/3 nodes are available: 3 node(s) had
        volume node affinity conflict. Volume down (claim down) can only be used on
        node/worker-1 (not ready).

        Next:
          # read its events
          kubectl describe pod down -n shop
          # see its node affinity
          kubectl describe pv down
          # show the state of the node, and who works on it
          kubectl maint describe worker-1
        -- exit code 0
        ");
        let run = fixture.why(&["pod/nowhere"]);
        assert!(
            run.stdout.contains("its node affinity matches none."),
            "{run}"
        );
        assert_eq!(
            fixture.codes("pod/nowhere"),
            ["Unschedulable", "VolumeNodeAffinity"]
        );
    });
}

#[test]
fn forbidden_reads_are_one_line_and_no_failure() {
    fixture("why-rights", |fixture| {
        fixture.ended_member(3, 2);
        let user = fixture.user("dev", &[Rule::new("", &["pods"], &["get"])]);
        let why = |words: &[&str]| {
            let run = fixture.cluster.maint(["why", "-n", &fixture.namespace]);
            run.args(words).kubeconfig(&user).run()
        };
        let run = why(&["pod/web-0"]);
        assert_eq!(run.code, 0, "{run}");
        assert_snapshot!(fixture.shown(&run), @"
        $ kubectl maint why -n shop pod/web-0
        pod/web-0 should have ended [length] ago. The kubelet on node/worker-1 has not confirmed that
        it ended. StatefulSet/web cannot replace it before it is gone.

        Next:
          # read its events
          kubectl describe pod web-0 -n shop
        -- stderr
        Warning: could not read nodes (no permission to get nodes), events (no permission to list events in namespace shop)
        -- exit code 0
        ");
        let run = why(&["pod/none-such"]);
        assert_eq!(run.code, 1, "{run}");
        let run = why(&["pvc/data"]);
        assert_eq!(run.code, 1, "{run}");
        let hint =
            "ask an administrator for permission to get persistentvolumeclaims in namespace ";
        assert!(run.stderr.contains(hint), "{run}");
    });
}

#[test]
fn a_healthy_pod_is_reported_as_healthy() {
    fixture("why-well", |fixture| {
        let node = fixture.make_node("worker-4", Readiness::Ready, Duration::ZERO);
        fixture.make_pod("web-1", &json!({"spec": {"nodeName": node}}));
        let run = fixture.why(&["pod/web-1"]);
        assert!(
            run.stdout.ends_with("Nothing was found that blocks it.\n"),
            "{run}"
        );
        fixture.make_pod("web-2", &json!({"spec": {"nodeName": node}}));
        let pending = json!({"status": {"phase": "Pending"}});
        let path = format!("{}/status", fixture.pod_path("web-2"));
        fixture.cluster.patch(&path, &pending);
        let run = fixture.why(&["pod/web-2"]);
        assert!(
            run.stdout.contains("kubectl describe pod web-2 -n "),
            "{run}"
        );
        let nothing = fixture.why(&["pod/web-1", "-o", "jsonpath={.items[*].nosuch}"]);
        assert_eq!(nothing.stdout, "", "{nothing}");
        let run = fixture.cluster.maint(["why", "node/a"]).run();
        assert_eq!(run.code, 2, "{run}");
    });
}

/// The controller sets its conditions before the pods have ended.
#[test]
fn the_pods_of_a_namespace_are_found_although_its_conditions_say_nothing() {
    fixture("why-namespace", |fixture| {
        fixture.make_pod("web-1", &json!({}));
        let path = format!("/api/v1/namespaces/{}", fixture.namespace);
        fixture.cluster.delete(&path);
        let namespace = format!("namespace/{}", fixture.namespace);
        let unreported = ["ContentRemaining", "Unreported"];
        assert_eq!(fixture.codes(&namespace), unreported);
        let kinds = [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceDeletionContentFailure",
            "NamespaceContentRemaining",
            "NamespaceFinalizersRemaining",
        ];
        let conditions = kinds.map(|kind| json!({"type": kind, "status": "False"}));
        let status = json!({"status": {"conditions": conditions}});
        fixture.cluster.patch(&format!("{path}/status"), &status);
        let run = fixture.why(&[&namespace]);
        assert!(
            run.stdout.contains("Still in it: pods (1: web-1)."),
            "{run}"
        );
        let next = format!("why pod/web-1 -n {}\n", fixture.namespace);
        assert!(run.stdout.contains(&next), "{run}");
        let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let gone = fixture
            .cluster
            .try_send("DELETE", &fixture.pod_path("web-1"), Some(&now));
        gone.expect("it goes");
        assert_eq!(fixture.codes(&namespace), ["NothingReported"]);
    });
}
