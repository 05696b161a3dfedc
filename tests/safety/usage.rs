//! What can't be meant is refused before anything is sent.

use insta::assert_snapshot;

use crate::scene::scene;
use crate::support::{Cluster, as_text, at_a_terminal};

#[test]
fn arguments_that_cannot_be_meant() {
    let cluster = Cluster::nowhere();
    let runs: Vec<String> = [
        &["force-delete"][..],
        &["force-delete", "web-0"],
        &["force-delete", "pod/a", "node/b"],
        &["force-delete", "pod/a", "--confirm"],
        &["force-delete", "pod/a", "--confirm=", "-m", "why"],
        &["force-delete", "pod/a", "--confirm=lease", "-m", "why"],
        &["force-delete", "pod/a", "--confirm=mirror", "-m", "why"],
        &["force-delete", "pod/a", "--confirm=finalizers", "-m", "why"],
        &[
            "force-delete",
            "pod/a",
            "--confirm",
            "owner,pdb",
            "-m",
            "why",
        ],
        &["force-delete", "pod/a", "--confirm=owner", "-m", "WHY"],
        &["force-delete", "pod/a", "--override=mirror"],
        &["force-delete", "-l", "", "--confirm", "-m", "why"],
        &["force-delete", "pod/a", "-o", "lock-id"],
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
    error: nothing to delete was given
    hint: name pod/NAME or node/NAME, or use -l SELECTOR
    -- exit code 2

    $ kubectl maint force-delete web-0
    -- stderr
    error: "web-0" names neither a pod nor a node
    hint: name them as kubectl does: pod/NAME or node/NAME
    -- exit code 2

    $ kubectl maint force-delete pod/a node/b
    -- stderr
    error: a node is deleted alone
    hint: give one node/NAME, or pods
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm
    -- stderr
    error: missing --message <WHY>
    hint: see `kubectl maint force-delete --help`
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm= -m why
    -- stderr
    error: invalid value '' for '--confirm[=<ID,...>]': it is empty: --confirm alone gives up all that the report shows, --confirm=nothing nothing

    For more information, try '--help'.
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm=lease -m why
    -- stderr
    error: invalid value 'lease' for '--confirm[=<ID,...>]': lease refuses: it takes --override=lease

    For more information, try '--help'.
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm=mirror -m why
    -- stderr
    error: invalid value 'mirror' for '--confirm[=<ID,...>]': mirror refuses, and nothing overrides that

    For more information, try '--help'.
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm=finalizers -m why
    -- stderr
    error: invalid value 'finalizers' for '--confirm[=<ID,...>]': finalizers is told and gives nothing up: leave it away

    For more information, try '--help'.
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm owner,pdb -m why
    -- stderr
    error: "owner,pdb" names neither a pod nor a node
    hint: if it is to be confirmed, without a space: --confirm=owner,pdb
    -- exit code 2

    $ kubectl maint force-delete pod/a --confirm=owner -m WHY
    -- stderr
    error: invalid value 'WHY' for '--message <WHY>': WHY stands for your reason: give it instead

    For more information, try '--help'.
    -- exit code 2

    $ kubectl maint force-delete pod/a --override=mirror
    -- stderr
    error: invalid value 'mirror' for '--override <ID>'
      [possible values: not-deleting, in-grace, node-alive, lease, remediation, rights]

    For more information, try '--help'.
    -- exit code 2

    $ kubectl maint force-delete -l "" --confirm -m why
    -- stderr
    error: the selector of -l is empty, which would be all pods of the namespace
    hint: name them, or give labels
    -- exit code 2

    $ kubectl maint force-delete pod/a -o lock-id
    -- stderr
    error: force-delete has no lock id for -o lock-id
    hint: use -o json or -o name
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
    scene("narrow", |scene| {
        scene.harmless_pod("web-1");
        let mut terminal = at_a_terminal(scene.force_delete("web-1", &[]));
        let report = as_text(&terminal.exp_eof().expect("it ends"));
        let lines: Vec<&str> = report.lines().map(str::trim_end).collect();
        let begins = lines
            .iter()
            .position(|line| line.contains("node-silent"))
            .expect("a check");
        assert!(lines[begins].starts_with("  WARN     node-silent      nobody hears"));
        let goes_on = " ".repeat("  WARN     node-silent      ".len());
        assert!(lines[begins + 1].starts_with(&goes_on), "{report}");
        let checks = lines.iter().filter(|line| line.starts_with("  "));
        for line in checks {
            assert!(line.chars().count() <= 80, "{line}");
        }
    });
}
