//! The suggested next command deletes what the report showed, and shows it first.

use serde_json::json;

use crate::fixture::{Fixture, fixture};
use crate::support::{Maint, Run};

/// `force-delete -l app=web` with more arguments.
fn labeled(fixture: &Fixture, words: &[&str]) -> Maint {
    fixture
        .cluster
        .maint(["force-delete", "-l", "app=web", "-n", &fixture.namespace])
        .args(words)
}

/// The suggested command at the end of a run, as words after the name of the program.
#[track_caller]
fn line_of(run: &Run) -> Vec<&str> {
    let (_, line) = run
        .stderr
        .trim_end()
        .rsplit_once("kubectl maint ")
        .expect("a line");
    line.trim_end_matches('`').split(' ').collect()
}

#[test]
fn the_line_of_a_selector_names_the_pods_of_the_report() {
    fixture("shown", |fixture| {
        let set = fixture.stateful_set("web", 1, 0);
        fixture.ended_pod("web-0", Some(&set), &json!({}));
        fixture.harmless_pod("web-1");
        let run = labeled(fixture, &["--accept-risk=none", "-m", "why"]).run();
        assert_eq!(run.code, 6, "{run}");
        fixture.ended_pod("web-2", Some(&set), &json!({}));
        let run = fixture.cluster.maint(line_of(&run)).succeeds();
        assert!(
            !fixture.is_there("web-0") && !fixture.is_there("web-1"),
            "{run}"
        );
        assert!(fixture.is_there("web-2"), "no report showed it: {run}");
    });
}

#[test]
fn without_a_report_the_risks_are_shown() {
    fixture("unshown", |fixture| {
        fixture.ended_member(1, 0);
        fixture.harmless_pod("web-1");
        for words in [&["-q"][..], &["-o", "name"], &["-o", "name", "-q"]] {
            let run = labeled(fixture, words).run();
            assert_eq!((run.code, &*run.stdout), (6, ""), "{run}");
            for shown in [
                "server https://",
                &format!("2 pods in namespace {} on node/", fixture.namespace),
                "  RISK     owner             pod/web-0: a second pod of the same name may start",
                "risks not accepted: owner; nothing was deleted",
            ] {
                assert!(run.stderr.contains(shown), "{shown}: {run}");
            }
            assert!(!run.stderr.contains("  ok  "), "{run}");
        }
        // The risks are also shown if the command deletes at once. Without a risk, nothing is
        // shown.
        let deleting = |pod: &str, flag: &str| {
            let words = [flag, "-m", "why", "-q"];
            fixture.force_delete(pod, &words)
        };
        let run = deleting("web-0", "--accept-risk").succeeds();
        assert!(run.stderr.contains("  RISK     owner "), "{run}");
        let run = deleting("web-1", "--accept-risk=none").succeeds();
        assert_eq!((&*run.stdout, &*run.stderr), ("", ""), "{run}");
    });
}
