//! Text with control characters, text that is too long or empty, and text that is not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::{Cluster, ago, on_both, on_one};

/// Clears the screen, moves the cursor, sets the window title, and reverses the writing direction.
const ACTING: &str = "a\x1b[2Jb\r\nc\x1b]0;title\x07d\u{9b}31me\u{202e}f";

/// Not UTF-8.
const BROKEN: &[u8] = b"worker\xff\xfe";

/// 120 KiB, just below the system's limit of 128 KiB for one argument.
fn long() -> String {
    "x".repeat(120 << 10)
}

#[test]
fn control_characters_in_a_reason() {
    on_one("text-reason", |cluster| {
        let node = cluster.node("worker-1");
        // The reason is stored unchanged, and escaped wherever it is shown.
        assert_snapshot!(cluster.maint(["acquire", &node, "-m", ACTING]).run(), @r#"
        $ kubectl maint acquire worker-1 -m "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f"
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        "#);
        let reason =
            cluster.lease_of(&node)["metadata"]["annotations"]["kubectl-maint.dev/reason"].clone();
        assert_eq!(reason, ACTING);
        assert_snapshot!(cluster.maint(["acquire", &node]).holder("bob@laptop").run(), @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        error: cannot acquire node/worker-1: locked by alice@bastion: "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f" (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 --wait`
        -- exit code 3
        "#);
    });
}

#[test]
fn control_characters_in_a_holder() {
    on_one("text-holder", |cluster| {
        let node = cluster.node("worker-1");
        // The holder is refused, and escaped in the message.
        assert_snapshot!(cluster.maint(["acquire", &node, "--holder", ACTING]).run(), @r#"
        $ kubectl maint acquire worker-1 --holder "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f"
        -- stderr
        error: invalid value 'a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f' for '--holder <ID>': a holder identity must not have control characters, nor white space at its ends
        hint: see `kubectl maint acquire --help`
        -- exit code 2
        "#);
        assert_snapshot!(cluster.maint(["acquire", &node]).holder("al\x1b[31mice").run(), @r"
        $ kubectl maint acquire worker-1
        -- stderr
        error: invalid value 'al\u{1b}[31mice' for '--holder <ID>': a holder identity must not have control characters, nor white space at its ends
        hint: KUBECTL_MAINT_HOLDER has this value: unset it, or set it to another
        -- exit code 2
        ");
    });
}

#[test]
fn control_characters_in_a_lease_that_somebody_made_by_hand() {
    on_both("text-lease", |cluster| {
        let make = |short: &str, renewed: String| {
            let node = cluster.node(short);
            cluster.lease_with(
                &node,
                &json!({"kubectl-maint.dev/reason": ACTING}),
                &json!({
                    "holderIdentity": ACTING,
                    "leaseDurationSeconds": 1800,
                    "acquireTime": renewed,
                    "renewTime": renewed,
                }),
            );
            node
        };
        let held = make("held", ago(60));
        let expired = make("expired", ago(7200));
        // No control character reaches the terminal in refusals, confirmations and warnings.
        assert_snapshot!(cluster.maint(["acquire", &held]).run(), @r#"
        $ kubectl maint acquire held
        -- stderr
        error: cannot acquire node/held: locked by a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f: "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f" (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire held --wait`
        -- exit code 3
        "#);
        assert_snapshot!(cluster.maint(["release", &held]).run(), @r#"
        $ kubectl maint release held
        -- stderr
        error: cannot release node/held: locked by a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f: "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f" (since [time], until [time], [length] left); you are alice@bastion
        hint: ask a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f to release it; if nobody works there, release it with `kubectl maint release held --force -m WHY`
        -- exit code 3
        "#);
        assert_snapshot!(cluster.maint(["release", &held, "--force"]).run(), @r#"
        $ kubectl maint release held --force
        -- stderr
        context [context], server [server], user [user]: 1 node
          node/held is locked by a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f since [time] until [time]: "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f"
        error: not confirmed: there is no terminal for a prompt
        hint: add --yes to confirm
        -- exit code 6
        "#);
        assert_snapshot!(cluster.maint(["release", &held, "--force", "--yes"]).run(), @r"
        $ kubectl maint release held --force --yes
        node/held released (was locked by a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f)
        -- stderr
        Warning: a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f may still act on node/held until [time] at the latest
        -- exit code 0
        ");
        assert_snapshot!(cluster.maint(["acquire", &expired]).run(), @r#"
        $ kubectl maint acquire expired
        node/expired acquired by alice@bastion until [time] (30m)
        -- stderr
        Warning: node/expired had an expired lock of a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f: "a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f" (since [time], expired at [time], [length] ago); their work may be unfinished
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release expired
          kubectl maint renew expired
          kubectl maint hold expired -m WHY
        -- exit code 0
        "#);
    });
}

#[test]
fn a_holder_of_white_space() {
    on_one("text-blank", |cluster| {
        let make = |short: &str, holder: &str| {
            let node = cluster.node(short);
            let spec = json!({
                "holderIdentity": holder,
                "leaseDurationSeconds": 3600,
                "acquireTime": ago(1830),
                "renewTime": ago(1830),
            });
            cluster.lease(&node, &spec);
            node
        };
        let blank = make("blank", "  ");
        let padded = make("padded", "alice@bastion ");
        // Both are Locked, and neither holder is taken for alice.
        assert_snapshot!(cluster.maint(["status", &blank, &padded]).run(), @r#"
        $ kubectl maint status blank padded
        NODE                STATE    HOLDER             REASON   AGE   LEFT   STATUS
        blank    Locked   "  "               -        30m   29m    Ready
        padded   Locked   "alice@bastion "   -        30m   29m    Ready
        -- stderr
        2 nodes: 2 locked
        -- exit code 0
        "#);
        assert_snapshot!(cluster.maint(["acquire", &blank]).run(), @r#"
        $ kubectl maint acquire blank
        -- stderr
        error: cannot acquire node/blank: locked by "  " (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire blank --wait`
        -- exit code 3
        "#);
        assert_snapshot!(cluster.maint(["release", &padded]).run(), @r#"
        $ kubectl maint release padded
        -- stderr
        error: cannot release node/padded: locked by "alice@bastion " (since [time], until [time], [length] left); you are alice@bastion
        hint: ask "alice@bastion " to release it; if nobody works there, release it with `kubectl maint release padded --force -m WHY`
        -- exit code 3
        "#);
        assert_snapshot!(cluster.maint(["release", &padded, "--force", "--yes"]).run(), @r#"
        $ kubectl maint release padded --force --yes
        node/padded released (was locked by "alice@bastion ")
        -- stderr
        Warning: "alice@bastion " may still act on node/padded until [time] at the latest
        -- exit code 0
        "#);
        // JSON output has the unchanged value of the server.
        let data = cluster.maint(["status", &blank, "-o", "json"]).succeeds();
        let data = data.item();
        assert_eq!(data["holder"], "  ", "{data}");
        let leases = ["leases", "-n", "kube-node-maintenance", "--no-headers"];
        let leases = cluster.maint(leases).succeeds();
        let line = leases.stdout.lines().find(|line| line.contains(&blank));
        let line = line.expect("the Lease is listed");
        assert!(line.contains("   \"  \"   "), "{line}");
    });
}

#[test]
fn a_reason_has_at_most_1024_bytes() {
    on_both("text-kibibyte", |cluster| {
        let node = cluster.node("worker-1");
        // Exactly 1024 bytes are accepted.
        assert_snapshot!(cluster.maint(["acquire", &node, "-m", &"é".repeat(512)]).run(), @"
        $ kubectl maint acquire worker-1 -m éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m 'éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé'
        -- exit code 0
        ");
        // 1025 bytes are refused before any request is sent: nothing listens at this address.
        let nowhere = cluster.maint(["release", &node, "--server", "127.0.0.1:1"]);
        assert_snapshot!(nowhere.args(["-m", &"x".repeat(1025)]).run(), @"
        $ kubectl maint release worker-1 --server [server] -m xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        -- stderr
        error: invalid value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…' for '--message <WHY>': a reason must not be longer than 1024 bytes; this one has 1025
        hint: see `kubectl maint release --help`
        -- exit code 2
        ");
    });
}

#[test]
fn empty_arguments() {
    on_one("text-empty", |cluster| {
        let node = cluster.node("worker-1");
        // Names of nodes are never empty.
        assert_snapshot!(cluster.maint(["acquire", ""]).run(), @r#"
        $ kubectl maint acquire ""
        -- stderr
        error: a node name must not be empty
        hint: node names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and have at most 253 characters
        -- exit code 2
        "#);
        assert_snapshot!(cluster.maint(["acquire", "node/"]).run(), @"
        $ kubectl maint acquire node/
        -- stderr
        error: a node name must not be empty
        hint: node names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and have at most 253 characters
        -- exit code 2
        ");
        assert_snapshot!(cluster.maint(["acquire", &node, "--holder", ""]).run(), @r#"
        $ kubectl maint acquire worker-1 --holder ""
        -- stderr
        error: invalid value '' for '--holder <ID>': a holder identity must not be empty
        hint: see `kubectl maint acquire --help`
        -- exit code 2
        "#);
        // An empty selector is refused. It does not select all nodes.
        assert_snapshot!(cluster.maint(["acquire", "-l", ""]).run(), @r#"
        $ kubectl maint acquire -l ""
        -- stderr
        error: the selector of -l is empty
        hint: to select all nodes, use --all
        -- exit code 2
        "#);
        // The reason is optional.
        assert_snapshot!(cluster.maint(["acquire", &node, "-m", ""]).run(), @r#"
        $ kubectl maint acquire worker-1 -m ""
        node/worker-1 acquired by alice@bastion until [time] (30m)
        -- stderr
        lease/worker-1 created
        Expires [time] (in 30m). To release, extend or hold:
          kubectl maint release worker-1
          kubectl maint renew worker-1
          kubectl maint hold worker-1 -m WHY
        -- exit code 0
        "#);
    });
}

#[test]
fn arguments_of_120_kib() {
    on_one("text-long", |cluster| {
        let node = cluster.node("worker-1");
        let long = long();
        // The argument is refused, and the message shows only its beginning.
        assert_snapshot!(cluster.maint(["acquire", &long]).run(), @r#"
        $ kubectl maint acquire xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        -- stderr
        error: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" is not a valid node name
        hint: node names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and have at most 253 characters
        -- exit code 2
        "#);
        assert_snapshot!(cluster.maint(["acquire", &node, "-m", &long]).run(), @"
        $ kubectl maint acquire worker-1 -m xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        -- stderr
        error: invalid value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…' for '--message <WHY>': a reason must not be longer than 1024 bytes; this one has 122880
        hint: see `kubectl maint acquire --help`
        -- exit code 2
        ");
        assert_snapshot!(cluster.maint(["acquire", &node, "--holder", &long]).run(), @"
        $ kubectl maint acquire worker-1 --holder xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        -- stderr
        error: invalid value 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…' for '--holder <ID>': a holder identity must not be longer than 253 bytes
        hint: see `kubectl maint acquire --help`
        -- exit code 2
        ");
        assert_snapshot!(cluster.maint(["acquire", &format!("pod/{long}")]).run(), @r#"
        $ kubectl maint acquire pod/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        -- stderr
        error: "pod/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" is not a node
        hint: only nodes have a maintenance lock; use node/NAME, not pod/NAME
        -- exit code 2
        "#);
    });
}

#[test]
fn a_selector_of_120_kib() {
    on_both("text-selector", |cluster| {
        // The selector would be too long for any URL.
        assert_snapshot!(cluster.maint(["acquire", "-l", &long()]).run(),  @"
        $ kubectl maint acquire -l xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        -- stderr
        error: the selector of -l is longer than 16 KiB
        hint: to select that many nodes, use --nodes-from FILE
        -- exit code 2
        ");
        // Only the server parses selectors, and it refuses this one.
        let run = cluster.maint(["acquire", "-l", "a in b"]).run();
        let refused = "Error from server (BadRequest): unable to parse requirement: ";
        assert!(run.stderr.starts_with(refused) && run.code == 1, "{run}");
    });
}

#[test]
fn arguments_that_are_not_utf_8() {
    let cluster = Cluster::nowhere();
    let broken = OsStr::from_bytes(BROKEN);
    // Every argument must be UTF-8.
    assert_snapshot!(cluster.maint(["acquire"]).arg(broken).run(), @"
    $ kubectl maint acquire worker��
    -- stderr
    error: invalid UTF-8 was detected in one or more arguments
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "-m"]).arg(broken).run(), @"
    $ kubectl maint acquire worker-1 -m worker��
    -- stderr
    error: invalid UTF-8 was detected in one or more arguments
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "worker-1", "--holder"]).arg(broken).run(), @"
    $ kubectl maint acquire worker-1 --holder worker��
    -- stderr
    error: invalid UTF-8 was detected in one or more arguments
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    assert_snapshot!(cluster.maint(["acquire", "-l"]).arg(broken).run(), @"
    $ kubectl maint acquire -l worker��
    -- stderr
    error: invalid UTF-8 was detected in one or more arguments
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
    let by_variable = cluster.maint(["acquire", "worker-1"]);
    assert_snapshot!(by_variable.env("KUBECTL_MAINT_HOLDER", broken).run(), @"
    $ kubectl maint acquire worker-1
    -- stderr
    error: invalid UTF-8 was detected in one or more arguments
    hint: see `kubectl maint acquire --help`
    -- exit code 2
    ");
}
