//! deploy/pod-policy.yaml: users who force-delete a pod with any client get a warning. Controllers that have to do so
//! do not.

use std::process::Command;
use std::time::{Duration, Instant};

use control_plane::Readiness;
use serde_json::json;

use crate::fixture::{Fixture, fixture};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/pod-policy.yaml");

/// The beginning of the warning.
const WARNED: &str = "nothing checks that the processes of this pod have ended on node ";

impl Fixture {
    /// The stderr of a dry run of `kubectl delete` for pods in the namespace, with these arguments.
    fn kubectl_delete(&self, words: &[&str]) -> String {
        let mut kubectl: Command = self.cluster.plane().kubectl_command().expect("kubectl");
        kubectl.args([
            "delete",
            "-n",
            &self.namespace,
            "--dry-run=server",
            "--wait=false",
        ]);
        let output = kubectl.args(words).output().expect("kubectl runs");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{words:?}: {stderr}");
        stderr
    }
}

#[test]
fn people_are_warned_of_a_forced_deletion_and_controllers_are_not() {
    fixture("warning", |fixture| {
        let plane = fixture.cluster.plane();
        plane
            .kubectl(&["apply", "-f", POLICY])
            .expect("it is valid");
        fixture.harmless_pod("web-1");
        fixture.make_pod("unplaced", &json!({"spec": {"nodeName": null}}));
        let force = ["--force", "--grace-period=0"];
        let forced = |more: &[&str]| fixture.kubectl_delete(&[&force[..], more].concat());
        let end = Instant::now() + Duration::from_secs(60);
        while !forced(&["pod/web-1"]).contains(WARNED) {
            assert!(Instant::now() < end, "the policy takes no effect");
        }
        let warning = forced(&["pod/web-1", "--as=bob", "--as-group=system:masters"]);
        let careful = format!(
            "kubectl maint force-delete pod/web-1 -n {}",
            fixture.namespace
        );
        assert!(warning.contains(&careful), "{warning}");
        assert!(forced(&["pod", "--all"]).contains(WARNED));
        for (user, group) in [
            ("system:node:worker-1", "system:nodes"),
            (
                "system:serviceaccount:kube-system:pod-garbage-collector",
                "system:serviceaccounts:kube-system",
            ),
            ("system:kube-controller-manager", "system:authenticated"),
            ("system:kube-scheduler", "system:authenticated"),
        ] {
            let user = format!("--as={user}");
            let group = format!("--as-group={group}");
            let message = forced(&["pod/web-1", &user, &group, "--as-group=system:masters"]);
            assert!(!message.contains(WARNED), "{user}: {message}");
        }
        assert!(!forced(&["pod/unplaced"]).contains(WARNED));
        for grace in ["--grace-period=1", "--grace-period=-1"] {
            let message = fixture.kubectl_delete(&["pod/web-1", grace]);
            assert!(!message.contains(WARNED), "{grace}: {message}");
        }
        // The request has the uid that was checked as a precondition.
        let words = ["--accept-risk", "-m", "why"];
        let run = fixture.force_delete("web-1", &words).run();
        assert!(!run.stderr.contains(WARNED), "{run}");
        assert!(!fixture.is_there("web-1"), "{run}");
        let node = fixture.make_node("worker-4", Readiness::Ready, Duration::ZERO);
        fixture.make_pod("done", &json!({"spec": {"nodeName": node}}));
        let path = format!("{}/status", fixture.pod_path("done"));
        fixture
            .cluster
            .patch(&path, &json!({"status": {"phase": "Succeeded"}}));
        assert!(!forced(&["pod/done"]).contains(WARNED));
    });
}
