//! `status` of nodes that are unhealthy or fenced.

use insta::assert_snapshot;
use pod_safety::fencing::attempt;
use pod_safety::fencing::record::ANNOTATION;
use serde_json::{Value, json};

use crate::support::{
    Cluster, LEASES, Run, Treatment, ago, as_text, at_a_terminal, in_memory, lists_of_whole_nodes,
    on_both, on_one, requests,
};

const HEARTBEATS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A Ready condition that has had this status for this many seconds.
fn ready(status: &str, seconds: i64) -> Value {
    let at = ago(seconds);
    let at = format!("{}Z", at.split('.').next().expect("seconds"));
    json!([{
        "type": "Ready",
        "status": status,
        "reason": "Told",
        "message": "as the test says",
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }])
}

/// The taint that says that the node is out of service.
fn fence() -> Value {
    json!([{
        "key": "node.kubernetes.io/out-of-service",
        "value": "nodeshutdown",
        "effect": "NoExecute",
    }])
}

/// The items of `status -o json` with these arguments, without fields that change between runs. Also returns the run,
/// with its requests.
fn items<S: AsRef<str>>(cluster: &Cluster, arguments: &[S]) -> (Vec<Value>, Run) {
    let run = cluster.maint(["status", "-o", "json", "-v6"]);
    let run = run.args(arguments).succeeds();
    (items_of(&run), run)
}

fn items_of(run: &Run) -> Vec<Value> {
    let mut list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let items = list["items"].as_array_mut().expect("items");
    for item in items.iter_mut() {
        item["secondsLeft"] = Value::Null;
    }
    std::mem::take(items)
}

/// Creates a node with these conditions and taints, and with the test's name as a label. Its kubelet's last heartbeat
/// is `heartbeat` seconds old.
fn node(
    cluster: &Cluster,
    short: &str,
    conditions: &Value,
    taints: &Value,
    heartbeat: i64,
) -> String {
    let name = cluster.name(short);
    let label = cluster.name("all");
    cluster.create(
        "/api/v1/nodes",
        &json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {label: ""}},
            "spec": {"taints": taints},
            "status": {"conditions": conditions},
        }),
    );
    cluster.create(
        HEARTBEATS,
        &json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {
                "holderIdentity": name,
                "renewTime": ago(heartbeat),
                "leaseDurationSeconds": 40,
            },
        }),
    );
    name
}

/// Creates a node in each state, named in this order. The last node does not exist any more.
fn all_states(cluster: &Cluster) -> Vec<String> {
    let none = json!([]);
    let unreachable = || ready("Unknown", 740);
    let fenced = node(cluster, "d-fenced", &unreachable(), &fence(), 790);
    let record = json!({
        "who": "carol@desk",
        "when": ago(700),
        "how": {"poweredOff": "its lights are off"},
        "nodeUid": cluster.get(&format!("/api/v1/nodes/{fenced}"))["metadata"]["uid"],
    });
    let annotations = json!({ANNOTATION: record.to_string()});
    cluster.patch(
        &format!("/api/v1/nodes/{fenced}"),
        &json!({"metadata": {"annotations": annotations}}),
    );
    let gone = cluster.name("g-gone");
    cluster.lease(
        &gone,
        &json!({
            "holderIdentity": "alice@bastion",
            "acquireTime": ago(1805),
            "renewTime": ago(1805),
            "leaseDurationSeconds": 3600,
        }),
    );
    vec![
        node(cluster, "a-ready", &ready("True", 9000), &none, 5),
        node(cluster, "b-reports", &ready("False", 740), &none, 5),
        node(cluster, "c-silent", &unreachable(), &none, 790),
        fenced,
        node(cluster, "e-tainted", &unreachable(), &fence(), 790),
        node(cluster, "f-alive", &ready("True", 9000), &fence(), 5),
        gone,
    ]
}

