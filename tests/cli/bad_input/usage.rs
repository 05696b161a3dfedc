//! Verbs, flags and values that don't exist.

use insta::assert_snapshot;

use crate::support::Cluster;

#[test]
fn unknown_verbs() {
    let cluster = Cluster::nowhere();
    // The hint names the most similar command.
    assert_snapshot!(cluster.maint(["aquire", "worker-1"]).run(), @r#"
    $ kubectl maint aquire worker-1
    -- stderr
    error: unknown command "aquire"
    hint: did you mean `kubectl maint acquire`?
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["evict"]).run(), @r#"
    $ kubectl maint evict
    -- stderr
    error: unknown command "evict"
    hint: see `kubectl maint --help` for the list of commands
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["\x1b[31mred"]).run(), @r#"
    $ kubectl maint "\u{1b}[31mred"
    -- stderr
    error: unknown command "\u{1b}[31mred"
    hint: see `kubectl maint --help` for the list of commands
    -- exit code 2
    "#);
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
fn unknown_flags() {
    let cluster = Cluster::nowhere();
    // The hint names the most similar flag.
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--fore"]).run(), @"
    $ kubectl maint acquire worker-1 --fore
    -- stderr
    error: unknown flag: --fore
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--time-out", "5m"]).run(), @"
    $ kubectl maint acquire worker-1 --time-out 5m
    -- stderr
    error: unknown flag: --time-out
    hint: did you mean --timeout?
    -- exit code 2
    ");
    // The hint says where the flag belongs.
    assert_snapshot!(cluster.maint(["-o", "json", "status"]).run(), @"
    $ kubectl maint -o json status
    -- stderr
    error: unknown flag: -o
    hint: put the flags of a command after it; see `kubectl maint --help` and `kubectl maint options`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["hold", "worker-1", "--duration", "2h"]).run(), @"
    $ kubectl maint hold worker-1 --duration 2h
    -- stderr
    error: unknown flag: --duration
    hint: a hold does not expire; --expect-until shows others when you expect to end it
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["ls"]).run(), @r#"
    $ kubectl maint ls
    -- stderr
    error: unknown command "ls"
    hint: run `kubectl maint status`
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["--nonsense"]).run(), @"
    $ kubectl maint --nonsense
    -- stderr
    error: unknown flag: --nonsense
    hint: put the flags of a command after it; see `kubectl maint --help` and `kubectl maint options`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["fence", "worker-1", "worker-2"]).run(), @r#"
    $ kubectl maint fence worker-1 worker-2
    -- stderr
    error: unexpected argument "worker-2"
    hint: see `kubectl maint fence --help`
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--\x1b[31mred"]).run(), @r#"
    $ kubectl maint acquire worker-1 "--\u{1b}[31mred"
    -- stderr
    error: unknown flag: --\u{1b}[31mred
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    "#);
}

#[test]
fn unknown_values() {
    let cluster = Cluster::nowhere();
    // The message lists the valid values.
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "-o", "xml"]).run(), @"
    $ kubectl maint acquire worker-1 -o xml
    -- stderr
    error: invalid value 'xml' for '--output <FORMAT>': use wide, name, json, yaml, lock-id, jsonpath= or custom-columns=
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--parallel", "0"]).run(), @"
    $ kubectl maint acquire worker-1 --parallel 0
    -- stderr
    error: invalid value '0' for '--parallel <N>': must be a number from 1 to 512
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--dry-run=perhaps"]).run(), @"
    $ kubectl maint acquire worker-1 --dry-run=perhaps
    -- stderr
    error: invalid value 'perhaps' for '--dry-run[=<MODE>]': use none, client or server
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--request-timeout", "soon"]).run(), @"
    $ kubectl maint acquire worker-1 --request-timeout soon
    -- stderr
    error: invalid value 'soon' for '--request-timeout <TIME>': Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
}

