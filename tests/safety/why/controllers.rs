//! Objects that the controllers of a real kube-controller-manager leave behind, without a scheduler and kubelets.

use std::sync::OnceLock;

use control_plane::{ControlPlane, NodeSpec};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::codes;
use crate::fixture::Levels;
use crate::support::{Cluster, Run};

/// A namespace of a cluster with running controllers.
struct Stage {
    cluster: Cluster,
    namespace: String,
}

/// Runs a test on a control plane whose nodes are unreachable 8 s after they were created, because no kubelets
/// renew their heartbeats.
fn stage_of_dead_nodes(prefix: &str, test: impl FnOnce(&Stage)) {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    let flags = ["--node-monitor-period=1s", "--node-monitor-grace-period=8s"];
    on_plane(&PLANE, flags, prefix, test);
}

/// Runs a test, and keeps the server's logs if it fails.
fn stage(prefix: &str, test: impl FnOnce(&Stage)) {
    static PLANE: OnceLock<ControlPlane> = OnceLock::new();
    let flags = [
        "--attach-detach-reconcile-sync-period=2s",
        "--resource-quota-sync-period=1s",
    ];
    on_plane(&PLANE, flags, prefix, test);
}

/// Runs a test on the control plane in `plane`, which the first test starts with these flags of its controllers.
fn on_plane(
    plane: &'static OnceLock<ControlPlane>,
    flags: [&str; 2],
    prefix: &str,
    test: impl FnOnce(&Stage),
) {
    let plane = plane.get_or_init(|| {
        let builder = ControlPlane::builder();
        let builder = flags.into_iter().fold(builder, |builder, flag| {
            builder.controller_manager_flag(flag)
        });
        builder.start().expect("a control plane")
    });
    let _logs = plane.keep_logs_on_panic(prefix);
    let cluster = Cluster::of_plane(prefix, plane);
    let namespace = cluster.name("shop");
    let object = json!({"metadata": {"name": namespace}});
    cluster.create("/api/v1/namespaces", &object);
    test(&Stage { cluster, namespace });
}

impl Stage {
    fn at(&self, group: &str, plural: &str) -> String {
        format!("{group}/namespaces/{}/{plural}", self.namespace)
    }

    fn node(&self, short: &str) -> String {
        let name = self.cluster.name(short);
        let plane = self.cluster.plane();
        plane
            .create_nodes(&[NodeSpec::ready(&name)])
            .expect("a node");
        let managed = "volumes.kubernetes.io/controller-managed-attach-detach";
        self.cluster.patch(
            &format!("/api/v1/nodes/{name}"),
            &json!({"metadata": {"annotations": {managed: "true"}}}),
        );
        name
    }

