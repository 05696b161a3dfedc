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
        &["force-delete", "pod/a", "--accept-risk"],
        &["force-delete", "pod/a", "--accept-risk=", "-m", "why"],
        &[
            "force-delete",
            "pod/a",
            "--accept-risk=owner,ownr",
            "-m",
            "why",
        ],
        &["force-delete", "pod/a", "--accept-risk=lease", "-m", "why"],
        &["force-delete", "pod/a", "--accept-risk=mirror", "-m", "why"],
        &[
            "force-delete",
            "pod/a",
            "--accept-risk=finalizers",
            "-m",
            "why",
        ],
        &[
            "force-delete",
            "pod/a",
            "--accept-risk",
            "owner,quorum",
            "-m",
            "why",
        ],
        &["force-delete", "pod/a", "--accept-risk=owner", "-m", "WHY"],
        &["force-delete", "pod/a", "--override=mirror"],
        &["force-delete", "-l", "", "--accept-risk", "-m", "why"],
        &["force-delete", "pod/a", "-o", "lock-id"],
        &["force-delete", "pod/a", "--force"],
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

    $ kubectl maint force-delete pod/a --accept-risk
    -- stderr
    error: missing --message
    hint: add -m WHY
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk= -m why
    -- stderr
    error: invalid value '' for '--accept-risk[=<ID,...>]': no ID given: --accept-risk alone accepts all risks, --accept-risk=none accepts none
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk=owner,ownr -m why
    -- stderr
    error: invalid value 'owner,ownr' for '--accept-risk[=<ID,...>]': unknown ID "ownr"; valid IDs are owner, no-owner, quorum, volume-attached, volume-unguarded, volume-deleted, mass-loss, lease-expired, unread
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk=lease -m why
    -- stderr
    error: invalid value 'lease' for '--accept-risk[=<ID,...>]': `lease` is a blocker: use --override=lease
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk=mirror -m why
    -- stderr
    error: invalid value 'mirror' for '--accept-risk[=<ID,...>]': `mirror` cannot be accepted
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk=finalizers -m why
    -- stderr
    error: invalid value 'finalizers' for '--accept-risk[=<ID,...>]': `finalizers` is informational and needs no confirmation
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk owner,quorum -m why
    -- stderr
    error: "owner,quorum" is neither a pod nor a node
    hint: to accept this risk, write --accept-risk=owner,quorum
    -- exit code 2

    $ kubectl maint force-delete pod/a --accept-risk=owner -m WHY
    -- stderr
    error: invalid value 'WHY' for '--message <WHY>': replace WHY with your reason
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --override=mirror
    -- stderr
    error: invalid value 'mirror' for '--override <ID,...>': use not-deleting, in-grace, node-alive, lease, remediation or rights
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete -l "" --accept-risk -m why
    -- stderr
    error: the selector of -l is empty: it would match all pods in the namespace
    hint: give a label selector, e.g. -l app=web, or name the pods
    -- exit code 2

    $ kubectl maint force-delete pod/a -o lock-id
    -- stderr
    error: invalid value 'lock-id' for '--output <FORMAT>': use wide, name, json, yaml, jsonpath= or custom-columns=
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --force
    -- stderr
    error: unknown flag: --force
    hint: accept the risks by ID: --accept-risk=ID -m WHY
    -- exit code 2
    "#);
}

#[test]
fn the_help_offers_what_the_verb_takes() {
    let cluster = Cluster::nowhere();
    let help = |words: &[&str]| cluster.maint(words).succeeds().stdout;
    let short = help(&["force-delete", "-h"]);
    assert!(short.contains("-n, --namespace <NAMESPACE>"), "{short}");
    for verb in ["force-delete", "fence", "unfence"] {
        for flag in ["-h", "--help"] {
            let help = help(&[verb, flag]);
            assert!(!help.contains("token of its lock"), "{help}");
            assert!(!help.contains("yaml, lock-id"), "{help}");
            let (_, dry_run) = help.split_once("--dry-run[=<MODE>]").expect("a flag");
            let (dry_run, _) = dry_run.split_once("  -").expect("another flag");
            let named = |mode: &str| dry_run.contains(mode);
            assert!(named("client") && named("server"), "{dry_run}");
        }
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
