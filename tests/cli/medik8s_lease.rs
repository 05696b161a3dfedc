//! The medik8s Lease of a node, which a lock holds with `--opt-outs=medik8s`.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Cluster, Kept, LEASES, MEDIK8S, Treatment, ago, holder_of, in_memory, on_one, on_real,
};

const RECORD: &str = "kubectl-maint.dev/held-medik8s-lease";
const OPT_OUT: &str = "--opt-outs=medik8s";

/// Creates a node, and the namespace of medik8s' Leases.
fn node(cluster: &Cluster) -> String {
    cluster.install_medik8s();
    cluster.node("worker-1")
}

/// The medik8s Lease of `node`, or null if it does not exist.
fn lease(cluster: &Cluster, node: &str) -> Value {
    let path = format!("{MEDIK8S}/node-{node}");
    cluster.try_send("GET", &path, None).unwrap_or_default()
}

/// Whether a lock holds the medik8s Lease, and whether the Node has a record of that.
fn held(cluster: &Cluster, node: &str) -> (bool, bool) {
    let holder = &lease(cluster, node)["spec"]["holderIdentity"];
    let node = cluster.get(&format!("/api/v1/nodes/{node}"));
    let record = &node["metadata"]["annotations"][RECORD];
    (*holder == "kubectl-maint", record.is_string())
}

/// Creates the medik8s Lease of `node` with this holder. It lasts ten minutes, starting `seconds` ago.
fn taken(cluster: &Cluster, node: &str, holder: &str, seconds: i64) {
    cluster.create(
        MEDIK8S,
        &json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": format!("node-{node}"), "labels": {"example.com/by": "medik8s"}},
            "spec": {
                "holderIdentity": holder,
                "acquireTime": ago(seconds),
                "renewTime": ago(seconds),
                "leaseDurationSeconds": 600,
                "leaseTransitions": 4,
            },
        }),
    );
}

#[test]
fn a_hold_takes_it_for_good_and_its_end_deletes_it() {
    on_one("medik8s-hold", |cluster| {
        let node = node(cluster);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        for end in ["unhold", "release"] {
            let run = cluster.maint(hold).succeeds();
            let said = "node/worker-1: its medik8s Lease is held until the hold ends\n";
            assert!(run.to_string().contains(said), "{run}");
            assert!(!run.stderr.contains("NOT"), "{run}");
            let lease = lease(cluster, &node);
            let spec = &lease["spec"];
            assert_eq!(spec["leaseDurationSeconds"], i32::MAX);
            let renewed = spec["renewTime"].as_str().expect("a time");
            assert!(*renewed < *ago(0) && *renewed > *ago(600), "{renewed}");
            assert_eq!(lease["metadata"]["ownerReferences"][0]["name"], node);
            assert_eq!(held(cluster, &node), (true, true));
            let page = cluster.maint(["describe", &node]).succeeds().stdout;
            assert!(page.contains("its medik8s Lease\n"), "{page}");
            // The Lease of our own lock is not reported as another holder.
            assert!(!page.contains("holds its medik8s Lease"), "{page}");
            let uid = lease["metadata"]["uid"].clone();

            // Another `hold` keeps the Lease, even without the flag.
            cluster.maint(hold).arg("--strict").succeeds();
            cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
            assert_eq!(held(cluster, &node), (true, true));
            assert_eq!(self::lease(cluster, &node)["metadata"]["uid"], uid);

            cluster.maint([end, &node]).succeeds();
            assert_eq!(self::lease(cluster, &node), Value::Null);
            assert_eq!(held(cluster, &node), (false, false));
            assert_eq!(holder_of(cluster, &node), None);
        }
        // Without this opt-out, the hold does not create the Lease.
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_eq!(held(cluster, &node), (false, false));
    });
}

#[test]
fn of_a_lock_goes_with_the_release_or_the_next_holder() {
    on_one("medik8s-lock", |cluster| {
        let node = node(cluster);
        let acquire = ["acquire", &node, OPT_OUT];
        let run = cluster.maint(acquire).succeeds();
        assert!(run.stderr.contains("is held until the lock ends"), "{run}");
        cluster.maint(["renew", &node, "--duration=1h"]).succeeds();
        assert_eq!(held(cluster, &node), (true, true));
        cluster.maint(["release", &node]).succeeds();
        assert_eq!(held(cluster, &node), (false, false));

        cluster
            .maint(["with", &node, OPT_OUT, "--", "true"])
            .succeeds();
        assert_eq!(held(cluster, &node), (false, false));

        cluster.maint(acquire).holder("bob@laptop").succeeds();
        let times = json!({"spec": {"acquireTime": ago(3600), "renewTime": ago(3600), "leaseDurationSeconds": 60}});
        cluster.patch(&format!("{LEASES}/{node}"), &times);
        assert_eq!(held(cluster, &node), (true, true));
        cluster.maint(["acquire", &node]).succeeds();
        assert_eq!(held(cluster, &node), (false, false));
    });
}

