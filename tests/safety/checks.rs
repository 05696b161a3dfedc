//! Each check with both results: of the pod, its node, its owner, and its neighbors.

use std::time::Duration;

use control_plane::Readiness;
use serde_json::{Value, json};

use crate::fixture::{fixture, owned_by};
use crate::support::ago;

#[test]
fn a_pod_without_risks() {
    fixture("harmless", |fixture| {
        fixture.harmless_pod("web-1");
        let levels = fixture.levels("web-1");
        levels.are(&[
            ("target", Some("Ok")),
            ("mirror", None),
            ("not-deleting", None),
            ("in-grace", Some("Ok")),
            ("node-alive", None),
            ("node-unreachable", Some("Info")),
            ("node-gone", None),
            ("fenced", None),
            ("mass-loss", Some("Ok")),
            ("lease", Some("Ok")),
            ("owner", Some("Ok")),
            ("no-owner", None),
            ("quorum", None),
            ("volume-attached", Some("Ok")),
            ("volume-unguarded", None),
            ("finalizers", Some("Ok")),
            ("pdb", Some("Ok")),
            ("rights", Some("Ok")),
        ]);
        assert_eq!(levels.confirm(), "--accept-risk=none");
        assert!(fixture.is_there("web-1"), "a report deletes nothing");
    });
}

#[test]
fn pods_not_deleted_or_in_their_grace_are_refused() {
    fixture("grace", |fixture| {
        let spec = json!({"spec": {"terminationGracePeriodSeconds": 600}});
        fixture.make_pod("web-1", &spec);
        fixture
            .levels("web-1")
            .are(&[("not-deleting", Some("Blocker")), ("in-grace", None)]);
        fixture.cluster.delete(&fixture.pod_path("web-1"));
        let levels = fixture.levels("web-1");
        levels.are(&[("not-deleting", None), ("in-grace", Some("Blocker"))]);
        assert!(
            levels.words("in-grace").contains("of 600s left"),
            "{}",
            levels.words("in-grace")
        );
        // The caller knows better, and overrides this.
        let all = ["--accept-risk", "-m", "why", "--override=in-grace"];
        fixture.force_delete("web-1", &all).succeeds();
        assert!(!fixture.is_there("web-1"));
    });
}

#[test]
fn static_pods_are_refused_even_with_all_flags() {
    fixture("mirror", |fixture| {
        let metadata = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}});
        fixture.make_pod("etcd", &metadata);
        fixture.levels("etcd").are(&[("mirror", Some("Blocker"))]);
        let all = ["--accept-risk", "-m", "why", "--override=not-deleting"];
        let run = fixture.force_delete("etcd", &all).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("refused: mirror"), "{run}");
        assert!(!run.stderr.contains("; then: "), "nothing helps: {run}");
        assert!(fixture.is_there("etcd"));
    });
}

#[test]
fn a_live_kubelet_is_refused_even_if_its_node_is_not_ready() {
    fixture("alive", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.heartbeat();
        fixture
            .levels("web-1")
            .are(&[("node-alive", Some("Blocker")), ("node-unreachable", None)]);
        for (short, ready, age, expected) in [
            ("ready", Readiness::Ready, 600, Some("Blocker")),
            ("unwell", Readiness::NotReady, 0, Some("Blocker")),
            ("unheard", Readiness::NotReady, 600, None),
        ] {
            let node = fixture.make_node(short, ready, Duration::from_secs(age));
            let set = fixture.replica_set(short);
            fixture.ended_pod(short, Some(&set), &json!({"spec": {"nodeName": node}}));
            fixture.levels(short).are(&[("node-alive", expected)]);
        }
    });
}

#[test]
fn a_missing_node_is_blocked_only_by_a_heartbeat() {
    fixture("gone", |fixture| {
        fixture.harmless_pod("web-1");
        fixture
            .cluster
            .delete(&format!("/api/v1/nodes/{}", fixture.node));
        fixture.levels("web-1").are(&[
            ("node-gone", Some("Info")),
            ("node-unreachable", None),
            ("lease", Some("Ok")),
        ]);
        fixture.heartbeat();
        fixture
            .levels("web-1")
            .are(&[("node-gone", None), ("node-alive", Some("Blocker"))]);
    });
}

