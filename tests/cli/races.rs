//! Many at once: of all who want a node, one gets it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::support::{Cluster, on_real};

const CONTENDERS: usize = 64;
const ROUNDS: usize = 25;

/// How a contender came out.
struct Attempt {
    holder: String,
    code: i32,
    stderr: String,
}

#[test]
fn of_64_holders_one_gets_the_node() {
    on_real("race-many", |cluster| {
        let holders: Vec<String> = (0..CONTENDERS)
            .map(|number| format!("user{number}@bastion"))
            .collect();
        rounds(cluster, &holders);
    });
}

#[test]
fn of_64_processes_of_one_holder_one_gets_the_node() {
    on_real("race-one", |cluster| {
        rounds(cluster, &vec!["ops@bastion".to_owned(); CONTENDERS]);
    });
}

/// Lets `holders` race for one node again and again. The first round begins without a Lease.
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
        let named = format!(" by {}", winner.holder);
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

/// Starts a process for each holder, and lets all go at once: each has begun, and waits for the name
/// of the node.
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