#[test]
fn it_is_never_taken_from_another_holder() {
    on_one("medik8s-busy", |cluster| {
        let node = node(cluster);
        taken(cluster, &node, "node-healthcheck", 60);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        let strict = cluster.maint(hold).arg("--strict").run();
        assert_eq!(strict.code, 6, "{strict}");
        assert_eq!(holder_of(cluster, &node), None);

        let before = lease(cluster, &node);
        let run = cluster.maint(hold).succeeds();
        let said = "Warning: node/worker-1: NOT protected from medik8s: node-healthcheck holds its Lease\n";
        assert!(run.to_string().contains(said), "{run}");
        assert!(holder_of(cluster, &node).is_some());
        assert_eq!(lease(cluster, &node), before);
        assert_eq!(held(cluster, &node), (false, false));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(lease(cluster, &node), before);
    });
}

#[test]
fn an_expired_one_is_taken() {
    on_one("medik8s-expired", |cluster| {
        let node = node(cluster);
        taken(cluster, &node, "node-healthcheck", 6000);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        cluster.maint(hold).succeeds();
        let found = lease(cluster, &node);
        assert_eq!(found["spec"]["leaseTransitions"], 5);
        assert_eq!(found["metadata"]["labels"]["example.com/by"], "medik8s");
        assert_eq!(held(cluster, &node), (true, true));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(lease(cluster, &node), Value::Null);
    });
}

#[test]
fn what_somebody_else_made_of_it_survives() {
    on_one("medik8s-edited", |cluster| {
        let node = node(cluster);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        cluster.maint(hold).succeeds();
        let path = format!("{MEDIK8S}/node-{node}");
        cluster.patch(&path, &json!({"spec": {"holderIdentity": "bob"}}));
        let edited = lease(cluster, &node);
        let run = cluster.maint(["unhold", &node]).succeeds();
        assert!(!run.stderr.contains("medik8s"), "{run}");
        assert_eq!(lease(cluster, &node), edited);
        assert_eq!(held(cluster, &node), (false, false));

        cluster.delete(&path);
        cluster.maint(hold).succeeds();
        cluster.delete(&path);
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(held(cluster, &node), (false, false));
    });
}

#[test]
fn a_take_over_without_it_removes_it_at_the_end() {
    on_one("medik8s-taken", |cluster| {
        let node = node(cluster);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        cluster.maint(hold).holder("bob@laptop").succeeds();
        let take_over = ["hold", &node, "-m", "fire", "--take-over", "--yes"];
        cluster.maint(take_over).succeeds();
        assert_eq!(held(cluster, &node), (true, true));
        // With the opt-out, the new hold can take over the Lease.
        cluster.maint(take_over).arg(OPT_OUT).succeeds();
        let lock_id =
            &lease(cluster, &node)["metadata"]["annotations"]["kubectl-maint.dev/held-lock-id"];
        let of_node = cluster.get(&format!("/api/v1/nodes/{node}"));
        let of_node = &of_node["metadata"]["annotations"]["kubectl-maint.dev/held-lock-id"];
        assert_eq!(lock_id, of_node);
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(held(cluster, &node), (false, false));
    });
}

#[test]
fn without_the_namespace_a_lock_says_so() {
    // On the real server, other tests create this namespace.
    in_memory("medik8s-namespace", |cluster| {
        let node = cluster.node("worker-1");
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        let said = format!(
            "Warning: node/{node}: NOT protected from medik8s: there is no namespace medik8s-leases; is medik8s installed?\n"
        );
        for (strict, code) in [(&[][..], 0), (&["--strict"], 6)] {
            let run = cluster.maint(hold).args(strict).run();
            assert_eq!(run.code, code, "{run}");
            assert!(run.stderr.contains(&said), "{run}");
            assert_eq!(held(cluster, &node), (false, false));
        }
        cluster.maint(["unhold", &node]).succeeds();
    });
}