#[test]
fn a_recorded_fencing_lowers_the_risks() {
    fixture("fenced", |fixture| {
        fixture.ended_member(1, 0);
        let path = format!("/api/v1/nodes/{}", fixture.node);
        let taint = json!({"spec": {"taints": [
            {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"},
        ]}});
        let booted = json!({"status": {"nodeInfo": {"bootID": "boot-1"}}});
        fixture.cluster.patch(&format!("{path}/status"), &booted);
        let node = fixture.cluster.patch(&path, &taint);
        fixture
            .levels("web-0")
            .are(&[("fenced", Some("Info")), ("owner", Some("Risk"))]);
        let record = json!({
            "who": "bob@laptop", "when": "2026-01-02T03:04:05Z", "how": {"poweredOff": "pulled the plug"},
            "bootID": node["status"]["nodeInfo"]["bootID"], "nodeUid": node["metadata"]["uid"],
        });
        let annotations = json!({"metadata": {"annotations": {
            "kubectl-maint.dev/fenced": record.to_string(),
        }}});
        fixture.cluster.patch(&path, &annotations);
        let levels = fixture.levels("web-0");
        levels.are(&[("fenced", Some("Ok")), ("owner", Some("Info"))]);
        assert_eq!(
            levels.words("fenced"),
            "bob@laptop fenced it: powered off: pulled the plug"
        );
        assert_eq!(levels.confirm(), "--accept-risk=none");
        // The node was only isolated, so its pods may still be running.
        let mut isolated = record.clone();
        isolated["how"] = json!({"hook": {"program": "isolate", "isolated": true}});
        let annotate = |record: &Value| {
            let record = json!({"kubectl-maint.dev/fenced": record.to_string()});
            let annotations = json!({"metadata": {"annotations": record}});
            fixture.cluster.patch(&path, &annotations);
        };
        annotate(&isolated);
        let levels = fixture.levels("web-0");
        levels.are(&[("fenced", Some("Ok")), ("owner", Some("Risk"))]);
        let message = "bob@laptop fenced it: isolated with isolate; it was not powered off, so its pods may still \
                    be running";
        assert_eq!(levels.words("fenced"), message);
        annotate(&record);
        // The node comes back without a restart, so the record is wrong and no longer counts.
        fixture.heartbeat();
        let levels = fixture.levels("web-0");
        levels.are(&[
            ("node-alive", Some("Blocker")),
            ("fenced", Some("Info")),
            ("owner", Some("Risk")),
        ]);
        let words = ["--override=node-alive", "--accept-risk=none", "-m", "why"];
        let run = fixture.force_delete("web-0", &words).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("risks not accepted: owner"), "{run}");
        assert!(fixture.is_there("web-0"));
    });
}

#[test]
fn owners_keep_their_promises() {
    fixture("owners", |fixture| {
        let job = |name: &str, policy: &str| {
            let job = json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": name},
                "spec": {"podReplacementPolicy": policy, "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "registry.example/job:1"}],
                    },
                }},
            });
            fixture
                .cluster
                .create(&fixture.at("/apis/batch/v1", "jobs"), &job)
        };
        let daemon = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "daemon"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]},
            }},
        });
        let daemons = fixture.at("/apis/apps/v1", "daemonsets");
        let daemon = fixture.cluster.create(&daemons, &daemon);
        let unknown = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "uid": "u-1"}});
        for (name, owner, id, level) in [
            ("set", fixture.stateful_set("set", 1, 0), "owner", "Risk"),
            ("strict", job("strict", "Failed"), "owner", "Risk"),
            ("loose", job("loose", "TerminatingOrFailed"), "owner", "Ok"),
            ("daemon", daemon, "owner", "Ok"),
            (
                "adrift",
                unknown("apps/v1", "DaemonSet"),
                "no-owner",
                "Risk",
            ),
            (
                "remnant",
                unknown("v1", "ReplicationController"),
                "no-owner",
                "Risk",
            ),
            (
                "custom",
                unknown("db.example/v1", "Database"),
                "owner",
                "Risk",
            ),
            (
                "clone",
                unknown("apps.kruise.io/v1", "ReplicaSet"),
                "owner",
                "Risk",
            ),
            (
                "orphan",
                unknown("apps/v1", "ReplicaSet"),
                "no-owner",
                "Risk",
            ),
        ] {
            fixture.ended_pod(name, Some(&owner), &json!({}));
            fixture.levels(name).are(&[(id, Some(level))]);
        }
        fixture.ended_pod("alone", None, &json!({}));
        fixture
            .levels("alone")
            .are(&[("no-owner", Some("Risk")), ("owner", None)]);
    });
}

