//! Changes of the leader, without faults.

use rustix::process::Signal;

use crate::support::candidate::Candidate;
use crate::support::cluster::Cluster;
use crate::support::network_proxy::NetworkProxy;
use crate::support::{eventually, tests_on_both};

tests_on_both! {
    a_leader_that_is_asked_to_end_is_followed_at_once,
    a_release_that_hangs_ends_at_another_signal,
    the_daemons_exit_code_is_passed_on_and_the_lease_released,
    a_daemon_that_is_not_there_leads_nobody_astray,
    a_standby_that_is_asked_to_end_leaves_the_leader_alone,
    signals_ignored_from_the_start_do_not_end_a_standby,
    signals_are_the_daemons,
    a_lead_that_is_won_during_term_is_released,
    a_lead_whose_write_is_unknown_is_reported,
}

/// A duration that does not expire during a test.
const LONG: &[&str] = &["--lease-duration=1h"];

fn a_leader_that_is_asked_to_end_is_followed_at_once(cluster: &Cluster) {
    let mut a = cluster.candidate("a").with(LONG).start();
    cluster.journal.wait_for("begin a");
    let standbys = ["b", "c"].map(|name| {
        let standby = cluster.candidate(name).with(LONG).start();
        standby.says("leads");
        standby
    });

    a.signal(Signal::TERM);
    assert_eq!(a.code(), Some(0));
    a.says("released the lease");
    cluster.journal.wait_for("end a");
    eventually("a follower", || {
        let lines = cluster.journal.lines();
        lines
            .iter()
            .skip(1)
            .any(|line| line.starts_with("begin"))
            .then_some(())
    });
    let lines = cluster.journal.lines();
    assert_eq!(
        lines.len(),
        3,
        "one of them begins, once the daemon is over: {lines:?}"
    );
    assert!(
        lines[0].starts_with("begin a") && lines[1] == "end a",
        "{lines:?}"
    );
    drop(standbys);
    assert_eq!(cluster.spec()["leaseTransitions"], 1);
}

fn a_release_that_hangs_ends_at_another_signal(cluster: &Cluster) {
    let wire = cluster.wire();
    let patient = [LONG, &["--request-timeout=10m"]].concat();
    let mut a = cluster.candidate_on(&wire, "a").with(&patient).start();
    cluster.journal.wait_for("begin a");
    wire.cut();
    a.signal(Signal::TERM);
    cluster.journal.wait_for("end a");
    // The daemon has ended, or is about to: then it gets the next signal, too.
    eventually("the end of the release", || {
        a.signal(Signal::TERM);
        let said = "asked to end before the lease was released";
        a.log().iter().any(|line| line.contains(said)).then_some(())
    });
    assert_eq!(a.code(), Some(0));
}

fn the_daemons_exit_code_is_passed_on_and_the_lease_released(cluster: &Cluster) {
    let script = "echo $LEASE_ELECT_NAMESPACE/$LEASE_ELECT_LEASE as $LEASE_ELECT_HOLDER \
                  $LEASE_ELECT_TRANSITIONS $((LEASE_ELECT_FENCING_NUMBER > 0)) >> $JOURNAL; exit 7";
    let setup = cluster.candidate("a").with(&["--holder", "host-1"]);
    let mut a = setup.run(&["/bin/sh", "-c", script]);
    assert_eq!(a.code(), Some(7));
    let lease = &cluster.lease;
    assert_eq!(
        cluster.journal.lines(),
        [format!("default/{lease} as host-1 0 1")]
    );
    assert_eq!(cluster.spec()["holderIdentity"], "");

    let mut b = cluster
        .candidate("b")
        .run(&["/bin/sh", "-c", "kill -KILL $$"]);
    assert_eq!(b.code(), Some(128 + 9));
    assert_eq!(cluster.spec()["leaseTransitions"], 1);
}

