//! Startup: which arguments and configurations are refused, and which namespace is used.

use control_plane::Rule;
use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::support::cluster::Cluster;
use crate::support::tests_on_both;

/// The tests on both servers, and a test that needs a server with users without permissions.
pub(crate) fn tests() -> Vec<Trial> {
    let real = Trial::test("real::startup::the_documented_rights_are_enough", || {
        the_documented_rights_are_enough(&Cluster::real("rights"));
        Ok(())
    });
    everywhere().into_iter().chain([real]).collect()
}

tests_on_both! { everywhere:
    wrong_usage_has_a_code_of_its_own,
    the_namespace_is_the_contexts,
    the_locks_of_nodes_are_not_led_on,
    messages_with_a_prefix_get_no_second_one,
}

fn wrong_usage_has_a_code_of_its_own(cluster: &Cluster) {
    for flag in ["--lease-duration=9s", "--lease-durations=9s"] {
        let mut a = cluster.candidate("a").with(&[flag]).run(&["true"]);
        assert_eq!(a.code(), Some(125), "{flag}");
    }
}

fn the_namespace_is_the_contexts(cluster: &Cluster) {
    let path = cluster.kubeconfig_in("kube-system");
    let flag = format!("--kubeconfig={}", path.display());
    let script = "echo in $LEASE_ELECT_NAMESPACE >> $JOURNAL";
    let mut a = cluster
        .candidate("a")
        .with(&[&flag])
        .run(&["/bin/sh", "-c", script]);
    assert_eq!(a.code(), Some(0));
    let mut b = cluster
        .candidate("b")
        .with(&[&flag, "-n", "default"])
        .run(&["/bin/sh", "-c", script]);
    assert_eq!(b.code(), Some(0));
    assert_eq!(cluster.journal.lines(), ["in kube-system", "in default"]);
}

fn the_locks_of_nodes_are_not_led_on(cluster: &Cluster) {
    let setup = cluster
        .candidate("a")
        .with(&["-n", "kube-node-maintenance"]);
    let mut a = setup.run(&["true"]);
    assert_eq!(a.code(), Some(125));
    a.says("the Lease of a node cannot be used for leader election");
}

fn messages_with_a_prefix_get_no_second_one(cluster: &Cluster) {
    let setup = cluster.candidate("a").with(&["--context=nowhere"]);
    let mut a = setup.run(&["true"]);
    assert_eq!(a.code(), Some(125));
    assert_eq!(a.log()[0], "error: context \"nowhere\" does not exist");
    let mut b = cluster
        .candidate("b")
        .with(&["-n", "nowhere"])
        .run(&["true"]);
    assert_eq!(b.code(), Some(125));
    let said = b.says("\"nowhere\" not found");
    assert!(said.starts_with("Error from server (NotFound): "), "{said}");
}

fn the_documented_rights_are_enough(cluster: &Cluster) {
    let plane = control_plane::shared();
    let user = plane.user("scheduler", &[]).expect("a user");
    let flag = format!("--kubeconfig={}", user.display());
    let mut a = cluster.candidate("a").with(&[&flag]).run(&["true"]);
    assert_eq!(a.code(), Some(125));
    a.says("hint: the API user of lease-elect needs permission to get leases");

    let leases = |verbs| Rule::new("coordination.k8s.io", &["leases"], verbs);
    let named = leases(&["get", "list", "watch", "patch"]).named(&[&cluster.lease]);
    plane
        .grant("scheduler", &[named, leases(&["create"])])
        .expect("rights");
    let mut a = cluster
        .candidate("a")
        .with(&[&flag, "--lease-duration=1h"])
        .start();
    cluster.journal.wait_for("begin a");
    let b = cluster
        .candidate("b")
        .with(&[&flag, "--lease-duration=1h"])
        .start();
    b.says("leads");
    a.signal(Signal::TERM);
    assert_eq!(a.code(), Some(0));
    a.says("released the lease");
    cluster.journal.wait_for("begin b");
    assert!(
        !b.log().iter().any(|line| line.contains("watched")),
        "{:?}",
        b.log()
    );
}
