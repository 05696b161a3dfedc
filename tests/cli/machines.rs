//! The opt-outs of a lock on the Machine of its Node: Cluster API's in a management cluster, and OpenShift's.

mod changed_by_others;
mod failures;

use std::path::Path;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Cluster, Kept, LEASES, Treatment, ago, holder_of, in_memory, on_both, on_one, on_real, requests,
};

const SKIP: &str = "cluster.x-k8s.io/skip-remediation";
const HOOK: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/kubectl-maint";
const RECORD: &str = "kubectl-maint.dev/held-machine";

/// Returns the annotations of a Machine that block its tools.
fn opt_outs(cluster: &Cluster, machine: &str) -> Value {
    let mut found = cluster.get(machine)["metadata"]["annotations"].clone();
    let annotations = found.as_object_mut().expect("annotations");
    assert_eq!(annotations["example.com/rack"], "7");
    annotations.retain(|key, _| [SKIP, HOOK].contains(&key.as_str()));
    found
}

fn both() -> Value {
    json!({SKIP: "true", HOOK: "alice@bastion"})
}

/// Returns the record of the Machine on a Node.
fn record(cluster: &Cluster, node: &str) -> Value {
    let node = cluster.get(&format!("/api/v1/nodes/{node}"));
    let value = node["metadata"]["annotations"][RECORD].as_str();
    value.map_or(Value::Null, |value| {
        serde_json::from_str(value).expect("JSON")
    })
}

/// Sets up a cluster that manages its own Machines, with the context `mgmt`. Returns its kubeconfig, a node, and the
/// path of that node's Machine.
fn managed(cluster: &Cluster) -> (std::path::PathBuf, String, String) {
    let node = cluster.node("worker-1");
    let machine = cluster.machine(&node);
    let kubeconfig = cluster.with_contexts(&[("mgmt", cluster.admin())]);
    (kubeconfig, node, machine)
}

/// The words of a warning about opt-outs that stay on the Machine of `node`.
fn blocks(node: &str) -> String {
    format!("the opt-outs on Machine default/{node}-machine still block its deletion and rollouts")
}

const CONTEXT: &str = "--management-context=mgmt";

