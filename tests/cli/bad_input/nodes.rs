//! Arguments that name no node, and ways to name nodes that can't be combined.

use insta::assert_snapshot;

use crate::support::{Cluster, on_both, on_one};

#[test]
fn ways_to_name_nodes_are_not_mixed() {
    let cluster = Cluster::nowhere();
    // It is unclear what a combination would mean, so it is refused.
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "-l", "pool=gpu"]).run(), @"
    $ kubectl maint acquire worker-1 -l pool=gpu
    -- stderr
    error: NODE and -l cannot be combined
    hint: use only one of them
    -- exit code 2
    ");
    cluster.maint(["acquire", "worker-1", "--all"]).fails(2);
    cluster
        .maint(["release", "-l", "pool=gpu", "--mine", "--nodes-from", "-"])
        .fails(2);
    assert_snapshot!(cluster.maint(["acquire"]).run(), @"
    $ kubectl maint acquire
    -- stderr
    error: missing NODE
    hint: name nodes, or use -l SELECTOR, --all or --nodes-from FILE
    -- exit code 2
    ");
    for verb in ["release", "renew", "unhold"] {
        let run = cluster.maint([verb]).run();
        let hint = "hint: name nodes, or use --mine, -l SELECTOR, --all or --nodes-from FILE\n";
        assert!(run.code == 2 && run.stderr.ends_with(hint), "{run}");
    }
}

#[test]
fn only_nodes_have_a_lock() {
    let cluster = Cluster::nowhere();
    // The refusal comes before any request is sent.
    assert_snapshot!(cluster.maint(["acquire", "pod/web-0"]).run(), @r#"
    $ kubectl maint acquire pod/web-0
    -- stderr
    error: "pod/web-0" is not a node
    hint: only nodes have a maintenance lock; use node/NAME, not pod/NAME
    -- exit code 2
    "#);
    cluster.maint(["acquire", "nodes/worker-1/status"]).fails(2);
    assert_snapshot!(cluster.maint(["acquire", "Worker_1"]).run(), @r#"
    $ kubectl maint acquire Worker_1
    -- stderr
    error: "Worker_1" is not a valid node name
    hint: node names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and have at most 253 characters
    -- exit code 2
    "#);
    cluster.maint(["acquire", "../../secrets"]).fails(2);
    cluster.maint(["acquire", "worker-1?x=y"]).fails(2);
}

#[test]
fn an_unknown_node_has_near_misses() {
    on_one("nodes-near", |cluster| {
        for short in ["worker-1", "worker-2", "database"] {
            cluster.node(short);
        }
        // The server's message, followed by a similar name.
        assert_snapshot!(cluster.maint(["acquire", &cluster.name("wroker-1")]).run(), @r#"
        $ kubectl maint acquire wroker-1
        -- stderr
        Error from server (NotFound): nodes "wroker-1" not found
        hint: did you mean worker-1, worker-2?
        -- exit code 1
        "#);
        cluster
            .maint(["release", &cluster.name("wroker-1")])
            .fails(1);
        // No existing name is similar.
        assert_snapshot!(cluster.maint(["acquire", "xyz"]).run(), @r#"
        $ kubectl maint acquire xyz
        -- stderr
        Error from server (NotFound): nodes "xyz" not found
        hint: list all nodes with `kubectl maint status --all`
        -- exit code 1
        "#);
    });
}

#[test]
fn a_list_without_nodes() {
    let cluster = Cluster::nowhere();
    let listed = || cluster.maint(["acquire", "--nodes-from", "-"]);
    // An empty list is an error, not a success.
    assert_snapshot!(listed().run(), @"
    $ kubectl maint acquire --nodes-from -
    -- stderr
    error: --nodes-from - has no nodes
    -- exit code 1
    ");
    listed().stdin("\n# rack 7\n\n").fails(1);
}

#[test]
fn a_list_with_a_bad_line() {
    let cluster = Cluster::nowhere();
    let listed = || cluster.maint(["acquire", "--nodes-from", "-"]);
    // The error names the line. The valid lines are not acted on either.
    assert_snapshot!(listed().stdin("worker-1\nnode/worker-2\nworker 3\n").run(), @r#"
    $ kubectl maint acquire --nodes-from -
    -- stderr
    error: --nodes-from -, line 3: "worker 3" is not a valid node name
    hint: put one node on each line
    -- exit code 2
    "#);
    for list in [&b"worker-1\n\x1b[31mred\n"[..], b"worker-1\nworker\xff\n"] {
        listed().stdin(list).fails(2);
    }
}

#[test]
fn a_megabyte_of_unknown_nodes() {
    on_both("nodes-unknown", |cluster| {
        cluster.node("worker-1");
        let list: String = (0..80_000)
            .map(|number| format!("worker-{number:05}\n"))
            .collect();
        // The first names are printed, the others only counted.
        let maint = cluster.maint(["acquire", "--nodes-from", "-"]).stdin(list);
        let run = maint.run();
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(
            lines[20..],
            [
                "0 of 80000 nodes acquired",
                "error: 79980 more nodes not found",
                "hint: list all nodes with `kubectl maint status --all`",
            ]
        );
        assert_eq!(run.code, 1, "{run}");
    });
}
