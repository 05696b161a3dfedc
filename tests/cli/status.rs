//! The command `status`.

mod watching;

use control_plane::Rule;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Treatment::Refuse;
use crate::support::{
    Cluster, LEASES, Run, ago, in_memory, lists_of_whole_nodes, on_both, on_one, on_real, requests,
};

/// The spec of a Lease that `holder` acquired `taken` seconds ago for `seconds` in total.
fn held(holder: &str, taken: i64, seconds: u32) -> Value {
    json!({
        "holderIdentity": holder,
        "acquireTime": ago(taken),
        "renewTime": ago(taken),
        "leaseDurationSeconds": seconds,
        "leaseTransitions": 1,
    })
}

fn reason(text: &str) -> Value {
    json!({"kubectl-maint.dev/reason": text})
}

/// Creates a node in each state, all with this label.
fn all_states(cluster: &Cluster, label: &str) {
    let label = json!({ label: "" });
    let node = |short: &str| cluster.node_with(short, &label, &json!({}));
    node("a-free");
    let half_way = held("alice@bastion", 1805, 3600);
    cluster.lease_with(&node("b-held"), &reason("new kernel"), &half_way);
    cluster.lease(&node("c-expired"), &held("bob@laptop", 5430, 1800));
    cluster.lease_with(
        &node("d-hold"),
        &reason("bad disk"),
        &held("kubeadm:carol@desk", 1830, 2_147_483_647),
    );
    cluster.lease_with(
        &node("e-overdue"),
        &json!({"kubectl-maint.dev/hold-until": ago(7230)}),
        &held("kubeadm-by-hand", 1830, 1),
    );
    let mut year_9999 = held("dave@year", 1830, 60);
    year_9999["renewTime"] = json!("9999-12-31T23:59:59.000000Z");
    cluster.lease(&node("f-unreadable"), &year_9999);
    let cordoned = cluster.node_with("g-cordoned", &label, &json!({"unschedulable": true}));
    cluster.lease_with(
        &cordoned,
        &reason("\u{1b}[31mred\nalert"),
        &held("\u{202e}mallory", 1805, 3600),
    );
}

