//! The command `acquire`.

use std::process::Command;

use control_plane::Rule;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Cluster, Run, ago, holder_of, on_both, on_one, on_real, requests};

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
        let id = cluster
            .maint(["acquire", &node, "--reentry", "-o", "lock-id"])
            .succeeds();
        let transitions = &cluster.lease_of(&node)["spec"]["leaseTransitions"];
        assert_eq!(transitions, 1, "the same acquisition goes on: {id}");
    });
}

#[test]
fn reentry_works_under_an_own_hold_but_not_under_anothers() {
    on_one("acquire-hold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        cluster.maint(["acquire", &node]).fails(3);
        assert_snapshot!(cluster.maint(["acquire", &node, "--reentry"]).run(), @"
        $ kubectl maint acquire worker-1 --reentry
        node/worker-1 already on hold by you
        -- exit code 0
        ");
        let bob = cluster.maint(["acquire", &node, "--reentry"]);
        assert_snapshot!(bob.holder("bob@laptop").run(), @r#"
        $ kubectl maint acquire worker-1 --reentry
        -- stderr
        error: cannot acquire node/worker-1: on hold by alice@bastion: "disk" (since [time])
        hint: wait for it by adding `--wait`; if nobody works there, end the hold with `kubectl maint unhold worker-1`
        -- exit code 3
        "#);
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
fn a_dry_run_locks_nothing_and_has_no_lock_id() {
    on_both("acquire-dry", |cluster| {
        let nodes = ["worker-1", "worker-2"].map(|node| cluster.node(node));
        for node in &nodes {
            cluster.lease(node, &json!({}));
        }
        let [one, two] = &nodes;
        assert_snapshot!(cluster.maint(["acquire", "--dry-run", one, two]).run(), @"
        $ kubectl maint acquire --dry-run worker-1 worker-2
        node/worker-1 acquired by alice@bastion until [time] (30m) (dry run)
        node/worker-2 acquired by alice@bastion until [time] (30m) (dry run)
        -- stderr
        2 of 2 nodes would be locked (dry run)
        -- exit code 0
        ");
        for mode in ["--dry-run=client", "--dry-run=server"] {
            let run = cluster.maint(["acquire", one, mode]).succeeds();
            assert!(run.stdout.ends_with(" (dry run)\n"), "{run}");
        }
        let no_id = cluster.maint(["acquire", one, "--dry-run", "-o", "lock-id"]);
        no_id.fails(2);
        let item = |flags: &[&str]| {
            let maint = cluster.maint(["acquire", one, "-o", "json"]);
            maint.args(flags).succeeds().item()
        };
        let planned = item(&["--dry-run"]);
        assert_eq!(planned["state"], "Locked");
        assert_eq!(holder_of(cluster, one), None);
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
        let all = cluster.maint(["acquire", three, one, two]).succeeds();
        assert!(all.stderr.ends_with("3 of 3 nodes locked\n"), "{all}");
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
            let run = acquire(&["-v6", &free, &held]);
            assert_eq!(run.code, 3, "{run}");
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

        let run = cluster.maint(["acquire", &held]).args(json).run();
        let item = run.item();
        let error = &item["error"];
        assert_eq!(error["holder"], "bob@laptop");
        assert_eq!(error["until"], item["until"]);
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
fn of_two_overlapping_callers_at_most_one_gets_all_nodes_and_the_other_none() {
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
            // They may refuse each other.
            let (winner, taken, left) = match (first.code, second.code) {
                (0, 3) => ("alice@bastion", &nodes[..4], &nodes[4..]),
                (3, 0) => ("bob@laptop", &nodes[1..], &nodes[..1]),
                (3, 3) => ("", &nodes[..0], &nodes[..]),
                _ => panic!("round {round}:\n{first}\n{second}"),
            };
            for node in taken {
                let holder = holder_of(cluster, node);
                assert_eq!(holder.as_deref(), Some(winner), "round {round}: {node}");
            }
            for node in left {
                assert_eq!(holder_of(cluster, node), None, "round {round}: {node}");
            }
            if !taken.is_empty() {
                cluster
                    .maint(["release"])
                    .args(taken)
                    .holder(winner)
                    .succeeds();
            }
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
fn the_hint_to_wait_keeps_the_nodes_and_leaves_out_own_locks() {
    on_one("acquire-next", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        let [own, other, free] = &nodes;
        cluster.maint(["acquire", own]).succeeds();
        let bob = cluster.maint(["acquire", other]).holder("bob@laptop");
        bob.succeeds();
        for (words, hint) in [
            (
                &["acquire", own, other, free][..],
                "with `kubectl maint acquire worker-2 worker-3 --wait`",
            ),
            (
                &["acquire", other, "--duration", "1h"],
                "by adding `--wait`",
            ),
            (
                &["with", other, "-m", "disk", "--", "bash"],
                "with `kubectl maint with worker-2 -m disk --wait -- COMMAND`",
            ),
        ] {
            let run = cluster.maint(words).run();
            let hint = format!("\nhint: wait for it {hint}\n");
            assert!(run.to_string().contains(&hint), "{run}");
            assert_eq!(run.code, 3, "{run}");
        }
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
    });
}
