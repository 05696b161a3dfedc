//! deploy/rbac.yaml: an owner of an application can force-delete its pods, and an operator of the cluster can read
//! everything that the checks need. Neither has more rights than that.

use std::path::{Path, PathBuf};
use std::sync::Once;

use serde_json::json;

use crate::fixture::{Fixture, Levels, TRACKING, fixture};

const NAMESPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/namespace.yaml");
const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/rbac.yaml");

const USERS: &str = "kubectl-maint:users";
const OPERATORS: &str = "kubectl-maint:operators";
const FENCERS: &str = "kubectl-maint:fencers";
const OPERATOR: [&str; 2] = [USERS, OPERATORS];

/// Rights on other objects that the command does not need.
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

fn may(fixture: &Fixture, groups: &[&str], verb: &str, resource: &str, namespace: &str) -> bool {
    let plane = fixture.cluster.plane();
    let allowed = plane.allows(groups, verb, resource, namespace);
    allowed.expect("an answer")
}

/// Waits until the roles have taken effect.
fn await_right(fixture: &Fixture, groups: &[&str], verb: &str, resource: &str, namespace: &str) {
    let plane = fixture.cluster.plane();
    let allowed = plane.await_allowed(groups, verb, resource, namespace);
    allowed.expect("it is granted");
}

/// Applies the manifests once.
fn deploy(fixture: &Fixture) {
    static DEPLOYED: Once = Once::new();
    DEPLOYED.call_once(|| {
        let plane = fixture.cluster.plane();
        let applied = plane.kubectl(&["apply", "-f", NAMESPACE, "-f", RIGHTS]);
        applied.expect("the manifests are valid");
    });
    await_right(fixture, &OPERATOR, "delete", "nodes", "");
    await_right(
        fixture,
        &OPERATOR,
        "list",
        "leases.coordination.k8s.io",
        "kube-node-lease",
    );
}

fn person(fixture: &Fixture, short: &str, groups: &[&str]) -> PathBuf {
    let name = fixture.cluster.name(short);
    let kubeconfig = fixture.cluster.plane().user(&name, groups);
    kubeconfig.expect("a kubeconfig")
}

/// Deletes `web-0` with this kubeconfig, and accepts the risks in `levels`. Expects `message` on stderr.
#[track_caller]
fn web_0_goes(fixture: &Fixture, kubeconfig: &Path, levels: &Levels, message: &str) {
    let words = [levels.confirm(), "-m", "why"];
    let run = fixture
        .force_delete("web-0", &words)
        .kubeconfig(kubeconfig)
        .succeeds();
    let owner = "StatefulSet/web: 2 of 3 ready";
    let expected = format!("{message}{owner} (namespace {})\n", fixture.namespace);
    assert_eq!(run.stderr, expected, "{run}");
    assert!(!fixture.is_there("web-0"));
}

/// Asserts the rights that `why` needs in a namespace, and the cluster-wide rights in
/// `more`.
#[track_caller]
fn reads_all_for_why(fixture: &Fixture, groups: &[&str], more: &[(&str, &str)]) {
    let of_namespace = [
        ("get", "pods"),
        ("list", "pods"),
        ("get", "persistentvolumeclaims"),
        ("list", "persistentvolumeclaims"),
        ("list", "poddisruptionbudgets.policy"),
        ("get", "statefulsets.apps"),
        ("list", "events"),
    ];
    for (verb, resource) in of_namespace.iter().chain(more) {
        let can = may(fixture, groups, verb, resource, &fixture.namespace);
        assert!(can, "{groups:?} may not {verb} {resource}");
    }
}

/// Deletes `copy-1`, which its Job keeps: its phase is set first.
#[track_caller]
fn copy_1_goes(fixture: &Fixture, kubeconfig: &Path) {
    fixture.ended_job_pod("copy-1");
    let levels = fixture.levels_for(kubeconfig, "copy-1");
    levels.are(&[("rights", Some("Ok"))]);
    let words = [levels.confirm(), "-m", "why", "--timeout=0"];
    let run = fixture
        .force_delete("copy-1", &words)
        .kubeconfig(kubeconfig)
        .ends_unfinished();
    // No controller runs that would remove the finalizer.
    let message = format!(
        "pod/copy-1 is marked for deletion, but held by finalizer {TRACKING}; its name is free when its controller removes the finalizer\n"
    );
    assert!(run.stdout.ends_with(&message), "{run}");
    let status = fixture.cluster.get(&fixture.pod_path("copy-1"))["status"].clone();
    assert_eq!(status["phase"], "Failed", "{status:#}");
    let freed = json!({"metadata": {"finalizers": null}});
    fixture.cluster.patch(&fixture.pod_path("copy-1"), &freed);
}

