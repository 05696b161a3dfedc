//! deploy/rbac.yaml: an owner of an application can force-delete its pods, and an operator of the cluster
//! can read everything that the checks need. Neither can do more.

use std::path::{Path, PathBuf};
use std::sync::Once;

use serde_json::json;

use crate::scene::{Levels, Scene, TRACKING, scene};

const NAMESPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/namespace.yaml");
const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/rbac.yaml");

const USERS: &str = "kubectl-maint:users";
const OPERATORS: &str = "kubectl-maint:operators";
const FENCERS: &str = "kubectl-maint:fencers";
const OPERATOR: [&str; 2] = [USERS, OPERATORS];

/// What the verb needs of nothing that it does not delete.
const FOREIGN: [(&str, &str); 10] = [
    ("create", "pods"),
    ("update", "pods"),
    ("patch", "pods"),
    ("deletecollection", "pods"),
    ("patch", "nodes"),
    ("deletecollection", "nodes"),
    ("get", "secrets"),
    ("patch", "persistentvolumeclaims"),
    ("delete", "leases.coordination.k8s.io"),
    ("patch", "statefulsets.apps"),
];

fn may(scene: &Scene, groups: &[&str], verb: &str, resource: &str, namespace: &str) -> bool {
    let namespace = format!("--namespace={namespace}");
    let groups: Vec<String> = groups
        .iter()
        .chain(&["system:authenticated"])
        .map(|group| format!("--as-group={group}"))
        .collect();
    let mut ask = vec!["auth", "can-i", "-q", verb, resource, &namespace];
    ask.push("--as=somebody");
    ask.extend(groups.iter().map(String::as_str));
    scene.cluster.plane().kubectl(&ask).is_ok()
}

/// The authoriser follows its store by a watch: asks until it has heard.
fn await_right(scene: &Scene, groups: &[&str], verb: &str, resource: &str, namespace: &str) {
    let heard = (0..600).any(|_| may(scene, groups, verb, resource, namespace));
    assert!(heard, "{groups:?} still may not {verb} {resource}");
}

/// Applies the manifests, once.
fn deploy(scene: &Scene) {
    static DEPLOYED: Once = Once::new();
    DEPLOYED.call_once(|| {
        let plane = scene.cluster.plane();
        let applied = plane.kubectl(&["apply", "-f", NAMESPACE, "-f", RIGHTS]);
        applied.expect("the manifests are valid");
    });
    await_right(scene, &OPERATOR, "delete", "nodes", "");
    await_right(
        scene,
        &OPERATOR,
        "list",
        "leases.coordination.k8s.io",
        "kube-node-lease",
    );
}

fn person(scene: &Scene, short: &str, groups: &[&str]) -> PathBuf {
    let name = scene.cluster.name(short);
    let kubeconfig = scene.cluster.plane().user(&name, groups);
    kubeconfig.expect("a kubeconfig")
}

/// `web-0` goes, by whose kubeconfig this is, once all is confirmed that `levels` ask for. On stderr is what
/// it is `told` by the way.
#[track_caller]
fn web_0_goes(scene: &Scene, kubeconfig: &Path, levels: &Levels, told: &str) {
    let words = [levels.confirm(), "-m", "why", "--timeout=0"];
    let run = scene
        .force_delete("web-0", &words)
        .kubeconfig(kubeconfig)
        .ends_unfinished();
    assert_eq!(run.stderr, told, "{run}");
    assert!(!scene.is_there("web-0"));
}

/// What `why` reads in a namespace, and `more` of the cluster.
#[track_caller]
fn reads_all_for_why(scene: &Scene, groups: &[&str], more: &[(&str, &str)]) {
    let of_namespace = [
        ("get", "pods"),
        ("list", "pods"),
        ("get", "persistentvolumeclaims"),
        ("list", "persistentvolumeclaims"),
        ("list", "poddisruptionbudgets.policy"),
        ("get", "statefulsets.apps"),
        ("list", "events"),
        ("list", "resourcequotas"),
    ];
    for (verb, resource) in of_namespace.iter().chain(more) {
        let can = may(scene, groups, verb, resource, &scene.namespace);
        assert!(can, "{groups:?} may not {verb} {resource}");
    }
}

/// `copy-1`, whose Job keeps it, goes the same way: its phase is set first.
#[track_caller]
fn copy_1_goes(scene: &Scene, kubeconfig: &Path) {
    scene.ended_job_pod("copy-1");
    let levels = scene.levels_for(kubeconfig, "copy-1");
    levels.are(&[("rights", Some("Ok"))]);
    let words = [levels.confirm(), "-m", "why", "--timeout=0"];
    let run = scene
        .force_delete("copy-1", &words)
        .kubeconfig(kubeconfig)
        .ends_unfinished();
    // No controller runs here that would remove the finalizer.
    let told = format!("pod/copy-1 force-deleted, but held by finalizer {TRACKING}\n");
    assert!(run.stdout.ends_with(&told), "{run}");
    let status = scene.cluster.get(&scene.pod_path("copy-1"))["status"].clone();
    assert_eq!(status["phase"], "Failed", "{status:#}");
    let freed = json!({"metadata": {"finalizers": null}});
    scene.cluster.patch(&scene.pod_path("copy-1"), &freed);
}

