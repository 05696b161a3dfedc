//! `fence --all-unreachable`: it fences the nodes one at a time, the most urgent first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use control_plane::{NodeSpec, Readiness};
use rexpect::session::spawn_command;
use serde_json::{Value, json};

use crate::support::{
    HEARTBEAT_AGE, Maint, PatientHook, Plane, Run, Stage, eventually, hook_that_kills,
};

/// How long a test waits for a prompt or for the end of a run, in milliseconds.
const LIMIT: u64 = 60_000;

/// A cluster without nodes, used by one test at a time, because the command counts all nodes.
fn empty(prefix: &str) -> (Stage, MutexGuard<'static, ()>) {
    static PLANE: Plane = Plane::new();
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let stage = Stage::on(&PLANE, prefix);
    stage.kubectl(&["delete", "nodes", "--all"]);
    (stage, alone)
}

/// Creates unreachable nodes with these names, each in its own zone, and one healthy node.
fn unreachable<const N: usize>(stage: &mut Stage, names: [&str; N]) -> [String; N] {
    let nodes = names.map(|name| stage.name(name));
    let specs: Vec<NodeSpec> = { nodes.iter() }
        .map(|name| NodeSpec {
            name: name.clone(),
            ready: Readiness::Unknown,
            heartbeat_age: HEARTBEAT_AGE,
            labels: [("topology.kubernetes.io/zone".to_owned(), name.clone())].into(),
            ..NodeSpec::default()
        })
        .collect();
    stage.plane.create_nodes(&specs).expect("nodes");
    for node in &nodes {
        // The boot ID identifies the machine that another run has fenced.
        let status = json!({"status": {"nodeInfo": {"bootID": "boot-1"}}});
        stage.patch_status(node, &status);
    }
    let kubelets = stage.kubelets(&[&stage.name("well")]);
    stage.keep(kubelets);
    nodes
}

fn fence_all(stage: &Stage, max: usize) -> Maint {
    let max = format!("--max={max}");
    stage.maint(["fence", "--all-unreachable", &max, "--timeout=0"])
}

/// The nodes in the output of a run, whether they are fenced, and their error codes.
fn outcomes(run: &Run) -> Vec<Value> {
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    { list["items"].as_array().expect("a list").iter() }
        .map(|item| json!([item["node"], item["fenced"], item["error"]["code"]]))
        .collect()
}

/// A controller with these pods, which the test itself binds to `nodes`.
fn workload(stage: &Stage, kind: &str, name: &str, nodes: &[&str], priority: Option<&str>) {
    let labels = json!({"app": name});
    let mut pod = json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "none"}],
    });
    if let Some(priority) = priority {
        pod["priorityClassName"] = priority.into();
    }
    let mut spec = json!({
        "replicas": nodes.len(),
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    });
    if kind == "StatefulSet" {
        spec["serviceName"] = name.into();
    }
    stage.create(&[json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": stage.own()}, "spec": spec,
    })]);
    let selector = format!("app={name}");
    let pods = || stage.pods_with(&selector);
    for (index, node) in nodes.iter().enumerate() {
        let unplaced = || {
            pods()
                .into_iter()
                .find(|pod| pod["spec"]["nodeName"].is_null())
        };
        eventually("the controller makes a pod", || unplaced().is_some());
        let pod = unplaced().expect("a pod");
        let pod = pod["metadata"]["name"].as_str().expect("a name");
        stage
            .plane
            .bind_pod(stage.own(), pod, node)
            .expect("it is placed");
        eventually("the pods run", || {
            pods()
                .iter()
                .filter(|pod| pod["status"]["phase"] == "Running")
                .count()
                > index
        });
    }
}

