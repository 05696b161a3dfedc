//! A namespace with pods on an unreachable node, in a zone whose other nodes are healthy.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use control_plane::{ControlPlane, NodeSpec, Readiness, Rule};
use regex::Regex;
use serde_json::{Value, json};

use crate::support::{Cluster, Maint, Run, ago};

/// How long the node has been unreachable.
pub(crate) const UNREACHABLE_FOR: Duration = Duration::from_secs(600);

/// The finalizer with which a Job keeps its pods.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The objects of one test.
pub(crate) struct Fixture {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    /// The unreachable node.
    pub(crate) node: String,
    plane: &'static ControlPlane,
}

/// The control plane of this test binary. It runs no controllers, because they would change the state that a test has
/// set up.
fn plane() -> &'static ControlPlane {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    PLANE.get_or_init(|| {
        let plane = ControlPlane::builder().controller_manager(false).start();
        plane.expect("a control plane")
    })
}

/// Runs a test, and keeps the server's logs if it fails.
pub(crate) fn fixture(prefix: &str, test: impl FnOnce(&Fixture)) {
    let _logs = plane().keep_logs_on_panic(prefix);
    test(&Fixture::new(prefix));
}

impl Fixture {
    fn new(prefix: &str) -> Self {
        let cluster = Cluster::of_plane(prefix, plane());
        let namespace = cluster.name("shop");
        cluster.create(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": namespace}}),
        );
        let fixture = Self {
            node: cluster.name("worker-1"),
            plane: plane(),
            namespace,
            cluster,
        };
        fixture.make_node("worker-1", Readiness::Unknown, UNREACHABLE_FOR);
        fixture.make_node("worker-2", Readiness::Ready, Duration::ZERO);
        fixture.make_node("worker-3", Readiness::Ready, Duration::ZERO);
        fixture
    }

    /// Creates a node in the zone of this test.
    pub(crate) fn make_node(
        &self,
        short: &str,
        ready: Readiness,
        heartbeat_age: Duration,
    ) -> String {
        let zone = self.cluster.name("zone");
        let node = NodeSpec {
            ready,
            heartbeat_age,
            ..NodeSpec::ready(&self.cluster.name(short))
        };
        let node = node.label("topology.kubernetes.io/zone", &zone);
        self.plane
            .create_nodes(std::slice::from_ref(&node))
            .expect("a node");
        node.name
    }

    /// Renews the heartbeat of the unreachable node, as if its kubelet were back.
    pub(crate) fn heartbeat(&self) {
        self.plane.heartbeat(&[&self.node]).expect("a heartbeat");
    }

    pub(crate) fn user(&self, short: &str, rules: &[Rule]) -> PathBuf {
        let name = self.cluster.name(short);
        let kubeconfig = self.plane.user(&name, &[]).expect("a user");
        self.plane.grant(&name, rules).expect("rights");
        kubeconfig
    }

    /// The path of a collection in the namespace of this test.
    pub(crate) fn at(&self, group: &str, plural: &str) -> String {
        format!("{group}/namespaces/{}/{plural}", self.namespace)
    }

    pub(crate) fn pod_path(&self, name: &str) -> String {
        self.at("/api/v1", &format!("pods/{name}"))
    }

