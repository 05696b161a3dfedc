//! The examples for `jq` in docs/json.md.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Cluster, ago, in_memory};

/// Returns the path of `jq`, or `None` if it is missing and an environment variable allows that.
fn jq() -> Option<PathBuf> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&places)
        .map(|place| place.join("jq"))
        .find(|path| path.exists());
    assert!(
        found.is_some() || std::env::var_os("TESTS_WITHOUT_JQ").is_some(),
        "jq is not installed; with TESTS_WITHOUT_JQ=1 the examples in docs/json.md are not tested"
    );
    found
}

/// The commands in docs/json.md, each with its filter.
fn examples() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../docs/json.md");
    let lines = page.lines();
    lines
        .filter_map(|line| line.strip_prefix("kubectl maint "))
        .filter_map(|line| line.strip_suffix('\'')?.split_once(" | jq -r '"))
        .collect()
}

/// Returns what an example prints in `cluster`.
fn printed(cluster: &Cluster, command: &str, filter: &str) -> String {
    let words = command.replace("worker-", &cluster.name("worker-"));
    let run = cluster.maint(words.split(' ')).run();
    let mut jq = Command::new(jq().expect("it is there"))
        .args(["-r", filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("jq starts");
    let mut stdin = jq.stdin.take().expect("a pipe");
    stdin.write_all(run.stdout.as_bytes()).expect("it reads");
    drop(stdin);
    let output = jq.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{filter}: {run}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.replace(&cluster.name(""), "")
}

#[test]
fn the_examples_for_jq_work() {
    if jq().is_none() {
        return;
    }
    in_memory("json-jq", |cluster| {
        let held = |holder: &str, renewed: i64, seconds: u32| {
            json!({
                "holderIdentity": holder,
                "acquireTime": ago(9000),
                "renewTime": ago(renewed),
                "leaseDurationSeconds": seconds,
                "leaseTransitions": 1,
            })
        };
        let [one, two] = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        cluster.lease(&one, &held("bob@laptop", 10, 1800));
        cluster.lease(&two, &held("carol@desk", 8000, 60));
        let examples = examples();
        let all: Vec<String> = examples
            .iter()
            .map(|(command, filter)| printed(cluster, command, filter))
            .collect();
        let [left, expired, since, failed, history] = &all[..] else {
            panic!("{examples:?}");
        };
        assert!(left.starts_with("worker-1 bob@laptop 17"), "{left}");
        assert_eq!(expired, "worker-2\n");
        let since: Vec<&str> = since.lines().collect();
        assert_eq!(since.len(), 2, "{since:?}");
        assert!(since[0].starts_with("worker-1 90"), "{since:?}");
        assert_eq!(failed, "worker-1 Locked\nworker-2 OtherFailed\n");
        assert!(history.starts_with("bob@laptop 20"), "{history}");
        assert!(history.ends_with("Z Current\n"), "{history}");
    });
}

/// Every target has an item, even if the command fails before it reads anything.
#[test]
fn named_nodes_have_items_even_if_nothing_was_read() {
    in_memory("json-unread", |cluster| {
        let node = cluster.node("worker-1");
        let item = |words: &[&str], code: i32| {
            let run = cluster.maint(words).run();
            assert_eq!(run.code, code, "{run}");
            run.item()
        };
        for verb in ["fence", "unfence"] {
            let item = item(&[verb, &node, "-o", "json", "--", "./nope"], 127);
            assert_eq!(item["node"], node.as_str());
            assert!(item["error"]["message"].is_string(), "{item}");
        }
    });
}
