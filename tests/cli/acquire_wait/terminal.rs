//! What a user at a terminal sees while a command waits.

use regex::Regex;
use rexpect::session::PtySession;

use super::{bob, held_by_bob};
use crate::support::Treatment::Answer;
use crate::support::{Cluster, as_text, at_a_terminal, holder_of, on_real};

fn waiting(cluster: &Cluster, node: &str) -> PtySession {
    at_a_terminal(cluster.maint(["acquire", node, "--wait"]))
}

/// Reads the line that names the holder it waits for.
fn whom(terminal: &mut PtySession) -> String {
    let (_, line) = terminal
        .exp_regex(r"waiting[^\x1b\r\n]*: (locked|on hold) by [^\r\n]*\r\n")
        .expect("a line");
    as_text(&line)
}

/// Reads the next line that is updated in place.
fn next_line(terminal: &mut PtySession) -> String {
    let line = r"waiting[^\x1b\r\n:]*: free [^\x1b\r\n]*(unless renewed|ended)";
    let (_, line) = terminal.exp_regex(line).expect("a line");
    as_text(&line)
}

#[test]
fn one_line_names_the_holder_and_one_counts_down_in_place() {
    on_real("tty-count", |cluster| {
        let node = held_by_bob(cluster, "w1");
        let mut terminal = waiting(cluster, &node);
        let whom = whom(&mut terminal);
        let said = format!(r#"waiting for node/{node}: locked by bob@laptop: "disk" (since "#);
        assert!(whom.starts_with(&said), "{whom}");
        let line = next_line(&mut terminal);
        let expected =
            Regex::new(r"^waiting for bob@laptop: free in (30:0[0-3]|29:\d\d) unless renewed$");
        assert!(expected.expect("a pattern").is_match(&line), "{line}");
        let later = next_line(&mut terminal);
        assert_ne!(later, line);
        bob(cluster, &["release", &node]).succeeds();
        let rest = terminal.exp_eof().expect("it ends");
        // The line in place is erased before the result is printed.
        let (_, result) = rest.rsplit_once("\x1b[2K").expect("it is erased");
        assert!(result.contains("acquired by alice@bastion"), "{result:?}");
        assert!(!result.contains("waiting"), "{result:?}");
    });
}

#[test]
fn waiting_for_your_own_lock_is_shown_in_the_countdown() {
    on_real("tty-own", |cluster| {
        let node = cluster.node("w1");
        cluster.maint(["acquire", &node]).succeeds();
        let line = r"waiting for your own lock: free in [^\x1b\r\n]* unless renewed";
        let mut wait = at_a_terminal(cluster.maint(["wait", &node]));
        wait.exp_regex(line).expect("a line");
        let mut acquire = waiting(cluster, &node);
        acquire.exp_regex(line).expect("a line");
        cluster.maint(["release", &node]).succeeds();
        wait.exp_eof().expect("it ends");
        acquire.exp_eof().expect("it ends");
    });
}

#[test]
fn holders_and_reasons_of_nodes_with_long_names_are_shown() {
    on_real("tty-long", |cluster| {
        let long = "w1.eu-central-1.compute.internal.example.org";
        let node = cluster.node(long);
        let other = cluster.node("w2");
        let reason = "kernel ".repeat(40);
        bob(cluster, &["acquire", &node, "-m", &reason]).succeeds();
        let mut terminal = at_a_terminal(cluster.maint(["acquire", &node, &other, "--wait"]));
        let whom = whom(&mut terminal);
        let said = format!("waiting for node/{node}: locked by bob@laptop: \"{reason}\"");
        assert!(whom.starts_with(&said), "{whom}");
        let line = next_line(&mut terminal);
        assert!(
            line.starts_with("waiting for bob@laptop: free in "),
            "{line}"
        );
        assert!(line.chars().count() < 80, "{line}");
        terminal.send("\x03").expect("it listens");
        terminal.flush().expect("it listens");
        let rest = terminal.exp_eof().expect("it ends");
        let (_, last) = rest.rsplit_once("\x1b[2K").expect("it is erased");
        assert!(last.contains(" interrupted\r\n"), "{rest:?}");
        assert!(!last.contains("waiting"), "{rest:?}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn quiet_shows_no_line() {
    on_real("tty-quiet", |cluster| {
        let node = held_by_bob(cluster, "w1");
        let quiet = ["acquire", &node, "--wait", "--timeout", "4s", "-q"];
        let mut terminal = at_a_terminal(cluster.maint(quiet));
        let said = terminal.exp_eof().expect("it ends");
        assert!(!said.contains("waiting for bob@laptop"), "{said:?}");
        assert!(said.contains(": locked by bob@laptop"), "{said:?}");
    });
}

#[test]
fn nodes_that_cannot_be_watched_are_polled_while_the_line_counts() {
    on_real("tty-blind", |cluster| {
        let node = held_by_bob(cluster, "w1");
        let proxy = cluster.proxy_for(Answer(403, None), |_, path| path.contains("watch=true"));
        let wait = ["wait", &node, "--timeout=1m"];
        let mut terminal = at_a_terminal(cluster.maint(wait).kubeconfig(&proxy.kubeconfig));
        terminal.exp_string("could not watch").expect("a warning");
        bob(cluster, &["release", &node]).succeeds();
        let rest = terminal.exp_eof().expect("it ends");
        let (_, result) = rest.rsplit_once("\x1b[2K").expect("the line is erased");
        assert!(result.contains(" is free\r\n"), "{rest:?}");
    });
}
