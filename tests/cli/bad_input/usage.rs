//! Commands, flags and values that don't exist, and command lines that can't be meant.

use insta::assert_snapshot;

use crate::support::{Cluster, Run};

fn run(line: &str) -> Run {
    Cluster::nowhere().maint(line.split(' ')).run()
}

#[test]
fn the_message_is_that_of_the_argument_parser() {
    assert_snapshot!(run("aquire worker-1"), @"
    $ kubectl maint aquire worker-1
    -- stderr
    error: unrecognized subcommand 'aquire'

      tip: a similar subcommand exists: 'acquire'

    Usage: kubectl maint [OPTIONS] <COMMAND>

    For more information, try '--help'.
    -- exit code 2
    ");
    assert_snapshot!(run("acquire worker-1 --time-out 5m"), @"
    $ kubectl maint acquire worker-1 --time-out 5m
    -- stderr
    error: unexpected argument '--time-out' found

      tip: a similar argument exists: '--timeout'

    Usage: kubectl maint acquire --timeout <TIME> <NODE>...

    For more information, try '--help'.
    -- exit code 2
    ");
    assert_snapshot!(run("acquire worker-1 --duration 61m"), @"
    $ kubectl maint acquire worker-1 --duration 61m
    -- stderr
    error: invalid value '61m' for '--duration <TIME>': must not be longer than 1h; if the work takes longer, use hold

    For more information, try '--help'.
    -- exit code 2
    ");
    for line in [
        "--nonsense",
        "-o json status",
        "fence worker-1 worker-2 --powered-off=dark",
        "acquire worker-1 -o xml",
        "acquire worker-1 --dry-run=perhaps",
        "acquire worker-1 --duration",
        "acquire worker-1 --cordon=false",
        "enforce block",
        "release --mine --force",
        "why",
    ] {
        let run = run(line);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{run}");
        assert!(run.stderr.starts_with("error: "), "{run}");
    }
    let with = run("with worker-1 --duration 2h -- bash");
    assert_eq!(with.code, 125, "its command may exit with 2: {with}");
}

#[test]
fn what_was_typed_is_escaped() {
    let cluster = Cluster::nowhere();
    for words in [
        &["\x1b[31mred"][..],
        &["acquire", "worker-1", "--\x1b[31mred"],
        &["acquire", "worker-1", "--duration", "30\x1b[31mm"],
    ] {
        let run = cluster.maint(words).run();
        assert!(run.stderr.contains(r"\u{1b}[31m"), "{run}");
        assert_eq!(run.code, 2, "{run}");
    }
}

#[test]
fn without_a_command_it_prints_help_as_kubectl_does() {
    let cluster = Cluster::nowhere();
    for words in [&[][..], &["--context", "prod"]] {
        let run = cluster.maint(words).run();
        assert_eq!((run.code, &*run.stderr), (0, ""), "{run}");
        assert!(
            run.stdout.starts_with("Lock nodes for maintenance"),
            "{run}"
        );
        assert!(run.stdout.contains("\nCommands:\n"), "{run}");
    }
}

#[test]
fn a_holder_that_would_never_expire() {
    let cluster = Cluster::nowhere();
    // A holder that begins with `kubeadm` would make this a hold.
    let by_flag = cluster.maint(["acquire", "worker-1", "--holder", "kubeadm-x"]);
    let by_variable = cluster.maint(["acquire", "worker-1"]).holder("kubeadm:a");
    for maint in [by_flag, by_variable] {
        let run = maint.run();
        assert!(run.stderr.contains("would never expire"), "{run}");
        assert_eq!(run.code, 2, "{run}");
    }
}

#[test]
fn a_command_of_with_that_is_not_after_dashes() {
    assert_snapshot!(run("with worker-1 ssh worker-1"), @"
    $ kubectl maint with worker-1 ssh worker-1
    -- stderr
    error: missing `-- COMMAND`
    hint: run `kubectl maint with NODE... -- COMMAND`
    -- exit code 125
    ");
    let flag = run("with worker-1 ssh -t worker-1");
    assert!(flag.stderr.contains("missing `-- COMMAND`"), "{flag}");
    for line in ["with worker-1 --", "with -- ssh worker-1"] {
        assert_eq!(run(line).code, 125, "{line}");
    }
}

#[test]
fn a_value_after_a_space_is_not_read_as_a_node() {
    assert_snapshot!(run("acquire worker-1 --dry-run server"), @"
    $ kubectl maint acquire worker-1 --dry-run server
    -- stderr
    error: --dry-run takes its value after =
    hint: use --dry-run=server; if server is a node, put it before --dry-run
    -- exit code 2
    ");
    assert_snapshot!(run("acquire worker-1 --wait 10m"), @"
    $ kubectl maint acquire worker-1 --wait 10m
    -- stderr
    error: --wait takes no value
    hint: to wait at most 10m, use --wait --timeout 10m
    -- exit code 2
    ");
    assert_eq!(run("with worker-1 --wait 10m -- true").code, 125);
    // Here, it is the value of another flag, or follows `--`.
    for line in [
        "status server --state free",
        "with worker-1 -- true --wait 10m",
    ] {
        let run = run(line);
        assert!(run.stderr.contains("was refused"), "{run}");
    }
}

#[test]
fn the_kind_alone_is_not_read_as_a_node() {
    for line in ["acquire node", "history node", "verify node"] {
        let run = run(line);
        let said = "error: missing NAME after node\nhint: use node/NAME\n";
        assert_eq!((run.code, &*run.stderr), (2, said), "{run}");
    }
    let named = run("acquire node/node");
    assert!(named.stderr.contains("was refused"), "{named}");
}

#[test]
fn a_fencing_of_a_node_that_still_reports_needs_a_hook() {
    let suspect = run("fence worker-1 --suspect --context=default --powered-off=plug");
    let said = "error: --suspect needs a HOOK\n\
                hint: run `kubectl maint fence worker-1 --suspect --context default -- HOOK`\n";
    assert_eq!((suspect.code, &*suspect.stderr), (2, said), "{suspect}");
}

#[test]
fn values_that_cannot_be_meant_are_explained() {
    for (line, said) in [
        (
            "acquire worker-1,worker-2",
            "hint: separate node names with spaces\n",
        ),
        (
            "hold worker-1 -m disk --expect-until 18:00",
            "not a time with a time zone, e.g. 2026-11-22T18:00Z, or a duration",
        ),
        (
            "acquire worker-1 --wait --timeout 9999d",
            "must not be longer than 3650d\n",
        ),
        ("why web-0", "hint: use pod/web-0, pvc/web-0 or namespace/"),
        ("why pvc/A_b", "error: \"A_b\" is not a valid pvc name\n"),
        ("why pod/", "error: a pod name must not be empty\n"),
        (
            "why deploy/web",
            "hint: use pod/NAME, pvc/NAME or namespace",
        ),
        ("why pod/a pod/b", "hint: run it once for each object\n"),
        (
            "with worker-1 --grace=50m --request-timeout=30m -- true",
            "or a longer --lease-duration (at most 1h)\n",
        ),
    ] {
        let run = run(line);
        assert!(run.stderr.contains(said), "{run}");
        assert!([2, 125].contains(&run.code), "{run}");
    }
}