    fn pod(&self, name: &str, node: &str, claim: Option<&str>) {
        let volumes = claim
            .map(|claim| json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]));
        self.cluster.create(
            &self.at("/api/v1", "pods"),
            &json!({
                "metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {
                    "nodeName": node,
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": "none"}],
                    "volumes": volumes,
                },
            }),
        );
    }

    /// Reports a pod as ready, as its kubelet does.
    fn is_ready(&self, pod: &str) {
        let path = format!("{}/status", self.at("/api/v1", &format!("pods/{pod}")));
        let ready = json!({"type": "Ready", "status": "True"});
        let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
        self.cluster.patch(&path, &status);
    }

    /// Creates a claim and a volume of a CSI driver, which the controller binds to each other.
    fn claim(&self, name: &str) {
        let volume = self.cluster.name(name);
        let spec = |more: Value| {
            let mut spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand"});
            for (field, value) in more.as_object().into_iter().flatten() {
                spec[field] = value.clone();
            }
            spec
        };
        let of_volume = spec(json!({
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "disk.example.com", "volumeHandle": volume},
        }));
        self.cluster.create(
            "/api/v1/persistentvolumes",
            &json!({"metadata": {"name": volume}, "spec": of_volume}),
        );
        let of_claim = spec(json!({
            "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume,
        }));
        let claims = self.at("/api/v1", "persistentvolumeclaims");
        self.cluster.create(
            &claims,
            &json!({"metadata": {"name": name}, "spec": of_claim}),
        );
        let claim = format!("{claims}/{name}");
        self.until("the claim is bound", || {
            self.cluster.get(&claim)["status"]["phase"] == "Bound"
        });
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while !is_so() {
            assert!(
                std::time::Instant::now() < deadline,
                "it never came that {what}"
            );
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    fn why(&self, words: &[&str]) -> Run {
        let run = self
            .cluster
            .maint(["why", "-n", &self.namespace])
            .args(words);
        run.succeeds()
    }

    /// Repeats `why` until the reasons contain this code.
    fn until_it_is(&self, object: &str, code: &str) {
        self.until(code, || {
            let run = self
                .cluster
                .maint(["why", "-n", &self.namespace, object, "-o", "json"]);
            let run = run.run();
            run.code == 0 && codes(&run).iter().any(|one| one == code)
        });
    }

    /// Waits until the namespace controller reports this condition.
    fn until_namespace_has(&self, condition: &str) {
        let namespace = format!("/api/v1/namespaces/{}", self.namespace);
        self.until(condition, || {
            let namespace = self.cluster.get(&namespace);
            let conditions = namespace["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one["type"] == *condition && one["status"] == "True")
        });
    }

    /// The output of a run, with values that change replaced.
    fn shown(&self, run: &Run) -> String {
        let text = run.to_string().replace(&self.cluster.name(""), "");
        let ages = regex::Regex::new(r"\b\d+s\b").expect("a pattern");
        ages.replace_all(&text, "[age]").into_owned()
    }
}

#[test]
fn a_volume_that_is_attached_elsewhere_is_shown_with_its_pod() {
    stage("why-multi", |stage| {
        let (first, second) = (stage.node("worker-1"), stage.node("worker-2"));
        stage.claim("data");
        stage.pod("old", &first, Some("data"));
        let attachments = "/apis/storage.k8s.io/v1/volumeattachments";
        let volume = stage.cluster.name("data");
        let attachment = || {
            let all = stage.cluster.get(attachments);
            let all = all["items"].as_array().expect("a list").clone();
            let mut ours = all.into_iter();
            ours.find(|one| one["spec"]["source"]["persistentVolumeName"] == *volume)
        };
        stage.until("it is attached", || attachment().is_some());
        let name = attachment().expect("it is there")["metadata"]["name"].clone();
        let path = format!("{attachments}/{}/status", name.as_str().expect("a name"));
        stage
            .cluster
            .patch(&path, &json!({"status": {"attached": true}}));
        stage.is_ready("old");
        stage.until("the node has it", || {
            let node = stage.cluster.get(&format!("/api/v1/nodes/{first}"));
            node["status"]["volumesAttached"].is_array()
        });
        stage.pod("new", &second, Some("data"));
        // The attach-detach controller reports the same problem in an Event.
        let events = stage.at("/api/v1", "events");
        stage.until("the controller refuses", || {
            let events = stage.cluster.get(&events).to_string();
            events.contains("Multi-Attach error for volume")
        });
        let run = stage.why(&["pod/new"]);
        assert_snapshot!(stage.shown(&run), @"
        $ kubectl maint why -n shop pod/new
        pod/new is Pending on node/worker-2. Volume data (claim data) can be attached to
        one node at a time, and is attached to node/worker-1, where pod/old uses it.

        Next:
          # explain this object too
          kubectl maint why pod/old -n shop
        -- exit code 0
        ");
        let run = stage.why(&["pod/new", "-o", "json"]);
        assert_eq!(codes(&run), ["MultiAttach"]);
    });
}

#[test]
fn a_stuck_namespace_is_explained_by_what_is_left_in_it() {
    stage("why-namespace", |stage| {
        let configs = stage.at("/api/v1", "configmaps");
        let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/backup"]}});
        stage.cluster.create(&configs, &held);
        let namespace = format!("namespace/{}", stage.namespace);
        let run = stage.why(&[&namespace]);
        assert!(
            run.stdout
                .contains("is Active. Nothing was found that blocks it."),
            "{run}"
        );
        stage
            .cluster
            .delete(&format!("/api/v1/namespaces/{}", stage.namespace));
        stage.until_it_is(&namespace, "FinalizersRemaining");
        let run = stage.why(&[&namespace]);
        assert_snapshot!(stage.shown(&run), @"
        $ kubectl maint why -n shop namespace/shop
        namespace/shop has been Terminating for [age]. Still in it: configmaps (1). Finalizer
        example.com/backup is on 1 object in the namespace: the controller of this finalizer has to remove
        it.

        Next:
          # see what is left
          kubectl get configmaps -n shop
        -- exit code 0
        ");
        let none = json!({"metadata": {"finalizers": null}});
        stage.cluster.patch(&format!("{configs}/held"), &none);
    });
}

#[test]
fn a_namespace_names_the_pods_of_a_dead_node_that_keep_it() {
    stage_of_dead_nodes("why-namespace-pods", |stage| {
        let node = stage.node("worker-1");
        stage.pod("web-0", &node, None);
        let path = format!("/api/v1/namespaces/{}", stage.namespace);
        stage.cluster.delete(&path);
        stage.until_namespace_has("NamespaceDeletionContentFailure");
        let namespace = format!("namespace/{}", stage.namespace);
        let run = stage.why(&[&namespace]);
        assert_snapshot!(stage.shown(&run), @"
        $ kubectl maint why -n shop namespace/shop
        namespace/shop has been Terminating for [age]. Still in it: pods (1: web-0).

        Next:
          # explain this object too
          kubectl maint why pod/web-0 -n shop
        -- exit code 0
        ");
    });
}

#[test]
fn a_claim_in_use_is_shown_with_its_pods() {
    stage("why-claim", |stage| {
        let node = stage.node("worker-1");
        stage.claim("data");
        stage.pod("user", &node, Some("data"));
        let claim = stage.at("/api/v1", "persistentvolumeclaims/data");
        stage.until("it is protected", || {
            let finalizers = &stage.cluster.get(&claim)["metadata"]["finalizers"];
            finalizers
                .to_string()
                .contains("kubernetes.io/pvc-protection")
        });
        stage.cluster.delete(&claim);
        let run = stage.why(&["pvc/data"]);
        assert_snapshot!(stage.shown(&run), @"
        $ kubectl maint why -n shop pvc/data
        pvc/data has been Terminating for [age]. The PVC protection controller keeps it, because it is in use
        by pod/user.

        Next:
          # explain this object too
          kubectl maint why pod/user -n shop
        -- exit code 0
        ");
        let pod = stage.at("/api/v1", "pods/user");
        let done = json!({"status": {"phase": "Succeeded"}});
        stage.cluster.patch(&format!("{pod}/status"), &done);
        let run = stage.why(&["pvc/data"]);
        assert!(run.stdout.contains("although finished"), "{run}");
        // The output is right: the claim still exists.
        assert_eq!(stage.cluster.get(&claim)["metadata"]["name"], "data");
    });
}

#[test]
fn a_quota_that_keeps_a_set_from_creating_a_pod_is_quoted() {
    stage("why-quota", |stage| {
        stage.cluster.create(
            &stage.at("/api/v1", "resourcequotas"),
            &json!({"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}),
        );
        let quota = stage.at("/api/v1", "resourcequotas/small");
        stage.until("the quota counts", || {
            stage.cluster.get(&quota)["status"]["hard"].is_object()
        });
        let labels = json!({"app": "web"});
        stage.cluster.create(
            &stage.at("/apis/apps/v1", "statefulsets"),
            &json!({
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 2, "serviceName": "web", "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "main", "image": "none"}]},
                    },
                },
            }),
        );
        stage.until_it_is("pod/web-0", "NotCreated");
        let run = stage.why(&["pod/web-0"]);
        assert_snapshot!(stage.shown(&run), @r#"
        $ kubectl maint why -n shop pod/web-0
        pod/web-0 does not exist. StatefulSet/web could not create it: Create Pod web-0 in StatefulSet web
        failed error: pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0,
        limited: pods=0.

        Next:
          # see what is used, then free some or raise the quota
          kubectl describe quota -n shop
        -- exit code 0
        "#);
        let run = stage.why(&["pod/web-1", "-o", "json"]);
        assert_eq!(codes(&run), ["OrderedReady"]);
        let run = stage.why(&["pod/web-2", "-o", "json"]);
        assert_eq!(codes(&run), ["OutsideSet"]);
        let set = stage.at("/apis/apps/v1", "statefulsets/web");
        let kept = json!({"metadata": {"finalizers": ["example.com/backup"]}});
        stage.cluster.patch(&set, &kept);
        stage.cluster.delete(&set);
        let run = stage.why(&["pod/web-1", "-o", "json"]);
        assert_eq!(codes(&run), ["SetTerminating"]);
        let none = json!({"metadata": {"finalizers": null}});
        stage.cluster.patch(&set, &none);
        let run = stage
            .cluster
            .maint(["why", "pod/none", "-n", &stage.namespace])
            .run();
        assert_eq!(run.code, 1, "{run}");
    });
}

#[test]
fn a_member_waits_for_one_on_a_dead_node() {
    stage_of_dead_nodes("why-dead-member", |stage| {
        let node = stage.node("worker-1");
        let labels = json!({"app": "web"});
        let sets = stage.at("/apis/apps/v1", "statefulsets");
        stage.cluster.create(
            &sets,
            &json!({
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 1, "serviceName": "web", "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "main", "image": "none"}]},
                    },
                },
            }),
        );
        let first = stage.at("/api/v1", "pods/web-0");
        stage.until("the first member is created", || {
            stage.cluster.find(&first).is_some()
        });
        let plane = stage.cluster.plane();
        let bound = plane.bind_pod(&stage.namespace, "web-0", &node);
        bound.expect("it is bound");
        let container = json!({
            "name": "main", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {}},
        });
        let status = json!({"status": {"containerStatuses": [container]}});
        stage.cluster.patch(&format!("{first}/status"), &status);
        stage.is_ready("web-0");
        stage.until(
            "the node lifecycle controller marks it as not ready",
            || {
                let pod = stage.cluster.get(&first);
                let conditions = pod["status"]["conditions"].as_array();
                let mut conditions = conditions.into_iter().flatten();
                conditions.any(|one| one["type"] == "Ready" && one["status"] == "False")
            },
        );
        let two = json!({"spec": {"replicas": 2}});
        stage.cluster.patch(&format!("{sets}/web"), &two);
        let run = stage.why(&["pod/web-1"]);
        assert_snapshot!(stage.shown(&run), @"
        $ kubectl maint why -n shop pod/web-1
        pod/web-1 does not exist. StatefulSet/web creates its pods in order, and waits for pod/web-0 to be
        ready.

        Next:
          # explain this object too
          kubectl maint why pod/web-0 -n shop
        -- exit code 0
        ");
    });
}

#[test]
fn a_budget_is_explained_by_the_rules_of_the_eviction_api() {
    stage("why-budget", |stage| {
        let node = stage.node("worker-1");
        stage.pod("web", &node, None);
        stage.is_ready("web");
        let selector = json!({"matchLabels": {"app": "web"}});
        stage.cluster.create(
            &stage.at("/apis/policy/v1", "poddisruptionbudgets"),
            &json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": selector}}),
        );
        let budget = stage.at("/apis/policy/v1", "poddisruptionbudgets/web");
        stage.until("the budget counts", || {
            stage.cluster.get(&budget)["status"]["currentHealthy"] == 1
        });
        let run = stage.why(&["pod/web"]);
        assert_snapshot!(stage.shown(&run), @"
        $ kubectl maint why -n shop pod/web
        pod/web is Running on node/worker-1. `kubectl drain` would not evict it: pdb/web allows
        no disruption now (1 healthy, 1 needed).

        Next:
          # see the numbers and events of the budget
          kubectl describe pdb web -n shop
        -- exit code 0
        ");
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"},
        });
        let path = stage.at("/api/v1", "pods/web/eviction");
        let refused = stage.cluster.try_send("POST", &path, Some(&eviction));
        let refused = format!("{:?}", refused.expect_err("it is refused"));
        assert!(
            refused.contains("web needs 1 healthy pods and has 1 currently"),
            "{refused}"
        );
    });
}

impl Stage {
    /// Creates a workload, and runs one of its pods on a node. Returns the name of the pod.
    fn running_workload(&self, group: &str, plural: &str, workload: &Value) -> String {
        self.cluster.create(&self.at(group, plural), workload);
        self.until("it has a pod", || !self.pods().is_empty());
        let pod = self.pods().remove(0);
        self.runs_on(&pod, &self.node("worker-1"));
        pod
    }

    /// Binds a pod to a node, and reports it as running.
    fn runs_on(&self, pod: &str, node: &str) {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"kind": "Node", "name": node},
        });
        let path = self.at("/api/v1", &format!("pods/{pod}/binding"));
        self.cluster.create(&path, &binding);
        self.is_ready(pod);
    }

    /// The names of the pods.
    fn pods(&self) -> Vec<String> {
        let all = self.cluster.get(&self.at("/api/v1", "pods"));
        let all = all["items"].as_array().expect("a list").iter();
        let names = all.map(|pod| pod["metadata"]["name"].as_str().map(ToOwned::to_owned));
        names.map(|name| name.expect("a name")).collect()
    }

    fn is_terminating(&self, pod: &str) -> bool {
        let pod = self
            .cluster
            .get(&self.at("/api/v1", &format!("pods/{pod}")));
        pod["metadata"]["deletionTimestamp"].is_string()
    }

    /// The report on a pod that is to be force-deleted.
    fn report(&self, pod: &str) -> Levels {
        let pod = format!("pod/{pod}");
        let words = ["force-delete", &pod, "-n", &self.namespace, "-o", "json"];
        Levels::of(self.cluster.maint(words))
    }

    /// Force-deletes a pod although its node is alive.
    fn force_delete(&self, pod: &str) {
        let pod = format!("pod/{pod}");
        let run = self.cluster.maint([
            "force-delete",
            &pod,
            "-n",
            &self.namespace,
            "--accept-risk",
            "-m",
            "why",
            "--override=in-grace,node-alive,lease",
        ]);
        let run = run.run();
        assert!(run.code == 0 || run.code == 4, "{run}");
    }
}

