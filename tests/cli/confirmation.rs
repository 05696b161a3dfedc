//! Confirmations at a terminal.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use rexpect::session::{PtySession, spawn_command};
use serde_json::json;

use crate::support::{Cluster, holder_of, on_real};

/// How long a test waits for a prompt or for the end of a run, in milliseconds.
const LIMIT: u64 = 60_000;

/// Starts a run at a terminal and reads up to its question.
fn at_prompt(cluster: &Cluster, arguments: &[&str]) -> PtySession {
    let maint = cluster.maint(arguments).env("TERM", "xterm");
    let mut terminal = spawn_command(maint.command(), Some(LIMIT)).expect("a terminal");
    let facts = terminal.exp_string("[y/N]").expect("a question");
    assert!(facts.contains("bob@laptop"), "names the holder: {facts}");
    terminal
}

/// Sends `answer`, and returns the rest of the output and the exit code.
fn answered(mut terminal: PtySession, answer: &str) -> (String, i32) {
    terminal.send(answer).expect("it listens");
    terminal.flush().expect("it listens");
    ended(terminal)
}

/// Returns the rest of the output and the exit code.
fn ended(mut terminal: PtySession) -> (String, i32) {
    let said = terminal.exp_eof().expect("it ends");
    match terminal.process().wait().expect("it ended") {
        WaitStatus::Exited(_, code) => (said, code),
        WaitStatus::Signaled(_, signal, _) => (said, 128 + signal as i32),
        status => panic!("{status:?}: {said}"),
    }
}

/// Creates a node that bob has locked.
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
fn yes_releases_the_lock() {
    on_real("confirm-yes", |cluster| {
        let node = held_by_bob(cluster);
        let terminal = at_prompt(cluster, &["release", &node, "--force"]);
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
            let terminal = at_prompt(cluster, &["hold", &node, "-m", "fire", "--take-over"]);
            let (said, code) = answered(terminal, answer);
            assert_eq!(code, 6, "{said}");
            assert!(said.contains("not confirmed"), "{said}");
        }
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn only_a_yes_counts() {
    on_real("confirm-other", |cluster| {
        let node = held_by_bob(cluster);
        for answer in [
            "\x04\r",
            "x\x1b[A\r",
            "yn\r",
            "no way\r",
            "nay\r",
            "y\x7f\r",
        ] {
            let terminal = at_prompt(cluster, &["release", &node, "--force"]);
            let (said, code) = answered(terminal, answer);
            assert_eq!(code, 6, "{answer:?}: {said}");
            assert!(said.contains("not confirmed"), "{said:?}");
        }
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

/// Starts a shell that runs `before` and then the plugin. Then it prints the exit code, and whether the terminal modes
/// are the same as before.
fn in_a_shell(cluster: &Cluster, before: &str, arguments: &[&str]) -> PtySession {
    let maint = cluster.maint(arguments).env("TERM", "xterm").command();
    let script = format!(
        r#"modes=$(stty -g); {before}; sh -c 'echo "pid $$."; exec "$0" "$@"' "$0" "$@"; code=$?
        [ "$(stty -g)" = "$modes" ] && echo "code $code, same modes""#
    );
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &script])
        .arg(maint.get_program())
        .args(maint.get_args())
        .env_clear()
        .envs(
            maint
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", "/usr/bin:/bin");
    spawn_command(shell, Some(LIMIT)).expect("a terminal")
}

/// Reads up to the question, and returns the process id of the plugin.
fn process_that_asks(terminal: &mut PtySession) -> Pid {
    terminal.exp_string("pid ").expect("a process");
    let id = terminal.exp_string(".").expect("its id");
    terminal.exp_string("[y/N]").expect("a question");
    Pid::from_raw(id.parse().expect("a number"))
}

#[test]
fn term_at_a_prompt_ends_and_restores_the_terminal() {
    on_real("confirm-term", |cluster| {
        let node = held_by_bob(cluster);
        let signals = [
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGINT,
        ];
        for signal in signals {
            let mut terminal = in_a_shell(cluster, "true", &["release", &node, "--force"]);
            let process = process_that_asks(&mut terminal);
            kill(process, signal).expect("it is our child's child");
            let (said, _) = ended(terminal);
            assert!(said.contains("code 130, same modes"), "{signal}: {said:?}");
        }
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn ctrl_c_is_an_interruption_and_restores_the_terminal() {
    on_real("confirm-interrupt", |cluster| {
        let node = held_by_bob(cluster);
        // Without the trap, this signal of the terminal would end the shell that runs the plugin, too.
        let mut terminal = in_a_shell(cluster, "trap : INT", &["release", &node, "--force"]);
        process_that_asks(&mut terminal);
        let (said, _) = answered(terminal, "\x03");
        assert!(said.contains("code 130, same modes"), "{said:?}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn input_before_the_question_is_no_answer() {
    on_real("confirm-early", |cluster| {
        let node = held_by_bob(cluster);
        let arguments = ["release", &node, "--force"];
        let mut terminal = in_a_shell(cluster, "echo ready; read line", &arguments);
        terminal.exp_string("ready").expect("a shell");
        terminal.send("one\nyes\n").expect("it listens");
        terminal.flush().expect("it listens");
        process_that_asks(&mut terminal);
        let (said, _) = answered(terminal, "\r");
        assert!(said.contains("code 6, same modes"), "{said:?}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn a_question_wider_than_the_terminal_is_shown_once() {
    on_real("confirm-narrow", |cluster| {
        let node = held_by_bob(cluster);
        let arguments = ["release", &node, "--force"];
        let mut terminal = in_a_shell(
            cluster,
            "stty cols 40 rows 24; modes=$(stty -g)",
            &arguments,
        );
        let shown = terminal.exp_string("[y/N]").expect("a question");
        let (said, _) = answered(terminal, "yn\r");
        assert!(said.contains("code 6, same modes"), "{said:?}");
        let questions = format!("{shown}{said}")
            .matches("Release the lock of bob@laptop")
            .count();
        assert_eq!(questions, 1, "{shown:?} {said:?}");
    });
}

#[test]
fn a_lock_that_got_a_new_holder_before_the_answer_is_not_released() {
    on_real("confirm-changed", |cluster| {
        let node = held_by_bob(cluster);
        for arguments in [
            &["release", &node, "--force"][..],
            &["hold", &node, "-m", "fire", "--take-over"],
        ] {
            let terminal = at_prompt(cluster, arguments);
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
fn a_later_lock_of_the_same_holder_is_not_released() {
    on_real("confirm-again", |cluster| {
        let node = held_by_bob(cluster);
        let bob = |verb: &str| {
            let maint = cluster.maint([verb, node.as_str()]);
            maint.holder("bob@laptop").succeeds();
        };
        let terminal = at_prompt(cluster, &["release", &node, "--force"]);
        bob("release");
        bob("acquire");
        let (said, code) = answered(terminal, "yes\r");
        assert_eq!(code, 3, "{said}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn a_lock_that_was_renewed_before_the_answer_is_released() {
    on_real("confirm-renewed", |cluster| {
        let node = held_by_bob(cluster);
        let terminal = at_prompt(cluster, &["release", &node, "--force"]);
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
fn a_hold_that_got_a_new_holder_before_the_answer_is_not_ended() {
    on_real("confirm-unhold", |cluster| {
        let node = cluster.node("worker-1");
        cluster.lease(&node, &json!({}));
        cluster
            .maint(["hold", &node, "-m", "disk"])
            .holder("bob@laptop")
            .succeeds();
        let terminal = at_prompt(cluster, &["unhold", &node]);
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