    /// Creates a pod on the unreachable node. `change` is applied as a merge patch.
    pub(crate) fn make_pod(&self, name: &str, change: &Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {
                "nodeName": self.node,
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "registry.example/web:1"}],
            },
        });
        merge(&mut pod, change);
        let pod = self.cluster.create(&self.at("/api/v1", "pods"), &pod);
        // The control plane sets these conditions for the pods of an unreachable node.
        self.cluster.patch(
            &format!("{}/status", self.pod_path(name)),
            &json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "False", "lastTransitionTime": ago(600)},
            ]}}),
        );
        pod
    }

    /// Deletes a pod, as `kubectl delete` does, and waits until its grace period has ended.
    pub(crate) fn end(&self, name: &str) {
        let pod = self.cluster.delete(&self.pod_path(name));
        let ends = pod["metadata"]["deletionTimestamp"]
            .as_str()
            .expect("it ends");
        let ends: DateTime<Utc> = ends.parse().expect("a time");
        while Utc::now() <= ends {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates a pod of `owner`, and deletes it with [`Self::end`].
    pub(crate) fn ended_pod(&self, name: &str, owner: Option<&Value>, change: &Value) {
        let mut pod = owner.map_or_else(|| json!({}), owned_by);
        merge(&mut pod, change);
        self.make_pod(name, &pod);
        self.end(name);
    }

    /// Creates a ReplicaSet, which guarantees nothing about its pods.
    pub(crate) fn replica_set(&self, name: &str) -> Value {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template()},
        });
        self.cluster
            .create(&self.at("/apis/apps/v1", "replicasets"), &set)
    }

    /// Creates a StatefulSet with so many members, and so many of them ready.
    pub(crate) fn stateful_set(&self, name: &str, replicas: u32, ready: u32) -> Value {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "serviceName": name,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template(),
            },
        });
        let path = self.at("/apis/apps/v1", "statefulsets");
        let set = self.cluster.create(&path, &set);
        self.cluster.patch(
            &format!("{path}/{name}/status"),
            &json!({"status": {"replicas": replicas, "readyReplicas": ready}}),
        );
        set
    }

    /// Creates a pod without risks: it belongs to a ReplicaSet and is being deleted.
    pub(crate) fn harmless_pod(&self, name: &str) {
        let set = self.replica_set(name);
        self.ended_pod(name, Some(&set), &json!({}));
    }

    /// Creates `web-0`, which is being deleted, in a StatefulSet with so many members, and so many of them ready.
    pub(crate) fn ended_member(&self, replicas: u32, ready: u32) {
        let set = self.stateful_set("web", replicas, ready);
        self.ended_pod("web-0", Some(&set), &json!({}));
    }

    /// Creates `web-0`, which is being deleted and has a volume, in a StatefulSet with 2 of 3 members ready.
    pub(crate) fn ended_member_with_volume(&self) {
        let set = self.stateful_set("web", 3, 2);
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        let spec = json!({"spec": {"volumes": [volume]}});
        self.ended_pod("web-0", Some(&set), &spec);
    }

    /// Creates a pod that is being deleted. Its Job keeps it until it has failed.
    pub(crate) fn ended_job_pod(&self, name: &str) {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {
                "podFailurePolicy": {"rules": [{
                    "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}],
                }]},
                "template": {"spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "registry.example/job:1"}],
                }},
            },
        });
        let job = self
            .cluster
            .create(&self.at("/apis/batch/v1", "jobs"), &job);
        let kept = json!({
            "metadata": {"finalizers": [TRACKING]}, "spec": {"restartPolicy": "Never"},
        });
        self.ended_pod(name, Some(&job), &kept);
    }

    /// `force-delete pod/NAME` with more arguments.
    pub(crate) fn force_delete(&self, pod: &str, words: &[&str]) -> Maint {
        let pod = format!("pod/{pod}");
        self.cluster
            .maint(["force-delete", &pod, "-n", &self.namespace])
            .args(words)
    }

    /// The level of each check of a pod.
    pub(crate) fn levels(&self, pod: &str) -> Levels {
        Levels::of(self.force_delete(pod, &["-o", "json"]))
    }

    /// The level of each check of a pod, for a user with this kubeconfig.
    #[track_caller]
    pub(crate) fn levels_for(&self, kubeconfig: &Path, pod: &str) -> Levels {
        let report = self.force_delete(pod, &["-o", "json"]);
        Levels::of(report.kubeconfig(kubeconfig))
    }

    /// The Events in the namespace.
    pub(crate) fn events(&self) -> Vec<Value> {
        let path = self.at("/apis/events.k8s.io/v1", "events");
        let list = self.cluster.get(&path);
        list["items"].as_array().expect("a list").clone()
    }

    pub(crate) fn is_there(&self, pod: &str) -> bool {
        self.cluster.find(&self.pod_path(pod)).is_some()
    }

    /// The output of a run, with values that change replaced.
    pub(crate) fn shown(&self, run: &Run) -> String {
        let text = run.to_string().replace(&self.cluster.name(""), "");
        let changing = [
            (r"resource version \d+", "resource version [number]"),
            (r"ended \d+s ago", "ended [length] ago"),
            (r"1[01]m\b", "10m"),
            (r"context admin, server", "context [context], server"),
        ];
        changing.iter().fold(text, |text, (pattern, shown)| {
            let pattern = Regex::new(pattern).expect("a pattern");
            pattern.replace_all(&text, *shown).into_owned()
        })
    }
}

impl Maint {
    /// Runs it, and expects the exit code for "not finished yet".
    #[track_caller]
    pub(crate) fn ends_unfinished(self) -> Run {
        let run = self.run();
        assert_eq!(run.code, 4, "{run}");
        run
    }
}

/// The levels of the checks in a report.
pub(crate) struct Levels(Value);

impl Levels {
    /// The levels of the first target in the JSON report of a run.
    #[track_caller]
    pub(crate) fn of(maint: Maint) -> Self {
        Self::of_run(&maint.run())
    }

    /// The levels of the first target in the JSON report of a run that has ended.
    #[track_caller]
    pub(crate) fn of_run(run: &Run) -> Self {
        assert_eq!(run.code, 6, "{run}");
        let report = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        let report = Self(report);
        let code = &report.0["items"][0]["error"]["code"];
        assert!(code == "NotConfirmed" || code == "Unsafe", "{run}");
        report
    }

    /// The checks with this id.
    fn checks(&self, id: &str) -> impl Iterator<Item = &Value> {
        let checks = self.0["items"][0]["checks"].as_array().expect("checks");
        checks.iter().filter(move |check| check["id"] == id)
    }

    /// The level of each check with this id.
    pub(crate) fn all(&self, id: &str) -> Vec<&str> {
        let levels = self.checks(id).map(|check| check["level"].as_str());
        levels.map(|level| level.expect("a level")).collect()
    }

    /// The level of the check, which is the same if there are several with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        let levels = self.all(id);
        let level = levels.first().copied();
        assert!(
            levels.iter().all(|other| Some(*other) == level),
            "{:#}",
            self.0
        );
        level
    }

    /// The message of the check.
    pub(crate) fn words(&self, id: &str) -> &str {
        let mut words = self.checks(id).map(|check| check["message"].as_str());
        words.next().flatten().unwrap_or_default()
    }

    /// Whether a check with this id has this message.
    pub(crate) fn has(&self, id: &str, words: &str) -> bool {
        self.checks(id).any(|check| check["message"] == words)
    }

    /// The flag that accepts all risks of the report.
    pub(crate) fn confirm(&self) -> &str {
        self.0["acceptRisk"].as_str().expect("a flag")
    }

    /// Expects these levels, and `None` for checks that are not in the report.
    #[track_caller]
    pub(crate) fn are(&self, expected: &[(&str, Option<&str>)]) {
        for &(id, level) in expected {
            assert_eq!(self.get(id), level, "{id} in {:#}", self.0);
        }
    }
}

/// A pod's reference to its controller, as a merge patch.
pub(crate) fn owned_by(owner: &Value) -> Value {
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true,
    }]}})
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
    })
}

/// Applies `change` to `object` as a merge patch.
fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(object), Value::Object(change)) => {
            for (key, value) in change {
                merge(object.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (object, change) => *object = change.clone(),
    }
}