#[test]
fn a_hold_sets_them_and_its_end_removes_them_without_the_flag() {
    on_both("machine-hold", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        for end in ["unhold", "release"] {
            let hold = ["hold", &node, "-m", "disk", CONTEXT];
            let run = cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
            let said = "worker-1: its Machine default/worker-1-machine (context mgmt) is opted out of Cluster API \
                        until the hold ends\n";
            assert!(
                run.to_string().contains(said) && !run.stderr.contains("NOT"),
                "{run}"
            );
            assert_eq!(opt_outs(cluster, &machine), both());
            assert_eq!(record(cluster, &node)["context"], "mgmt");
            // Another `hold` keeps them, even without the flag.
            cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
            let run = cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
            assert!(!run.stderr.contains("NOT"), "{run}");
            assert_eq!(opt_outs(cluster, &machine), both());

            cluster
                .maint([end, &node])
                .kubeconfig(&kubeconfig)
                .succeeds();
            assert_eq!(opt_outs(cluster, &machine), json!({}));
            assert_eq!(record(cluster, &node), Value::Null);
            assert_eq!(holder_of(cluster, &node), None);
        }
        let none = ["hold", &node, "-m", "disk", CONTEXT, "--opt-outs=none"];
        cluster.maint(none).kubeconfig(&kubeconfig).succeeds();
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

#[test]
fn the_context_may_come_from_the_environment_and_costs_three_requests() {
    on_real("machine-requests", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        cluster.released(&node);
        let hold = ["hold", &node, "-m", "disk", "-v6"];
        let count = |environment: &str| {
            let run = cluster
                .maint(hold)
                .kubeconfig(&kubeconfig)
                .env("KUBECTL_MAINT_MANAGEMENT_CONTEXT", environment)
                .succeeds();
            let sent = requests(&run).len();
            cluster
                .maint(["unhold", &node])
                .kubeconfig(&kubeconfig)
                .succeeds();
            sent
        };
        // Three more requests: the Machine is read and written, and the Lease is read before that write.
        let without = count("");
        assert_eq!(count("mgmt"), without + 3);
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

#[test]
fn of_a_lock_go_with_the_release() {
    on_one("machine-lock", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let acquire = ["acquire", &node, CONTEXT, "--opt-outs=cluster-api"];
        let maint =
            |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).succeeds();
        maint(&acquire);
        assert_eq!(opt_outs(cluster, &machine), both());
        maint(&["renew", &node, "--duration=1h"]);
        assert_eq!(record(cluster, &node)["name"], format!("{node}-machine"));
        maint(&["release", &node]);
        assert_eq!(opt_outs(cluster, &machine), json!({}));

        // Without `--opt-outs`, the context has no effect.
        maint(&["acquire", &node, CONTEXT, "--protect"]);
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        maint(&["release", &node]);

        let script = format!("kubectl-maint status {node} >/dev/null 2>&1; exit 0");
        let with = [
            "with",
            &node,
            CONTEXT,
            "--opt-outs=auto",
            "--",
            "sh",
            "-c",
            &script,
        ];
        let run = maint(&with);
        assert!(
            run.stderr
                .contains("is opted out of Cluster API until the lock ends"),
            "{run}"
        );
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        assert_eq!(record(cluster, &node), Value::Null);
    });
}

#[test]
fn of_an_expired_lock_go_with_the_next_holder() {
    on_one("machine-expired", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let acquire = ["acquire", &node, CONTEXT, "--opt-outs=auto"];
        let bob = cluster.maint(acquire).holder("bob@laptop");
        bob.kubeconfig(&kubeconfig).succeeds();
        assert_eq!(opt_outs(cluster, &machine)[HOOK], "bob@laptop");
        let times = json!({"spec": {"acquireTime": ago(3600), "renewTime": ago(3600), "leaseDurationSeconds": 60}});
        cluster.patch(&format!("{LEASES}/{node}"), &times);
        let wide = ["status", &node, "-o", "wide", "--check-taints"];
        let wide = cluster.maint(wide).succeeds();
        assert!(wide.stdout.contains(&blocks(&node)), "{wide}");
        cluster
            .maint(["acquire", &node])
            .kubeconfig(&kubeconfig)
            .succeeds();
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

#[test]
fn an_overdue_hold_still_blocks_rollouts() {
    on_one("machine-overdue", |cluster| {
        let (kubeconfig, node, _) = managed(cluster);
        let hold = ["hold", &node, "-m", "disk", "--expect-until=1h", CONTEXT];
        cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        let set = format!("opt-outs on Machine default/{node}-machine (context mgmt)");
        let blocks = blocks(&node);
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        assert!(page.contains(&set) && !page.contains(&blocks), "{page}");
        let past = json!({"metadata": {"annotations": {"kubectl-maint.dev/hold-until": "2026-01-01T00:00:00Z"}}});
        cluster.patch(&format!("{LEASES}/{node}"), &past);
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        assert!(page.contains(&blocks), "{page}");
        let wide = cluster.maint(["status", &node, "-o", "wide"]).succeeds();
        assert!(wide.stdout.contains(&blocks), "{wide}");
        cluster
            .maint(["unhold", &node])
            .kubeconfig(&kubeconfig)
            .succeeds();
    });
}

#[test]
fn values_of_users_survive() {
    on_both("machine-user", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let path = format!("{machine}?fieldManager=kubectl-annotate");
        for value in ["true", "until we know more"] {
            let annotations = json!({"metadata": {"annotations": {SKIP: value}}});
            cluster.patch(&path, &annotations);
            let hold = ["hold", &node, "-m", "disk", CONTEXT];
            let run = cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
            assert!(!run.stderr.contains("NOT protected"), "{run}");
            let held = json!({SKIP: value, HOOK: "alice@bastion"});
            assert_eq!(opt_outs(cluster, &machine), held);
            cluster
                .maint(["unhold", &node])
                .kubeconfig(&kubeconfig)
                .succeeds();
            assert_eq!(opt_outs(cluster, &machine), json!({SKIP: value}));
        }
    });
}

#[test]
fn of_openshift_are_one_hook_among_others() {
    on_real("machine-openshift", |cluster| {
        let node = cluster.node("worker-1");
        let machine = cluster.openshift_machine(&node);
        let kubeconfig = cluster.with_contexts(&[("mgmt", cluster.admin())]);
        let hooks = || cluster.get(&machine)["spec"]["lifecycleHooks"]["preDrain"].clone();
        let (theirs, ours) = (
            json!({"name": "etcd-quorum", "owner": "clusteroperator/etcd"}),
            json!({"name": "kubectl-maint", "owner": "kubectl-maint: alice@bastion"}),
        );
        let hold = ["hold", &node, "-m", "disk"];
        let run = cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        let warned = "worker-1: NOT protected from the OpenShift Machine API: ";
        assert!(run.stderr.contains(warned), "{run}");
        cluster
            .maint(hold)
            .arg(CONTEXT)
            .kubeconfig(&kubeconfig)
            .succeeds();
        assert_eq!(hooks(), json!([theirs, ours]));
        cluster
            .maint(["unhold", &node])
            .kubeconfig(&kubeconfig)
            .succeeds();
        assert_eq!(hooks(), json!([theirs]));
    });
}

/// Checks the output and exit code of a hold whose Machine can't be written, and whether it leaves a Lease.
fn unprotected(cluster: &Cluster, kubeconfig: &Path, node: &str, context: &str, cause: &str) {
    let context = format!("--management-context={context}");
    let hold = ["hold", node, "-m", "disk", &context];
    let run = cluster.maint(hold).kubeconfig(kubeconfig).succeeds();
    let said = format!("Warning: node/worker-1: NOT protected from Cluster API: {cause}");
    assert!(run.to_string().contains(&said), "{run}");
    assert!(holder_of(cluster, node).is_some());
    assert_eq!(record(cluster, node), Value::Null);
    cluster
        .maint(["unhold", node])
        .kubeconfig(kubeconfig)
        .succeeds();

    let strict = cluster
        .maint(hold)
        .arg("--strict")
        .kubeconfig(kubeconfig)
        .run();
    assert_eq!(strict.code, 6, "{strict}");
    let said = format!(
        "nothing was locked, because of --strict: node/worker-1: NOT protected from Cluster API: {cause}"
    );
    assert!(strict.to_string().contains(&said), "{strict}");
    assert_eq!(holder_of(cluster, node), None);
}

#[test]
fn a_hold_without_them_says_so_and_strict_refuses_it() {
    on_one("machine-unprotected", |cluster| {
        let (_, node, machine) = managed(cluster);
        let nowhere = Cluster::nowhere();
        let kubeconfig =
            cluster.with_contexts(&[("mgmt", cluster.admin()), ("down", nowhere.admin())]);
        unprotected(
            cluster,
            &kubeconfig,
            &node,
            "down",
            "The connection to the server [server] was refused",
        );
        unprotected(
            cluster,
            &kubeconfig,
            &node,
            "typo",
            "context \"typo\" does not exist",
        );
        cluster.patch(&machine, &json!({"status": {"nodeRef": {"name": "other"}}}));
        let cause = "Machine default/worker-1-machine (context mgmt) does not name this node";
        unprotected(cluster, &kubeconfig, &node, "mgmt", cause);
        cluster.delete(&machine);
        let cause = "there is no Machine default/worker-1-machine (context mgmt)";
        unprotected(cluster, &kubeconfig, &node, "mgmt", cause);
    });
}

#[test]
fn without_a_management_context_strict_refuses_opt_outs() {
    on_one("machine-strict", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        for (verb, extra) in [
            ("hold", &["-m", "disk"][..]),
            ("acquire", &["--opt-outs=auto"]),
            ("with", &["--opt-outs=auto", "--", "true"]),
        ] {
            let arguments = [&[verb, &node, "--strict"][..], extra].concat();
            let run = cluster.maint(&arguments).kubeconfig(&kubeconfig).run();
            assert_eq!(run.code, 6, "{run}");
            assert!(
                run.stderr
                    .contains("worker-1: NOT protected from Cluster API: "),
                "{run}"
            );
            assert!(run.stderr.contains("add --management-context"), "{run}");
            assert_eq!(holder_of(cluster, &node), None);
        }
        for (verb, extra) in [
            ("hold", &["-m", "disk", "--opt-outs=karpenter"][..]),
            ("acquire", &[]),
            ("hold", &["-m", "disk", CONTEXT]),
        ] {
            let arguments = [&[verb, &node, "--strict"][..], extra].concat();
            let run = cluster.maint(&arguments).kubeconfig(&kubeconfig).succeeds();
            assert!(!run.stderr.contains("NOT protected"), "{run}");
            cluster
                .maint(["release", &node])
                .kubeconfig(&kubeconfig)
                .succeeds();
        }
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

#[test]
fn a_planned_replacement_of_the_machine_is_reported_and_refused_by_strict() {
    on_one("machine-marked", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let condition = |kind: &str| json!({"type": kind, "status": "False"});
        let conditions = [
            condition("HealthCheckSucceeded"),
            condition("OwnerRemediated"),
        ];
        cluster.patch(&machine, &json!({"status": {"conditions": conditions}}));
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        let replaced = "worker-1: Cluster API will replace its Machine, because a MachineHealthCheck marked it";
        let strict = cluster
            .maint(hold)
            .arg("--strict")
            .kubeconfig(&kubeconfig)
            .run();
        assert_eq!(strict.code, 6, "{strict}");
        assert!(strict.stderr.contains(replaced), "{strict}");
        let run = cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        assert!(run.stderr.contains(replaced), "{run}");
        assert_eq!(opt_outs(cluster, &machine), both());
    });
}

#[test]
fn an_unhold_without_access_leaves_them_and_says_how_to_remove_them() {
    on_one("machine-left", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let hold = ["hold", &node, "-m", "disk"];
        cluster
            .maint(hold)
            .arg(CONTEXT)
            .kubeconfig(&kubeconfig)
            .succeeds();
        // This kubeconfig has no such context.
        let run = cluster.maint(["unhold", &node]).succeeds();
        let server = record(cluster, &node)["server"].clone();
        let left = format!(
            "Warning: node/{node}: the opt-outs on Machine default/{node}-machine stay, and block its deletion and \
             rollouts: context \"mgmt\" does not exist; it was the context of the cluster at {}\n\
             hint: to remove them, name the context of that cluster: `kubectl maint unhold {node} \
             --management-context=NAME`\n",
            server.as_str().expect("a URL")
        );
        assert!(run.stderr.contains(&left), "{run}");
        assert_eq!(holder_of(cluster, &node), None);
        assert_eq!(opt_outs(cluster, &machine), both());
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        assert!(
            page.contains("still block its deletion and rollouts"),
            "{page}"
        );

        // The next lock keeps the record, and tries to remove the opt-outs when it ends.
        cluster.maint(hold).succeeds();
        assert_eq!(record(cluster, &node)["context"], "mgmt");
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(opt_outs(cluster, &machine), both());

        let unhold = ["unhold", &node, CONTEXT];
        let run = cluster.maint(unhold).kubeconfig(&kubeconfig).succeeds();
        assert!(run.stdout.contains("already free"), "{run}");
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        assert_eq!(record(cluster, &node), Value::Null);
    });
}

#[test]
fn a_tool_that_was_named_without_a_machine_is_reported() {
    in_memory("machine-none", |cluster| {
        let node = cluster.node("worker-1");
        let acquire = ["acquire", &node, "--opt-outs=cluster-api,karpenter"];
        let said = format!(
            "Warning: node/{node}: NOT protected from Cluster API: the Node does not name its Machine\n"
        );
        let run = cluster.maint(acquire).succeeds();
        assert!(run.stderr.contains(&said), "{run}");
        cluster.maint(["release", &node]).succeeds();
        let run = cluster.maint(acquire).arg("--strict").run();
        assert!(run.code == 6 && run.stderr.contains(&said), "{run}");
    });
}

/// Ctrl-C while the command, at its end, waits for the management cluster.
#[test]
fn an_interrupted_end_of_a_command_releases_the_lock_all_the_same() {
    on_one("machine-interrupted", |cluster| {
        let node = cluster.node("worker-1");
        cluster.machine(&node);
        let proxy = cluster.proxy(|method, path| match path.contains("/machines/") {
            true if *method == Method::GET => Treatment::Keep,
            _ => Treatment::Pass,
        });
        let kubeconfig = cluster.with_contexts(&[("mgmt", cluster.admin())]);
        let hold = ["acquire", &node, CONTEXT, "--opt-outs=cluster-api"];
        cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        let recorded = record(cluster, &node);
        cluster.maint(["release", &node]).succeeds();
        assert_eq!(record(cluster, &node), recorded);

        let kubeconfig = cluster.with_contexts(&[("mgmt", &proxy.kubeconfig)]);
        let with = ["with", &node, CONTEXT, "--protect", "--", "true"];
        let running = cluster.maint(with).kubeconfig(&kubeconfig).start();
        let kept = proxy.kept();
        running.is_sent(Signal::INT);
        let run = running.ends();
        drop(kept);
        assert_eq!(holder_of(cluster, &node), None, "{run}");
        let said = "if the lock set them: interrupted\n";
        assert!(
            run.stderr.contains(said) && run.stderr.contains("released\n"),
            "{run}"
        );
    });
}

#[test]
fn the_role_for_machines_is_enough_and_without_it_the_hold_says_so() {
    on_real("machine-rights", |cluster| {
        let node = cluster.node("worker-1");
        let machine = cluster.machine(&node);
        let plane = cluster.plane();
        let manifest = |name: &str| format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"));
        let (namespace, roles) = (manifest("namespace.yaml"), manifest("rbac.yaml"));
        let applied = plane.kubectl(&["apply", "-f", &namespace, "-f", &roles]);
        applied.expect("the manifests are valid");
        let groups = ["kubectl-maint:users", "kubectl-maint:holders"];
        let user = plane.user("machine-holder", &groups).expect("a kubeconfig");
        let kubeconfig = cluster.with_contexts(&[("mgmt", &user)]);
        let hold = ["hold", &node, "-m", "disk", "--context=mgmt", CONTEXT];
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        // The authorizer sees the new roles a moment later.
        let held = |expected: &str| {
            for _ in 0..100 {
                let run = maint(&hold);
                if run.code == 0 && run.stderr.contains(expected) {
                    return run;
                }
            }
            panic!("it never says {expected:?}: {}", maint(&hold));
        };
        let run = held("NOT protected from Cluster API: ");
        assert!(
            run.stderr.contains("cannot get resource \"machines\""),
            "{run}"
        );
        let bind = [
            "create",
            "rolebinding",
            "kubectl-maint-machines",
            "-n",
            "default",
            "--clusterrole=kubectl-maint-machines",
            "--user=machine-holder",
        ];
        plane.kubectl(&bind).expect("a binding");
        held("is opted out of Cluster API until the hold ends");
        assert_eq!(opt_outs(cluster, &machine)[SKIP], "true");
        let run = maint(&["unhold", &node, "--context=mgmt"]);
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        // The role is also needed to list Machines. Other tests have Machines of their own.
        let found = maint(&["doctor", "--context=mgmt", CONTEXT]).stdout;
        assert!(
            found.contains(" machines ") && !found.contains("could not read the Machines"),
            "{found}"
        );
    });
}

#[test]
fn doctor_finds_what_ended_locks_left_and_removes_it() {
    // On a shared server, `doctor --fix` would remove what other tests left on Machines.
    in_memory("machine-doctor", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let held = cluster.node("worker-2");
        let of_held = cluster.machine(&held);
        let maint = |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).run();
        for node in [&node, &held] {
            assert_eq!(maint(&["hold", node, "-m", "disk", CONTEXT]).code, 0);
        }
        cluster.maint(["unhold", &node]).succeeds();
        let stale = "machines       opt-outs of a lock that has ended or expired block the deletion of: \
                     default/worker-1-machine of node/worker-1";
        let report = |extra: &[&str]| {
            let run = maint(&[&["doctor"][..], extra].concat());
            let words: Vec<String> = run
                .to_string()
                .split_whitespace()
                .map(ToOwned::to_owned)
                .collect();
            words.join(" ")
        };
        let stale: Vec<&str> = stale.split_whitespace().collect();
        let stale = stale.join(" ");
        assert!(!report(&[]).contains("machines"));
        let found = report(&[CONTEXT]);
        assert!(found.contains(&stale), "{found}");
        assert!(!found.contains("worker-2-machine"), "{found}");
        assert_eq!(opt_outs(cluster, &machine), both());

        let fixed = report(&[CONTEXT, "--fix"]);
        assert!(
            fixed.contains("removed the opt-outs of: default/worker-1-machine"),
            "{fixed}"
        );
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        assert_eq!(record(cluster, &node), Value::Null);
        assert_eq!(opt_outs(cluster, &of_held), both());
        let found = report(&[CONTEXT]);
        assert!(!found.contains(&stale), "{found}");
        maint(&["unhold", &held]);
    });
}

/// Kills this command when it sends a write to a path that contains `path`. The write reaches the server only if the
/// caller lets it pass.
fn killed_before(cluster: &Cluster, arguments: &[&str], path: &'static str) -> Kept {
    let plan = move |method: &Method, sent: &str| {
        let is_meant = *method == Method::PATCH && sent.contains(path);
        match is_meant && !sent.contains("dryRun") {
            true => Treatment::Keep,
            false => Treatment::Pass,
        }
    };
    let proxy = cluster.proxy(plan);
    let other = cluster.proxy(plan);
    let kubeconfig = other.kubeconfig.clone();
    let contexts = [("mgmt", &*proxy.kubeconfig), ("workload", &*kubeconfig)];
    let kubeconfig = cluster.with_contexts(&contexts);
    let command = cluster.maint(arguments).arg("--context=workload");
    let running = command.kubeconfig(&kubeconfig).start();
    let kept = match path.contains("machines") {
        true => proxy.kept(),
        false => other.kept(),
    };
    running.is_sent(Signal::KILL);
    running.ends_killed();
    kept
}

#[test]
fn a_command_killed_between_its_writes_is_finished_by_the_next_one() {
    on_one("machine-killed", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        cluster.released(&node);
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        let unhold = ["unhold", &node, CONTEXT];
        let maint =
            |arguments: &[&str]| cluster.maint(arguments).kubeconfig(&kubeconfig).succeeds();
        for path in ["/leases/", "/nodes/", "/machines/"] {
            drop(killed_before(cluster, &hold, path));
            assert_eq!(opt_outs(cluster, &machine), json!({}), "{path}");
            maint(&hold);
            assert_eq!(opt_outs(cluster, &machine), both(), "{path}");
            drop(killed_before(cluster, &unhold, path));
            maint(&unhold);
            assert_eq!(opt_outs(cluster, &machine), json!({}), "{path}");
            assert_eq!(record(cluster, &node), Value::Null, "{path}");
            assert_eq!(holder_of(cluster, &node), None, "{path}");
            // The unhold also removes them if the hold is not run again.
            drop(killed_before(cluster, &hold, path));
            maint(&unhold);
            assert_eq!(opt_outs(cluster, &machine), json!({}), "{path}");
            assert_eq!(record(cluster, &node), Value::Null, "{path}");
        }
    });
}

#[test]
fn a_write_that_arrives_after_the_unhold_is_refused() {
    on_both("machine-late", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        let late = killed_before(cluster, &hold, "/machines/");
        let unhold = cluster.maint(["unhold", &node, CONTEXT]);
        unhold.kubeconfig(&kubeconfig).succeeds();
        assert_eq!(late.passes(), 409);
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}
