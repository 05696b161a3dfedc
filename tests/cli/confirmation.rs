//! Confirmations, answered at a terminal.

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use rexpect::session::{PtySession, spawn_command};
use serde_json::json;

use crate::support::{Cluster, holder_of, on_real};

/// How long a prompt or an end may be in coming, in milliseconds.
const LIMIT: u64 = 60_000;

/// A run at a terminal, up to its question.
fn asked(cluster: &Cluster, arguments: &[&str]) -> PtySession {
    let maint = cluster.maint(arguments).env("TERM", "xterm");
    let mut terminal = spawn_command(maint.command(), Some(LIMIT)).expect("a terminal");
    let facts = terminal.exp_string("[y/N]").expect("a question");
    assert!(facts.contains("bob@laptop"), "names the holder: {facts}");
    terminal
}

/// What it says after `answer`, and its code.
fn answered(mut terminal: PtySession, answer: &str) -> (String, i32) {
    terminal.send(answer).expect("it listens");
    terminal.flush().expect("it listens");
    ended(terminal)
}

/// What it says at the end, and its code.
fn ended(mut terminal: PtySession) -> (String, i32) {
    let said = terminal.exp_eof().expect("it ends");
    match terminal.process().wait().expect("it ended") {
        WaitStatus::Exited(_, code) => (said, code),
        WaitStatus::Signaled(_, signal, _) => (said, 128 + signal as i32),
        status => panic!("{status:?}: {said}"),
    }
}

/// A node that bob holds.
fn held_by_bob(cluster: &Cluster) -> String {
    let node = cluster.node("worker-1");
    cluster.lease(&node, &json!({}));
    cluster
        .maint(["acquire", &node, "-m", "disk"])
        .holder("bob@laptop")
        .succeeds();
    node
}

#[test]
fn yes_breaks_the_lease() {
    on_real("confirm-yes", |cluster| {
        let node = held_by_bob(cluster);
        let terminal = asked(cluster, &["release", &node, "--force"]);
        let (said, code) = answered(terminal, "yes\r");
        assert_eq!(code, 0, "{said}");
        assert!(
            said.contains("released (was locked by bob@laptop)"),
            "{said}"
        );
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn no_and_a_bare_return_leave_everything_as_it_is() {
    on_real("confirm-no", |cluster| {
        let node = held_by_bob(cluster);
        for answer in ["n\r", "\r"] {
            let terminal = asked(cluster, &["hold", &node, "-m", "fire", "--take-over"]);
            let (said, code) = answered(terminal, answer);
            assert_eq!(code, 6, "{said}");
            assert!(said.contains("nothing was done"), "{said}");
        }
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn the_end_of_input_is_a_no() {
    on_real("confirm-end", |cluster| {
        let node = held_by_bob(cluster);
        // Ctrl-D, at once and behind half an answer.
        for answer in ["\x04", "y\x04\x04"] {
            let terminal = asked(cluster, &["release", &node, "--force"]);
            let (said, code) = answered(terminal, answer);
            assert_eq!(code, 6, "{said}");
            // On a line of its own.
            assert!(said.starts_with(" \r\n"), "{said:?}");
            assert!(said.contains("nothing was done"), "{said:?}");
        }
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn who_is_asked_to_end_waits_for_no_answer() {
    on_real("confirm-term", |cluster| {
        let node = held_by_bob(cluster);
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
            let mut terminal = asked(cluster, &["release", &node, "--force"]);
            terminal
                .process_mut()
                .signal(signal)
                .expect("it is our child");
            let (said, code) = ended(terminal);
            assert_eq!(code, 130, "{said}");
        }
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn ctrl_c_is_an_interruption() {
    on_real("confirm-interrupt", |cluster| {
        let node = held_by_bob(cluster);
        let terminal = asked(cluster, &["release", &node, "--force"]);
        let (said, code) = answered(terminal, "\x03");
        assert_eq!(code, 130, "{said}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn a_lease_that_changed_hands_before_the_answer_is_not_broken() {
    on_real("confirm-changed", |cluster| {
        let node = held_by_bob(cluster);
        for arguments in [
            &["release", &node, "--force"][..],
            &["hold", &node, "-m", "fire", "--take-over"],
        ] {
            let terminal = asked(cluster, arguments);
            cluster
                .maint(["release", &node])
                .holder("bob@laptop")
                .succeeds();
            cluster
                .maint(["acquire", &node])
                .holder("carol@desk")
                .succeeds();
            let (said, code) = answered(terminal, "yes\r");
            assert_eq!(code, 3, "{said}");
            assert!(
                said.contains("replaced by a newer lock of carol@desk"),
                "{said}"
            );
            assert_eq!(holder_of(cluster, &node).as_deref(), Some("carol@desk"));
            cluster
                .maint(["release", &node])
                .holder("carol@desk")
                .succeeds();
            cluster
                .maint(["acquire", &node])
                .holder("bob@laptop")
                .succeeds();
        }
    });
}

#[test]
fn the_next_lease_of_the_same_holder_is_another() {
    on_real("confirm-again", |cluster| {
        let node = held_by_bob(cluster);
        let bob = |verb: &str| {
            let maint = cluster.maint([verb, node.as_str()]);
            maint.holder("bob@laptop").succeeds();
        };
        let terminal = asked(cluster, &["release", &node, "--force"]);
        bob("release");
        bob("acquire");
        let (said, code) = answered(terminal, "yes\r");
        assert_eq!(code, 3, "{said}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn a_lease_that_was_renewed_before_the_answer_is_the_one_that_was_shown() {
    on_real("confirm-renewed", |cluster| {
        let node = held_by_bob(cluster);
        let terminal = asked(cluster, &["release", &node, "--force"]);
        cluster
            .maint(["renew", &node])
            .holder("bob@laptop")
            .succeeds();
        let (said, code) = answered(terminal, "yes\r");
        assert_eq!(code, 0, "{said}");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn a_hold_that_changed_hands_before_the_answer_is_not_ended() {
    on_real("confirm-unhold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["hold", &node, "-m", "disk"])
            .holder("bob@laptop")
            .succeeds();
        let terminal = asked(cluster, &["unhold", &node]);
        cluster
            .maint(["hold", &node, "-m", "fire", "--take-over", "--yes"])
            .holder("carol@desk")
            .succeeds();
        let (said, code) = answered(terminal, "yes\r");
        assert_eq!(code, 3, "{said}");
        assert_eq!(
            holder_of(cluster, &node).as_deref(),
            Some("kubeadm:carol@desk")
        );
    });
}
