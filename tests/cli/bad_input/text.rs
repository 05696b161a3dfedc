//! Text with control characters, text that is too long or empty, and text that is not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::json;

use crate::support::{Cluster, ago, on_both, on_one};

/// Clears the screen, moves the cursor, sets the window title, and reverses the writing direction.
const ACTING: &str = "a\x1b[2Jb\r\nc\x1b]0;title\x07d\u{9b}31me\u{202e}f";

/// The same as it is shown.
const SHOWN: &str = r"a\u{1b}[2Jb\r\nc\u{1b}]0;title\u{7}d\u{9b}31me\u{202e}f";

/// Not UTF-8.
const BROKEN: &[u8] = b"worker\xff\xfe";

/// 120 KiB, just below the system's limit of 128 KiB for one argument.
fn long() -> String {
    "x".repeat(120 << 10)
}

#[test]
fn a_reason_is_stored_unchanged_and_shown_escaped() {
    on_one("text-reason", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node, "-m", ACTING]).succeeds();
        let annotations = &cluster.lease_of(&node)["metadata"]["annotations"];
        assert_eq!(annotations["kubectl-maint.dev/reason"], ACTING);
        let refused = cluster.maint(["acquire", &node]).holder("bob@laptop").run();
        let shown = format!("locked by alice@bastion: \"{SHOWN}\" (since ");
        assert!(refused.stderr.contains(&shown), "{refused}");
        assert_eq!(refused.code, 3, "{refused}");
    });
}

#[test]
fn a_lease_that_somebody_made_by_hand_does_not_reach_the_terminal() {
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
        for (words, code) in [
            (&["acquire", &held][..], 3),
            (&["release", &held], 3),
            (&["release", &held, "--force"], 6),
            (&["release", &held, "--force", "--yes"], 0),
            (&["acquire", &expired], 0),
        ] {
            let run = cluster.maint(words).run();
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(said.contains(SHOWN), "{run}");
            assert!(!said.contains(['\x1b', '\r', '\x07', '\u{9b}', '\u{202e}']));
            assert_eq!(run.code, code, "{run}");
        }
    });
}

#[test]
fn a_holder_of_white_space_is_visible_and_nobody_else() {
    on_one("text-blank", |cluster| {
        let padded = cluster.node("padded");
        let spec = json!({
            "holderIdentity": "alice@bastion ",
            "leaseDurationSeconds": 3600,
            "acquireTime": ago(1830),
            "renewTime": ago(1830),
        });
        cluster.lease(&padded, &spec);
        let refused = cluster.maint(["release", &padded]).run();
        let shown = "locked by \"alice@bastion \" (since ";
        assert!(refused.stderr.contains(shown), "{refused}");
        assert_eq!(refused.code, 3, "{refused}");
        // JSON output has the unchanged value of the server.
        let data = cluster.maint(["status", &padded, "-o", "json"]).succeeds();
        assert_eq!(data.item()["holder"], "alice@bastion ", "{data}");
    });
}

#[test]
fn a_reason_has_at_most_1024_bytes() {
    on_both("text-kibibyte", |cluster| {
        let node = cluster.node("worker-1");
        let longest = "é".repeat(512);
        cluster.maint(["acquire", &node, "-m", &longest]).succeeds();
        for length in [1025, 120 << 10] {
            let run = cluster.maint(["renew", &node, "-m", &"x".repeat(length)]);
            let run = run.run();
            let said = format!("not be longer than 1024 bytes; this one has {length}\n");
            assert!(run.stderr.contains(&said), "{run}");
            assert!(run.stderr.len() < 500, "{run}");
            assert_eq!(run.code, 2, "{run}");
        }
    });
}

#[test]
fn empty_and_long_arguments_are_usage_errors() {
    on_both("text-empty", |cluster| {
        let node = cluster.node("worker-1");
        let long = long();
        for words in [
            &["acquire", ""][..],
            &["acquire", "node/"],
            &["acquire", &node, "--holder", ""],
            // It does not select all nodes.
            &["acquire", "-l", ""],
            &["acquire", &long],
            &["acquire", &node, "--holder", &long],
            &["acquire", "-l", &long],
        ] {
            let run = cluster.maint(words).run();
            assert!(run.stderr.len() < 500, "{run}");
            assert_eq!(run.code, 2, "{run}");
        }
        // Only the server parses selectors.
        let run = cluster.maint(["acquire", "-l", "a in b"]).run();
        let refused = "Error from server (BadRequest): unable to parse requirement: ";
        assert!(run.stderr.starts_with(refused) && run.code == 1, "{run}");
    });
}

#[test]
fn arguments_that_are_not_utf_8_are_usage_errors() {
    let cluster = Cluster::nowhere();
    let broken = OsStr::from_bytes(BROKEN);
    let by_flag = cluster.maint(["acquire", "worker-1", "-m"]).arg(broken);
    let by_variable = cluster.maint(["acquire", "worker-1"]);
    let by_variable = by_variable.env("KUBECTL_MAINT_HOLDER", broken);
    for maint in [cluster.maint(["acquire"]).arg(broken), by_flag, by_variable] {
        let run = maint.run();
        assert!(run.stderr.contains("invalid UTF-8"), "{run}");
        assert_eq!(run.code, 2, "{run}");
    }
}
