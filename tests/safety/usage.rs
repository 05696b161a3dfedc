//! Invalid combinations of arguments are refused before any request is sent.

use insta::assert_snapshot;

use crate::fixture::fixture;
use crate::support::{Cluster, as_text, at_a_terminal};

#[test]
fn invalid_arguments_are_refused() {
    let cluster = Cluster::nowhere();
    let runs: Vec<String> = [
        &["force-delete"][..],
        &["force-delete", "web-0"],
        &["force-delete", "pvc/a"],
        &["force-delete", "pod/A_b"],
        &["force-delete", "pod/a", "node/b"],
        &[
            "force-delete",
            "pod/a",
            "--accept-risk",
            "owner,quorum",
            "-m",
            "why",
        ],
        &["force-delete", "-l", "", "--accept-risk", "-m", "why"],
    ]
    .into_iter()
    .map(|words| {
        let run = cluster.maint(words).run();
        assert_eq!(run.code, 2, "{run}");
        run.to_string()
    })
    .collect();
    assert_snapshot!(runs.join("\n\n"), @r#"
    $ kubectl maint force-delete
    -- stderr
    error: missing pod/NAME or node/NAME
    hint: name pods or a node, or use -l SELECTOR
    -- exit code 2

    $ kubectl maint force-delete web-0
    -- stderr
    error: "web-0" has no kind
    hint: use pod/web-0 or node/web-0
    -- exit code 2

    $ kubectl maint force-delete pvc/a
    -- stderr
    error: "pvc/a" is neither a pod nor a node
    hint: use pod/NAME or node/NAME
    -- exit code 2

    $ kubectl maint force-delete pod/A_b
    -- stderr
    error: "A_b" is not a valid pod name
    hint: pod names have only lower-case letters, digits, - and ., begin and end with a letter or digit, and have at most 253 characters
    -- exit code 2

    $ kubectl maint force-delete pod/a node/b
    -- stderr
    error: a node can only be deleted alone
    hint: give one node/NAME, or only pods
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk owner,quorum -m why
    -- stderr
    error: "owner,quorum" is neither a pod nor a node
    hint: to accept this risk, write --accept-risk=owner,quorum
    -- exit code 2

    $ kubectl maint force-delete -l "" --accept-risk -m why
    -- stderr
    error: the selector of -l is empty: it would match all pods in the namespace
    hint: give a label selector, e.g. -l app=web, or name the pods
    -- exit code 2
    "#);
    for words in [
        &["pod/a", "--accept-risk"][..],
        &["pod/a", "--accept-risk=", "-m", "why"],
        &["pod/a", "--accept-risk=owner,ownr", "-m", "why"],
        &["pod/a", "--accept-risk=lease", "-m", "why"],
        &["pod/a", "--accept-risk=mirror", "-m", "why"],
        &["pod/a", "--accept-risk=finalizers", "-m", "why"],
        &["pod/a", "--accept-risk=owner", "-m", "WHY"],
        &["pod/a", "--override=mirror"],
        &["pod/a", "-o", "lock-id"],
        &["pod/a", "--force"],
    ] {
        let run = cluster.maint(["force-delete"]).args(words).run();
        assert_eq!(run.code, 2, "{run}");
    }
}

#[test]
fn at_a_terminal_every_line_of_the_report_fits() {
    fixture("narrow", |fixture| {
        fixture.harmless_pod("web-1");
        let mut terminal = at_a_terminal(fixture.force_delete("web-1", &[]));
        let report = terminal
            .exp_string("Force-delete 1 pod?")
            .expect("a question");
        let report = as_text(&report);
        let lines: Vec<&str> = report.lines().map(str::trim_end).collect();
        let begins = lines
            .iter()
            .position(|line| line.contains("node-unreachable"))
            .expect("a check");
        assert!(lines[begins].starts_with("  info     node-unreachable  the node has been"));
        let goes_on = " ".repeat("  info     node-unreachable  ".len());
        assert!(lines[begins + 1].starts_with(&goes_on), "{report}");
        let checks = lines.iter().filter(|line| line.starts_with("  "));
        for line in checks {
            assert!(line.chars().count() <= 80, "{line}");
        }
    });
}
