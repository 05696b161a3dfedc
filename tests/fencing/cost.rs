//! `fence` reports the risks of fencing before it changes anything.

use insta::assert_snapshot;
use rexpect::session::spawn_command;
use serde_json::{Value, json};

use crate::support::database::stateful_set;
use crate::support::{Stage, eventually};

/// How long a test waits for a prompt or for the end of a run, in milliseconds.
const LIMIT: u64 = 60_000;

/// A pod that tolerates an unreachable node, with data in an emptyDir.
fn patient(stage: &Stage, name: &str, node: &str) -> Value {
    let mut pod = stage.pod(name, node);
    let wait = |key: &str| json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute"});
    pod["spec"]["tolerations"] = json!([wait("unreachable"), wait("not-ready")]);
    pod["spec"]["volumes"] = json!([{"name": "tmp", "emptyDir": {}}]);
    pod
}

#[test]
fn its_requests_do_not_grow_with_the_pods_of_the_node() {
    let (stage, node) = Stage::with_unreachable_node("asks");
    let fence = ["fence", &node, "--powered-off=dark", "--dry-run", "-v6"];
    let cost = |pods: usize| {
        let run = stage.maint(fence).run();
        assert!(run.stderr.contains(&format!(": {pods} pod")), "{run}");
        // The number of reads of Nodes depends on other tests.
        let of_pods = |line: &&str| {
            line.contains("verb=\"") && (line.contains("/pods") || line.contains(stage.own()))
        };
        run.stderr.lines().filter(of_pods).count()
    };
    let pods = |range: std::ops::Range<usize>| {
        let pods = range.map(|number| patient(&stage, &format!("tool-{number}"), &node));
        stage.create(&pods.collect::<Vec<_>>());
    };
    stage.create(&[stage.namespace()]);
    pods(0..1);
    let of_one = cost(1);
    pods(1..30);
    assert!(of_one > 0);
    assert_eq!(cost(30), of_one);
}