/// The order is by priority, and then by how much of the workload is left. Nodes that others have locked are skipped.
/// The dry run prints the order, and the run keeps to it.
#[test]
fn the_most_urgent_nodes_are_fenced_first_and_no_more_than_max() {
    let (mut stage, _alone) = empty("urgent");
    let _logs = stage.plane.keep_logs_on_panic("fencing-urgent");
    let names = ["batch", "spare", "lone", "prior", "locked", "well"].map(|name| stage.name(name));
    let [batch, spare, lone, prior, locked, well] = names.each_ref().map(String::as_str);
    let zones = [[batch, spare], [lone, prior], [locked, well]];
    let kubelets = zones.map(|nodes| {
        let zone = [("topology.kubernetes.io/zone", nodes[0])];
        stage.plane.kubelets(&nodes, &zone).expect("nodes")
    });
    let class = stage.name("class");
    stage.create(&[
        stage.namespace(),
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": class}, "value": 1000,
        }),
    ]);
    workload(&stage, "Deployment", "web", &[spare, well], None);
    workload(&stage, "StatefulSet", "db", &[lone], None);
    workload(&stage, "StatefulSet", "api", &[prior, well], Some(&class));
    stage
        .maint(["hold", locked, "-m", "repair"])
        .holder("bob@laptop")
        .succeeds();
    for (kubelets, nodes) in kubelets.iter().zip(&zones) {
        for node in nodes.iter().filter(|node| **node != well) {
            kubelets
                .stop_heartbeats(node, HEARTBEAT_AGE)
                .expect("its heartbeats stop");
        }
    }
    for node in [batch, spare, lone, prior, locked] {
        stage.is_reported_unreachable(node);
    }
    let own = stage.own();
    // The rights of a fencer are enough.
    let order = fence_all(&stage, 2)
        .args(["--dry-run", "--powered-off=dark"])
        .kubeconfig(stage.fencer("fay"))
        .holder("alice@bastion")
        .succeeds();
    let (heading, lines) = order.stdout.split_once('\n').expect("lines");
    assert_eq!(heading, "4 unreachable nodes, the most urgent first:");
    let lines: Vec<&str> = lines.lines().collect();
    let replica_set = lines[2]
        .split_once("ReplicaSet/")
        .and_then(|(_, rest)| rest.split_once(')'));
    let (replica_set, _) = replica_set.expect("the owner of the spare pod");
    let pod = lines[2]
        .split_once(&format!("{own}/"))
        .and_then(|(_, rest)| rest.split_once(' '));
    let (pod, _) = pod.expect("the spare pod");
    assert_eq!(
        lines,
        [
            format!(
                "  1. node/{prior}: {own}/api-0 (priority 1000, 1 other ready pod of StatefulSet/api)"
            ),
            format!(
                "  2. node/{lone}: {own}/db-0 (priority 0, no other ready pod of StatefulSet/db)"
            ),
            format!(
                "  3. node/{spare}: {own}/{pod} (priority 0, 1 other ready pod of ReplicaSet/{replica_set}) (beyond \
                 --max)"
            ),
            format!("  4. node/{batch}: no pods to move (beyond --max)"),
            format!("node/{prior} fenced by alice@bastion, powered off: dark (dry run)"),
            format!("node/{lone} fenced by alice@bastion, powered off: dark (dry run)"),
        ]
    );
    let skipped = format!("skipped: node/{locked} is on hold by bob@laptop");
    assert!(order.stderr.contains(&skipped), "{order}");

    // The nodes were not named, so a script needs `--yes`.
    let run = fence_all(&stage, 2).arg("--powered-off=dark").run();
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("hint: add --yes to confirm"), "{run}");
    stage.is_untouched(prior);

    let run = fence_all(&stage, 2)
        .args(["--powered-off=dark", "--yes", "-o", "json"])
        .run();
    // Exit code 4: the pods do not run again yet.
    assert_eq!(run.code, 4, "{run}");
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let fenced: Vec<(&Value, &Value)> = { list["items"].as_array().expect("a list").iter() }
        .map(|item| (&item["node"], &item["fenced"]))
        .collect();
    assert_eq!(
        fenced,
        [(&json!(prior), &json!(true)), (&json!(lone), &json!(true))]
    );
    for (node, is_fenced) in [
        (prior, true),
        (lone, true),
        (spare, false),
        (batch, false),
        (locked, false),
    ] {
        assert_eq!(stage.is_tainted(node), is_fenced, "{node}");
    }
    // A node that is already fenced is not fenced again.
    let run = fence_all(&stage, 9)
        .args(["--powered-off=dark", "--yes"])
        .run();
    assert!(
        run.stderr
            .contains("2 unreachable nodes, the most urgent first:\n"),
        "{run}"
    );
    assert!(stage.is_tainted(spare) && stage.is_tainted(batch), "{run}");
    let run = fence_all(&stage, 1)
        .args(["--powered-off=dark", "--yes"])
        .succeeds();
    assert!(
        run.stderr.ends_with("no unreachable nodes to fence\n"),
        "{run}"
    );
    let [first, second, third] = kubelets;
    drop((first, second));
    stage.keep(third);
}