#[test]
fn every_state_of_a_node_is_shown() {
    on_both("node-states", |cluster| {
        let nodes = all_states(cluster);
        let named = std::iter::once("status").chain(nodes.iter().map(String::as_str));
        assert_snapshot!(cluster.maint(named).run(), @"
        $ kubectl maint status a-ready b-reports c-silent d-fenced e-tainted f-alive g-gone
        NODE                    STATE    HOLDER          REASON   AGE   LEFT   STATUS
        a-ready     Free     -               -        -     -      Ready
        b-reports   Free     -               -        -     -      NotReady (reporting)
        c-silent    Free     -               -        -     -      Unreachable 12m
        d-fenced    Free     -               -        -     -      OutOfService (fenced by carol@desk)
        e-tainted   Free     -               -        -     -      OutOfService (taint without a record)
        f-alive     Free     -               -        -     -      OutOfService, kubelet alive
        g-gone      Locked   alice@bastion   -        30m   30m    Gone
        -- stderr
        7 nodes: 1 free, 2 free but not ready, 3 free but out of service, 1 locked
        -- exit code 0
        ");
    });
}

#[test]
fn a_fence_on_a_node_that_looks_ready_is_found_if_its_lease_tells() {
    on_one("node-taints", |cluster| {
        let none = json!([]);
        node(cluster, "a-ready", &ready("True", 9000), &none, 5);
        let alive = node(cluster, "b-alive", &ready("True", 9000), &fence(), 5);
        let label = cluster.name("all");
        let status = || cluster.maint(["status", "-l", &label, "-v6"]).succeeds();
        let word = |stdout: &str| {
            let row = stdout.lines().last().expect("a row");
            row.rsplit("   ").next().map(ToOwned::to_owned)
        };
        let rows = status();
        assert_eq!(word(&rows.stdout).as_deref(), Some("Ready"), "{rows}");
        assert_eq!(requests(&rows), ["GET"; 2], "two lists, and no Node");
        let misfenced = "OutOfService, kubelet alive";
        // A fenced node has a hold, so the Node is read if there is a hold. It is also read if its Lease has the note
        // of a fencing.
        cluster.lease(&alive, &json!({"holderIdentity": "kubeadm:carol@desk"}));
        let looked = || {
            let rows = status();
            assert_eq!(word(&rows.stdout).as_deref(), Some(misfenced), "{rows}");
            assert_eq!(requests(&rows), ["GET"; 3], "the Node that was fenced");
        };
        looked();
        let path = format!("{LEASES}/{alive}");
        cluster.patch(&path, &json!({"spec": {"holderIdentity": ""}}));
        let unmarked = status();
        assert_eq!(
            word(&unmarked.stdout).as_deref(),
            Some("Ready"),
            "{unmarked}"
        );
        let mark = json!({"metadata": {"annotations": {ANNOTATION: "true"}}});
        cluster.patch(&path, &mark);
        looked();
    });
}

#[test]
fn only_suspicious_nodes_are_read_whole() {
    on_one("node-requests", |cluster| {
        let none = json!([]);
        node(cluster, "a-ready", &ready("True", 9000), &none, 5);
        node(cluster, "b-ready", &ready("True", 9000), &none, 5);
        let unreachable = node(cluster, "c-silent", &ready("Unknown", 740), &none, 790);
        let late = node(cluster, "d-late", &ready("True", 9000), &none, 790);
        let label = cluster.name("all");
        let wholes = |arguments: &[&str]| -> (usize, Vec<String>) {
            let run = cluster.maint(arguments).arg("-v6").succeeds();
            let nodes = run.stderr.lines().filter_map(|line| {
                let name = line.split_once("/api/v1/nodes/")?.1;
                let name = name.split(['?', '"', ' ']).next()?;
                (!line.contains("includeObject")).then(|| name.to_owned())
            });
            let mut nodes: Vec<String> = nodes.collect();
            nodes.sort_unstable();
            (requests(&run).len(), nodes)
        };
        let both = vec![unreachable.clone(), late.clone()];
        // The two lists, the Node and its heartbeat. In a wide table, all heartbeats are listed.
        assert_eq!(
            wholes(&["status", "-l", &label]),
            (4, vec![unreachable.clone()])
        );
        assert_eq!(wholes(&["status", "-l", &label, "-o", "wide"]), (5, both));
        assert_eq!(wholes(&["status", &unreachable]), (3, vec![unreachable]));
        assert_eq!(wholes(&["status", &late]), (2, vec![late]));
    });
}

#[test]
fn an_unreachable_node_has_a_hint_to_fence_it_unless_it_is_somebody_elses() {
    on_one("node-fence-hint", |cluster| {
        let node = node(cluster, "worker-1", &ready("Unknown", 740), &json!([]), 790);
        let fence = format!("kubectl maint fence {node} -- HOOK\n");
        let describe = || cluster.maint(["describe", &node]).succeeds();
        let run = describe();
        assert!(run.stdout.ends_with(&fence), "{run}");
        let hold = cluster.maint(["hold", &node, "-m", "disk"]);
        hold.holder("bob@laptop").succeeds();
        let run = describe();
        assert!(!run.stdout.contains(" fence "), "{run}");
    });
}

/// A list is read by other code than a single Node.
#[test]
fn nodes_of_a_list_look_as_if_read_one_by_one() {
    on_both("node-alike", |cluster| {
        let mut names = all_states(cluster);
        let gone = names.pop();
        assert!(gone.is_some());
        let none = json!([]);
        let late = node(cluster, "late", &ready("True", 9000), &none, 790);
        let cordoned = node(cluster, "cordoned", &ready("True", 9000), &none, 5);
        let protected = node(cluster, "protected", &ready("True", 9000), &none, 5);
        let unheard = node(cluster, "unheard", &none, &none, 790);
        let deleted = node(cluster, "deleted", &ready("False", 740), &none, 790);
        let path = |name: &str| format!("/api/v1/nodes/{name}");
        let hook = json!({
            "id": "nonce", "who": "bob@laptop", "program": "./réconnect",
            "since": "2026-01-02T04:00:00Z", "until": "2099-01-01T00:00:00Z",
        });
        let rebooting = json!({"metadata": {"annotations": {
            attempt::ANNOTATION: hook.to_string(),
            "weave.works/kured-reboot-in-progress": "2026-01-02T04:00:00Z",
        }}});
        cluster.patch(&path(&late), &rebooting);
        let manager = format!("{}?fieldManager=kubectl-cordon", path(&cordoned));
        cluster.patch(&manager, &json!({"spec": {"unschedulable": true}}));
        let began = json!([
            {"key": "ToBeDeletedByClusterAutoscaler", "value": "1767322800", "effect": "NoSchedule"},
            {"key": "a.example/empty", "effect": "NoExecute", "timeAdded": "2026-01-02T04:00:00Z"},
        ]);
        cluster.patch(&path(&unheard), &json!({"spec": {"taints": began}}));
        let acquire = [
            "acquire",
            &protected,
            "--cordon",
            "--opt-outs=cluster-autoscaler",
        ];
        cluster.maint(acquire).succeeds();
        let finalizer = json!({"metadata": {"finalizers": ["a.example/b"]}});
        cluster.patch(&path(&deleted), &finalizer);
        cluster.delete(&path(&deleted));
        names.extend([late, cordoned, protected, unheard, deleted.clone()]);
        let extra = 129 - names.len();
        names.extend((0..extra).map(|number| cluster.node(&format!("well-{number:03}"))));

        let status = |names: &[String]| items(cluster, names);
        let (listed, run) = status(&names);
        let lists = |line: &&str| line.contains("/api/v1/nodes?limit=500");
        assert!(run.stderr.lines().filter(lists).count() > 0, "{run}");
        assert!(!run.stderr.contains("/api/v1/nodes/"), "{run}");
        let (first, rest) = names.split_at(100);
        let one_by_one: Vec<Value> = [first, rest].map(|names| status(names).0).concat();
        assert_eq!(listed.len(), 129);
        assert_eq!(listed, one_by_one);
        cluster.patch(&path(&deleted), &json!({"metadata": {"finalizers": null}}));
    });
}

/// The server's table rows do not show that a heartbeat is late, so these Nodes must be read.
#[test]
fn nodes_whose_heartbeats_are_late_are_read_in_one_list() {
    in_memory("node-fleet", |cluster| {
        let none = json!([]);
        let names: Vec<String> = (0..150)
            .map(|number| {
                let heartbeat = if number < 10 { 5 } else { 790 };
                let status = ["True", "False", "Unknown"][number % 3];
                node(
                    cluster,
                    &format!("n-{number:03}"),
                    &ready(status, 9000),
                    &none,
                    heartbeat,
                )
            })
            .collect();
        cluster.maint(["acquire", &names[0], &names[20]]).succeeds();
        let label = cluster.name("all");
        for selection in [&["--all"][..], &["-l", &label], &["-L", &label]] {
            let (listed, run) = items(cluster, selection);
            assert_eq!(listed.len(), 150, "{run}");
            assert_eq!(lists_of_whole_nodes(&run), 1, "{run}");
            assert!(!run.stderr.contains("/api/v1/nodes/"), "{run}");
            let lists = run
                .stderr
                .lines()
                .filter(|line| line.contains("/api/v1/nodes?"));
            let selected = lists.filter(|line| line.contains("labelSelector=")).count();
            assert_eq!(selected, if selection[0] == "-l" { 2 } else { 0 }, "{run}");
            let by_name = names.chunks(100).flat_map(|names| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                items(cluster, &names).0
            });
            assert_eq!(listed, by_name.collect::<Vec<_>>());
        }
        let labels = json!({"metadata": {"labels": {"few": ""}}});
        cluster.patch(&format!("/api/v1/nodes/{}", names[3]), &labels);
        for few in ["-lfew", "--mine", "--state=locked"] {
            let (_, run) = items(cluster, &[few]);
            assert_eq!(lists_of_whole_nodes(&run), 0, "{run}");
        }
        let forbidden = cluster.proxy_for(Treatment::Answer(403, None), |_, path| {
            path.contains("/api/v1/nodes") && !path.contains("includeObject=")
        });
        let run = cluster
            .maint(["status", "-o", "wide", "--all"])
            .kubeconfig(&forbidden.kubeconfig);
        let run = run.succeeds();
        assert_eq!(run.stdout.lines().count(), 1 + 150, "{run}");
    });
}