#[test]
fn devices_may_be_used_twice() {
    fixture("devices", |fixture| {
        let set = fixture.replica_set("gpu");
        let claims = json!([{"name": "gpu", "resourceClaimName": "gpu-0"}]);
        let spec = json!({"spec": {"resourceClaims": claims}});
        fixture.ended_pod("gpu", Some(&set), &spec);
        let levels = fixture.levels("gpu");
        levels.are(&[("devices", Some("Unread"))]);
        let words = "unknown whether its devices can be used twice: Kubernetes frees its resource claims once it is \
                     gone, even if it is still running: gpu";
        assert_eq!(levels.words("devices"), words);
        assert_eq!(levels.confirm(), "--accept-risk=unread");
    });
}

#[test]
fn a_member_without_which_there_is_no_majority_is_confirmed() {
    fixture("quorum", |fixture| {
        for (name, replicas, ready, level) in [
            ("many", 3, 2, "Info"),
            ("few", 3, 1, "Risk"),
            ("primary", 2, 1, "Info"),
            ("last", 2, 0, "Risk"),
        ] {
            let set = fixture.stateful_set(name, replicas, ready);
            fixture.ended_pod(name, Some(&set), &json!({}));
            fixture.levels(name).are(&[("quorum", Some(level))]);
        }
    });
}

/// The set is new, as after `kubectl replace --force`. It waits for the name of the old pod.
#[test]
fn a_set_that_was_created_again_may_start_a_second_pod() {
    fixture("anew", |fixture| {
        fixture.ended_member(3, 1);
        let sets = fixture.at("/apis/apps/v1", "statefulsets");
        fixture.cluster.delete(&format!("{sets}/web"));
        fixture
            .levels("web-0")
            .are(&[("owner", None), ("no-owner", Some("Risk"))]);
        fixture.stateful_set("web", 3, 1);
        let levels = fixture.levels("web-0");
        levels.are(&[
            ("owner", Some("Risk")),
            ("no-owner", None),
            ("quorum", Some("Risk")),
        ]);
        let promise = "while the first is still running: StatefulSet/web (a new one of that name)";
        assert!(levels.words("owner").ends_with(promise));
    });
}

#[test]
fn a_holder_of_the_node_is_not_disturbed() {
    fixture("leases", |fixture| {
        fixture.harmless_pod("web-1");
        let held = |seconds, holder: &str| {
            json!({
                "holderIdentity": holder,
                "leaseDurationSeconds": 1800,
                "acquireTime": ago(seconds),
                "renewTime": ago(seconds),
            })
        };
        fixture
            .cluster
            .lease(&fixture.node, &held(60, "bob@laptop"));
        let levels = fixture.levels("web-1");
        levels.are(&[("lease", Some("Blocker"))]);
        let words = levels.words("lease");
        assert!(
            words.contains("bob@laptop locked the node ") && words.contains(" ago, for 2"),
            "{words}"
        );
        let lease = format!("{}/{}", crate::support::LEASES, fixture.node);
        for (spec, check, level) in [
            (held(60, "kubeadm:bob@laptop"), "lease", "Blocker"),
            (held(60, "alice@bastion"), "lease", "Ok"),
            (held(60, "kubeadm:alice@bastion"), "lease", "Ok"),
            (held(3600, "alice@bastion"), "lease", "Ok"),
            (held(3600, "bob@laptop"), "lease-expired", "Risk"),
        ] {
            fixture.cluster.patch(&lease, &json!({"spec": spec}));
            fixture.levels("web-1").are(&[(check, Some(level))]);
        }
        fixture
            .cluster
            .patch(&lease, &json!({"spec": {"holderIdentity": null}}));
        let namespace = json!({"metadata": {"name": "medik8s-leases"}});
        fixture.cluster.create("/api/v1/namespaces", &namespace);
        let remediation = |seconds| {
            json!({
                "metadata": {"name": format!("node-{}", fixture.node)},
                "spec": held(seconds, "node-maintenance"),
            })
        };
        let leases = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases";
        fixture.cluster.create(leases, &remediation(60));
        let levels = fixture.levels("web-1");
        levels.are(&[("lease", Some("Ok")), ("remediation", Some("Blocker"))]);
        assert!(
            levels
                .words("remediation")
                .starts_with("node-maintenance is repairing the node")
        );
        let path = format!("{leases}/node-{}", fixture.node);
        fixture.cluster.patch(&path, &remediation(3600));
        fixture
            .levels("web-1")
            .are(&[("lease", Some("Ok")), ("remediation", None)]);
    });
}