#[test]
fn the_role_for_it_is_enough_and_without_it_the_hold_says_so() {
    on_real("medik8s-rights", |cluster| {
        let node = node(cluster);
        let plane = cluster.plane();
        let manifest = |name: &str| format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"));
        let (namespace, roles) = (manifest("namespace.yaml"), manifest("rbac.yaml"));
        let applied = plane.kubectl(&["apply", "-f", &namespace, "-f", &roles]);
        applied.expect("the manifests are valid");
        let groups = ["kubectl-maint:users", "kubectl-maint:holders"];
        let user = plane.user("medik8s-holder", &groups).expect("a kubeconfig");
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&user).run();
        // The authorizer sees the new roles a moment later.
        let until_said = |arguments: &[&str], expected: &str| {
            for _ in 0..100 {
                let run = maint(arguments);
                if run.code == 0 && run.stderr.contains(expected) {
                    return run;
                }
            }
            panic!("it never says {expected:?}: {}", maint(arguments));
        };
        let run = until_said(&hold, "NOT protected from medik8s: ");
        assert!(
            run.stderr.contains("cannot get resource \"leases\""),
            "{run}"
        );
        assert_eq!(held(cluster, &node), (false, false));
        let bind = [
            "create",
            "rolebinding",
            "kubectl-maint-medik8s",
            "-n",
            "medik8s-leases",
            "--clusterrole=kubectl-maint-medik8s",
            "--user=medik8s-holder",
        ];
        plane.kubectl(&bind).expect("a binding");
        until_said(&hold, "its medik8s Lease is held until the hold ends");
        assert_eq!(held(cluster, &node), (true, true));
        // A user without the right to delete the Lease leaves it and its record. A hint says how to delete it.
        let unbind = [
            "delete",
            "rolebinding",
            "kubectl-maint-medik8s",
            "-n",
            "medik8s-leases",
        ];
        plane.kubectl(&unbind).expect("it is deleted");
        let get = [
            "auth",
            "can-i",
            "delete",
            "leases",
            "-n",
            "medik8s-leases",
            "--as=medik8s-holder",
        ];
        for _ in 0..100 {
            if plane.kubectl(&get).is_err() {
                break;
            }
        }
        let run = until_said(
            &["unhold", &node],
            "its medik8s Lease stays, and keeps medik8s off the node: ",
        );
        assert!(
            run.stderr.contains("to delete it: `kubectl maint "),
            "{run}"
        );
        assert_eq!(holder_of(cluster, &node), None);
        assert_eq!(held(cluster, &node), (true, true));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(held(cluster, &node), (false, false));
    });
}

/// Kills this command when it sends a write to a path that contains `path`. The write reaches the server only if the
/// caller lets it pass.
fn killed_before(cluster: &Cluster, arguments: &[&str], path: &'static str) -> Kept {
    let proxy = cluster.proxy(move |method: &Method, sent: &str| {
        let is_meant = *method != Method::GET && sent.contains(path);
        match is_meant && !sent.contains("dryRun") {
            true => Treatment::Keep,
            false => Treatment::Pass,
        }
    });
    proxy.kills(cluster.maint(arguments))
}

#[test]
fn a_command_killed_between_its_writes_is_finished_by_the_next_one() {
    on_one("medik8s-killed", |cluster| {
        let node = node(cluster);
        cluster.released(&node);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        let unhold = ["unhold", &node];
        for path in [
            "/kube-node-maintenance/leases/",
            "/nodes/",
            "/medik8s-leases/",
        ] {
            drop(killed_before(cluster, &hold, path));
            assert!(!held(cluster, &node).0, "{path}");
            cluster.maint(hold).succeeds();
            assert_eq!(held(cluster, &node), (true, true), "{path}");
            drop(killed_before(cluster, &unhold, path));
            cluster.maint(unhold).succeeds();
            assert_eq!(held(cluster, &node), (false, false), "{path}");
            assert_eq!(holder_of(cluster, &node), None, "{path}");
            // The unhold also removes it if the hold is not run again.
            drop(killed_before(cluster, &hold, path));
            cluster.maint(unhold).succeeds();
            assert_eq!(held(cluster, &node), (false, false), "{path}");
        }
    });
}

