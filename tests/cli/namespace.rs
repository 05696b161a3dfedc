//! The namespace of the locks: it is created only if the caller allows it.

use std::thread::sleep;
use std::time::Duration;

use insta::assert_snapshot;
use rexpect::session::PtySession;

use crate::fencing::unreachable;
use crate::support::{
    Cluster, LEASES, as_text, at_a_terminal, holder_of, in_memory, in_one_line, requests,
};

const NAMESPACE: &str = "/api/v1/namespaces/kube-node-maintenance";

/// Runs `test` on a cluster without the namespace of the locks.
fn without_namespace(prefix: &str, test: impl Fn(&Cluster)) {
    in_memory(prefix, |cluster| {
        remove(cluster);
        test(cluster);
    });
}

/// Deletes the namespace, and waits while it is Terminating because of the Leases in it.
fn remove(cluster: &Cluster) {
    cluster.delete(NAMESPACE);
    while exists(cluster) {
        sleep(Duration::from_millis(20));
    }
}

fn exists(cluster: &Cluster) -> bool {
    cluster.try_send("GET", NAMESPACE, None).is_ok()
}

#[test]
fn a_script_creates_it_only_with_the_flag() {
    without_namespace("namespace-script", |cluster| {
        let node = cluster.node("worker-1");
        let other = cluster.node("worker-2");
        assert_snapshot!(cluster.maint(["acquire", &node, &other]).run(), @"
        $ kubectl maint acquire worker-1 worker-2
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: let an administrator run `kubectl maint install` once, or create only the namespace with `kubectl maint acquire worker-1 worker-2 --create-namespace`
        0 of 2 nodes acquired
        -- exit code 1
        ");
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "disk", "--yes"]).run(), @"
        $ kubectl maint hold worker-1 -m disk --yes
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: let an administrator run `kubectl maint install` once, or create only the namespace with `kubectl maint hold worker-1 -m disk --create-namespace`
        -- exit code 1
        ");
        assert_snapshot!(cluster.maint(["with", &node, "--", "true"]).run(), @"
        $ kubectl maint with worker-1 -- true
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: let an administrator run `kubectl maint install` once, or create only the namespace with `kubectl maint with worker-1 --create-namespace -- COMMAND`
        -- exit code 125
        ");
        assert_snapshot!(cluster.maint(["acquire", &node, "--dry-run=server"]).run(), @"
        $ kubectl maint acquire worker-1 --dry-run=server
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: try it with `kubectl maint acquire worker-1 --dry-run=server --create-namespace`
        -- exit code 1
        ");
        assert_snapshot!(cluster.maint(["acquire", &node, "--dry-run"]).run(), @"
        $ kubectl maint acquire worker-1 --dry-run
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: try it with `kubectl maint acquire worker-1 --dry-run=client --create-namespace`
        -- exit code 1
        ");
        assert_snapshot!(cluster.maint(["acquire", &node, "--dry-run", "--create-namespace"]).run(), @"
        $ kubectl maint acquire worker-1 --dry-run --create-namespace
        node/worker-1 acquired by alice@bastion until [time] (30m) (dry run)
        -- stderr
        namespace/kube-node-maintenance created (dry run)
        -- exit code 0
        ");
        assert_snapshot!(cluster.maint(["acquire", &node, "-o", "json"]).run(), @r#"
        $ kubectl maint acquire worker-1 -o json
        {
          "apiVersion": "kubectl-maint.dev/v2",
          "kind": "NodeMaintenanceList",
          "items": [
            {
              "apiVersion": "kubectl-maint.dev/v2",
              "kind": "NodeMaintenance",
              "node": "worker-1",
              "error": {
                "code": "NotFound",
                "message": "namespace kube-node-maintenance does not exist",
                "hint": "let an administrator run `kubectl maint install` once, or create only the namespace with `kubectl maint acquire worker-1 --create-namespace`"
              }
            }
          ]
        }
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: let an administrator run `kubectl maint install` once, or create only the namespace with `kubectl maint acquire worker-1 --create-namespace`
        -- exit code 1
        "#);
        assert!(!exists(cluster));

        let create = "--create-namespace";
        let dry_run = ["acquire", &node, "--dry-run=server", create];
        assert_snapshot!(cluster.maint(dry_run).run(), @"
        $ kubectl maint acquire worker-1 --dry-run=server --create-namespace
        node/worker-1 acquired by alice@bastion until [time] (30m) (server dry run)
        -- stderr
        namespace/kube-node-maintenance created (server dry run)
        -- exit code 0
        ");
        assert!(!exists(cluster));
        assert_snapshot!(cluster.maint(["acquire", &node, create]).run(), @"
        $ kubectl maint acquire worker-1 --create-namespace
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        namespace/kube-node-maintenance created
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
        assert!(exists(cluster));
        remove(cluster);
        cluster
            .maint(["hold", &node, "-m", "disk", create])
            .succeeds();
        remove(cluster);
        cluster
            .maint(["with", &node, create, "--", "true"])
            .succeeds();
    });
}

#[test]
fn verbs_that_lock_nothing_do_not_need_it() {
    without_namespace("namespace-ends", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["status"]).succeeds();
        for verb in ["release", "unhold"] {
            let run = cluster.maint([verb, &node]).succeeds();
            assert!(run.stdout.ends_with("already free\n"), "{run}");
        }
        assert_snapshot!(cluster.maint(["renew", &node]).run(), @"
        $ kubectl maint renew worker-1
        -- stderr
        error: cannot renew node/worker-1: it is free: never locked, or its Lease was deleted
        hint: acquire it with `kubectl maint acquire worker-1 -m WHY`
        -- exit code 3
        ");
        assert!(!exists(cluster));
    });
}

#[test]
fn create_namespace_costs_no_request_if_it_exists() {
    in_memory("namespace-cost", |cluster| {
        let sent = |short, extra: &[&str]| {
            let node = cluster.node(short);
            let run = cluster.maint(["acquire", &node, "-v=6"]).args(extra).run();
            requests(&run).len()
        };
        assert_eq!(
            sent("worker-1", &["--create-namespace"]),
            sent("worker-2", &[])
        );
    });
}

/// Starts a run at a terminal and reads up to its question.
fn at_prompt(cluster: &Cluster, arguments: &[&str]) -> PtySession {
    let mut terminal = at_a_terminal(cluster.maint(arguments));
    let facts = terminal
        .exp_string("Create the namespace? [y/N]")
        .expect("a question");
    let facts = in_one_line(&as_text(&facts));
    assert!(
        facts.contains("namespace kube-node-maintenance does not exist"),
        "{facts}"
    );
    terminal
}

fn answer(mut terminal: PtySession, answer: &str) -> String {
    terminal.send(answer).expect("it listens");
    terminal.flush().expect("it listens");
    as_text(&terminal.exp_eof().expect("it ends"))
}

#[test]
fn on_a_terminal_it_asks_first() {
    without_namespace("namespace-asks", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let [one, other] = &nodes;
        let acquire = ["acquire", one, other];
        let said = answer(at_prompt(cluster, &acquire), "n\r");
        assert!(said.contains("not confirmed"), "{said}");
        assert!(!exists(cluster));

        let said = answer(at_prompt(cluster, &acquire), "y\r");
        assert!(
            said.contains("namespace/kube-node-maintenance created"),
            "{said}"
        );
        assert!(
            nodes.iter().all(|node| holder_of(cluster, node).is_some()),
            "{said}"
        );

        remove(cluster);
        let said = answer(at_prompt(cluster, &["hold", one, "-m", "disk"]), "y\r");
        assert!(said.contains("on hold"), "{said}");
        assert!(cluster.get(&format!("{LEASES}/{one}")).is_object());
    });
}

#[test]
fn yes_and_a_dry_run_do_not_ask() {
    without_namespace("namespace-yes", |cluster| {
        let node = cluster.node("worker-1");
        for flag in ["--yes", "--dry-run=server"] {
            let mut terminal = at_a_terminal(cluster.maint(["acquire", &node, flag]));
            let said = as_text(&terminal.exp_eof().expect("it ends"));
            assert!(said.contains("--create-namespace`"), "{said}");
        }
        assert!(!exists(cluster));
    });
}

#[test]
fn fence_and_force_delete_do_not_create_it_either() {
    without_namespace("namespace-fence", |cluster| {
        let node = unreachable(cluster);
        let fence = ["fence", &node, "--powered-off=dark", "--timeout=0"];
        let target = format!("node/{node}");
        let force_delete = ["force-delete", &target, "--accept-risk=none", "-m", "dark"];
        for command in [&fence[..], &force_delete] {
            let run = cluster.maint(command).run();
            assert!(
                run.stderr
                    .contains("create only the namespace by adding --create-namespace"),
                "{run}"
            );
            assert_eq!(run.code, 1, "{run}");
        }
        let suspect = ["fence", &node, "--suspect", "--timeout=0", "--", "true"];
        for command in [&fence[..], &suspect] {
            let mut terminal = at_a_terminal(cluster.maint(command));
            let said = as_text(&terminal.exp_eof().expect("it ends"));
            assert!(
                said.contains("create only the namespace by adding --create-namespace"),
                "{said}"
            );
            assert!(!said.contains("type its name"), "{said}");
        }
        assert!(!exists(cluster));
        cluster.maint(fence).arg("--create-namespace").succeeds();
    });
}