fn template(restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "registry.example/web:1"}],
        },
    })
}

#[test]
fn a_deployment_that_recreates_waits_for_the_pod_of_its_earlier_revision() {
    stage("recreate", |stage| {
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 1, "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"app": "web"}}, "template": template("Always"),
            },
        });
        let pod = stage.running_workload("/apis/apps/v1", "deployments", &deployment);
        // Its own ReplicaSet would replace the pod at once.
        stage.report(&pod).are(&[("owner", Some("Ok"))]);
        let containers = json!([{"name": "main", "image": "registry.example/web:2"}]);
        stage.cluster.patch(
            &stage.at("/apis/apps/v1", "deployments/web"),
            &json!({"spec": {"template": {"spec": {"containers": containers}}}}),
        );
        stage.until("the pod is terminating", || stage.is_terminating(&pod));
        let levels = stage.report(&pod);
        levels.are(&[("owner", Some("Risk")), ("no-owner", None)]);
        let words = "its Deployment (Recreate) may start its next revision while the pod is still running: Deployment/web";
        assert_eq!(levels.words("owner"), words);
        assert_eq!(stage.pods(), [&*pod]);
        stage.force_delete(&pod);
        stage.until("the next revision runs", || {
            !stage.pods().is_empty() && !stage.pods().contains(&pod)
        });
    });
}

