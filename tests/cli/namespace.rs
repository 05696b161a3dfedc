//! The namespace of the locks: it is created only if somebody at a terminal says so.

use std::thread::sleep;
use std::time::Duration;

use insta::assert_snapshot;
use rexpect::session::PtySession;

use crate::fencing::unreachable;
use crate::support::{Cluster, LEASES, as_text, at_a_terminal, holder_of, in_memory, in_one_line};

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
fn a_script_is_refused() {
    without_namespace("namespace-script", |cluster| {
        let node = cluster.node("worker-1");
        assert_snapshot!(cluster.maint(["hold", &node, "-m", "disk", "--yes"]).run(), @"
        $ kubectl maint hold worker-1 -m disk --yes
        -- stderr
        error: namespace kube-node-maintenance does not exist
        hint: create it with `kubectl create namespace kube-node-maintenance`
        -- exit code 6
        ");
        let json = cluster.maint(["acquire", &node, "-o", "json"]).run();
        assert_eq!(json.item()["error"]["code"], "NotFound", "{json}");
        for words in [
            &["acquire", &node, "--dry-run"][..],
            &["with", &node, "--", "true"],
        ] {
            assert_eq!(cluster.maint(words).run().code, 6, "{words:?}");
        }
        assert!(!exists(cluster));
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
        cluster.maint(["renew", &node]).fails(3);
        assert!(!exists(cluster));
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
        for flag in ["--yes", "--dry-run"] {
            let mut terminal = at_a_terminal(cluster.maint(["acquire", &node, flag]));
            let said = as_text(&terminal.exp_eof().expect("it ends"));
            assert!(said.contains("kubectl create namespace"), "{said}");
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
            assert!(run.stderr.contains("kubectl create namespace"), "{run}");
            assert_eq!(run.code, 6, "{run}");
        }
        let mut terminal = at_a_terminal(cluster.maint(fence));
        let said = as_text(&terminal.exp_eof().expect("it ends"));
        assert!(said.contains("kubectl create namespace"), "{said}");
        assert!(!said.contains("type its name"), "{said}");
        assert!(!exists(cluster));
    });
}