/// A zone in which most nodes are unreachable may only be cut off from the control plane, while its nodes run. A dry
/// run shows all nodes.
#[test]
fn at_a_mass_loss_it_stops_and_says_what_was_fenced() {
    let (mut stage, _alone) = empty("lost-zone");
    let [a, b, c, d] = &unreachable(&mut stage, ["a", "b", "c", "d"]);
    for node in [b, c, d] {
        stage.kubectl(&[
            "label",
            "node",
            node,
            "--overwrite",
            "topology.kubernetes.io/zone=lost",
        ]);
    }
    let dry_run = fence_all(&stage, 4)
        .args(["--powered-off=dark", "--dry-run", "-o", "json"])
        .run();
    assert_eq!(dry_run.code, 6, "{dry_run}");
    assert_eq!(
        outcomes(&dry_run),
        [
            json!([a, true, null]),
            json!([b, null, "Unsafe"]),
            json!([c, null, "Unsafe"]),
            json!([d, null, "Unsafe"]),
        ]
    );
    let run = fence_all(&stage, 4)
        .args(["--powered-off=dark", "--yes", "-o", "json"])
        .run();
    assert_eq!(run.code, 6, "{run}");
    let stopped = format!(
        "Warning: stopped at node/{b}; fenced before: node/{a}; not fenced: node/{c}, node/{d}\n\
         error: cannot fence node/{b}: 3 of 3 nodes of zone lost are unreachable: "
    );
    assert!(run.stderr.contains(&stopped), "{run}");
    assert_eq!(
        outcomes(&run),
        [
            json!([a, true, null]),
            json!([b, null, "Unsafe"]),
            json!([c, null, "OtherFailed"]),
            json!([d, null, "OtherFailed"]),
        ]
    );
    for node in [b, c, d] {
        stage.is_untouched(node);
    }
    let accept = ["--accept-risk=mass-loss", "-m", "the rack lost power"];
    fence_all(&stage, 4)
        .args(["--powered-off=dark", "--yes"])
        .args(accept)
        .succeeds();
    for node in [a, b, c, d] {
        assert!(stage.is_tainted(node), "{node}");
    }
}

#[test]
fn it_stops_at_the_first_hook_that_fails_and_at_ctrl_c() {
    let (mut stage, _alone) = empty("stops");
    let [a, b, c, d] = &unreachable(&mut stage, ["a", "b", "c", "d"]);
    let hook = format!("test $MAINT_NODE != {b}");
    let run = fence_all(&stage, 9)
        .args(["--yes", "--", "sh", "-c", &hook])
        .run();
    assert_eq!(run.code, 1, "{run}");
    let stopped = format!(
        "Warning: stopped at node/{b}; fenced before: node/{a}; not fenced: node/{c}, node/{d}\n"
    );
    assert!(run.stderr.contains(&stopped), "{run}");
    assert!(stage.is_tainted(a));
    for node in [b, c, d] {
        stage.is_untouched(node);
    }
    let hook = format!("test $MAINT_NODE = {b} || {{ echo begun; exec sleep 60; }}");
    let running = fence_all(&stage, 9).args(["--yes", "--", "sh", "-c", &hook]);
    let running = running.until_it_says("begun");
    running.interrupt();
    let run = running.ends();
    assert_eq!(run.code, 130, "{run}");
    let stopped =
        format!("Warning: stopped at node/{c}; fenced before: node/{b}; not fenced: node/{d}\n");
    assert!(run.stderr.contains(&stopped), "{run}");
    assert!(stage.is_tainted(b));
    for node in [c, d] {
        stage.is_untouched(node);
    }
}

