//! Environments in which variables or the kubeconfig are missing.

use insta::assert_snapshot;

use crate::support::{Cluster, on_one};

#[test]
fn without_home_and_user() {
    on_one("environment-home", |cluster| {
        let node = cluster.node("worker-1");
        let bare = |arguments: &[&str]| {
            cluster
                .maint(arguments)
                .without_env("HOME")
                .without_env("TZ")
                .without_env("KUBECTL_MAINT_HOLDER")
        };
        let acquired = bare(&["acquire", &node]).succeeds();
        assert!(acquired.stdout.contains(" acquired by "), "{acquired}");
        // The default identity is the same in both runs, so the second run can release the lock.
        assert_snapshot!(bare(&["release", &node]).run(), @"
        $ kubectl maint release worker-1
        node/worker-1 released
        -- exit code 0
        ");
    });
}

#[test]
fn without_a_kubeconfig() {
    let cluster = Cluster::nowhere();
    let bare = || {
        cluster
            .maint(["acquire", "worker-1"])
            .without_env("KUBECONFIG")
            .without_env("HOME")
    };
    // This is the message of kubectl on a machine without a kubeconfig.
    assert_snapshot!(bare().run(), @"
    $ kubectl maint acquire worker-1
    -- stderr
    The connection to the server localhost:8080 was refused - did you specify the right host or port?
    hint: no API server is configured: check that the files in KUBECONFIG exist, or use --kubeconfig or --context
    -- exit code 1
    ");
    assert_snapshot!(bare().kubeconfig("/nowhere/config").run(), @"
    $ kubectl maint acquire worker-1
    -- stderr
    The connection to the server localhost:8080 was refused - did you specify the right host or port?
    hint: no API server is configured: check that the files in KUBECONFIG exist, or use --kubeconfig or --context
    -- exit code 1
    ");
    assert_snapshot!(bare().arg("--kubeconfig").arg("/nowhere/config").run(), @"
    $ kubectl maint acquire worker-1 --kubeconfig /nowhere/config
    -- stderr
    error: stat /nowhere/config: no such file or directory
    hint: check the path in --kubeconfig
    -- exit code 1
    ");
}

#[test]
fn a_pipe_gets_no_colors() {
    on_one("environment-color", |cluster| {
        let node = cluster.node("worker-1");
        cluster
            .maint(["acquire", &node, "--holder", "bob@laptop"])
            .succeeds();
        for variables in [
            &[][..],
            &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")],
            &[("CI", "true")],
            &[("NO_COLOR", "1")],
            &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
        ] {
            for words in [
                &["acquire", &node][..],
                &["aquire"],
                &["acquire", "--help"],
                &["release", &node, "--force"],
            ] {
                let run = variables
                    .iter()
                    .fold(cluster.maint(words), |maint, (name, value)| {
                        maint.env(name, value)
                    })
                    .run();
                let escape = '\x1b';
                assert!(
                    !run.stdout.contains(escape) && !run.stderr.contains(escape),
                    "{variables:?} {run}"
                );
            }
        }
    });
}
