//! What a command does if the Machine's API server refuses or does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::{CONTEXT, both, managed, opt_outs, record};
use crate::support::{Cluster, Treatment, holder_of, in_memory, on_both, on_one};

/// Returns a kubeconfig whose context `mgmt` leads to a proxy that treats writes to Machines like
/// this.
fn treated(cluster: &Cluster, treatment: Treatment) -> (crate::support::Proxy, std::path::PathBuf) {
    let proxy = cluster.proxy(move |method, path| {
        match *method == Method::PATCH && path.contains("/machines/") {
            true => treatment,
            false => Treatment::Pass,
        }
    });
    let kubeconfig = cluster.with_contexts(&[("mgmt", &proxy.kubeconfig)]);
    (proxy, kubeconfig)
}

#[test]
fn a_machine_that_may_not_be_written_leaves_no_record() {
    on_both("machine-forbidden", |cluster| {
        let (_, node, machine) = managed(cluster);
        let (_proxy, kubeconfig) = treated(cluster, Treatment::Refuse(403, "not you"));
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        let run = cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        let said = "NOT protected from Cluster API: ";
        assert!(
            run.stderr.contains(said) && run.stderr.contains("not you"),
            "{run}"
        );
        assert_eq!(record(cluster, &node), Value::Null);
        let page = cluster.maint(["describe", &node]).succeeds().stdout;
        assert!(!page.contains("opt-outs on Machine"), "{page}");
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        cluster.maint(["unhold", &node]).succeeds();
    });
}

#[test]
fn the_record_of_what_an_earlier_lock_left_stays() {
    on_one("machine-earlier-lock", |cluster| {
        let (_, node, machine) = managed(cluster);
        let (_passing, kubeconfig) = treated(cluster, Treatment::Pass);
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        // Without the context, the opt-outs stay.
        cluster.maint(["unhold", &node]).succeeds();
        assert_eq!(opt_outs(cluster, &machine), both());
        let (_forbidding, forbidden) = treated(cluster, Treatment::Refuse(403, "not you"));
        cluster.maint(hold).kubeconfig(&forbidden).succeeds();
        assert_eq!(record(cluster, &node)["name"], format!("{node}-machine"));
        let (_passing, kubeconfig) = treated(cluster, Treatment::Pass);
        let unhold = cluster.maint(["unhold", &node, CONTEXT]);
        unhold.kubeconfig(&kubeconfig).succeeds();
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        assert_eq!(record(cluster, &node), Value::Null);
    });
}

#[test]
fn a_write_without_an_answer_is_not_said_to_have_failed() {
    on_one("machine-lost", |cluster| {
        let (_, node, machine) = managed(cluster);
        let (_proxy, kubeconfig) = treated(cluster, Treatment::LoseAnswer);
        let hold = ["hold", &node, "-m", "disk", CONTEXT];
        let run = cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
        let said = "node/worker-1: might not be protected from Cluster API: ";
        assert!(
            run.to_string().contains(said) && !run.stderr.contains("NOT"),
            "{run}"
        );
        let said = "; the write may still take effect, and is undone when the lock ends\n";
        assert!(run.stderr.contains(said), "{run}");
        // The write took effect, and the record exists.
        assert_eq!(opt_outs(cluster, &machine), both());
        assert_eq!(record(cluster, &node)["context"], "mgmt");
        let (_passing, kubeconfig) = treated(cluster, Treatment::Pass);
        let unhold = cluster.maint(["unhold", &node, CONTEXT]);
        unhold.kubeconfig(&kubeconfig).succeeds();
        assert_eq!(opt_outs(cluster, &machine), json!({}));
    });
}

#[test]
fn a_given_context_does_not_replace_a_recorded_one_that_is_right() {
    on_one("machine-given", |cluster| {
        let (_, node, machine) = managed(cluster);
        let nowhere = Cluster::nowhere();
        let kubeconfig =
            cluster.with_contexts(&[("mgmt", cluster.admin()), ("other", nowhere.admin())]);
        for given in ["other", "typo"] {
            let hold = ["hold", &node, "-m", "disk", CONTEXT];
            cluster.maint(hold).kubeconfig(&kubeconfig).succeeds();
            let unhold = cluster.maint(["unhold", &node, "--management-context", given]);
            let run = unhold.kubeconfig(&kubeconfig).succeeds();
            assert!(!run.stderr.contains("Warning"), "{run}");
            assert_eq!(opt_outs(cluster, &machine), json!({}));
            assert_eq!(record(cluster, &node), Value::Null);
        }
    });
}

#[test]
fn an_empty_context_is_none() {
    on_one("machine-empty", |cluster| {
        let (kubeconfig, node, machine) = managed(cluster);
        let hold = ["hold", &node, "-m", "disk", "--management-context="];
        let hold = cluster.maint(hold).kubeconfig(&kubeconfig);
        let run = hold
            .env("KUBECTL_MAINT_MANAGEMENT_CONTEXT", "mgmt")
            .succeeds();
        assert!(
            run.stderr.contains("to set them, add --management-context"),
            "{run}"
        );
        assert_eq!(opt_outs(cluster, &machine), json!({}));
        assert_eq!(record(cluster, &node), Value::Null);
    });
}

#[test]
fn a_cluster_that_does_not_answer_is_asked_once_for_all_nodes() {
    in_memory("machine-silent", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.machine(node);
        }
        let requests = Arc::new(AtomicUsize::new(0));
        let silent = Arc::new(AtomicUsize::new(0));
        let (count, is_silent) = (Arc::clone(&requests), Arc::clone(&silent));
        let proxy = cluster.proxy(move |_, path| {
            if is_silent.load(Ordering::Relaxed) == 0 || !path.contains("/machines/") {
                return Treatment::Pass;
            }
            count.fetch_add(1, Ordering::Relaxed);
            Treatment::Keep
        });
        let kubeconfig = cluster.with_contexts(&[("mgmt", &proxy.kubeconfig)]);
        let run = |verb: &[&str]| {
            let nodes = nodes.iter().map(String::as_str);
            let words: Vec<&str> = verb.iter().copied().chain(nodes).collect();
            cluster.maint(words).arg(CONTEXT).kubeconfig(&kubeconfig)
        };
        run(&["hold", "-m", "disk"]).succeeds();
        silent.store(1, Ordering::Relaxed);
        let unhold = ["unhold", "--parallel=1", "--request-timeout=5s"];
        let run = run(&unhold).succeeds();
        assert_eq!(requests.load(Ordering::Relaxed), 1, "{run}");
        let said = "the cluster of context mgmt did not answer an earlier request";
        assert_eq!(run.stderr.matches(said).count(), 2, "{run}");
        for node in &nodes {
            assert_eq!(holder_of(cluster, node), None);
            assert_eq!(record(cluster, node)["context"], "mgmt");
        }
    });
}