/// Two runs of the same user, or of two users: each node gets one hook. If the other run is the caller's own, it may have been
/// interrupted, so the node of its hook is reported.
#[test]
fn two_runs_at_once_share_the_nodes() {
    for (prefix, second, code) in [
        ("both-own", "alice@bastion", 3),
        ("both-two", "bob@laptop", 0),
    ] {
        let (mut stage, _alone) = empty(prefix);
        let [a, b, c] = &unreachable(&mut stage, ["a", "b", "c"]);
        let [ran, end] = ["ran", "end"].map(|name| stage.directory().join(name));
        let hook = format!(
            "echo $MAINT_NODE >> '{}'; echo begun; until [ $MAINT_NODE != {a} -o -e '{}' ]; do sleep 0.1; done",
            ran.display(),
            end.display()
        );
        let fence = || fence_all(&stage, 3).args(["--yes", "--", "sh", "-c", &hook]);
        let first = fence().until_it_says("begun");
        let run = fence().holder(second).run();
        assert_eq!(run.code, code, "{run}");
        let reported = match code {
            0 => format!("skipped: node/{a} is on hold by alice@bastion"),
            _ => format!(
                "error: a hook may still be running for node/{a}: sh, started by alice@bastion"
            ),
        };
        assert!(run.stderr.contains(&reported), "{run}");
        assert!(stage.is_tainted(b) && stage.is_tainted(c), "{run}");
        std::fs::write(end, "").expect("a file");
        let run = first.ends();
        assert_eq!(run.code, 0, "{run}");
        assert!(stage.is_tainted(a), "{run}");
        let ran = std::fs::read_to_string(ran).expect("they ran");
        assert_eq!(ran, format!("{a}\n{b}\n{c}\n"));
    }
}

/// After a crash in a hook, the node of that hook is reported, because nobody else fences it. The others are fenced.
#[test]
fn after_a_crash_the_next_run_says_how_to_resume() {
    let (mut stage, _alone) = empty("all-crash");
    let [a, b, c] = &unreachable(&mut stage, ["a", "b", "c"]);
    let fence = |max| fence_all(&stage, max).args(["--yes", "-o", "json"]);
    let killed = fence(2).args(hook_that_kills());
    killed.start().ends_killed();
    let resume = stage.resume(a);
    let dry_run = fence(2).args(["--dry-run=server", "--", "true"]).run();
    assert_eq!(dry_run.code, 3, "{dry_run}");

    let run = fence(2).args(["--", "true"]).run();
    assert_eq!(run.code, 3, "{run}");
    let error = format!(
        "error: a hook may still be running for node/{a}: sh, started by alice@bastion at "
    );
    assert!(run.stderr.contains(&error), "{run}");
    let hint = format!(
        "hint: wait for it to end; if that run was interrupted, run the command again with {resume} before `--`\n"
    );
    assert!(run.stderr.ends_with(&hint), "{run}");
    assert_eq!(
        outcomes(&run),
        [json!([a, null, "HookRunning"]), json!([b, true, null])]
    );
    assert!(!stage.is_tainted(a) && stage.is_tainted(b) && !stage.is_tainted(c));

    // If the command stops later, it names this node too.
    let run = fence(2).args(["--", "false"]).run();
    assert_eq!(run.code, 1, "{run}");
    let stopped =
        format!("Warning: stopped at node/{c}; fenced before: none; not fenced: node/{a}\n");
    assert!(run.stderr.contains(&stopped), "{run}");

    fence(2).args([&resume, "--", "true"]).succeeds();
    assert!(stage.is_tainted(a) && stage.is_tainted(c));
}

#[test]
fn skipped_nodes_do_not_count_for_max() {
    let (mut stage, _alone) = empty("uncounted");
    let [a, b, c, d] = &unreachable(&mut stage, ["a", "b", "c", "d"]);
    let hook = PatientHook::new(&stage);
    let running = hook.begins(fence_all(&stage, 2).args(["--yes", "-o", "json"]));
    stage.beats(b);
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 0, "{run}");
    let skipped = format!("skipped: cannot fence node/{b}: its kubelet is alive ");
    assert!(run.stderr.contains(&skipped), "{run}");
    let fenced = [a, c].map(|node| json!([node, true, null]));
    assert_eq!(outcomes(&run), fenced);
    stage.is_untouched(d);
}

#[test]
fn a_node_that_comes_back_before_its_turn_is_skipped() {
    let (mut stage, _alone) = empty("turns");
    let [a, b, c, d] = &unreachable(&mut stage, ["a", "b", "c", "d"]);
    let hook = PatientHook::new(&stage);
    let running = hook.begins(fence_all(&stage, 4).args(["--yes", "-o", "json"]));
    stage.beats(b);
    stage.kubectl(&["delete", "node", c]);
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 0, "{run}");
    for told in [
        format!("skipped: cannot fence node/{b}: its kubelet is alive (last heartbeat "),
        format!("skipped: Error from server (NotFound): nodes \"{c}\" not found\n"),
    ] {
        assert!(run.stderr.contains(&told), "{run}");
    }
    assert!(stage.is_tainted(a) && stage.is_tainted(d), "{run}");
    stage.is_untouched(b);
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let items = list["items"].as_array().expect("a list").iter();
    let items: Vec<&Value> = items.map(|item| &item["node"]).collect();
    assert_eq!(items, [a, d]);
}