#[test]
fn pods_that_nothing_recreates_are_lost_only_with_consent() {
    let (stage, node) = Stage::with_unreachable_node("cost");
    let mut proxy = stage.pod("proxy", &node);
    proxy["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    stage.create(&[stage.namespace(), patient(&stage, "tool", &node), proxy]);
    let fence = ["fence", &node, "--powered-off=dark"];
    assert_snapshot!(stage.maint(fence).run(), @r#"
    $ kubectl maint fence worker-1 --powered-off=dark
    -- stderr
    node/worker-1: 1 pod will be deleted and not recreated: cost/tool
    node/worker-1: 1 pod will lose emptyDir data: cost/tool
    node/worker-1: 1 pod will not be deleted (static, or tolerating the taint): cost/proxy
    error: cannot fence node/worker-1: nothing recreates 1 pod (cost/tool)
    hint: to fence it anyway, add --accept-risk=no-owner -m WHY
    -- exit code 6
    "#);
    let ran = stage.directory().join("ran");
    let hook = format!("touch '{}'", ran.display());
    let run = stage.maint(["fence", &node, "--", "sh", "-c", &hook]).run();
    assert_eq!(run.code, 6, "{run}");
    let dry_run = stage.maint(fence).args(["--dry-run"]).run();
    assert_eq!(dry_run.code, 6, "{dry_run}");
    assert!(!ran.exists());
    stage.is_untouched(&node);

    let accepted = ["--accept-risk=no-owner", "-m", "it can go"];
    let run = stage.maint(fence).args(accepted).succeeds();
    assert!(
        run.stderr.contains("1 pod will lose emptyDir data"),
        "{run}"
    );
    eventually("the pod goes", || stage.find_pod("tool").is_none());
    // The node is already fenced, so there is no risk left to accept.
    let run = stage.maint(fence).succeeds();
    assert!(!run.stderr.contains("emptyDir"), "{run}");
}

/// The prompts ask for a risk, the reason, and the name of the node.
#[test]
fn risks_are_asked_for_on_a_terminal() {
    let (stage, node) = Stage::with_unreachable_node("cost-asked");
    stage.create(&[stage.namespace(), patient(&stage, "tool", &node)]);
    let fence = || {
        let fence = stage.maint(["fence", &node, "--powered-off=dark"]);
        let command = fence.env("TERM", "xterm").command();
        let mut terminal = spawn_command(command, Some(LIMIT)).expect("a terminal");
        let question = "Accept the risk `no-owner`?";
        let facts = terminal.exp_string(question).expect("a question");
        let fact = format!("  node/{node}: nothing recreates 1 pod (cost-asked/tool)");
        assert!(facts.contains(&fact), "{facts}");
        // It can, if the risk is accepted.
        assert!(!facts.contains("cannot fence"), "{facts}");
        terminal
    };
    let mut refused = fence();
    refused.send_line("n").expect("it listens");
    let said = refused.exp_eof().expect("it ends");
    stage.is_untouched(&node);
    assert!(!said.contains("Reason"), "{said}");

    let mut accepted = fence();
    for (answer, question) in [
        ("y", "Reason, recorded on the node"),
        ("it can go", "type its name"),
    ] {
        accepted.send(&format!("{answer}\r")).expect("it listens");
        accepted.flush().expect("it listens");
        accepted.exp_string(question).expect("a question");
    }
    accepted.send(&format!("{node}\r")).expect("it listens");
    accepted.flush().expect("it listens");
    let said = accepted.exp_eof().expect("it ends");
    assert!(stage.is_tainted(&node), "{said}");
    assert_eq!(stage.record(&node).expect("a record")["why"], "it can go");
}

/// Another tool may be about to delete the node anyway.
#[test]
fn what_other_tools_do_to_the_node_is_reported_first() {
    let (stage, node) = Stage::with_unreachable_node("cost-tools");
    let deletes = "ToBeDeletedByClusterAutoscaler=1790000000:NoSchedule";
    stage.kubectl(&["taint", "node", &node, deletes]);
    stage.kubectl(&["cordon", &node]);
    let fence = ["fence", &node, "--powered-off=dark"];
    let says = "cluster-autoscaler is deleting this node";
    let tool = json!({
        "activity": "AutoscalerDeletes", "key": "ToBeDeletedByClusterAutoscaler",
        "since": "2026-09-21T14:13:20Z",
    });
    for more in [&["--dry-run"][..], &[]] {
        let run = stage.maint(fence).args(more).args(["-o", "json"]);
        let run = run.succeeds();
        assert_eq!(run.stderr.matches(says).count(), 1, "{run}");
        let (before, after) = run.stderr.split_once(says).expect("it says so");
        assert!(before.starts_with("Warning: node/"), "{run}");
        assert!(after.contains("on hold until it is unfenced"), "{run}");
        assert!(!run.stderr.contains("cordoned"), "{run}");
        assert_eq!(run.item()["otherTools"], json!([tool]), "{run}");
    }
    // The node is already fenced, so there is nothing to decide.
    let run = stage.maint(fence).args(["-o", "json"]).succeeds();
    assert!(!run.stderr.contains(says), "{run}");
    assert_eq!(run.item()["otherTools"], Value::Null);
}

/// Kubernetes force-deletes the pods of a fenced node that already hang in Terminating, and their controllers
/// replace them.
#[test]
fn pods_that_may_run_twice_are_listed_even_if_they_are_being_deleted() {
    let (stage, node) = Stage::with_unreachable_node("cut-off");
    let mut set = stateful_set(&stage, "db", 1, &json!([]));
    let containers = &mut set["spec"]["template"]["spec"];
    containers["terminationGracePeriodSeconds"] = json!(1);
    stage.create(&[stage.namespace(), set]);
    eventually("the set makes its member", || {
        stage.find_pod("db-0").is_some()
    });
    let own = stage.own().to_owned();
    stage
        .plane
        .bind_pod(&own, "db-0", &node)
        .expect("it is placed");
    stage.kubectl(&["delete", "pod", "db-0", "-n", &own, "--wait=false"]);
    let fence = ["fence", &node, "--isolated", "--dry-run", "--", "true"];
    let run = stage.maint(fence).kubeconfig(stage.fencer("fay")).run();
    let line = "1 pod may run twice, because the node is only cut off: ";
    assert!(run.stderr.contains(line), "{run}");
    assert!(run.stderr.contains("/db-0"), "{run}");
}