fn a_daemon_that_is_not_there_leads_nobody_astray(cluster: &Cluster) {
    let mut a = cluster.candidate("a").run(&["no-such-daemon"]);
    assert_eq!(a.code(), Some(127));
    assert_eq!(cluster.spec()["holderIdentity"], "");
    let mut b = cluster.candidate("b").run(&["/etc/passwd"]);
    assert_eq!(b.code(), Some(126));
    assert_eq!(cluster.spec()["holderIdentity"], "");
}

fn a_standby_that_is_asked_to_end_leaves_the_leader_alone(cluster: &Cluster) {
    let a = cluster.candidate("a").with(LONG).start();
    cluster.journal.wait_for("begin a");
    let before = cluster.spec();
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let mut standby = cluster.candidate("b").with(LONG).start();
        standby.says("leads");
        standby.signal(Signal::USR1);
        standby.signal(Signal::HUP);
        standby.signal(signal);
        assert_eq!(standby.code(), Some(code), "{signal:?}");
    }
    assert_eq!(cluster.spec(), before);
    assert_eq!(cluster.journal.lines().len(), 1);
    drop(a);
}

/// A candidate that was asked to end while the write that makes it the leader is in progress.
fn asked_to_end_in_between(cluster: &Cluster) -> (NetworkProxy, Candidate) {
    let mut a = cluster.candidate("a").with(LONG).start();
    cluster.journal.wait_for("begin a");
    let wire = cluster.wire();
    let b = cluster.candidate_on(&wire, "b").with(LONG).start();
    b.says("leads");
    cluster.is_watched_on(&wire);
    wire.hold_up();
    a.signal(Signal::TERM);
    assert_eq!(a.code(), Some(0));
    eventually("a write", || wire.holds_a_write().then_some(()));
    b.signal(Signal::TERM);
    b.says("asked to end");
    (wire, b)
}

fn a_lead_that_is_won_during_term_is_released(cluster: &Cluster) {
    let (wire, mut b) = asked_to_end_in_between(cluster);
    wire.let_go();
    assert_eq!(b.code(), Some(0));
    b.says("acquired too late and released");
    let spec = cluster.spec();
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseTransitions"]),
        (&"".into(), &1.into())
    );
    assert!(
        !cluster
            .journal
            .lines()
            .iter()
            .any(|line| line.starts_with("begin b"))
    );
}

fn a_lead_whose_write_is_unknown_is_reported(cluster: &Cluster) {
    let (wire, mut b) = asked_to_end_in_between(cluster);
    assert_eq!(b.code(), Some(0));
    b.says("may then name this process until it expires");
    assert_eq!(cluster.spec()["holderIdentity"], "");
    drop(wire);
}

fn signals_are_the_daemons(cluster: &Cluster) {
    let script = "trap 'echo hup >> $JOURNAL' HUP; trap 'echo int >> $JOURNAL; exit 3' INT
                  echo begin a $$ >> $JOURNAL; while :; do sleep 1 & wait $!; done";
    let mut a = cluster.candidate("a").run(&["/bin/sh", "-c", script]);
    cluster.journal.wait_for("begin a");
    a.signal(Signal::HUP);
    cluster.journal.wait_for("hup");
    a.signal(Signal::INT);
    assert_eq!(a.code(), Some(3));
    cluster.journal.wait_for("int");
}

fn signals_ignored_from_the_start_do_not_end_a_standby(cluster: &Cluster) {
    let a = cluster.candidate("a").with(LONG).start();
    cluster.journal.wait_for("begin a");
    let deaf = ["/bin/sh", "-c", r#"trap "" INT; exec "$0" "$@""#];
    let mut b = cluster.candidate("b").by(&deaf).with(LONG).start();
    b.says("leads");
    b.signal(Signal::INT);
    b.signal(Signal::TERM);
    assert_eq!(b.code(), Some(0), "TERM was the first that it heard");
    drop(a);
}