/// Each command, after its own write, checks what the other one has written.
#[test]
fn a_hold_that_ends_while_it_takes_the_lease_leaves_none() {
    on_one("medik8s-race", |cluster| {
        let node = node(cluster);
        cluster.released(&node);
        for path in ["/nodes/", "/kube-node-maintenance/leases/"] {
            let taking = cluster.proxy_for(Treatment::Keep, |method, sent| {
                *method == Method::POST && sent.contains("/medik8s-leases/")
            });
            let hold = cluster.maint(["hold", &node, "-m", "disk", OPT_OUT]);
            let (hold, create) = taking.holds_up(hold);
            // The Node changes in between, so the write is retried. The proxy keeps only the first attempt.
            let is_first = AtomicBool::new(true);
            let ending = cluster.proxy_for(Treatment::Keep, move |method, sent| {
                let is_meant = *method == Method::PATCH && sent.contains(path);
                is_meant && !sent.contains("dryRun") && is_first.swap(false, Ordering::Relaxed)
            });
            let (unhold, write) = ending.holds_up(cluster.maint(["unhold", &node]));
            let change = json!({"metadata": {"annotations": {"example.com/change": path}}});
            cluster.patch(&format!("/api/v1/nodes/{node}"), &change);
            assert_eq!(create.passes(), 201, "{path}");
            hold.ends();
            write.passes();
            let run = unhold.ends();
            assert_eq!(run.code, 0, "{run}");
            assert_eq!(lease(cluster, &node), Value::Null, "{path}");
            assert_eq!(held(cluster, &node), (false, false), "{path}");
            assert_eq!(holder_of(cluster, &node), None, "{path}");
        }
    });
}

#[test]
fn an_expired_one_that_its_holder_deletes_meanwhile_is_taken_all_the_same() {
    on_one("medik8s-deleted", |cluster| {
        let node = node(cluster);
        taken(cluster, &node, "node-healthcheck", 6000);
        let proxy = cluster.proxy_for(Treatment::Keep, |method, sent| {
            *method == Method::PATCH && sent.contains("/medik8s-leases/")
        });
        let hold = cluster.maint(["hold", &node, "-m", "disk", OPT_OUT]);
        let (hold, patch) = proxy.holds_up(hold);
        cluster.delete(&format!("{MEDIK8S}/node-{node}"));
        assert_eq!(patch.passes(), 404);
        let run = hold.ends();
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(held(cluster, &node), (true, true), "{run}");
    });
}

#[test]
fn doctor_finds_what_ended_locks_left_and_deletes_it() {
    // On a shared server, `doctor` would find what other tests left.
    in_memory("medik8s-doctor", |cluster| {
        let node = node(cluster);
        let hold = ["hold", &node, "-m", "disk", OPT_OUT];
        let report = |extra: &[&str]| {
            let run = cluster.maint([&["doctor"][..], extra].concat()).run();
            let words: Vec<&str> = run.stdout.split_whitespace().collect();
            words.join(" ")
        };
        let stale = format!("a lock that has ended or expired holds the medik8s Lease of: {node}");
        // This write arrives after its hold has ended.
        let late = killed_before(cluster, &hold, "/medik8s-leases/");
        assert!(!report(&[]).contains(&stale));
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(late.passes(), 201);
        assert_eq!(held(cluster, &node), (true, false));
        let found = report(&[]);
        assert!(found.contains(&stale), "{found}");
        let fixed = report(&["--fix"]);
        assert!(
            fixed.contains(&format!("deleted the medik8s Lease of: {node}")),
            "{fixed}"
        );
        assert_eq!(lease(cluster, &node), Value::Null);

        // The medik8s Lease of a lock that still holds is not a problem.
        cluster.maint(hold).succeeds();
        let found = report(&["--fix"]);
        assert!(!found.contains("medik8s Lease"), "{found}");
        assert_eq!(held(cluster, &node), (true, true));
        // If the Node still has the record, the Lease is deleted together with the keys on the Node.
        let ended = json!({"spec": {"holderIdentity": ""}});
        cluster.patch(&format!("{LEASES}/{node}"), &ended);
        assert!(report(&[]).contains(&stale));
        let fixed = report(&["--fix"]);
        assert!(
            fixed.contains(&format!("removed the held label, opt-outs and cordons of locks that have ended or expired from: {node}")),
            "{fixed}"
        );
        assert_eq!(held(cluster, &node), (false, false));
    });
}