#[track_caller]
fn may_nothing_foreign(fixture: &Fixture, groups: &[&str]) {
    for (verb, resource) in FOREIGN {
        let can = may(fixture, groups, verb, resource, &fixture.namespace);
        assert!(!can, "{groups:?} may {verb} {resource}");
    }
}

#[test]
fn an_operator_knows_all_and_deletes_pods_and_nodes() {
    fixture("operator", |fixture| {
        deploy(fixture);
        fixture.ended_member_with_volume();
        let ada = person(fixture, "ada", &OPERATOR);
        let levels = fixture.levels_for(&ada, "web-0");
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
            fixture.node
        );
        let made = format!("lease/{} created\n{locked}", fixture.node);
        web_0_goes(fixture, &ada, &levels, &made);

        let words = ["status", "--pods", &fixture.node];
        let run = fixture.cluster.maint(words).kubeconfig(&ada).succeeds();
        assert!(!run.stderr.contains("Warning"), "{run}");
        for resource in [
            "nodes",
            "pods",
            "volumeattachments.storage.k8s.io",
            "persistentvolumes",
            "persistentvolumeclaims",
            "events",
        ] {
            for group in [FENCERS, OPERATORS] {
                assert!(may(fixture, &[group], "list", resource, ""), "{resource}");
            }
        }

        copy_1_goes(fixture, &ada);

        let node = format!("node/{}", fixture.node);
        let words = ["force-delete", &node, "--accept-risk=owner", "-m", "why"];
        let run = fixture.cluster.maint(words).kubeconfig(&ada).succeeds();
        assert_eq!(run.stderr, locked, "{run}");
        let message = format!("\n{node} force-deleted; ");
        assert!(run.stdout.contains(&message), "{run}");

        reads_all_for_why(
            fixture,
            &OPERATOR,
            &[
                ("get", "persistentvolumes"),
                ("list", "volumeattachments.storage.k8s.io"),
                ("get", "storageclasses.storage.k8s.io"),
                ("get", "namespaces"),
                ("list", "nodes"),
            ],
        );
        may_nothing_foreign(fixture, &OPERATOR);
        assert!(!may(
            fixture,
            &[USERS],
            "delete",
            "pods",
            &fixture.namespace
        ));
        assert!(!may(fixture, &[USERS], "delete", "nodes", ""));
    });
}

#[test]
fn an_owner_deletes_pods_of_the_namespace_and_nothing_else() {
    fixture("team", |fixture| {
        deploy(fixture);
        fixture.ended_member_with_volume();
        let team = fixture.cluster.name("owners");
        let plane = fixture.cluster.plane();
        let bound = plane.kubectl(&[
            "create",
            "rolebinding",
            "kubectl-maint-owner",
            "-n",
            &fixture.namespace,
            "--clusterrole=kubectl-maint-owner",
            &format!("--group={team}"),
        ]);
        bound.expect("a binding");
        await_right(fixture, &[&team], "delete", "pods", &fixture.namespace);
        let dev = person(fixture, "dev", &[&team]);
        let levels = fixture.levels_for(&dev, "web-0");
        levels.are(&[
            ("node-alive", Some("Unread")),
            ("lease", Some("Unread")),
            ("owner", Some("Risk")),
            ("quorum", Some("Info")),
            ("pdb", Some("Ok")),
            ("rights", Some("Ok")),
        ]);
        web_0_goes(fixture, &dev, &levels, "");
        copy_1_goes(fixture, &dev);

        reads_all_for_why(fixture, &[&team], &[]);
        may_nothing_foreign(fixture, &[&team]);
        for (verb, resource, namespace) in [
            ("delete", "pods", "default"),
            ("get", "pods", "default"),
            ("list", "nodes", ""),
            ("delete", "nodes", ""),
        ] {
            let can = may(fixture, &[&team], verb, resource, namespace);
            assert!(!can, "owners may {verb} {resource} in {namespace:?}");
        }
    });
}
