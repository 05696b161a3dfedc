//! Races: if many commands want a node, exactly one gets it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde_json::json;

use crate::support::Treatment::{Keep, Pass};
use crate::support::{Cluster, at_a_terminal, holder_of, in_memory, on_both, on_real, requests};

const CONTENDERS: usize = 16;
const ROUNDS: usize = 10;

/// The outcome of one contender.
struct Attempt {
    holder: String,
    code: i32,
    stderr: String,
}

#[test]
fn of_16_holders_one_gets_the_node() {
    on_real("race-many", |cluster| {
        let holders: Vec<String> = (0..CONTENDERS)
            .map(|number| format!("user{number}@bastion"))
            .collect();
        rounds(cluster, &holders);
    });
}

#[test]
fn of_16_processes_of_one_holder_one_gets_the_node() {
    on_real("race-one", |cluster| {
        rounds(cluster, &vec!["ops@bastion".to_owned(); CONTENDERS]);
    });
}

/// Runs several rounds in which all `holders` want one node. In the first round, the node has no Lease.
fn rounds(cluster: &Cluster, holders: &[String]) {
    let node = cluster.node("worker-1");
    for round in 1..=ROUNDS {
        let attempts = race(cluster, &node, holders);
        let mut codes = BTreeMap::new();
        for attempt in &attempts {
            assert!(
                matches!(attempt.code, 0 | 3),
                "round {round}, code {}: {}",
                attempt.code,
                attempt.stderr
            );
            *codes.entry(attempt.code).or_insert(0) += 1;
        }
        assert_eq!(
            codes,
            BTreeMap::from([(0, 1), (3, CONTENDERS - 1)]),
            "round {round}"
        );
        let winner = attempts
            .iter()
            .find(|attempt| attempt.code == 0)
            .expect("one exit code is 0");
        let named = match holders.iter().all(|holder| *holder == winner.holder) {
            true => format!(": you already hold this lock as {}", winner.holder),
            false => format!(": locked by {}", winner.holder),
        };
        for attempt in attempts.iter().filter(|attempt| attempt.code == 3) {
            assert!(
                attempt.stderr.contains(&named),
                "round {round}: {named}: {}",
                attempt.stderr
            );
        }
        let spec = &cluster.lease_of(&node)["spec"];
        assert_eq!(spec["holderIdentity"], json!(winner.holder));
        assert_eq!(spec["leaseTransitions"], json!(round));
        cluster
            .maint(["release", &node])
            .holder(&winner.holder)
            .succeeds();
    }
}

#[test]
fn a_rival_midway_through_many_nodes_costs_few_requests() {
    const NODES: usize = 100;
    on_both("race-midway", |cluster| {
        let nodes: Vec<String> = (0..NODES)
            .map(|number| cluster.node(&format!("worker-{number:03}")))
            .collect();
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let contended = nodes[NODES / 2].clone();
        let proxy = cluster.proxy({
            let (contended, is_first) = (contended.clone(), AtomicBool::new(true));
            move |method, path| {
                let is_it = *method == Method::PATCH && path.contains(&contended);
                match is_it && is_first.swap(false, Ordering::Relaxed) {
                    true => Keep,
                    false => Pass,
                }
            }
        });
        let (run, kept) = proxy.holds_up(cluster.maint(["acquire", "-v6"]).args(&nodes));
        let bob = cluster.maint(["acquire", &contended]).holder("bob@laptop");
        bob.succeeds();
        assert_eq!(kept.passes(), 409);
        let run = run.ends();
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains(": locked by bob@laptop"), "{run}");
        assert!(run.stderr.contains("0 of 100 nodes acquired"), "{run}");
        // Each node is acquired and released once, and the refused node is read a few times.
        let sent = requests(&run).len();
        assert!(sent <= 2 * NODES + 10, "{sent} requests");
        for node in &nodes {
            let holder = holder_of(cluster, node);
            assert_eq!(holder.is_some(), *node == contended, "{node}: {holder:?}");
        }
    });
}

#[test]
fn many_nodes_are_counted_on_a_terminal() {
    in_memory("race-count", |cluster| {
        let nodes: Vec<String> = (0..30)
            .map(|number| cluster.node(&format!("worker-{number:02}")))
            .collect();
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let last = nodes[29].clone();
        let proxy = cluster.proxy_for(Keep, move |method, path| {
            *method == Method::PATCH && path.contains(&last)
        });
        let acquire = cluster.maint(["acquire"]).args(&nodes);
        let mut terminal = at_a_terminal(acquire.kubeconfig(&proxy.kubeconfig));
        let kept = proxy.kept();
        // The line is updated only a few times per second, so the last count may be missing. A command that ends
        // quickly shows no count.
        let counted = terminal.exp_regex(r"\[=*>? *\] [0-9]+ of 30 nodes acquired");
        counted.expect("a line");
        assert_eq!(kept.passes(), 200);
        let rest = terminal.exp_eof().expect("it ends");
        let (_, result) = rest.rsplit_once("\x1b[2K").expect("it is erased");
        assert!(result.contains("30 of 30 nodes locked"), "{rest:?}");
    });
}

#[test]
fn a_slow_node_does_not_hide_how_many_others_are_done() {
    in_memory("race-slow", |cluster| {
        let nodes: Vec<String> = (0..20)
            .map(|number| cluster.node(&format!("worker-{number:02}")))
            .collect();
        let acquired = cluster.maint(["acquire"]).args(&nodes).run();
        assert_eq!(acquired.code, 0, "{}", acquired.stderr);
        let first = nodes[0].clone();
        let proxy = cluster.proxy_for(Keep, move |method, path| {
            *method == Method::PATCH && path.contains(&first)
        });
        let release = cluster.maint(["release", "-o", "json"]).args(&nodes);
        let mut terminal = at_a_terminal(release.kubeconfig(&proxy.kubeconfig));
        let kept = proxy.kept();
        let counted = terminal.exp_regex(r"\[=+> *\] 19 of 20 nodes released");
        counted.expect("a line");
        assert_eq!(kept.passes(), 200);
        let rest = terminal.exp_eof().expect("it ends");
        let (_, result) = rest.rsplit_once("\x1b[2K").expect("it is erased");
        assert!(result.contains("20 of 20 nodes free"), "{rest:?}");
    });
}

/// Starts a process for each holder. Each process waits for the name of the node, and then all continue at the same
/// time.
fn race(cluster: &Cluster, node: &str, holders: &[String]) -> Vec<Attempt> {
    let mut contenders: Vec<(String, Child)> = holders
        .iter()
        .map(|holder| {
            let child = cluster
                .maint(["acquire", "--nodes-from", "-"])
                .holder(holder)
                .command()
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the plugin was built");
            (holder.clone(), child)
        })
        .collect();
    for (_, child) in &mut contenders {
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin
            .write_all(node.as_bytes())
            .expect("the plugin reads it");
    }
    contenders
        .into_iter()
        .map(|(holder, child)| {
            let output = child.wait_with_output().expect("the plugin ends");
            Attempt {
                holder,
                code: output.status.code().expect("it was not killed"),
                stderr: String::from_utf8(output.stderr).expect("output is UTF-8"),
            }
        })
        .collect()
}
