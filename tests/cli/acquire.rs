//! //! The command `acquire`.

use std::process::Command;

use control_plane::Rule;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Cluster, Run, ago, holder_of, in_memory, on_both, on_one, on_real, requests};

#[test]
fn a_free_node_is_acquired_and_the_next_caller_sees_all_details() {
    on_both("acquire-free", |cluster| {
        let node = cluster.node("worker-1");
        assert_snapshot!(
            cluster.maint(["acquire", &node, "-m", "new kernel"]).run(),
            @r#"
        $ kubectl maint acquire worker-1 -m "new kernel"
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m 'new kernel'
        -- exit code 0
        "#
        );
        assert_snapshot!(
            cluster.maint(["acquire", &node]).holder("bob@laptop").run(),
            @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: locked by alice@bastion: "new kernel" (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 --wait`
        -- exit code 3
        "#
        );
    });
}

/// A script that follows the example in the help must not work on a node that it did not lock.
#[test]
fn the_example_with_a_lock_id_ends_if_the_lock_is_refused() {
    on_one("acquire-example", |cluster| {
        let node = cluster.node("worker-1");
        let help = cluster.maint(["acquire", "--help"]).succeeds();
        let example = help.stdout.lines().find(|line| line.contains("LOCK_ID="));
        let example = example.expect("an example").replace("worker-1", &node);
        let script = format!(
            "kubectl() {{ shift; \"$PLUGIN\" \"$@\"; }}
{example}
kubectl maint verify {node} -q --lock-id \"$LOCK_ID\" && echo went on"
        );
        let run = |holder: &str| {
            let maint = cluster.maint([""; 0]).holder(holder).command();
            let variables = maint
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?)));
            let mut shell = Command::new("/bin/sh");
            let shell = shell.args(["-c", &script]).env_clear().envs(variables);
            let output = shell.output().expect("a shell");
            let said = String::from_utf8(output.stdout).expect("text");
            (said, output.status.code())
        };
        assert_eq!(run("bob@laptop"), ("went on\n".to_owned(), Some(0)));
        assert_eq!(run("alice@bastion"), (String::new(), Some(3)));
    });
}

#[test]
fn your_own_lock_has_a_hint_to_continue() {
    on_one("acquire-again", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        assert_snapshot!(cluster.maint(["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: you already hold this lock as alice@bastion (since [time], until [time], [length] left)
        hint: extend it with `kubectl maint renew worker-1`, or add --reentry to keep working under it
        -- exit code 3
        ");
        assert_snapshot!(
            cluster.maint(["acquire", &node]).holder("alice@laptop").run(),
            @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: locked by alice@bastion (since [time], until [time], [length] left)
        hint: if you are alice@bastion, run `kubectl maint renew worker-1 --holder alice@bastion`
        -- exit code 3
        "
        );
        let id = cluster
            .maint(["acquire", &node, "--reentry", "-o", "lock-id"])
            .succeeds();
        let transitions = &cluster.lease_of(&node)["spec"]["leaseTransitions"];
        assert_eq!(transitions, 1, "the same acquisition goes on: {id}");
    });
}

#[test]
fn a_command_in_a_hint_has_the_flags_of_this_run() {
    on_one("acquire-hint", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let context = cluster.real.map_or("sandbox", |_| "admin");
        let maint = |words: &[&str], holder: &str| {
            cluster
                .maint(words)
                .args(["--context", context, "--holder", holder])
                .run()
                .to_string()
                .replace(context, "[context]")
        };
        assert_snapshot!(maint(&["acquire", &node, "--reason", "new kernel"], "our ops"), @r#"
        $ kubectl maint acquire worker-1 --reason "new kernel" --context [context] --holder "our ops"
        node/worker-1 acquired by our ops until [time] (30m)
        -- stderr
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1 --context [context] --holder 'our ops'
          kubectl maint renew worker-1 --context [context] --holder 'our ops'
          kubectl maint hold worker-1 -m 'new kernel' --context [context] --holder 'our ops'
        -- exit code 0
        "#);
        assert_snapshot!(maint(&["acquire", &node], "our ops"), @r#"
        $ kubectl maint acquire worker-1 --context [context] --holder "our ops"
        -- stderr
        error: cannot acquire node/worker-1: you already hold this lock as our ops: "new kernel" (since [time], until [time], [length] left)
        hint: extend it with `kubectl maint renew worker-1 --context [context] --holder 'our ops'`, or add --reentry to keep working under it
        -- exit code 3
        "#);
        assert_snapshot!(maint(&["renew", &node], "ops@laptop"), @r#"
        $ kubectl maint renew worker-1 --context [context] --holder ops@laptop
        -- stderr
        error: cannot renew node/worker-1: locked by our ops: "new kernel" (since [time], until [time], [length] left); you are ops@laptop
        hint: wait for it with `kubectl maint acquire worker-1 -m WHY --wait --context [context] --holder ops@laptop`
        -- exit code 3
        "#);
    });
}

#[test]
fn reentry_works_under_an_own_hold_but_not_under_anothers() {
    on_one("acquire-hold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        assert_snapshot!(cluster.maint(["acquire", &node]).run(), @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: on hold by you as alice@bastion: "disk" (since [time])
        hint: end it with `kubectl maint unhold worker-1`, or add --reentry to keep working under it
        -- exit code 3
        "#);
        assert_snapshot!(cluster.maint(["acquire", &node, "--reentry"]).run(), @"
        $ kubectl maint acquire worker-1 --reentry
        node/worker-1 already on hold by you
        -- exit code 0
        ");
        assert_snapshot!(
            cluster.maint(["acquire", &node]).holder("bob@laptop").run(),
            @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: on hold by alice@bastion: "disk" (since [time])
        hint: wait for it with `kubectl maint acquire worker-1 --wait`; if nobody works there, end the hold with `kubectl maint unhold worker-1`
        -- exit code 3
        "#
        );
    });
}

#[test]
fn unfinished_work_is_reported() {
    on_one("acquire-expired", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &expired_lease());
        assert_snapshot!(cluster.maint(["acquire", &node]).run(), @"
        $ kubectl maint acquire worker-1
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        Warning: node/worker-1 had an expired lock of bob@laptop (since [time], expired at [time], [length] ago); their work may be unfinished
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        ");
    });
}

#[test]
fn a_dry_run_shows_the_result_without_a_lock_id() {
    on_one("acquire-would", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let dry_run = |arguments: &[&str]| {
            let maint = cluster.maint(["acquire", "--dry-run", &nodes[0], &nodes[1]]);
            maint.args(arguments).run()
        };
        assert_snapshot!(dry_run(&[]), @"
        $ kubectl maint acquire --dry-run worker-1 worker-2
        node/worker-1 acquired by alice@bastion until [time] (30m) (dry run)
        node/worker-2 acquired by alice@bastion until [time] (30m) (dry run)
        -- stderr
        2 of 2 nodes would be locked (dry run)
        -- exit code 0
        ");
        assert_snapshot!(dry_run(&["-o", "lock-id"]), @"
        $ kubectl maint acquire --dry-run worker-1 worker-2 -o lock-id
        -- stderr
        error: -o lock-id cannot be combined with --dry-run: nothing is locked
        hint: use only one of them
        -- exit code 2
        ");
        assert_eq!(holder_of(cluster, &nodes[0]), None);
    });
}

#[test]
fn locks_of_a_dry_run_have_neither_lock_id_nor_fencing_number() {
    on_one("acquire-dry-json", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        let item = |flags: &[&str]| {
            let maint = cluster.maint(["acquire", &node, "-m", "disk", "-o", "json"]);
            maint.args(flags).succeeds().item()
        };
        let planned = item(&["--dry-run"]);
        assert_eq!(planned["state"], "Locked");
        let acquired = item(&[]);
        for field in ["lockId", "fencingNumber"] {
            assert_eq!(planned.get(field), None, "{planned}");
            assert!(acquired.get(field).is_some(), "{acquired}");
        }
        // With --reentry, the lock keeps its lock id.
        assert!(item(&["--reentry", "--dry-run"]).get("lockId").is_some());
    });
}

#[test]
fn missing_nodes_are_reported_by_their_selection() {
    on_both("acquire-missing", |cluster| {
        assert_snapshot!(cluster.maint(["acquire", "-l", "pool=nowhere"]).run(), @"
        $ kubectl maint acquire -l pool=nowhere
        -- stderr
        error: no node matches -l pool=nowhere
        -- exit code 1
        ");
        let near = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        let typed = near.map(|node| node.replace("worker", "wroker"));
        assert_snapshot!(cluster.maint(["acquire"]).args(&typed).run(), @r#"
        $ kubectl maint acquire wroker-1 wroker-2
        -- stderr
        Error from server (NotFound): nodes "wroker-1" not found
        Error from server (NotFound): nodes "wroker-2" not found
        0 of 2 nodes acquired
        hint: wroker-1: did you mean worker-1, worker-2?
        hint: wroker-2: did you mean worker-2, worker-1?
        -- exit code 1
        "#);
    });
}

#[test]
fn several_nodes_are_acquired_all_or_none() {
    on_both("acquire-all", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let [one, two, three] = &nodes;
        cluster
            .maint(["acquire", two])
            .holder("bob@laptop")
            .succeeds();
        assert_snapshot!(cluster.maint(["acquire", three, one, two]).run(), @"
        $ kubectl maint acquire worker-3 worker-1 worker-2
        -- stderr
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-3 worker-1 worker-2 --wait`
        0 of 3 nodes acquired; add --partial to lock the 2 nodes that were not refused
        -- exit code 3
        ");
        for node in [one, three] {
            assert_eq!(
                cluster.lease_of(node)["spec"]["leaseTransitions"],
                json!(null),
                "{node} was not even written to"
            );
        }
        assert_snapshot!(
            cluster.maint(["acquire", three, one, two, "--partial"]).run(),
            @"
        $ kubectl maint acquire worker-3 worker-1 worker-2 --partial
        node/worker-3 acquired by alice@bastion until [time] (30m)
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-2 --wait`
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-3 worker-1
          kubectl maint renew worker-3 worker-1
          kubectl maint hold worker-3 worker-1 -m WHY
        2 of 3 nodes locked; not acquired: worker-2
        -- exit code 3
        "
        );
        // The nodes are named, not `--mine`: other tests on the shared server hold locks under the
        // same identity.
        cluster.maint(["release", one, three]).succeeds();
        cluster
            .maint(["release", two])
            .holder("bob@laptop")
            .succeeds();
        assert_snapshot!(cluster.maint(["acquire", three, one, two]).run(), @"
        $ kubectl maint acquire worker-3 worker-1 worker-2
        node/worker-3 acquired by alice@bastion until [time] (30m)
        node/worker-1 acquired by alice@bastion until [time] (30m)
        node/worker-2 acquired by alice@bastion until [time] (30m)
        -- stderr
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-3 worker-1 worker-2
          kubectl maint renew worker-3 worker-1 worker-2
          kubectl maint hold worker-3 worker-1 worker-2 -m WHY
        3 of 3 nodes locked
        -- exit code 0
        ");
    });
}

#[test]
fn all_or_none_holds_without_the_right_to_list() {
    on_real("acquire-unlisted", |cluster| {
        let plane = cluster.plane();
        let [free, held] = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        for node in [&free, &held] {
            cluster.lease(node, &json!({}));
        }
        cluster
            .maint(["acquire", &held])
            .holder("bob@laptop")
            .succeeds();
        let leases = ["get", "create", "patch"];
        let nodes = Rule::new("", &["nodes"], &["get"]);
        for (user, may_list, requests_sent) in [
            ("unlisted-neither", false, 1 + 4),
            ("unlisted-nodes", true, 1 + 2),
        ] {
            let kubeconfig = plane.user(user, &[]).expect("a kubeconfig");
            let leases = [&leases[..], if may_list { &["list"] } else { &[] }].concat();
            let leases = Rule::new("coordination.k8s.io", &["leases"], &leases);
            plane.grant(user, &[leases, nodes.clone()]).expect("rights");
            let acquire = |arguments: &[&str]| {
                let maint = cluster.maint(["acquire"]).args(arguments);
                maint.kubeconfig(&kubeconfig).run()
            };
            insta::allow_duplicates! {
                assert_snapshot!(acquire(&[&free, &held]), @"
                $ kubectl maint acquire worker-1 worker-2
                -- stderr
                error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
                hint: wait for it with `kubectl maint acquire worker-1 worker-2 --wait`
                0 of 2 nodes acquired; add --partial to lock the node that was not refused
                -- exit code 3
                ");
            }
            let run = acquire(&["-v6", &free, &held]);
            assert_eq!(requests(&run), vec!["GET"; requests_sent], "{run}");
            assert_eq!(
                cluster.lease_of(&free)["spec"]["leaseTransitions"],
                json!(null),
                "it was not even written to"
            );
            // Without the right to list, a mistyped name still gets NotFound.
            let typo = cluster.name("wroker-1");
            let run = acquire(&["--partial", &typo, &held]);
            let missing = "nodes \"wroker-1\" not found";
            assert!(run.to_string().contains(missing), "{run}");
        }
    });
}

#[test]
fn an_unknown_node_is_named_with_a_similar_name() {
    on_one("acquire-typo", |cluster| {
        cluster.node("worker-1");
        let typed = cluster.name("wroker-1");
        assert_snapshot!(cluster.maint(["acquire", &typed]).run(), @r#"
        $ kubectl maint acquire wroker-1
        -- stderr
        Error from server (NotFound): nodes "wroker-1" not found
        hint: did you mean worker-1?
        -- exit code 1
        "#);
    });
}

#[test]
fn a_dry_run_takes_nothing() {
    on_both("acquire-dry", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        for mode in ["--dry-run", "--dry-run=client", "--dry-run=server"] {
            let run = cluster.maint(["acquire", &node, mode]).succeeds();
            assert!(run.stdout.ends_with(" (dry run)\n"), "{run}");
            assert_eq!(holder_of(cluster, &node), None, "{mode}");
        }
    });
}

#[test]
fn a_refused_acquisition_is_an_item_with_an_error() {
    on_one("acquire-json", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["acquire", &node]).succeeds();
        let run = cluster.maint(["acquire", &node, "-o", "json"]).run();
        assert_eq!(run.code, 3, "{run}");
        let item = run.item();
        assert_eq!(item["state"], "Locked");
        let error = &item["error"];
        assert_eq!(error["code"], "LockedByCaller");
        assert_eq!(error["holder"], "alice@bastion");
        assert_eq!(error["until"], item["until"]);
        let name = cluster.maint(["acquire", &node, "-o", "name"]).run();
        assert_eq!((name.stdout.as_str(), name.code), ("", 3), "{name}");
    });
}

#[test]
fn each_node_of_a_failed_acquisition_is_an_item() {
    on_one("acquire-items", |cluster| {
        let free = cluster.node("free");
        let held = cluster.node("held");
        let bob = cluster.maint(["acquire", &held, "-m", "disk"]);
        bob.holder("bob@laptop").succeeds();
        let codes = |run: &Run| -> Vec<String> {
            let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
            let items = list["items"].as_array().expect("a list").clone();
            let code = |item: &Value| format!("{} {}", item["state"], item["error"]["code"]);
            items.iter().map(code).collect()
        };
        let gone = cluster.name("gone");
        let json = ["-o", "json"];

        let run = cluster.maint(["acquire", &free, &held]).args(json).run();
        assert_eq!(
            codes(&run),
            [r#"null "OtherFailed""#, r#""Locked" "Locked""#]
        );
        assert_eq!(run.code, 3, "{run}");
        let partial = ["acquire", &free, &held, &gone, "--partial"];
        let run = cluster.maint(partial).args(json).run();
        assert_eq!(
            codes(&run),
            [
                r#""Locked" null"#,
                r#""Locked" "Locked""#,
                r#"null "NotFound""#
            ]
        );
        assert_eq!(run.code, 1, "{run}");
        let taken = ["hold", &held, "-m", "mine", "--take-over"];
        let run = cluster.maint(taken).args(json).run();
        assert_eq!(codes(&run), [r#"null "NotConfirmed""#]);
        assert_eq!(run.code, 6, "{run}");
        let run = cluster.maint(["renew", &held]).args(json).run();
        assert_eq!(codes(&run), [r#""Locked" "NotHolder""#]);
        let run = cluster
            .maint(["wait", &held, "--timeout=0"])
            .args(json)
            .run();
        assert_eq!(codes(&run), [r#""Locked" "TimedOut""#]);
        assert_eq!(run.code, 4, "{run}");
        let run = cluster.maint(["status", &gone, &held]).args(json).run();
        assert_eq!(codes(&run), [r#""Locked" null"#, r#"null "NotFound""#]);
        let run = cluster.maint(["acquire", "-o", "json"]).run();
        assert_eq!((run.stdout.as_str(), run.code), ("", 2), "{run}");
    });
}

#[test]
fn many_nodes_take_two_lists_and_few_take_one_and_their_nodes() {
    on_real("acquire-requests", |cluster| {
        let names = (1..=11).map(|number| cluster.node(&format!("worker-{number}")));
        let nodes: Vec<String> = names.collect();
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let one = cluster.maint(["acquire", "-v6", &nodes[0]]).succeeds();
        assert_eq!(requests(&one), ["GET", "GET", "PATCH"], "{one}");
        cluster.maint(["release", &nodes[0]]).succeeds();
        let few = cluster
            .maint(["acquire", "-v6"])
            .args(&nodes[..2])
            .succeeds();
        let expected = ["GET", "GET", "GET", "PATCH", "PATCH"];
        assert_eq!(requests(&few), expected, "{few}");
        cluster.maint(["release"]).args(&nodes[..2]).succeeds();
        let all = cluster.maint(["acquire", "-v6"]).args(&nodes).succeeds();
        let sent = requests(&all);
        assert_eq!(sent[..2], ["GET"; 2], "{all}");
        assert_eq!(sent[2..], ["PATCH"; 11], "{all}");
    });
}

#[test]
fn of_two_overlapping_callers_one_gets_all_nodes_and_the_other_none() {
    on_real("acquire-overlap", |cluster| {
        let nodes = ["a", "b", "c", "d", "e"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        for round in 0..10 {
            // Each caller has one node alone; the three nodes in the middle are shared.
            let (first, second) = std::thread::scope(|scope| {
                let second = scope.spawn(|| take(cluster, "bob@laptop", &nodes[1..]));
                (take(cluster, "alice@bastion", &nodes[..4]), second.join())
            });
            let second = second.expect("the other caller");
            let mut codes = [first.code, second.code];
            codes.sort_unstable();
            assert_eq!(codes, [0, 3], "round {round}:\n{first}\n{second}");
            let (winner, taken, left) = if first.code == 0 {
                ("alice@bastion", &nodes[..4], &nodes[4])
            } else {
                ("bob@laptop", &nodes[1..], &nodes[0])
            };
            for node in taken {
                let holder = holder_of(cluster, node);
                assert_eq!(holder.as_deref(), Some(winner), "round {round}: {node}");
            }
            assert_eq!(holder_of(cluster, left), None, "round {round}: {left}");
            cluster
                .maint(["release"])
                .args(taken)
                .holder(winner)
                .succeeds();
        }
    });
}

fn take(cluster: &Cluster, holder: &str, nodes: &[String]) -> Run {
    cluster.maint(["acquire"]).args(nodes).holder(holder).run()
}

/// A Lease of bob whose lock expired about an hour ago.
fn expired_lease() -> serde_json::Value {
    json!({
        "holderIdentity": "bob@laptop",
        "acquireTime": ago(7200),
        "renewTime": ago(5400),
        "leaseDurationSeconds": 1800,
        "leaseTransitions": 4,
    })
}

#[test]
fn the_hint_to_wait_keeps_the_nodes_and_options() {
    on_one("acquire-next", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let bob = cluster.maint(["acquire", &nodes[1]]).holder("bob@laptop");
        bob.succeeds();
        let [one, two] = &nodes;
        let acquire = ["acquire", one, two, "-m", "new kernel", "--duration", "1h"];
        assert_snapshot!(cluster.maint(acquire).run(), @r#"
        $ kubectl maint acquire worker-1 worker-2 -m "new kernel" --duration 1h
        -- stderr
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it by adding `--wait`
        0 of 2 nodes acquired; add --partial to lock the node that was not refused
        -- exit code 3
        "#);
        // With --wait, the hint does not suggest adding `--wait`.
        let waits = ["acquire", two, "--wait", "--dry-run"];
        assert_snapshot!(cluster.maint(waits).run(), @"
        $ kubectl maint acquire worker-2 --wait --dry-run
        -- stderr
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-2 --wait`
        -- exit code 3
        ");
        let hold = ["hold", one, two, "-m", "rack moves"];
        assert_snapshot!(cluster.maint(hold).run(), @r#"
        $ kubectl maint hold worker-1 worker-2 -m "rack moves"
        node/worker-1 on hold by alice@bastion
        -- stderr
        error: cannot put node/worker-2 on hold: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint hold worker-2 -m 'rack moves' --wait`; if nobody works there, take it over with `kubectl maint hold worker-2 -m 'rack moves' --take-over`
        lease/worker-1 created
        A hold does not expire, and `kubectl drain` still evicts pods. To end it:
          kubectl maint unhold worker-1
        1 of 2 nodes on hold; not put on hold: worker-2
        -- exit code 3
        "#);
        let with = ["with", two, "-m", "disk", "--", "bash"];
        assert_snapshot!(cluster.maint(with).run(), @"
        $ kubectl maint with worker-2 -m disk -- bash
        -- stderr
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint with worker-2 -m disk --wait -- COMMAND`
        -- exit code 3
        ");
        let released = ["release", two, "-m", "he is away"];
        assert_snapshot!(cluster.maint(released).run(), @r#"
        $ kubectl maint release worker-2 -m "he is away"
        -- stderr
        error: cannot release node/worker-2: locked by bob@laptop (since [time], until [time], [length] left); you are alice@bastion
        hint: ask bob@laptop to release it; if nobody works there, release it with `kubectl maint release worker-2 --force -m 'he is away'`
        -- exit code 3
        "#);
    });
}

/// The hint to wait leaves out a node that the caller has locked, because the wait would never end.
#[test]
fn the_hint_to_wait_leaves_out_own_locks() {
    on_one("acquire-own-other", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        let [own, other, free] = &nodes;
        cluster.maint(["acquire", own]).succeeds();
        let bob = cluster.maint(["acquire", other]).holder("bob@laptop");
        bob.succeeds();
        assert_snapshot!(cluster.maint(["acquire", own, other, free]).run(), @"
        $ kubectl maint acquire worker-1 worker-2 worker-3
        -- stderr
        error: cannot acquire node/worker-1: you already hold this lock as alice@bastion (since [time], until [time], [length] left)
        error: cannot acquire node/worker-2: locked by bob@laptop (since [time], until [time], [length] left)
        hint: extend it with `kubectl maint renew worker-1`, or add --reentry to keep working under it
        hint: wait for it with `kubectl maint acquire worker-2 worker-3 --wait`
        0 of 3 nodes acquired; add --partial to lock the node that was not refused
        -- exit code 3
        ");
    });
}

#[test]
fn one_line_for_many_nodes_has_the_earliest_time_if_all_are_known() {
    on_one("acquire-groups-times", |cluster| {
        let acquired = [120, 180, 240, 60].map(ago);
        let nodes: Vec<String> = (1..=5)
            .map(|number| cluster.node(&format!("worker-{number}")))
            .collect();
        let lock = |node: &String, acquired: Option<&String>| {
            let spec = json!({
                "holderIdentity": "bob@laptop",
                "acquireTime": acquired,
                "renewTime": ago(0),
                "leaseDurationSeconds": 1800,
            });
            cluster.lease(node, &spec);
        };
        for (node, acquired) in nodes.iter().zip(&acquired) {
            lock(node, Some(acquired));
        }
        let run = cluster.maint(["acquire"]).args(&nodes).run();
        let earliest = &acquired[2]["2006-01-02T".len()..][.."15:04:05".len()];
        let since = format!("{earliest} UTC or later, the last until ");
        assert!(run.stderr.contains(&since), "{run}");
        lock(&nodes[4], None);
        let run = cluster.maint(["acquire"]).args(&nodes).run();
        assert!(run.stderr.contains("cannot acquire 5 nodes "), "{run}");
        let told = "locked by bob@laptop (the last until ";
        assert!(run.stderr.contains(told), "{run}");
    });
}

#[test]
fn many_nodes_of_one_holder_take_one_line() {
    on_one("acquire-groups", |cluster| {
        let nodes: Vec<String> = (1..=9)
            .map(|number| cluster.node(&format!("worker-{number}")))
            .collect();
        let lock = |nodes: &[String], holder: &str| {
            let maint = cluster.maint(["acquire", "-m", "rack moves"]).args(nodes);
            maint.holder(holder).succeeds();
        };
        lock(&nodes[..6], "bob@laptop");
        lock(&nodes[6..8], "carol@desk");
        assert_snapshot!(cluster.maint(["acquire"]).args(&nodes).run(), @r#"
        $ kubectl maint acquire worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 worker-7 worker-8 worker-9
        -- stderr
        error: cannot acquire 6 nodes (worker-1, worker-2, worker-3, worker-4, worker-5 and 1 more): locked by bob@laptop: "rack moves" (since [time] or later, the last until [time])
        error: cannot acquire node/worker-7: locked by carol@desk: "rack moves" (since [time], until [time], [length] left)
        error: cannot acquire node/worker-8: locked by carol@desk: "rack moves" (since [time], until [time], [length] left)
        hint: wait for them with `kubectl maint acquire worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 worker-7 worker-8 worker-9 --wait`
        0 of 9 nodes acquired; add --partial to lock the node that was not refused
        -- exit code 3
        "#);
        assert_snapshot!(cluster.maint(["release"]).args(&nodes).run(), @r#"
        $ kubectl maint release worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 worker-7 worker-8 worker-9
        node/worker-9 already free
        -- stderr
        error: cannot release 6 nodes (worker-1, worker-2, worker-3, worker-4, worker-5 and 1 more): locked by bob@laptop: "rack moves" (since [time] or later, the last until [time]); you are alice@bastion
        error: cannot release node/worker-7: locked by carol@desk: "rack moves" (since [time], until [time], [length] left); you are alice@bastion
        error: cannot release node/worker-8: locked by carol@desk: "rack moves" (since [time], until [time], [length] left); you are alice@bastion
        hint: ask bob@laptop to release them; if nobody works there, release them with `kubectl maint release worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 --force -m WHY`
        hint: ask carol@desk to release them; if nobody works there, release them with `kubectl maint release worker-7 worker-8 --force -m WHY`
        1 of 9 nodes free; not released: worker-1, worker-2, worker-3, worker-4, worker-5, worker-6, worker-7, worker-8
        -- exit code 3
        "#);
    });
}

/// Locks six nodes as bob. `flags` gives the flags for each node by its index.
fn locked_by_bob(cluster: &Cluster, flags: impl Fn(usize) -> [String; 2]) -> Vec<String> {
    let nodes = (1..=6).map(|number| {
        let node = cluster.node(&format!("worker-{number}"));
        let bob = cluster.maint(["acquire", &node]).holder("bob@laptop");
        bob.args(flags(number)).succeeds();
        node
    });
    nodes.collect()
}

#[test]
fn nodes_that_one_person_locked_for_different_reasons_take_one_line() {
    in_memory("acquire-group-reasons", |cluster| {
        let reason = |number| ["-m".to_owned(), format!("disk {number}")];
        let nodes = locked_by_bob(cluster, reason);
        assert_snapshot!(cluster.maint(["acquire"]).args(&nodes).run(), @"
        $ kubectl maint acquire worker-1 worker-2 worker-3 worker-4 worker-5 worker-6
        -- stderr
        error: cannot acquire 6 nodes (worker-1, worker-2, worker-3, worker-4, worker-5 and 1 more): locked by bob@laptop (different reasons, since [time] or later, the last until [time])
        hint: wait for them with `kubectl maint acquire worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 --wait`
        0 of 6 nodes acquired
        -- exit code 3
        ");
    });
}

#[test]
fn nodes_that_commands_of_one_person_hold_take_one_line() {
    in_memory("acquire-group-with", |cluster| {
        let with = |number| format!("bob@laptop/with-{number}-abcdef");
        let nodes = locked_by_bob(cluster, |number| ["--holder".to_owned(), with(number)]);
        assert_snapshot!(cluster.maint(["acquire"]).args(&nodes).run(), @"
        $ kubectl maint acquire worker-1 worker-2 worker-3 worker-4 worker-5 worker-6
        -- stderr
        error: cannot acquire 6 nodes (worker-1, worker-2, worker-3, worker-4, worker-5 and 1 more): locked by bob@laptop (since [time] or later, each renewed while its command runs)
        hint: wait for them with `kubectl maint acquire worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 --wait`
        0 of 6 nodes acquired
        -- exit code 3
        ");
        assert_snapshot!(cluster.maint(["release"]).args(&nodes).run(), @"
        $ kubectl maint release worker-1 worker-2 worker-3 worker-4 worker-5 worker-6
        -- stderr
        error: cannot release 6 nodes (worker-1, worker-2, worker-3, worker-4, worker-5 and 1 more): locked by bob@laptop (since [time] or later, each renewed while its command runs); you are alice@bastion
        hint: ask bob@laptop to release them; if nobody works there, release them with `kubectl maint release worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 --force -m WHY`
        0 of 6 nodes released
        -- exit code 3
        ");
    });
}
