//! Prompts on a terminal: one for each kind of risk, the name of a whole node, and the reason.

use nix::sys::wait::WaitStatus;
use rexpect::session::PtySession;

use crate::fixture::{Fixture, fixture};
use crate::support::at_a_terminal;

/// Answers the questions that contain these words, in this order. Returns what was printed at the end.
#[track_caller]
fn answers(mut terminal: PtySession, answers: &[(&str, &str)], code: i32) -> String {
    for (words, answer) in answers {
        terminal.exp_string(words).expect("a question");
        terminal.send(&format!("{answer}\r")).expect("it listens");
        terminal.flush().expect("it listens");
    }
    let said = terminal.exp_eof().expect("it ends");
    let ended = terminal.process().wait().expect("it ended");
    assert!(
        matches!(ended, WaitStatus::Exited(_, it) if it == code),
        "{ended:?}: {said}"
    );
    said
}

fn web(fixture: &Fixture, words: &[&str]) -> PtySession {
    at_a_terminal(fixture.force_delete("web-0", words))
}

const OWNER: &str = "Accept the risk `owner`? [y/N]";
const QUORUM: &str = "Accept the risk `quorum`? [y/N]";
const REASON: &str = "Reason, recorded in the Event";

#[test]
fn each_kind_of_risk_is_asked_and_the_reason_is_recorded() {
    fixture("asked", |fixture| {
        fixture.ended_member(3, 1);
        for refused in [
            &[(OWNER, "n")][..],
            &[(OWNER, "y"), (QUORUM, "")],
            &[(OWNER, "y"), (QUORUM, "y"), (REASON, "")],
        ] {
            let said = answers(web(fixture, &[]), refused, 6);
            assert!(said.contains("nothing was deleted"), "{said}");
            assert!(said.contains("--accept-risk=owner,quorum"), "{said}");
            assert!(fixture.is_there("web-0"));
        }
        // A risk that a flag accepts is not asked about.
        let given = ["--accept-risk=owner", "-m", "the rack burns"];
        let said = answers(web(fixture, &given), &[(QUORUM, "yes")], 0);
        assert!(said.contains("pod/web-0 force-deleted"), "{said}");
        assert!(!fixture.is_there("web-0"));

        fixture.ended_pod(
            "web-1",
            Some(&fixture.replica_set("one")),
            &serde_json::json!({}),
        );
        let typed = [
            ("No risks found. Force-delete 1 pod? [y/N]", "y"),
            (REASON, "it is dark"),
        ];
        let terminal = at_a_terminal(fixture.force_delete("web-1", &[]));
        answers(terminal, &typed, 0);
        assert!(!fixture.is_there("web-1"));
        let events = fixture.events();
        for reason in ["Why: the rack burns.", "Why: it is dark."] {
            let is_recorded = events
                .iter()
                .any(|event| event["note"].to_string().contains(reason));
            assert!(is_recorded, "{reason}: {events:#?}");
        }
    });
}

#[test]
fn a_whole_node_is_confirmed_by_its_name() {
    fixture("typed", |fixture| {
        let node = format!("node/{}", fixture.node);
        let path = format!("/api/v1/nodes/{}", fixture.node);
        let is_there = || fixture.cluster.try_send("GET", &path, None).is_ok();
        let question = "with its pods, type its name";
        for (answer, code) in [("y", 6), (&*fixture.node, 0)] {
            let force = ["force-delete", &node, "--timeout=0"];
            let mut typed = vec![(question, answer)];
            if code == 0 {
                typed.push((REASON, "scrapped"));
            }
            answers(at_a_terminal(fixture.cluster.maint(force)), &typed, code);
            assert_eq!(is_there(), code == 6);
        }
    });
}
