//! Tests together with candidates of client-go's leader election, on one Lease.

use rustix::process::Signal;

use crate::support::cluster::Cluster;
use crate::support::{eventually, tests_on_both};

tests_on_both! {
    a_released_lead_is_followed_in_both_directions,
    a_killed_leader_is_followed_in_both_directions,
    one_that_honors_the_record_waits_for_a_longer_lease,
    of_many_who_are_killed_and_asked_to_end_no_two_lead_at_once,
}

fn a_released_lead_is_followed_in_both_directions(cluster: &Cluster) {
    let mut theirs = cluster.candidate("theirs").of_client_go();
    cluster.journal.wait_for("begin theirs");
    let mut ours = cluster
        .candidate("ours")
        .with_the_duration_of_client_go()
        .start();
    ours.says("theirs leads");
    theirs.signal(Signal::TERM);
    assert_eq!(theirs.code(), Some(0));
    cluster.journal.wait_for("begin ours");
    let mut theirs = cluster.candidate("theirs-again").of_client_go();
    theirs.says("Attempting to acquire");
    ours.signal(Signal::TERM);
    assert_eq!(ours.code(), Some(0));
    cluster.journal.wait_for("begin theirs-again");
    assert_eq!(
        order(cluster),
        [
            "begin theirs",
            "end theirs",
            "begin ours",
            "end ours",
            "begin theirs-again"
        ]
    );
    assert_eq!(cluster.spec()["leaseTransitions"], 2);
    theirs.signal(Signal::TERM);
    assert_eq!(theirs.code(), Some(0));
    assert_eq!(cluster.spec()["holderIdentity"], "");
}

fn a_killed_leader_is_followed_in_both_directions(cluster: &Cluster) {
    let mut theirs = cluster.candidate("theirs").of_client_go();
    cluster.journal.wait_for("begin theirs");
    let mut ours = cluster
        .candidate("ours")
        .with_the_duration_of_client_go()
        .start();
    ours.says("theirs leads");
    theirs.signal(Signal::KILL);
    assert_eq!(theirs.code(), None);
    cluster.journal.wait_for("begin ours");
    let theirs = cluster.candidate("theirs-again").of_client_go();
    theirs.says("Attempting to acquire leader lease");
    ours.signal(Signal::KILL);
    assert_eq!(ours.code(), None);
    cluster.journal.wait_for("begin theirs-again");
    assert_eq!(
        order(cluster),
        [
            "begin theirs",
            "begin ours",
            "end ours",
            "begin theirs-again"
        ]
    );
    assert_eq!(cluster.spec()["leaseTransitions"], 2);
}

/// A longer lease is renewed every 5 s, which is longer than client-go's duration of 4 s.
fn one_that_honors_the_record_waits_for_a_longer_lease(cluster: &Cluster) {
    let mut ours = cluster.candidate("ours").short().start();
    cluster.journal.wait_for("begin ours");
    let _theirs = cluster.candidate("theirs").of_client_go();
    let renewed = || cluster.spec()["renewTime"].as_str().map(ToOwned::to_owned);
    for _ in 0..2 {
        let before = renewed();
        eventually("a renewal", || (renewed() != before).then_some(()));
    }
    ours.signal(Signal::TERM);
    assert_eq!(ours.code(), Some(0));
    cluster.journal.wait_for("begin theirs");
    assert_eq!(order(cluster), ["begin ours", "end ours", "begin theirs"]);
}

fn of_many_who_are_killed_and_asked_to_end_no_two_lead_at_once(cluster: &Cluster) {
    let mut candidates: Vec<_> = ["theirs-1", "ours-1", "theirs-2", "ours-2"]
        .into_iter()
        .map(|name| {
            let candidate = cluster.candidate(name);
            let candidate = match name.starts_with("ours") {
                true => candidate.with_the_duration_of_client_go().start(),
                false => candidate.of_client_go(),
            };
            (name, candidate)
        })
        .collect();
    for round in 1.. {
        let leader = eventually("a leader", || {
            let began = order(cluster);
            let mut began = began.iter().filter_map(|line| line.strip_prefix("begin "));
            began.nth(round - 1).map(ToOwned::to_owned)
        });
        let place = candidates.iter().position(|(name, _)| *name == leader);
        let (_, mut candidate) = candidates.remove(place.expect("one who did not lead before"));
        let signal = if round % 2 == 0 {
            Signal::TERM
        } else {
            Signal::KILL
        };
        candidate.signal(signal);
        let _ = candidate.code();
        if candidates.is_empty() {
            break;
        }
    }
    let lines = order(cluster);
    assert!(
        lines.iter().all(|line| !line.starts_with("overlaps")),
        "{lines:?}"
    );
    // Our daemons always end: if our candidate is killed, its supervisor ends the daemon.
    for ours in ["ours-1", "ours-2"] {
        let place = |what: &str| {
            let line = format!("{what} {ours}");
            lines.iter().position(|other| *other == line)
        };
        assert_eq!(
            place("end"),
            place("begin").map(|begun| begun + 1),
            "{lines:?}"
        );
    }
    let count = cluster.spec()["leaseTransitions"].as_u64();
    assert!(count >= Some(3), "{count:?}");
}

/// The lines of the journal, without process ids.
fn order(cluster: &Cluster) -> Vec<String> {
    let lines = cluster.journal.lines().into_iter();
    lines
        .map(|line| {
            line.trim_end_matches(|last: char| last.is_ascii_digit() && line.starts_with("begin "))
                .trim_end()
                .to_owned()
        })
        .collect()
}