#[test]
fn nodes_after_a_failure_are_not_fenced_even_if_one_was_skipped() {
    let (mut stage, _alone) = empty("behind");
    stage.create(&[stage.namespace()]);
    let [a, b, c, d] = &unreachable(&mut stage, ["a", "b", "c", "d"]);
    let hook = PatientHook::new(&stage);
    let running = hook.begins(fence_all(&stage, 4).args(["--yes", "-o", "json"]));
    stage.beats(b);
    // No controller recreates this pod.
    stage.create(&[stage.pod("tool", c)]);
    hook.may_end();
    let run = running.ends();
    assert_eq!(run.code, 6, "{run}");
    let stopped =
        format!("Warning: stopped at node/{c}; fenced before: node/{a}; not fenced: node/{d}\n");
    assert!(run.stderr.contains(&stopped), "{run}");
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let items = list["items"].as_array().expect("a list").iter();
    let items: Vec<&Value> = items.map(|item| &item["node"]).collect();
    assert_eq!(items, [a, c, d]);
}

#[test]
fn it_stops_at_a_hook_that_hangs() {
    let (mut stage, _alone) = empty("hangs");
    let [a, b, c] = &unreachable(&mut stage, ["a", "b", "c"]);
    let hook = format!("test $MAINT_NODE != {b} || exec sleep 600");
    let run = fence_all(&stage, 3)
        .args(["--yes", "--hook-timeout=2s", "--", "sh", "-c", &hook])
        .run();
    assert_eq!(run.code, 1, "{run}");
    let stopped =
        format!("Warning: stopped at node/{b}; fenced before: node/{a}; not fenced: node/{c}\n");
    assert!(run.stderr.contains(&stopped), "{run}");
    assert!(run.stderr.contains("did not end within 2s"), "{run}");
    assert!(stage.is_tainted(a));
    stage.is_untouched(b);
    stage.is_untouched(c);
}

#[test]
fn on_a_terminal_each_node_is_confirmed_by_its_name() {
    let (mut stage, _alone) = empty("each-typed");
    let [a, b] = &unreachable(&mut stage, ["a", "b"]);
    let fence = fence_all(&stage, 2)
        .arg("--powered-off=dark")
        .env("TERM", "xterm");
    let mut terminal = spawn_command(fence.command(), Some(LIMIT)).expect("a terminal");
    for (node, answer) in [(a, &**a), (b, "y")] {
        let fact = format!("node/{node}: no pods");
        terminal.exp_string(&fact).expect("a fact");
        terminal.exp_string("type its name").expect("a question");
        terminal.send(&format!("{answer}\r")).expect("it listens");
        terminal.flush().expect("it listens");
    }
    let said = terminal.exp_eof().expect("it ends");
    assert!(
        said.contains(&format!("stopped at node/{b}; fenced before: node/{a}")),
        "{said}"
    );
    assert!(stage.is_tainted(a));
    stage.is_untouched(b);
}

#[test]
fn the_nodes_are_named_or_counted() {
    let stage = Stage::new("bounded");
    for arguments in [
        &["--all-unreachable"][..],
        &["--max=2", "worker-1"],
        &["--all-unreachable", "--max=0"],
        &["--all-unreachable", "--max=2", "worker-1"],
        &["--all-unreachable", "--max=2", "--suspect"],
        &[],
    ] {
        let run = stage
            .maint(["fence"])
            .args(arguments)
            .args(["--", "true"])
            .run();
        assert_eq!(run.code, 2, "{run}");
    }
    let run = stage.maint(["fence", "--all-unreachable", "--max=2"]).run();
    assert_eq!(run.code, 2, "{run}");
    let hint = "hint: add `--powered-off=\"HOW YOU KNOW\"` or `-- HOOK`";
    assert!(run.stderr.contains(hint), "{run}");
}