#[test]
fn the_states_are_data_too() {
    on_one("node-json", |cluster| {
        let nodes = all_states(cluster);
        let run = cluster.maint(["status", "-o", "json"]).args(&nodes[..6]);
        let run = run.succeeds();
        let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let items = list["items"].as_array().expect("items");
        let health: Vec<&Value> = items.iter().map(|item| &item["nodeHealth"]).collect();
        assert_eq!(
            health,
            [
                "Ready",
                "NotReady",
                "Unreachable",
                "OutOfService",
                "OutOfService",
                "OutOfServiceKubeletAlive"
            ]
        );
        assert_eq!(items[1]["nodeReporting"], true);
        assert!(items[2]["unreachableSince"].is_string(), "{run}");
        assert_eq!(items[3]["fencingRecord"]["fencedBy"], "carol@desk");
        assert_eq!(items[4].get("fencingRecord"), None, "a taint says nobody");
    });
}

#[test]
fn fencing_and_running_hook_are_shown_in_full() {
    on_one("node-marks", |cluster| {
        let fenced = node(cluster, "fenced", &ready("Unknown", 740), &fence(), 790);
        let record = json!({
            "who": "carol\u{1b}[31m@desk",
            "why": "no\nanswer",
            "when": "2026-01-02T03:04:05.75Z",
            "how": {"hook": {"program": "./isolate", "output": "port 7 is off", "isolated": true}},
            "bootID": "boot-1",
            "nodeUid": "uid",
        });
        let hook = json!({
            "id": "nonce",
            "who": "bob@laptop",
            "program": "./reconnect",
            "since": "2026-01-02T04:00:00Z",
            "until": "2099-01-01T00:00:00Z",
        });
        let annotations =
            json!({ANNOTATION: record.to_string(), attempt::ANNOTATION: hook.to_string()});
        cluster.patch(
            &format!("/api/v1/nodes/{fenced}"),
            &json!({"metadata": {"annotations": annotations}}),
        );
        let status = |more: &[&str]| cluster.maint(["status", &fenced]).args(more).succeeds();

        let wide = status(&["-o", "wide"]);
        let expected = "hook ./reconnect of bob@laptop may be running until 2099-01-01T00:00:00Z; by \
                    carol\\u{1b}[31m@desk at 2026-01-02T03:04:05.75Z, isolated with ./isolate: \
                    \"no\\nanswer\"   -\n";
        assert!(wide.stdout.ends_with(expected), "{wide}");

        let json = status(&["-o", "json"]);
        let item = json.item();
        let shown = json!({
            "fencedBy": "carol\u{1b}[31m@desk",
            "fencedAt": "2026-01-02T03:04:05Z",
            "reason": "no\nanswer",
            "how": {"hook": {"program": "./isolate", "output": "port 7 is off", "isolated": true}},
            "bootId": "boot-1",
            "nodeUid": "uid",
        });
        assert_eq!(item["fencingRecord"], shown);
        let at_work = json!({
            "startedBy": "bob@laptop",
            "program": "./reconnect",
            "startedAt": "2026-01-02T04:00:00Z",
            "until": "2099-01-01T00:00:00Z",
        });
        assert_eq!(item["hook"], at_work);
        let yaml = status(&["-o", "yaml"]);
        let how = "    how:\n      hook:\n        program: ./isolate\n";
        assert!(yaml.stdout.contains(how), "{yaml}");
    });
}

#[test]
fn a_terminal_shows_a_misfenced_node_in_red_and_cuts_what_does_not_fit() {
    on_one("red", |cluster| {
        let node = node(cluster, "alive", &ready("True", 9000), &fence(), 5);
        let status = || cluster.maint(["status", &node]);
        let shown = |maint| as_text(&at_a_terminal(maint).exp_eof().expect("it ends"));
        let colored = shown(status());
        let row = colored.lines().find(|line| line.contains(&node));
        let row = row.expect("a row");
        assert!(row.starts_with("\u{1b}[1m\u{1b}[31m"), "{colored:?}");
        assert!(row.contains("OutOfService, kubelet a"), "{colored:?}");
        let plain = shown(status().env("NO_COLOR", "1"));
        assert!(!plain.contains('\u{1b}'), "{plain:?}");
        assert!(plain.contains("OutOfService, kubelet a"), "{plain:?}");
        for line in plain.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let piped = status().succeeds();
        assert!(
            piped.stdout.ends_with("OutOfService, kubelet alive\n"),
            "{piped}"
        );
    });
}
