//! A credential plugin that hangs: the message names it, and it ends if the command is interrupted.

use std::os::unix::process::CommandExt as _;
use std::time::Duration;

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::support::{in_memory, on_one};

const NAMED: &str = "waiting for credential plugin login\n";

/// The verbs, with their arguments.
const LINES: [&str; 13] = [
    "acquire NODE",
    "renew NODE",
    "release NODE",
    "hold NODE -m why",
    "unhold NODE",
    "fence NODE --powered-off=unplugged",
    "with NODE -- true",
    "status NODE",
    "status -w NODE",
    "status --pods NODE",
    "wait NODE",
    "leases -A",
    "version",
];

#[test]
fn at_the_first_connection_is_named_once_and_ended_by_any_signal() {
    for (prefix, signal) in [
        ("login-int", Signal::INT),
        ("login-term", Signal::TERM),
        ("login-hup", Signal::HUP),
        ("login-quit", Signal::QUIT),
    ] {
        on_one(prefix, |cluster| {
            let node = cluster.node("worker-1");
            let plugin = cluster.plugin(0);
            let acquire = cluster.maint(["acquire", &node, "--request-timeout", "1s"]);
            let run = plugin.of(acquire).until_it_says(NAMED);
            run.is_sent(signal);
            assert_snapshot!(run.ends(), @"
            $ kubectl maint acquire worker-1 --request-timeout 1s
            -- stderr
            waiting for credential plugin login
            error: interrupted
            -- exit code 130
            ");
            assert!(!plugin.has_outlived());
        });
    }
}

#[test]
fn does_not_delay_an_interrupted_command() {
    in_memory("login-verbs", |cluster| {
        let node = cluster.node("worker-1");
        let ends = |line: &str, answers| {
            let plugin = cluster.plugin(answers);
            let maint = cluster.maint(line.replace("NODE", &node).split(' '));
            let run = plugin.of(maint).until_it_says(NAMED);
            run.is_sent(Signal::TERM);
            let run = run.ends();
            assert_eq!(run.code, 130, "after {answers} answers: {run}");
            assert!(!plugin.has_outlived(), "after {answers} answers: {run}");
        };
        std::thread::scope(|scope| {
            for line in LINES {
                // The plugin hangs at the first connection (0 answers) or at the first request (1 answer).
                scope.spawn(move || [0, 1].map(|answers| ends(line, answers)));
            }
        });
    });
}

#[test]
fn is_ended_if_a_request_took_too_long() {
    on_one("login-late", |cluster| {
        let node = cluster.node("worker-1");
        let plugin = cluster.plugin(1);
        let status = cluster.maint(["status", &node, "--request-timeout", "1s"]);
        let run = plugin.of(status).run();
        assert_eq!(run.code, 1, "{run}");
        assert!(!plugin.has_outlived(), "{run}");
    });
}

#[test]
fn is_ended_by_a_second_ctrl_c_at_once() {
    on_one("login-twice", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let interrupted = || {
            // The plugin hangs at the third request, which is the write. The first Ctrl-C gives a write a moment to
            // finish.
            let plugin = cluster.plugin(2);
            let mut run = plugin
                .of(cluster.maint(["release", &node]))
                .until_it_says(NAMED);
            while !run.is_over() {
                run.interrupt();
                std::thread::sleep(Duration::from_millis(20));
            }
            let run = run.ends();
            assert!(!plugin.has_outlived(), "{run}");
            run
        };
        // If the machine stalls after the first Ctrl-C, that moment ends before the second Ctrl-C.
        let second = (0..10)
            .map(|_| interrupted())
            .find(|run| run.stderr.contains("again"));
        assert_snapshot!(second.expect("a second Ctrl-C in time"), @"
        $ kubectl maint release worker-1
        -- stderr
        waiting for credential plugin login
        error: interrupted again: locks of this command may remain, and a request may still take effect
        hint: check with `kubectl maint status --mine`
        -- exit code 130
        ");
    });
}

#[test]
fn is_ended_with_a_completion_that_took_too_long() {
    in_memory("login-tab", |cluster| {
        let plugin = cluster.plugin(0);
        let maint = plugin.of(cluster.maint(["release", ""]));
        // `output` returns only after every process that has this stderr has ended.
        let output = maint.command().arg0("kubectl_complete-maint").output();
        let output = output.expect("the plugin was built");
        assert!(output.status.success(), "{output:?}");
        assert!(!plugin.has_outlived(), "{output:?}");
    });
}