#[test]
fn missing_values() {
    let cluster = Cluster::nowhere();
    assert_snapshot!(cluster.maint(["why"]).run(), @"
    $ kubectl maint why
    -- stderr
    error: missing KIND/NAME
    hint: see `kubectl maint why --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["fence", "worker-1", "--powered-off"]).run(), @r#"
    $ kubectl maint fence worker-1 --powered-off
    -- stderr
    error: --powered-off needs a value
    hint: use --powered-off="HOW YOU KNOW"
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--duration"]).run(), @"
    $ kubectl maint acquire worker-1 --duration
    -- stderr
    error: --duration needs a value
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["enforce", "block"]).run(), @"
    $ kubectl maint enforce block
    -- stderr
    error: invalid value 'block' for '[MODE]': use audit, warn, deny or off
    hint: see `kubectl maint enforce --help`
    -- exit code 2
    ");
}

#[test]
fn a_holder_that_would_never_expire() {
    let cluster = Cluster::nowhere();
    // A holder that begins with `kubeadm` would make this a hold.
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--holder", "kubeadm-x"]).run(), @r#"
    $ kubectl maint acquire worker-1 --holder kubeadm-x
    -- stderr
    error: invalid value 'kubeadm-x' for '--holder <ID>': a holder identity must not begin with "kubeadm": such a lock would never expire
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["acquire", "worker-1"]).holder("kubeadm:alice").run(), @r#"
    $ kubectl maint acquire worker-1
    -- stderr
    error: invalid value 'kubeadm:alice' for '--holder <ID>': a holder identity must not begin with "kubeadm": such a lock would never expire
    hint: KUBECTL_MAINT_HOLDER has this value: unset it, or set it to another
    -- exit code 2
    "#);
    assert_snapshot!(cluster.maint(["release", "worker-1", "--holder", " alice"]).run(), @r#"
    $ kubectl maint release worker-1 --holder " alice"
    -- stderr
    error: invalid value ' alice' for '--holder <ID>': a holder identity must not have control characters, nor white space at its ends
    hint: see `kubectl maint release --help`
    -- exit code 2
    "#);
}

#[test]
fn lock_ids() {
    let cluster = Cluster::nowhere();
    let id = "6f3a1c52-0f4e-4d1f-9f0a-0a1b2c3d4e5f.3.abcdefghijkmnpqrstvw";
    // A lock id belongs to one acquisition of one node.
    assert_snapshot!(cluster.maint(["release", "worker-1", "--token", id, "--token", id]).run(), @"
    $ kubectl maint release worker-1 --token [lock-id] --token [lock-id]
    -- stderr
    error: invalid value for '--token <TOKEN>': more than one lock id given
    hint: see `kubectl maint release --help`
    -- exit code 2
    ");
}

#[test]
fn a_command_of_with_that_is_not_after_dashes() {
    let cluster = Cluster::nowhere();
    let with = |words: &[&str]| cluster.maint(["with"]).args(words).run();
    assert_snapshot!(with(&["worker-1", "ssh", "worker-1"]), @"
    $ kubectl maint with worker-1 ssh worker-1
    -- stderr
    error: missing `-- COMMAND`
    hint: run `kubectl maint with NODE... -- COMMAND`
    -- exit code 125
    ");
    assert_snapshot!(with(&["worker-1", "ssh", "-t", "worker-1"]), @"
    $ kubectl maint with worker-1 ssh -t worker-1
    -- stderr
    error: unknown flag: -t
    hint: if -t belongs to COMMAND, put `--` before COMMAND: run `kubectl maint with NODE... -- COMMAND`
    -- exit code 125
    ");
    assert_snapshot!(with(&["worker-1", "--"]), @"
    $ kubectl maint with worker-1 --
    -- stderr
    error: missing `-- COMMAND`
    hint: run `kubectl maint with NODE... -- COMMAND`
    -- exit code 125
    ");
    assert_snapshot!(with(&["--", "ssh", "worker-1"]), @"
    $ kubectl maint with -- ssh worker-1
    -- stderr
    error: missing NODE
    hint: run `kubectl maint with NODE... -- COMMAND`
    -- exit code 125
    ");
    // Other verbs have these flags, `with` does not.
    assert_snapshot!(with(&["-l", "pool=gpu", "--", "uptime"]), @"
    $ kubectl maint with -l pool=gpu -- uptime
    -- stderr
    error: unknown flag: -l
    hint: name the nodes before --
    -- exit code 125
    ");
}

#[test]
fn flags_and_verbs_of_other_tools_have_hints() {
    let cluster = Cluster::nowhere();
    let said = |line: &str| cluster.maint(line.split(' ')).run();
    assert_snapshot!(said("drain worker-1 --force"), @r#"
    $ kubectl maint drain worker-1 --force
    -- stderr
    error: unknown command "drain"
    hint: lock the node with `kubectl maint acquire NODE`, then run `kubectl drain NODE`
    -- exit code 2
    "#);
    for (typed, runs) in [
        ("list", "run `kubectl maint status`"),
        ("get nodes", "run `kubectl maint status`"),
        (
            "cordon node/worker-1",
            "lock the node with `kubectl maint acquire NODE`, then run `kubectl cordon NODE`",
        ),
        (
            "install --dry-run",
            "print the objects with `kubectl maint install -o yaml`",
        ),
        ("completion tcsh", "see `kubectl maint completion --help`"),
        (
            "steal worker-1",
            "see `kubectl maint --help` for the list of commands",
        ),
    ] {
        let run = said(typed);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.ends_with(&format!("hint: {runs}\n")), "{run}");
    }
    assert_snapshot!(said("release --mine --force"), @"
    $ kubectl maint release --mine --force
    -- stderr
    error: --mine and --force cannot be combined
    hint: use only one of them
    -- exit code 2
    ");
    assert_snapshot!(said("acquire worker-1 --wait=10m"), @"
    $ kubectl maint acquire worker-1 --wait=10m
    -- stderr
    error: --wait takes no value
    hint: to wait at most 10m, use --wait --timeout 10m
    -- exit code 2
    ");
    assert_snapshot!(said("acquire worker-1 --force"), @"
    $ kubectl maint acquire worker-1 --force
    -- stderr
    error: unknown flag: --force
    hint: to end somebody else's lock, run `kubectl maint release worker-1 -m WHY --force`
    -- exit code 2
    ");
    assert_snapshot!(said("acquire worker-1 --take-over"), @"
    $ kubectl maint acquire worker-1 --take-over
    -- stderr
    error: unknown flag: --take-over
    hint: to take over somebody else's lock, run `kubectl maint hold worker-1 -m WHY --take-over`
    -- exit code 2
    ");
    assert_snapshot!(said("hold worker-1 -m fire --force"), @"
    $ kubectl maint hold worker-1 -m fire --force
    -- stderr
    error: unknown flag: --force
    hint: to take over somebody else's lock, run `kubectl maint hold worker-1 -m fire --take-over`
    -- exit code 2
    ");
    assert_snapshot!(said("release worker-1 --take-over"), @"
    $ kubectl maint release worker-1 --take-over
    -- stderr
    error: unknown flag: --take-over
    hint: to end somebody else's lock, run `kubectl maint release worker-1 -m WHY --force`
    -- exit code 2
    ");
    assert_snapshot!(said("with worker-1 --duration 2h -- bash"), @"
    $ kubectl maint with worker-1 --duration 2h -- bash
    -- stderr
    error: unknown flag: --duration
    hint: remove it: the lock lasts as long as COMMAND
    -- exit code 125
    ");
    assert_snapshot!(said("with worker-1 --lease-duration 2h -- bash"), @"
    $ kubectl maint with worker-1 --lease-duration 2h -- bash
    -- stderr
    error: invalid value '2h' for '--lease-duration <TIME>': must not be longer than 1h; the lock is renewed until the command ends
    hint: see `kubectl maint with --help`
    -- exit code 125
    ");
}

#[test]
fn help_on_help() {
    let cluster = Cluster::nowhere();
    let said = |line: &str| cluster.maint(line.split(' ')).succeeds().stdout;
    assert_eq!(said("help --help"), said("help"));
    assert_eq!(said("help -h"), said("help"));
    assert_eq!(said("help acquire --help"), said("acquire --help"));
}

#[test]
fn a_value_after_a_space_is_not_read_as_a_node() {
    let cluster = Cluster::nowhere();
    let said = |line: &str| cluster.maint(line.split(' ')).run();
    assert_snapshot!(said("acquire worker-1 --dry-run server"), @"
    $ kubectl maint acquire worker-1 --dry-run server
    -- stderr
    error: --dry-run takes its value after =
    hint: use --dry-run=server; if server is a node, put it before --dry-run
    -- exit code 2
    ");
    assert_snapshot!(said("status --abandoned 1s"), @"
    $ kubectl maint status --abandoned 1s
    -- stderr
    error: --abandoned takes its value after =
    hint: use --abandoned=1s
    -- exit code 2
    ");
    assert_snapshot!(said("acquire worker-1 --wait 10m"), @"
    $ kubectl maint acquire worker-1 --wait 10m
    -- stderr
    error: --wait takes no value
    hint: to wait at most 10m, use --wait --timeout 10m
    -- exit code 2
    ");
    for line in [
        "release --mine --dry-run server",
        "fence worker-1 --dry-run server",
        "hold -l pool=gpu -m disk --dry-run client",
    ] {
        let run = said(line);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains("hint: use --dry-run="), "{run}");
    }
    let with = said("with worker-1 --wait 10m -- true");
    assert_eq!(with.code, 125, "{with}");
    assert!(with.stderr.contains("--wait --timeout 10m"), "{with}");
    // Here, `free` is the value of another flag, and `--wait 10m` follows `--`.
    for line in [
        "status server --state free",
        "with worker-1 -- true --wait 10m",
    ] {
        let run = said(line);
        assert!(run.stderr.contains("was refused"), "{run}");
    }
}

#[test]
fn a_command_after_the_nodes_of_another_verb_is_not_read_as_nodes() {
    let cluster = Cluster::nowhere();
    let said = |words: &[&str]| cluster.maint(words).run();
    assert_snapshot!(said(&["acquire", "worker-1", "--context=default", "-m", "disk", "--", "ls", "-l"]), @"
    $ kubectl maint acquire worker-1 --context=default -m disk -- ls -l
    -- stderr
    error: acquire does not run a command
    hint: run `kubectl maint with NODE... -- COMMAND`
    -- exit code 2
    ");
    for (words, command, hint) in [
        (
            &["hold", "-l", "pool=gpu", "-m", "disk", "--", "ls"][..],
            "hold",
            "run `kubectl maint with NODE... -- COMMAND`",
        ),
        (
            &["wait", "worker-1", "--", "./reboot.sh"],
            "wait",
            "run `kubectl maint with NODE... -- COMMAND`",
        ),
        (
            &["release", "--mine", "--", "ls", "a b"],
            "release",
            "remove `-- ls 'a b'`",
        ),
        (
            &["status", "worker-1", "--", "ls"],
            "status",
            "remove `-- ls`",
        ),
    ] {
        let run = said(words);
        let told = format!("error: {command} does not run a command\nhint: {hint}\n");
        assert_eq!((run.code, &*run.stderr), (2, &*told), "{run}");
    }
    // Scripts may write `--` before the names of nodes, or after them.
    for words in [
        &["acquire", "--", "worker-1"][..],
        &["acquire", "worker-1", "--"],
    ] {
        let run = said(words);
        assert!(run.stderr.contains("was refused"), "{run}");
    }
}

#[test]
fn the_kind_alone_is_not_read_as_a_node() {
    let cluster = Cluster::nowhere();
    for line in [
        "acquire node",
        "with node -- true",
        "fence node --powered-off=dark",
        "history node",
        "verify node",
    ] {
        let run = cluster.maint(line.split(' ')).run();
        let said = "error: missing NAME after node\nhint: use node/NAME\n";
        assert_eq!(run.stderr, said, "{run}");
    }
    let run = cluster.maint(["acquire", "node/node"]).run();
    assert!(run.stderr.contains("was refused"), "{run}");
}

#[test]
fn an_end_that_is_a_duration_has_a_hint_that_works() {
    let cluster = Cluster::nowhere();
    for (line, said) in [
        (
            "acquire rack-2d --until 2d",
            "error: invalid value '2d' for '--until <TIME>': must not be longer than 1h\n\
             hint: use a hold, which does not expire: `kubectl maint hold rack-2d -m WHY --expect-until 2d`\n",
        ),
        (
            "renew worker-1 --until=+2d",
            "error: invalid value '+2d' for '--until <TIME>': must not be longer than 1h\n\
             hint: use a hold, which does not expire: `kubectl maint hold worker-1 -m WHY --expect-until 2d`\n",
        ),
        (
            "acquire worker-1 --until 20m",
            "error: invalid value '20m' for '--until <TIME>': not a time\nhint: use --duration 20m\n",
        ),
        (
            "acquire worker-1 --until +20m",
            "error: invalid value \'+20m\' for \'--until <TIME>\': not a time\nhint: use --duration 20m\n",
        ),
        (
            "renew worker-1 --until +20m",
            "error: invalid value \'+20m\' for \'--until <TIME>\': not a time\nhint: use --duration +20m\n",
        ),
        (
            "acquire worker-1 --until 18:00Z --duration 3h",
            "error: invalid value '3h' for '--duration <TIME>': must not be longer than 1h\n\
             hint: use a hold, which does not expire: `kubectl maint hold worker-1 -m WHY --expect-until 3h`\n",
        ),
        (
            "acquire worker-1 --until 18:00Z --duration 20m",
            "error: --until and --duration cannot be combined\n\
             hint: use only one of them\n",
        ),
    ] {
        let run = cluster.maint(line.split(' ')).run();
        assert_eq!((run.code, &*run.stderr), (2, said), "{run}");
    }
}

#[test]
fn flags_with_a_wrong_kind_of_value() {
    let cluster = Cluster::nowhere();
    for (line, said) in [
        (
            "fence worker-1 --resume a1b2 -- true",
            "error: --resume takes its value after =\nhint: use --resume=a1b2\n",
        ),
        (
            "acquire worker-1 --cordon=false",
            "error: --cordon takes no value\nhint: remove --cordon\n",
        ),
        (
            "acquire worker-1 --cordon=yes",
            "error: --cordon takes no value\nhint: use --cordon\n",
        ),
        (
            "acquire worker-1 --parallel x",
            "error: invalid value 'x' for '--parallel <N>': must be a number from 1 to 512\n",
        ),
        (
            "acquire worker-1 -v x",
            "error: invalid value 'x' for '--v <LEVEL>': must be a number\n",
        ),
        (
            "with worker-1 --lost-exit-code=256 -- true",
            "error: invalid value '256' for '--lost-exit-code <CODE>': must be a number from 1 to 255\n",
        ),
    ] {
        let run = cluster.maint(line.split(' ')).run();
        assert!(run.stderr.starts_with(said), "{run}");
        assert!([2, 125].contains(&run.code), "{run}");
    }
}

#[test]
fn a_fencing_of_a_node_that_still_reports_needs_a_hook() {
    let nowhere = Cluster::nowhere();
    for powered_off in [&[][..], &["--powered-off=I pulled the plug"]] {
        let suspect = nowhere.maint(["fence", "worker-1", "--suspect", "--context=default"]);
        let run = suspect.args(powered_off).run();
        let said = "error: --suspect needs a HOOK\n\
                    hint: run `kubectl maint fence worker-1 --suspect --context default -- HOOK`\n";
        assert_eq!((run.code, &*run.stderr), (2, said), "{run}");
    }
}

#[test]
fn values_that_cannot_be_meant_have_a_hint() {
    let nowhere = Cluster::nowhere();
    for (words, lines) in [
        (
            &["acquire", "worker-1,worker-2"][..],
            "error: \"worker-1,worker-2\" is not a valid node name\nhint: separate node names with spaces\n",
        ),
        (
            &["acquire", "worker-1", "--until", "soon"],
            "not a time with a time zone, e.g. 18:00Z or 2026-11-22T18:00Z\n",
        ),
        (
            &["acquire", "worker-1", "--until", "18:00"],
            "not a time with a time zone, e.g. 18:00Z or 2026-11-22T18:00Z\n",
        ),
        (
            &["acquire", "worker-1", "--duration", "+20m"],
            "not a duration, e.g. 90s, 30m or 1h\n",
        ),
        (
            &["acquire", "worker-1", "--wait", "--timeout", "9999d"],
            "must not be longer than 3650d\n",
        ),
        (
            &["fence", "worker-1", "--powered-off=HOW YOU KNOW"],
            "replace HOW YOU KNOW with how you know it\n",
        ),
        (
            &[
                "status",
                "--token",
                "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9",
            ],
            "it is a lock id, which only renew, release and verify take\n",
        ),
        (
            &[
                "release",
                "worker-1",
                "--token",
                "worker-1 0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9",
            ],
            "it looks like a lock id, but is not one: use --lock-id with the output of acquire -o lock-id\n",
        ),
        (
            &["why", "web-0"],
            "error: \"web-0\" has no kind\nhint: use pod/web-0, pvc/web-0 or namespace/web-0\n",
        ),
        (
            &["why", "pvc/A_b"],
            "error: \"A_b\" is not a valid pvc name\nhint: pvc names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and have at most 253 characters\n",
        ),
        (
            &["why", "ns", "A"],
            "error: \"A\" is not a valid namespace name\nhint: namespace names have only lower-case letters, digits and -, begin and end with a letter or digit, and have at most 63 characters\n",
        ),
        (&["why", "pod/"], "error: a pod name must not be empty\n"),
        (
            &["why", "deploy/web"],
            "hint: use pod/NAME, pvc/NAME or namespace/NAME; find its pods with `kubectl get pods`\n",
        ),
        (
            &["why", "pod/a", "pod/b"],
            "error: why explains one object at a time\nhint: run it once for each object\n",
        ),
        (
            &["unhold", "worker-1", "--force"],
            "hint: remove it: unhold asks you to confirm if the hold is not yours\n",
        ),
        (
            &["unhold", "worker-1", "-m", "done"],
            "hint: remove it: an Event on the node records who ended the hold\n",
        ),
        (
            &["describe", "worker-1", "-o", "json"],
            "hint: print data with `kubectl maint status NODE -o json`\n",
        ),
        (
            &[
                "with",
                "worker-1",
                "--grace=50m",
                "--request-timeout=30m",
                "--",
                "true",
            ],
            "\nhint: use a shorter --request-timeout or --grace, or a longer --lease-duration (at most 1h)\n",
        ),
    ] {
        let run = nowhere.maint(words).run();
        assert!(run.stderr.contains(lines), "{run}");
        assert!([2, 125].contains(&run.code), "{run}");
    }
}
