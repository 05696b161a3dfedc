//! deploy/rbac.yaml: each of its kinds of users has the rights that it names, and no others.

use std::path::PathBuf;
use std::sync::OnceLock;

use control_plane::{ControlPlane, NodeSpec, shared};

use crate::support::{Run, maint};

const NAMESPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/namespace.yaml");
const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/rbac.yaml");

const LEASES: &str = "leases.coordination.k8s.io";

const VIEWERS: &str = "kubectl-maint:viewers";
const USERS: &str = "kubectl-maint:users";
const HOLDERS: &str = "kubectl-maint:holders";
const ADMINISTRATORS: &str = "kubectl-maint:administrators";

/// All RBAC verbs for Leases and Events.
const LEASE_VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "patch",
    "update",
    "delete",
    "deletecollection",
];

/// The shared control plane, with the manifests applied.
fn deployed() -> &'static ControlPlane {
    static DEPLOYED: OnceLock<()> = OnceLock::new();
    DEPLOYED.get_or_init(|| {
        let applied = shared().kubectl(&["apply", "-f", NAMESPACE, "-f", RIGHTS]);
        applied.expect("the manifests are valid");
        for (group, verb, resource, namespace) in [
            (VIEWERS, "watch", LEASES, "kube-node-maintenance"),
            (VIEWERS, "list", LEASES, "kube-node-lease"),
            (USERS, "patch", LEASES, "kube-node-maintenance"),
            (USERS, "create", "events.events.k8s.io", "default"),
            (ADMINISTRATORS, "create", "namespaces", ""),
            (HOLDERS, "patch", "nodes", ""),
        ] {
            let allowed = shared().await_allowed(&[group], verb, resource, namespace);
            allowed.expect("it is granted");
        }
    });
    shared()
}

fn may(plane: &ControlPlane, group: &str, verb: &str, resource: &str, namespace: &str) -> bool {
    let allowed = plane.allows(&[group], verb, resource, namespace);
    allowed.expect("an answer")
}

/// A user in this group.
fn person(plane: &ControlPlane, name: &str, group: &str) -> PathBuf {
    plane.user(name, &[group]).expect("a kubeconfig")
}

#[track_caller]
fn succeeds(run: Run) -> Run {
    assert_eq!(run.code, 0, "{run:?}");
    // Users who may not patch Nodes get a warning about the missing held label.
    let is_warning = |line: &str| line.contains("Warning") && !line.contains("held label");
    assert!(!run.stderr.lines().any(is_warning), "{run:?}");
    run
}

/// Asserts the server's refusal, with the right that is missing.
#[track_caller]
fn lacks(run: &Run, right: &str) {
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.starts_with("Error from server (Forbidden): "),
        "{run:?}"
    );
    let hint = format!(
        "hint: ask an administrator for permission to {right}; `kubectl maint install` creates the roles (deploy/rbac.yaml)\n"
    );
    assert!(run.stderr.contains(&hint), "{run:?}");
    let (verb, resource) = right.split_once(' ').expect("a verb and a resource");
    let (resource, namespace) = resource
        .split_once(" in namespace ")
        .unwrap_or((resource, ""));
    let mut groups = [VIEWERS, USERS, HOLDERS, ADMINISTRATORS].into_iter();
    let has_it = |group: &str| may(deployed(), group, verb, resource, namespace);
    assert!(groups.any(has_it), "no role has the right to {right}");
}

#[test]
fn viewers_see_everything_and_change_nothing() {
    let plane = deployed();
    let _logs = plane.keep_logs_on_panic("viewers");
    let nodes = [NodeSpec::ready("viewed-1"), NodeSpec::ready("viewed-2")];
    plane.create_nodes(&nodes).expect("nodes");
    let user = person(plane, "uma", USERS);
    let acquire = ["acquire", "viewed-1", "--holder", "uma", "-m", "new kernel"];
    succeeds(maint(&user, &acquire));

    let viewer = person(plane, "vic", VIEWERS);
    let wide = ["status", "viewed-1", "viewed-2", "-o", "wide"];
    let seen = succeeds(maint(&viewer, &wide)).stdout;
    assert!(seen.contains("new kernel"), "{seen}");
    assert!(!seen.contains("<unknown>"), "{seen}");

    let create = "create leases.coordination.k8s.io in namespace kube-node-maintenance";
    lacks(&maint(&viewer, &["acquire", "viewed-2"]), create);
    let hold = ["hold", "viewed-2", "-m", "mine"];
    lacks(&maint(&viewer, &hold), create);
    let patch = create.replace("create", "patch");
    let release = ["release", "viewed-1", "--holder", "uma"];
    lacks(&maint(&viewer, &release), &patch);
    let renew = ["renew", "viewed-1", "--holder", "uma"];
    lacks(&maint(&viewer, &renew), &patch);
}