#[test]
fn an_operator_that_says_by_a_taint_that_it_is_at_work_is_left_to_finish() {
    fixture("tainted", |fixture| {
        fixture.harmless_pod("web-1");
        let path = format!("/api/v1/nodes/{}", fixture.node);
        let tainted = |key: &str| {
            let taint = json!({"key": key, "value": "yes", "effect": "NoSchedule"});
            let taints = json!({"spec": {"taints": [taint]}});
            fixture.cluster.patch(&path, &taints);
            fixture.levels("web-1")
        };
        tainted("example.com/remediation").are(&[("remediation", None)]);
        let levels = tainted("medik8s.io/remediation");
        levels.are(&[("remediation", Some("Blocker"))]);
        let words = levels.words("remediation");
        assert!(
            words.contains("its taint medik8s.io/remediation=yes"),
            "{words}"
        );
        let words = ["--accept-risk=none", "-m", "why"];
        let run = fixture.force_delete("web-1", &words).run();
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("refused: remediation"), "{run}");
        let hint = "\nhint: let the repair finish; then: `kubectl maint ";
        assert!(run.stderr.contains(hint), "{run}");
        assert!(fixture.is_there("web-1"));
        // The caller knows better, and overrides this.
        let run = fixture.force_delete("web-1", &words);
        run.arg("--override=remediation").succeeds();
        assert!(!fixture.is_there("web-1"));
    });
}

#[test]
fn a_spent_budget_and_finalizers_are_warned_of() {
    fixture("warned", |fixture| {
        fixture.harmless_pod("web-1");
        let budgets = fixture.at("/apis/policy/v1", "poddisruptionbudgets");
        let budget = json!({
            "metadata": {"name": "web", "generation": 1},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        });
        fixture.cluster.create(&budgets, &budget);
        let allowed = |allowed: u32| {
            fixture.cluster.patch(
                &format!("{budgets}/web/status"),
                &json!({"status": {
                    "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
                    "expectedPods": 1,
                }}),
            );
        };
        allowed(1);
        fixture
            .levels("web-1")
            .are(&[("pdb", Some("Ok")), ("finalizers", Some("Ok"))]);
        allowed(0);
        let kept = json!({"metadata": {"finalizers": ["example.com/keep"]}});
        // The pod gets the finalizer when it is created, because a pod that is being deleted
        // accepts no new ones.
        let set = fixture.replica_set("kept");
        fixture.ended_pod("kept", Some(&set), &kept);
        let levels = fixture.levels("kept");
        levels.are(&[("pdb", Some("Info")), ("finalizers", Some("Info"))]);
        assert_eq!(levels.confirm(), "--accept-risk=none");
    });
}

#[test]
fn mass_loss_is_a_risk_if_most_of_the_zone_is_unreachable() {
    fixture("zone", |fixture| {
        fixture.harmless_pod("web-1");
        fixture.make_node("worker-4", Readiness::Unknown, Duration::from_secs(600));
        // 2 of 4 nodes of the zone are unreachable.
        fixture.levels("web-1").are(&[("mass-loss", Some("Ok"))]);
        fixture.make_node("worker-5", Readiness::Unknown, Duration::from_secs(600));
        let levels = fixture.levels("web-1");
        levels.are(&[("mass-loss", Some("Risk"))]);
        assert!(
            levels
                .words("mass-loss")
                .contains("3 of 5 nodes of zone zone-zone are unreachable")
        );
    });
}

#[test]
fn a_pod_that_was_never_placed_runs_nowhere() {
    fixture("unplaced", |fixture| {
        // The pod is not deleted first, because it would be removed at once.
        let set = fixture.stateful_set("web", 3, 0);
        let mut pod = owned_by(&set);
        pod["spec"] = json!({
            "nodeName": null,
            "volumes": [{"name": "data", "nfs": {"server": "nfs-1", "path": "/web"}}],
        });
        fixture.make_pod("web-1", &pod);
        fixture.levels("web-1").are(&[
            ("node-unreachable", Some("Ok")),
            ("owner", Some("Ok")),
            ("quorum", Some("Ok")),
            ("volume-attached", Some("Ok")),
            ("volume-unguarded", None),
            ("node-alive", None),
            ("lease", None),
            ("mass-loss", None),
        ]);
    });
}