#[test]
fn a_job_that_is_ending_waits_for_its_pod() {
    stage("ending-job", |stage| {
        let job = json!({
            "metadata": {"name": "web"},
            "spec": {"template": template("Never")},
        });
        let pod = stage.running_workload("/apis/batch/v1", "jobs", &job);
        let path = stage.at("/apis/batch/v1", "jobs/web");
        let has = |condition: &str| {
            let job = stage.cluster.get(&path);
            let all = job["status"]["conditions"].as_array().cloned();
            let mut all = all.into_iter().flatten();
            all.any(|one| one["type"] == condition && one["status"] == "True")
        };
        stage.report(&pod).are(&[("owner", Some("Ok"))]);
        let late = json!({"spec": {"activeDeadlineSeconds": 1}});
        stage.cluster.patch(&path, &late);
        stage.until("the Job is ending", || has("FailureTarget"));
        stage.until("the pod is terminating", || stage.is_terminating(&pod));
        let levels = stage.report(&pod);
        levels.are(&[("owner", Some("Risk")), ("no-owner", None)]);
        let words = "its Job counts as running until the pod is gone; a CronJob may then start the next Job while this \
                     pod is still running: Job/web";
        assert_eq!(levels.words("owner"), words);
        assert!(!has("Failed"));
        stage.force_delete(&pod);
        stage.until("the Job has failed", || has("Failed"));
    });
}