#[test]
fn holders_set_opt_outs_and_users_hold_without() {
    let plane = deployed();
    let _logs = plane.keep_logs_on_panic("holders");
    let node = "opted-out";
    plane
        .create_nodes(&[NodeSpec::ready(node)])
        .expect("a node");
    let key = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
    let is_set = || {
        let shown = plane.kubectl(&[
            "get",
            "node",
            node,
            "-o",
            "jsonpath={.metadata.annotations}",
        ]);
        shown.expect("a node").contains(key)
    };
    for (name, groups, may) in [
        ("ursula", &[USERS][..], false),
        ("hedda", &[USERS, HOLDERS], true),
    ] {
        let person = plane.user(name, groups).expect("a kubeconfig");
        let run = succeeds(maint(
            &person,
            &["hold", node, "--holder", name, "-m", "disk"],
        ));
        assert_eq!(is_set(), may, "{name}");
        let said = run.stderr.contains("on hold without the held label");
        assert_eq!(said, !may, "{run:?}");
        let run = succeeds(maint(&person, &["unhold", node, "--holder", name]));
        assert!(!is_set(), "{run:?}");
    }
}

#[test]
fn users_can_run_every_verb_if_the_namespace_exists() {
    let plane = deployed();
    let _logs = plane.keep_logs_on_panic("users");
    plane
        .create_nodes(&[NodeSpec::ready("used")])
        .expect("a node");
    let uma = person(plane, "uma", USERS);
    let ugo = person(plane, "ugo", USERS);
    let does = |user, arguments: &[&str]| succeeds(maint(user, arguments));

    does(&uma, &["acquire", "used", "--holder", "uma"]);
    does(&uma, &["renew", "used", "--holder", "uma"]);
    does(&uma, &["release", "used", "--holder", "uma"]);
    does(&uma, &["acquire", "used", "--holder", "uma"]);
    // Taking over a lock needs the same right, and creates an Event.
    let force = ["release", "used", "--holder", "ugo", "--force", "--yes"];
    let broken = maint(&ugo, &force);
    assert_eq!(broken.code, 0, "{broken:?}");
    assert!(
        !broken.stderr.contains("could not post an Event"),
        "{broken:?}"
    );
    let hold = ["hold", "used", "--holder", "ugo", "-m", "new disk"];
    does(&ugo, &hold);
    does(&ugo, &["unhold", "used", "--holder", "ugo"]);
    does(&ugo, &["status", "-o", "wide"]);

    let about = "--field-selector=regarding.name=used,regarding.kind=Node";
    let reasons = "jsonpath={.items[*].reason}";
    let events = [
        "get",
        "events.v1.events.k8s.io",
        "-n",
        "default",
        about,
        "-o",
        reasons,
    ];
    let events = plane.kubectl(&events).expect("events");
    let mut ours: Vec<&str> = events
        .split(' ')
        .filter(|reason| reason.starts_with("Maintenance"))
        .collect();
    ours.sort_unstable();
    assert_eq!(
        ours,
        [
            "MaintenanceHold",
            "MaintenanceLockTakenOver",
            "MaintenanceUnhold"
        ]
    );
}

#[test]
fn a_viewer_sees_who_waits() {
    for waiting in [USERS, ADMINISTRATORS] {
        a_viewer_sees_that_one_waits(waiting);
    }
}

/// The user who waits is in the group `waiting`.
fn a_viewer_sees_that_one_waits(waiting: &str) {
    let plane = deployed();
    let _logs = plane.keep_logs_on_panic("waiting");
    let node = &*waiting.replace("kubectl-maint:", "awaited-by-");
    plane
        .create_nodes(&[NodeSpec::ready(node)])
        .expect("a node");
    let uma = person(plane, "uma", USERS);
    let ugo = person(plane, "ugo", waiting);
    let viewer = person(plane, "vic", VIEWERS);
    succeeds(maint(&uma, &["acquire", node, "--holder", "uma"]));
    let shows = || {
        let page = succeeds(maint(&viewer, &["describe", node])).stdout;
        page.contains("Waiting:      ugo began to wait ")
    };
    let wait = ["acquire", node, "--holder", "ugo", "--wait", "--timeout=1m"];
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| maint(&ugo, &wait));
        while !shows() {
            assert!(!waits.is_finished(), "{:?}", waits.join());
        }
        succeeds(maint(&uma, &["release", node, "--holder", "uma"]));
        succeeds(waits.join().expect("it ends"));
    });
    assert!(!shows(), "ugo has it");
}

