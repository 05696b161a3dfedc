//! The leader crashes, is stopped, or is cut off.

use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::Signal;

use crate::support::cluster::Cluster;
use crate::support::{eventually, tests_on_both};

tests_on_both! {
    a_leader_that_crashed_is_followed_once_its_lease_stood_unchanged,
    a_leader_that_is_cut_off_ends_its_daemon_before_another_begins,
    a_daemon_that_ignores_term_is_killed_before_another_begins,
    a_stopped_leader_keeps_no_daemon,
    a_lead_that_is_taken_away_ends_the_daemon,
    a_connection_that_fell_silent_costs_no_lead,
}

/// The lease duration of `Setup::short`, in seconds.
const SECONDS: i64 = 12;

fn a_leader_that_crashed_is_followed_once_its_lease_stood_unchanged(cluster: &Cluster) {
    let mut a = cluster.candidate("a").short().start();
    cluster.journal.wait_for("begin a");
    let b = cluster.candidate("b").short().start();
    b.says("leads");
    a.signal(Signal::KILL);
    assert_eq!(a.code(), None);
    let renewed = renewed(cluster);
    cluster.journal.wait_for("begin b");
    let acquired = cluster.spec()["acquireTime"]
        .as_str()
        .map(time)
        .expect("a time");
    // The follower saw the last renewal after it was made.
    assert!(
        acquired >= renewed + TimeDelta::seconds(SECONDS),
        "{acquired} after {renewed}"
    );
    let lines = cluster.journal.lines();
    assert_eq!(lines[1], "end a", "its daemon was ended first: {lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

fn a_leader_that_is_cut_off_ends_its_daemon_before_another_begins(cluster: &Cluster) {
    let wire = cluster.wire();
    let mut a = cluster.candidate_on(&wire, "a").short().start();
    cluster.journal.wait_for("begin a");
    let b = cluster.candidate("b").short().start();
    b.says("leads");
    wire.cut();
    assert_eq!(a.code(), Some(5), "though its daemon exits with 0");
    a.says("lost leadership");
    a.says("the daemon exited with code 0");
    cluster.journal.wait_for("begin b");
    let lines = cluster.journal.lines();
    assert_eq!(lines[1], "end a", "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

fn a_daemon_that_ignores_term_is_killed_before_another_begins(cluster: &Cluster) {
    let wire = cluster.wire();
    let stubborn = cluster.candidate_on(&wire, "a").short();
    let mut a = stubborn.on_term("echo asked >> $JOURNAL").start();
    cluster.journal.wait_for("begin a");
    let b = cluster.candidate("b").short().start();
    b.says("leads");
    wire.cut();
    assert_eq!(a.code(), Some(5));
    a.says("the daemon was ended by SIGKILL");
    cluster.journal.wait_for("begin b");
    let lines = cluster.journal.lines();
    assert!(lines.contains(&"asked".to_owned()), "{lines:?}");
    assert!(
        !lines.iter().any(|line| line.starts_with("overlaps")),
        "{lines:?}"
    );
}

fn a_stopped_leader_keeps_no_daemon(cluster: &Cluster) {
    let mut a = cluster.candidate("a").short().start();
    cluster.journal.wait_for("begin a");
    let b = cluster.candidate("b").short().start();
    b.says("leads");
    a.signal(Signal::STOP);
    cluster.journal.wait_for("begin b");
    let lines = cluster.journal.lines();
    assert_eq!(lines[1], "end a", "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
    a.signal(Signal::CONT);
    assert_eq!(a.code(), Some(5));
    assert_ne!(
        cluster.spec()["holderIdentity"],
        "",
        "it writes nothing any more"
    );
}

fn a_lead_that_is_taken_away_ends_the_daemon(cluster: &Cluster) {
    let mut a = cluster
        .candidate("a")
        .with(&["--lease-duration=1h"])
        .start();
    cluster.journal.wait_for("begin a");
    cluster.delete_lease();
    assert_eq!(a.code(), Some(5));
    assert!(a.says("lost leadership").contains("was deleted"));
    assert_eq!(cluster.journal.lines()[1], "end a");
}

fn a_connection_that_fell_silent_costs_no_lead(cluster: &Cluster) {
    let wire = cluster.wire();
    let setup = cluster.candidate_on(&wire, "a");
    let mut a = setup.with(&["--lease-duration=16s", "--grace=1s"]).start();
    cluster.journal.wait_for("begin a");
    wire.silence();
    let until = renewed(cluster) + TimeDelta::seconds(16);
    eventually("a renewal past the end of the last one", || {
        (renewed(cluster) > until).then_some(())
    });
    a.signal(Signal::TERM);
    assert_eq!(a.code(), Some(0));
    assert_eq!(cluster.spec()["holderIdentity"], "");
}

/// When the lease was last renewed.
fn renewed(cluster: &Cluster) -> DateTime<Utc> {
    time(cluster.spec()["renewTime"].as_str().expect("a time"))
}

fn time(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect("a time").to_utc()
}