#[test]
fn a_claim_that_is_being_deleted_goes_with_its_last_pod() {
    stage("deleted-claim", |stage| {
        let node = stage.node("worker-1");
        stage.claim("data");
        stage.pod("user", &node, Some("data"));
        let claim = stage.at("/api/v1", "persistentvolumeclaims/data");
        stage.report("user").are(&[("volume-deleted", None)]);
        let volume = format!("/api/v1/persistentvolumes/{}", stage.cluster.name("data"));
        let policy = json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
        stage.cluster.patch(&volume, &policy);
        stage.until("it is protected", || {
            let finalizers = &stage.cluster.get(&claim)["metadata"]["finalizers"];
            finalizers
                .to_string()
                .contains("kubernetes.io/pvc-protection")
        });
        stage.cluster.delete(&claim);
        let levels = stage.report("user");
        levels.are(&[("volume-deleted", Some("Risk"))]);
        let words = "a claim that is being deleted goes with the last pod that uses it: pvc/data and its volume \
                     (reclaimPolicy Delete)";
        assert_eq!(levels.words("volume-deleted"), words);
        stage.cluster.delete(&stage.at("/api/v1", "pods/user"));
        stage.force_delete("user");
        stage.until("the claim is gone", || stage.cluster.find(&claim).is_none());
        stage.until("the volume is released", || {
            let volume = stage.cluster.find(&volume);
            volume.is_none_or(|volume| volume["status"]["phase"] != "Bound")
        });
    });
}