#[test]
fn a_missing_namespace_is_not_created_unasked() {
    let plane = ControlPlane::builder()
        .controller_manager(false)
        .start()
        .expect("a control plane");
    let _logs = plane.keep_logs_on_panic("administrator");
    plane
        .create_nodes(&[NodeSpec::ready("first")])
        .expect("a node");
    let refused = plane.kubectl(&["apply", "-f", RIGHTS]).unwrap_err();
    let refused = format!("{refused:#}");
    assert!(
        refused.contains("\"kube-node-maintenance\" not found"),
        "{refused}"
    );
    let allowed = plane.await_allowed(&[ADMINISTRATORS], "create", "namespaces", "");
    allowed.expect("it is granted");

    let user = person(&plane, "uma", USERS);
    let refused = maint(&user, &["acquire", "first"]);
    lacks(
        &refused,
        "get leases.coordination.k8s.io in namespace kube-node-maintenance",
    );
    let administrator = person(&plane, "ada", ADMINISTRATORS);
    let hold = ["hold", "first", "-m", "new disk"];
    let refused = maint(&administrator, &hold);
    assert_eq!(
        (refused.code, &*refused.stderr),
        (
            6,
            "error: namespace kube-node-maintenance does not exist\n\
             hint: create it with `kubectl create namespace kube-node-maintenance`\n"
        )
    );
    let namespaces = plane.kubectl(&["get", "namespaces", "-o", "name"]);
    assert!(!namespaces.unwrap().contains("maintenance"));
    let created = plane.kubectl(&["create", "namespace", "kube-node-maintenance"]);
    created.expect("a namespace");
    succeeds(maint(&administrator, &hold));
}

#[test]
fn nobody_else_may_do_anything() {
    let plane = deployed();
    let _logs = plane.keep_logs_on_panic("nobody");
    let stranger = plane.user("stranger", &[]).expect("a kubeconfig");
    let on_leases = "leases.coordination.k8s.io in namespace kube-node-maintenance";
    let refused = maint(&stranger, &["status"]);
    lacks(&refused, &format!("list {on_leases}"));
    let refused = maint(&stranger, &["acquire", "any"]);
    lacks(&refused, &format!("get {on_leases}"));
}

#[test]
fn every_right_is_needed() {
    let plane = deployed();
    let on_leases = |group, namespace| -> Vec<&str> {
        LEASE_VERBS
            .into_iter()
            .filter(|verb| may(plane, group, verb, LEASES, namespace))
            .collect()
    };
    let ours = "kube-node-maintenance";
    let on_events = |group| -> Vec<&str> {
        LEASE_VERBS
            .into_iter()
            .filter(|verb| may(plane, group, verb, "events.events.k8s.io", ours))
            .collect()
    };
    assert_eq!(on_events(VIEWERS), ["list"]);
    for group in [USERS, ADMINISTRATORS] {
        assert_eq!(on_events(group), ["list", "create"]);
    }
    assert_eq!(on_leases(VIEWERS, ours), ["get", "list", "watch"]);
    assert_eq!(on_leases(USERS, ours), LEASE_VERBS[..5]);
    assert_eq!(on_leases(ADMINISTRATORS, ours), LEASE_VERBS[..5]);
    for group in [VIEWERS, USERS] {
        assert_eq!(on_leases(group, "kube-node-lease"), ["get", "list"]);
        assert_eq!(on_leases(group, "kube-system"), [""; 0]);
        for (verb, resource) in [("create", "namespaces"), ("patch", "nodes")] {
            assert!(
                !may(plane, group, verb, resource, ""),
                "{group} may {verb} {resource}"
            );
        }
    }
    for group in [VIEWERS, USERS, ADMINISTRATORS] {
        assert!(may(plane, group, "watch", "nodes", ""), "{group}");
        for (verb, resource, namespace) in [
            ("delete", "nodes", ""),
            ("delete", "namespaces", ""),
            ("get", "secrets", ours),
            ("list", "pods", "default"),
            ("create", "events.events.k8s.io", "kube-system"),
        ] {
            assert!(
                !may(plane, group, verb, resource, namespace),
                "{group} may {verb} {resource} in {namespace:?}"
            );
        }
    }
    assert!(!may(
        plane,
        VIEWERS,
        "create",
        "events.events.k8s.io",
        "default"
    ));
}