#[test]
fn a_table_shows_every_state() {
    on_one("status-states", |cluster| {
        all_states(cluster, "status-states");
        let run = cluster.maint(["status", "-l", "status-states"]).run();
        assert_snapshot!(run, @r"
        $ kubectl maint status -l status-states
        NODE                         STATE            HOLDER            REASON                 AGE   LEFT           STATUS
        a-free         Free             -                 -                      -     -              Ready
        b-held         Locked           alice@bastion     new kernel             30m   30m            Ready
        c-expired      Expired          bob@laptop        -                      90m   [length] ago        Ready
        d-hold         OnHold           carol@desk        bad disk               30m   -              Ready
        e-overdue      OnHold overdue   kubeadm-by-hand   -                      30m   [length] ago       Ready
        f-unreadable   Locked           dave@year         -                      30m   <unreadable>   Ready
        g-cordoned     Locked           \u{202e}mallory   \u{1b}[31mred\nalert   30m   30m            Ready,SchedulingDisabled
        -- stderr
        7 nodes: 1 free, 3 locked, 1 expired, 2 on hold (1 overdue)
        -- exit code 0
        ");
    });
}

#[test]
fn a_table_of_all_nodes_has_those_that_need_attention() {
    in_memory("status-attention", |cluster| {
        all_states(cluster, "status-attention");
        let cordoned = json!({"unschedulable": true});
        cluster.node_with("h-cordoned", &json!({}), &cordoned);
        let status = |arguments: &[&str]| cluster.maint(["status"]).args(arguments).run();
        assert_snapshot!(status(&[]), @r"
        $ kubectl maint status
        NODE                            STATE            HOLDER            REASON                 AGE   LEFT           STATUS
        b-held         Locked           alice@bastion     new kernel             30m   30m            Ready
        c-expired      Expired          bob@laptop        -                      90m   [length] ago        Ready
        d-hold         OnHold           carol@desk        bad disk               30m   -              Ready
        e-overdue      OnHold overdue   kubeadm-by-hand   -                      30m   [length] ago       Ready
        f-unreadable   Locked           dave@year         -                      30m   <unreadable>   Ready
        g-cordoned     Locked           \u{202e}mallory   \u{1b}[31mred\nalert   30m   30m            Ready,SchedulingDisabled
        -- stderr
        6 nodes: 3 locked, 1 expired, 2 on hold (1 overdue). 2 other nodes are free and ready (1 cordoned); show them with --all
        -- exit code 0
        ");
        let all = status(&["--all", "--no-headers"]);
        assert_eq!(all.stdout.lines().count(), 8, "{all}");
        let named = status(&[&cluster.name("a-free"), &cluster.name("h-cordoned")]);
        assert_eq!(named.stdout.lines().count(), 3, "{named}");
        for format in ["name", "json", "yaml"] {
            let run = status(&["-o", format]);
            assert!(run.stdout.contains("a-free"), "{run}");
        }
    });
}

#[test]
fn free_and_ready_nodes_are_only_counted() {
    in_memory("status-counted", |cluster| {
        cluster.node("one");
        assert_snapshot!(cluster.maint(["status"]).run(), @"
        $ kubectl maint status
        -- stderr
        1 node is free and ready; show it with --all
        -- exit code 0
        ");
    });
}

#[test]
fn states_filter_the_rows() {
    on_one("status-filters", |cluster| {
        all_states(cluster, "status-filters");
        let shown = |arguments: &[&str]| {
            let words = ["status", "-l", "status-filters", "-o", "name"];
            let run = cluster.maint(words).args(arguments).succeeds();
            let prefix = format!("node/{}", cluster.name(""));
            let names = run.stdout.lines();
            names
                .map(|line| line.strip_prefix(&prefix).unwrap_or(line)[..1].to_owned())
                .collect::<String>()
        };
        for (arguments, expected) in [
            (&["--state=free"][..], "a"),
            (&["--state=locked"], "bfg"),
            (&["--state", "Expired,OnHold"], "cde"),
            (&["--state=on-hold", "--state=free"], "ade"),
            (&["--sort-by=node"], "abcdefg"),
            (&["--sort-by=state"], "cedbfga"),
            (&["--sort-by=holder"], "gbcdfea"),
            (&["--sort-by=age"], "cdefbga"),
            (&["--sort-by=left"], "ecbgadf"),
            (&["--sort-by={.state}"], "cedbfga"),
            (&["--sort-by=.holder"], "gbcdfea"),
            (&["--sort-by={.acquiredAt}"], "cdefbga"),
            (&["--sort-by={.until}"], "ecbgadf"),
        ] {
            assert_eq!(shown(arguments), expected, "{arguments:?}");
        }
    });
}

#[test]
fn filters_that_make_no_sense_are_refused() {
    let cluster = Cluster::nowhere();
    for words in [
        &["--state=held"][..],
        &["--sort-by=size"],
        &["--sort-by=age", "-w"],
        &["-L", "pool=gpu"],
        &["--pods", "--state=locked"],
    ] {
        let run = cluster.maint(["status"]).args(words).run();
        assert_eq!(run.code, 2, "{run}");
    }
}

#[test]
fn labels_are_columns_as_in_kubectl_get() {
    on_one("status-labels", |cluster| {
        let labels = json!({"status-labels": "", "pool": "gpu", "example.com/rack": "r7"});
        let one = cluster.node_with("one", &labels, &json!({}));
        let two = cluster.node_with(
            "two",
            &json!({"status-labels": "", "pool": "cpu"}),
            &json!({}),
        );
        let columns = ["-L", "example.com/rack,pool"];
        let listed = cluster
            .maint(["status", "-l", "status-labels"])
            .args(columns);
        assert_snapshot!(listed.run(), @"
        $ kubectl maint status -l status-labels -L example.com/rack,pool
        NODE                STATE   HOLDER   REASON   AGE   LEFT   STATUS   RACK   POOL
        one   Free    -        -        -     -      Ready    r7     gpu
        two   Free    -        -        -     -      Ready    -      cpu
        -- stderr
        2 nodes: 2 free
        -- exit code 0
        ");
        // Named nodes are read whole.
        let named = cluster.maint(["status", &two, &one]).args(columns);
        assert_eq!(named.succeeds().stdout.matches("r7").count(), 1);
    });
}

#[test]
fn lists_are_read_side_by_side_and_never_more_than_needed() {
    on_both("status-requests", |cluster| {
        all_states(cluster, "status-requests");
        let one = cluster.name("b-held");
        let two = cluster.name("c-expired");
        let label = "status-requests";
        let me = cluster.name("me");
        for (arguments, expected) in [
            (vec!["status", &one], 2),
            (vec!["status", &one, "-o", "wide"], 3),
            (vec!["status", &one, &two], 3),
            // Two more requests for the Nodes of the two holds: a fenced node is on hold.
            (vec!["status", "-l", label], 2 + 2),
            (vec!["status", "-l", label, "-o", "name"], 2 + 2),
            // One more for the cordoned Node.
            (vec!["status", "-l", label, "-o", "wide"], 3 + 3),
            (vec!["status", "-l", label, "-o", "json"], 3 + 3),
            (vec!["status", "--mine", "--holder", &me], 2),
            // Filters and label columns cost no further requests.
            (
                vec!["status", "-l", label, "--state=on-hold", "-L", label],
                2 + 2,
            ),
            (
                vec![
                    "status",
                    "-l",
                    label,
                    "--state=locked,free",
                    "--sort-by=age",
                ],
                2,
            ),
        ] {
            let run = cluster.maint(&arguments).arg("-v6").succeeds();
            assert_eq!(requests(&run), vec!["GET"; expected], "{run}");
            let whole_nodes = lists_of_whole_nodes(&run);
            assert_eq!(whole_nodes, 0, "a list has rows, not nodes: {run}");
        }
    });
}

#[test]
fn json_has_the_documented_shape() {
    on_both("status-json", |cluster| {
        all_states(cluster, "status-json");
        let run = cluster
            .maint(["status", &cluster.name("b-held"), "-o", "json"])
            .succeeds();
        assert_eq!(run.code, 0);
        let run = cluster
            .maint(["status", "-l", "status-json", "-o", "json"])
            .succeeds();
        let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(list["kind"], "NodeMaintenanceList");
        assert_eq!(list["apiVersion"], "kubectl-maint.dev/v2");
        let states: Vec<&Value> = list["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| &item["state"])
            .collect();
        assert_eq!(
            states,
            [
                "Free", "Locked", "Expired", "OnHold", "OnHold", "Locked", "Locked"
            ]
        );
        assert_eq!(list["items"][4]["overdue"], true);
        assert_eq!(
            list["items"][5]["flags"],
            json!(["UnreadableTime", "Overlong"])
        );
        assert_eq!(list["items"][6]["reason"], "\u{1b}[31mred\nalert");
        let run = cluster
            .maint(["status", &cluster.name("a-free"), "-o", "yaml"])
            .succeeds();
        assert_snapshot!(run, @"
        $ kubectl maint status a-free -o yaml
        apiVersion: kubectl-maint.dev/v2
        kind: NodeMaintenanceList
        items:
        - apiVersion: kubectl-maint.dev/v2
          kind: NodeMaintenance
          node: a-free
          state: Free
          nodeStatus: Ready
          nodeHealth: Ready
        -- exit code 0
        ");
    });
}

#[test]
fn templates_are_those_of_kubectl() {
    on_one("status-template", |cluster| {
        all_states(cluster, "status-template");
        let status = ["status", "-l", "status-template", "-o"];
        let template =
            r#"jsonpath={range .items[?(@.state=="OnHold")]}{.node}{"\t"}{.holder}{"\n"}{end}"#;
        let run = cluster.maint(status).arg(template).run();
        assert_snapshot!(run, @r#"
        $ kubectl maint status -l status-template -o "jsonpath={range .items[?(@.state==\"OnHold\")]}{.node}{\"\\t\"}{."
        d-hold	kubeadm:carol@desk
        e-overdue	kubeadm-by-hand
        -- exit code 0
        "#);
        let columns = "custom-columns=NODE:.node,WHY:.reason";
        let run = cluster.maint(status).arg(columns).run();
        assert_snapshot!(run, @r"
        $ kubectl maint status -l status-template -o custom-columns=NODE:.node,WHY:.reason
        NODE                           WHY
        a-free         <none>
        b-held         new kernel
        c-expired      <none>
        d-hold         bad disk
        e-overdue      <none>
        f-unreadable   <none>
        g-cordoned     \u{1b}[31mred\nalert
        -- exit code 0
        ");
        let bare = cluster.maint(status).args([columns, "--no-headers"]).run();
        let (_, rows) = run.stdout.split_once('\n').expect("headers");
        assert_eq!(rows.lines().count(), bare.stdout.lines().count(), "{bare}");
        assert!(!bare.stdout.contains("WHY"), "{bare}");
        let nothing = cluster
            .maint(status)
            .arg("jsonpath={.items[*].nothing}")
            .run();
        assert_eq!(
            (nothing.stdout.as_str(), nothing.code),
            ("", 0),
            "{nothing}"
        );
        let missing = cluster.maint(status).arg("jsonpath={.items[9].node}").run();
        assert_snapshot!(missing, @"
        $ kubectl maint status -l status-template -o jsonpath={.items[9].node}
        -- stderr
        error: could not apply the template: array index out of bounds: index 9, length 7
        -- exit code 1
        ");
        let node = cluster.name("a-free");
        let unprinted = ["acquire", &node, "-o", "jsonpath={.items[1].lockId}"];
        assert_snapshot!(cluster.maint(unprinted).run(), @"
        $ kubectl maint acquire a-free -o jsonpath={.items[1].lockId}
        -- stderr
        lease/a-free created
        error: could not apply the template: array index out of bounds: index 1, length 1
        Warning: node/a-free was released, because the result could not be written
        -- exit code 1
        ");
        let acquired = ["acquire", &node, "-q", "-o", "custom-columns=STATE:.state"];
        cluster.maint(acquired).succeeds();
    });
}

#[test]
fn a_bad_template_is_refused_before_anything_is_sent() {
    let cluster = Cluster::nowhere();
    let acquire = ["acquire", "worker-1", "-o", "jsonpath={.items[*].node"];
    let run = cluster.maint(acquire).run();
    assert!(run.stderr.contains("unclosed action"), "{run}");
    assert_eq!(run.code, 2, "{run}");
    let status = cluster.maint(["status", "-o", "custom-columns=NODE"]).run();
    let said = "\"NODE\" is not a column; write HEADER:PATH, e.g. NODE:.node\n";
    assert!(status.stderr.contains(said), "{status}");
    assert_eq!(status.code, 2, "{status}");
}

#[test]
fn lock_ids_come_a_line_each() {
    on_one("status-token", |cluster| {
        let taken = cluster.node("taken");
        let free = cluster.node("free");
        cluster.maint(["acquire", &taken, "-q"]).succeeds();
        let run = cluster
            .maint(["status", &taken, &free, "-o", "lock-id"])
            .succeeds();
        assert_snapshot!(run, @"
        $ kubectl maint status taken free -o lock-id
        taken [lock-id]
        -- exit code 0
        ");
        let mark = json!({"kubectl-maint.dev/acquisition": "by hand"});
        let edit = json!({"metadata": {"annotations": mark}});
        cluster.patch(&format!("{LEASES}/{taken}"), &edit);
        let run = cluster.maint(["status", &taken, &free, "-o", "lock-id"]);
        assert_snapshot!(run.run(), @"
        $ kubectl maint status taken free -o lock-id
        -- stderr
        Warning: node/taken is locked by alice@bastion, but without a lock id: another tool locked it, or the Lease was edited
        -- exit code 0
        ");
    });
}

#[test]
fn missing_nodes_are_named_and_the_others_shown() {
    on_one("status-unknown", |cluster| {
        let node = cluster.node("worker-1");
        let typed = cluster.name("wroker-1");
        cluster.maint(["status", &typed, &node]).fails(1);
        assert_snapshot!(cluster.maint(["status", &typed]).run(), @r#"
        $ kubectl maint status wroker-1
        -- stderr
        Error from server (NotFound): nodes "wroker-1" not found
        hint: did you mean worker-1?
        -- exit code 1
        "#);
    });
}

#[test]
fn no_match_is_no_error() {
    on_one("status-none", |cluster| {
        let selected = ["status", "-l", "nobody-has=this-label"];
        assert_snapshot!(cluster.maint(selected).run(), @"
        $ kubectl maint status -l nobody-has=this-label
        -- stderr
        No resources found
        -- exit code 0
        ");
        let json = cluster.maint(selected).args(["-o", "json"]).run();
        assert_eq!(json.code, 0);
    });
}

#[test]
fn the_note_of_the_last_holder_is_shown() {
    on_one("status-last-reason", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node, "-m", "disk"]).succeeds();
        cluster
            .maint(["release", &node, "-m", "all fine, rebooted"])
            .succeeds();
        let json = cluster.maint(["status", &node, "-o", "json"]).succeeds();
        let item = json.item();
        assert_eq!(item["state"], "Free");
        assert_eq!(item["lastReason"], "all fine, rebooted");
        assert_eq!(item.get("reason"), None, "nobody holds it");
        let wide = cluster.maint(["status", &node, "-o", "wide"]).succeeds();
        let row = wide.stdout.lines().nth(1).expect("a row");
        assert!(
            row.ends_with("   alice@bastion   all fine, rebooted   -         -"),
            "{wide}"
        );
        cluster.maint(["acquire", &node]).succeeds();
        let json = cluster.maint(["status", &node, "-o", "json"]).succeeds();
        let item = json.item();
        assert_eq!(item.get("lastReason"), None, "{json}");
    });
}

#[test]
fn mine_are_locks_and_holds_of_the_caller_and_of_their_commands() {
    on_one("status-mine", |cluster| {
        let holder = cluster.name("me@here");
        cluster.lease(&cluster.node("lease"), &held(&holder, 1805, 3600));
        let hold = format!("kubeadm:{holder}");
        cluster.lease(&cluster.node("hold"), &held(&hold, 1830, 1));
        let with = format!("{holder}/with-7-abcdef");
        cluster.lease(&cluster.node("running"), &held(&with, 1805, 3600));
        cluster.lease(&cluster.node("other"), &held("somebody@else", 1805, 3600));
        let run = cluster.maint(["status", "--mine"]).holder(&holder).run();
        assert_snapshot!(run, @"
        $ kubectl maint status --mine
        NODE                  STATE    HOLDER                              REASON   AGE   LEFT   STATUS
        hold      OnHold   me@here                 -        30m   -      Ready
        lease     Locked   me@here                 -        30m   30m    Ready
        running   Locked   me@here/with-[process]   -        30m   30m    Ready
        -- stderr
        3 nodes: 2 locked, 1 on hold
        -- exit code 0
        ");
    });
}

#[test]
fn a_lease_without_its_node_is_shown() {
    on_one("status-gone", |cluster| {
        let gone = cluster.name("gone");
        let there = cluster.node("there");
        cluster.lease(&gone, &held("alice@bastion", 1805, 3600));
        assert_snapshot!(cluster.maint(["status", &gone, &there]).run(), @"
        $ kubectl maint status gone there
        NODE                STATE    HOLDER          REASON   AGE   LEFT   STATUS
        gone    Locked   alice@bastion   -        30m   30m    Gone
        there   Free     -               -        -     -      Ready
        -- stderr
        2 nodes: 1 free, 1 locked
        -- exit code 0
        ");
        let all = cluster.maint(["status", "-o", "json"]).succeeds();
        let list: Value = serde_json::from_str(&all.stdout).expect("JSON");
        let items = list["items"].as_array().expect("items");
        let item = items.iter().find(|item| item["node"] == gone.as_str());
        assert_eq!(item.expect("it is held")["nodeGone"], true);
    });
}

/// Runs the command as a user of the real server who has only these rights.
fn as_user(cluster: &Cluster, rights: &[Rule], arguments: &[&str]) -> Run {
    let plane = cluster.plane();
    let user = cluster.name("user");
    let kubeconfig = plane.user(&user, &[]).expect("a user");
    plane.grant(&user, rights).expect("rights");
    cluster.maint(arguments).kubeconfig(&kubeconfig).run()
}

const LEASE_GROUP: &str = "coordination.k8s.io";

#[test]
fn without_the_right_to_read_nodes_the_leases_are_shown() {
    on_real("status-no-nodes", |cluster| {
        all_states(cluster, "status-no-nodes");
        let rights = [Rule::new(LEASE_GROUP, &["leases"], &["get", "list"])];
        let (one, two) = (cluster.name("b-held"), cluster.name("a-free"));
        let run = as_user(cluster, &rights, &["status", &one, &two, "-o", "wide"]);
        assert_snapshot!(run, @"
        $ kubectl maint status b-held a-free -o wide
        NODE                     STATE    HOLDER          REASON       AGE   LEFT   STATUS      HEARTBEAT   ACQUIRED               RENEWED                TRANSITIONS   LAST HOLDER   NOTE   FENCING     OTHER TOOLS
        b-held   Locked   alice@bastion   new kernel   30m   30m    <unknown>   -           [time]   [time]   1             -             -      <unknown>   <unknown>
        a-free   Free     -               -            -     -      <unknown>   -           -                      -                      -             -             -      <unknown>   <unknown>
        -- stderr
        2 nodes: 1 free, 1 locked
        -- exit code 0
        ");
        assert_snapshot!(as_user(cluster, &rights, &["status", &one]), @"
        $ kubectl maint status b-held
        NODE                     STATE    HOLDER          REASON       AGE   LEFT   STATUS
        b-held   Locked   alice@bastion   new kernel   30m   30m    <unknown>
        -- exit code 0
        ");
        let all = as_user(cluster, &rights, &["status", "-o", "name"]);
        assert!(all.stdout.contains(&one), "{all}");
        assert!(!all.stdout.contains(&two), "{all}");
        assert!(all.stderr.contains("no permission to list nodes"), "{all}");
        let selected = as_user(cluster, &rights, &["status", "-l", "status-no-nodes"]);
        assert_snapshot!(selected, @r#"
        $ kubectl maint status -l status-no-nodes
        -- stderr
        Error from server (Forbidden): nodes is forbidden: User "user" cannot list resource "nodes" in API group "" at the cluster scope
        hint: ask an administrator for permission to list nodes; `kubectl maint install` creates the roles (deploy/rbac.yaml)
        -- exit code 1
        "#);
    });
}

#[test]
fn without_the_right_to_list_nodes_are_read_by_name() {
    on_real("status-no-lists", |cluster| {
        all_states(cluster, "status-no-lists");
        let rights = [
            Rule::new(LEASE_GROUP, &["leases"], &["get"]),
            Rule::new("", &["nodes"], &["get"]),
        ];
        let (one, two) = (cluster.name("b-held"), cluster.name("g-cordoned"));
        let run = as_user(cluster, &rights, &["status", &one, &two, "-o", "wide"]);
        assert_snapshot!(run, @r"
        $ kubectl maint status b-held g-cordoned -o wide
        NODE                         STATE    HOLDER            REASON                 AGE   LEFT   STATUS                     HEARTBEAT   ACQUIRED               RENEWED                TRANSITIONS   LAST HOLDER   NOTE   FENCING   OTHER TOOLS
        b-held       Locked   alice@bastion     new kernel             30m   30m    Ready                      <unknown>   [time]   [time]   1             -             -      -         -
        g-cordoned   Locked   \u{202e}mallory   \u{1b}[31mred\nalert   30m   30m    Ready,SchedulingDisabled   <unknown>   [time]   [time]   1             -             -      -         cordoned
        -- stderr
        2 nodes: 2 locked
        -- exit code 0
        ");
        let all = as_user(cluster, &rights, &["status"]);
        assert_eq!(all.code, 1, "{all}");
        assert!(
            all.stderr.contains("list leases.coordination.k8s.io"),
            "{all}"
        );
    });
}

#[test]
fn without_the_right_to_list_nodes_those_with_a_lease_are_shown() {
    in_memory("status-unlisted", |cluster| {
        let node = cluster.node("worker-1");
        cluster.node("worker-2");
        cluster.maint(["acquire", &node]).succeeds();
        let proxy = cluster.proxy_for(Refuse(403, "not you"), |_, path| {
            path.starts_with("/api/v1/nodes")
        });
        let status = cluster.maint(["status"]).kubeconfig(&proxy.kubeconfig);
        let run = status.succeeds();
        assert!(run.stdout.contains("Locked"), "{run}");
        assert!(!run.stdout.contains("worker-2"), "{run}");
        let said = "no permission to list nodes: only nodes with a Lease are shown\n";
        assert!(run.stderr.ends_with(said), "{run}");
    });
}