#[track_caller]
fn may_nothing_foreign(scene: &Scene, groups: &[&str]) {
    for (verb, resource) in FOREIGN {
        let can = may(scene, groups, verb, resource, &scene.namespace);
        assert!(!can, "{groups:?} may {verb} {resource}");
    }
}

#[test]
fn an_operator_knows_all_and_deletes_pods_and_nodes() {
    scene("operator", |scene| {
        deploy(scene);
        scene.ended_member_with_volume();
        let ada = person(scene, "ada", &OPERATOR);
        let levels = scene.levels_for(&ada, "web-0");
        levels.are(&[
            ("node-unreachable", Some("Info")),
            ("mass-loss", Some("Ok")),
            ("lease", Some("Ok")),
            ("remediation", None),
            ("owner", Some("Risk")),
            ("quorum", Some("Info")),
            ("pdb", Some("Ok")),
            ("rights", Some("Ok")),
        ]);
        let locked = format!(
            "node/{} locked by alice@bastion during the deletion\n",
            scene.node
        );
        let made = format!("lease/{} created\n{locked}", scene.node);
        web_0_goes(scene, &ada, &levels, &made);

        let words = ["status", "--pods", &scene.node];
        let run = scene.cluster.maint(words).kubeconfig(&ada).succeeds();
        assert!(!run.stderr.contains("Warning"), "{run}");
        for resource in [
            "nodes",
            "pods",
            "volumeattachments",
            "namespaces",
            "persistentvolumes",
            "persistentvolumeclaims",
            "events",
        ] {
            for group in [FENCERS, OPERATORS] {
                assert!(may(scene, &[group], "list", resource, ""), "{resource}");
            }
        }

        copy_1_goes(scene, &ada);

        let node = format!("node/{}", scene.node);
        let words = ["force-delete", &node, "--accept-risk=owner", "-m", "why"];
        let run = scene.cluster.maint(words).kubeconfig(&ada).succeeds();
        assert_eq!(run.stderr, locked, "{run}");
        let told = format!("\n{node} force-deleted; ");
        assert!(run.stdout.contains(&told), "{run}");

        reads_all_for_why(
            scene,
            &OPERATOR,
            &[
                ("get", "persistentvolumes"),
                ("list", "volumeattachments.storage.k8s.io"),
                ("get", "storageclasses.storage.k8s.io"),
                ("get", "namespaces"),
                ("list", "nodes"),
            ],
        );
        may_nothing_foreign(scene, &OPERATOR);
        assert!(!may(scene, &[USERS], "delete", "pods", &scene.namespace));
        assert!(!may(scene, &[USERS], "delete", "nodes", ""));
    });
}

#[test]
fn an_owner_deletes_pods_of_the_namespace_and_nothing_else() {
    scene("team", |scene| {
        deploy(scene);
        scene.ended_member_with_volume();
        let team = scene.cluster.name("owners");
        let plane = scene.cluster.plane();
        let bound = plane.kubectl(&[
            "create",
            "rolebinding",
            "kubectl-maint-owner",
            "-n",
            &scene.namespace,
            "--clusterrole=kubectl-maint-owner",
            &format!("--group={team}"),
        ]);
        bound.expect("a binding");
        await_right(scene, &[&team], "delete", "pods", &scene.namespace);
        let dev = person(scene, "dev", &[&team]);
        let levels = scene.levels_for(&dev, "web-0");
        levels.are(&[
            ("node-alive", Some("Unread")),
            ("lease", Some("Unread")),
            ("owner", Some("Risk")),
            ("quorum", Some("Info")),
            ("pdb", Some("Ok")),
            ("rights", Some("Ok")),
        ]);
        web_0_goes(scene, &dev, &levels, "");
        copy_1_goes(scene, &dev);

        reads_all_for_why(scene, &[&team], &[]);
        may_nothing_foreign(scene, &[&team]);
        for (verb, resource, namespace) in [
            ("delete", "pods", "default"),
            ("get", "pods", "default"),
            ("list", "nodes", ""),
            ("delete", "nodes", ""),
        ] {
            let can = may(scene, &[&team], verb, resource, namespace);
            assert!(!can, "owners may {verb} {resource} in {namespace:?}");
        }
    });
}
