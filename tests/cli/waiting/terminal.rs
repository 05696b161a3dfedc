//! What somebody sees who waits at a terminal.

use regex::Regex;
use rexpect::session::PtySession;

use super::{bob, held_by_bob};
use crate::support::Treatment::{Answer, Pass};
use crate::support::{Cluster, as_text, at_a_terminal, holder_of, on_real};

fn waiting(cluster: &Cluster, node: &str) -> PtySession {
    at_a_terminal(cluster.maint(["acquire", node, "--wait"]))
}

/// The next line that is shown in place.
fn next_line(terminal: &mut PtySession) -> String {
    let line = r"waiting: [^\x1b\r\n]*(at the earliest|ended)";
    let (_, line) = terminal.exp_regex(line).expect("a line");
    as_text(&line)
}

#[test]
fn one_line_counts_down_in_place() {
    on_real("tty-count", |cluster| {
        let node = held_by_bob(cluster, "w1");
        let mut terminal = waiting(cluster, &node);
        let line = next_line(&mut terminal);
        assert!(line.chars().count() < 80, "{line}");
        let expected = format!(
            r#"^waiting: node/{node}, bob@laptop, "disk"; free in (30:0[0-3]|29:\d\d) at the earliest$"#
        );
        let expected = Regex::new(&expected).expect("a pattern");
        assert!(expected.is_match(&line), "{line}");
        let later = next_line(&mut terminal);
        assert_ne!(later, line);
        bob(cluster, &["release", &node]).succeeds();
        let rest = terminal.exp_eof().expect("it ends");
        // The line is gone before the result is printed.
        let (_, result) = rest.rsplit_once("\x1b[2K").expect("it is erased");
        assert!(result.contains("acquired by alice@bastion"), "{result:?}");
        assert!(!result.contains("waiting"), "{result:?}");
    });
}

#[test]
fn a_long_reason_is_cut_so_that_the_line_stays_one() {
    on_real("tty-long", |cluster| {
        let node = cluster.node("w1");
        bob(cluster, &["acquire", &node, "-m", &"kernel ".repeat(40)]).succeeds();
        let mut terminal = waiting(cluster, &node);
        let line = next_line(&mut terminal);
        assert!(line.chars().count() < 80, "{line}");
        assert!(line.contains("kernel"), "{line}");
        assert!(line.contains("…\"; free in "), "{line}");
        terminal.send("\x03").expect("it listens");
        terminal.flush().expect("it listens");
        let rest = terminal.exp_eof().expect("it ends");
        let (_, last) = rest.rsplit_once("\x1b[2K").expect("it is erased");
        assert!(last.ends_with(" interrupted\r\n"), "{rest:?}");
        assert!(!last.contains("waiting"), "{rest:?}");
        assert_eq!(holder_of(cluster, &node).as_deref(), Some("bob@laptop"));
    });
}

#[test]
fn a_long_name_leaves_room_for_the_reason() {
    on_real("tty-name", |cluster| {
        let node = held_by_bob(cluster, "w1.eu-central-1.compute.internal.example.org");
        let mut terminal = waiting(cluster, &node);
        let line = next_line(&mut terminal);
        assert!(line.chars().count() < 80, "{line}");
        let beginning = format!("waiting: node/{}", &node[..12]);
        assert!(line.starts_with(&beginning), "{line}");
        assert!(
            line.contains(r#"…, bob@laptop, "disk"; free in "#),
            "{line}"
        );
        terminal.send("\x03").expect("it listens");
        terminal.flush().expect("it listens");
        terminal.exp_eof().expect("it ends");
    });
}

#[test]
fn quiet_shows_no_line() {
    on_real("tty-quiet", |cluster| {
        let node = held_by_bob(cluster, "w1");
        let quiet = ["acquire", &node, "--wait", "--timeout", "1s", "-q"];
        let mut terminal = at_a_terminal(cluster.maint(quiet));
        let said = terminal.exp_eof().expect("it ends");
        assert!(!said.contains("waiting: "), "{said:?}");
        assert!(said.contains("is held by bob@laptop"), "{said:?}");
    });
}

#[test]
fn what_cannot_be_watched_is_looked_for_while_the_line_counts() {
    on_real("tty-blind", |cluster| {
        let node = held_by_bob(cluster, "w1");
        let gate = cluster.gate(|_, path| match path.contains("watch=true") {
            true => Answer(403, None),
            false => Pass,
        });
        let wait = ["wait", &node, "--timeout=1m"];
        let mut terminal = at_a_terminal(cluster.maint(wait).kubeconfig(&gate.kubeconfig));
        terminal.exp_string("can't be watched").expect("a warning");
        bob(cluster, &["release", &node]).succeeds();
        let rest = terminal.exp_eof().expect("it ends");
        let (_, result) = rest.rsplit_once("\x1b[2K").expect("the line is erased");
        assert!(result.contains(" is free\r\n"), "{rest:?}");
    });
}
