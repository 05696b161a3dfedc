//! The lock is taken away, on purpose or from outside. Only then may the old holder run at the same
//! time as the next one, and only until its own deadline.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::checker::violations;
use crate::history::Boot;
use crate::support::TIME_LIMIT;
use crate::support::scenario::{LOST, Scenario};
use crate::support::shared_cluster::Access;
use crate::support::tcp_proxy::Flow;

#[test]
fn a_forced_release_ends_the_command() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "forced");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    scenario.breaks(&holder, force);
    assert_eq!(holder.first_exit(), LOST);
    scenario.all_have_a_turn();
    scenario.ends();
}

/// The holder cannot notice the release, so its command and another may run at the same time.
#[test]
fn a_forced_release_behind_a_partition_allows_overlap_until_the_deadline() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "forced-partition");
    let link = scenario.link();
    let mut options = scenario.usual();
    options.kubeconfig.clone_from(&link.kubeconfig);
    options.lease = Duration::from_secs(20);
    let holder = scenario.begins("a", options);
    scenario.joined_by(&["b", "c"]);
    link.both(Flow::Hold);
    scenario.is_cut_off(&holder);
    scenario.breaks(&holder, force);
    scenario.others_have_a_turn(&holder);
    assert_eq!(holder.first_exit(), LOST);
    link.both(Flow::Pass);
    scenario.all_have_a_turn();
    let mut history = scenario.ends();
    // They did run at the same time, and the checker allows that only because the lock was broken.
    history.events.clear();
    assert!(!violations(&history).is_empty(), "{history}");
}

#[test]
fn a_hold_that_takes_over_ends_the_command_and_keeps_everybody_off() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "taken-over");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    scenario.breaks(&holder, |scenario| {
        scenario.admin(&[
            "hold",
            scenario.node(),
            "--take-over",
            "--yes",
            "-m",
            "fire",
        ]);
    });
    let held = Boot::now();
    assert_eq!(holder.first_exit(), LOST);
    // This is longer than the lease: a hold does not expire.
    sleep(holder.options.lease + Duration::from_secs(4));
    scenario.was_held(held);
    scenario.admin(&["unhold", scenario.node()]);
    scenario.all_have_a_turn();
    scenario.ends();
}

#[test]
fn a_node_that_is_deleted_takes_its_lock_along() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "deleted");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    let kubectl = |words: &[&str]| access.plane().kubectl(words).expect("kubectl works");
    scenario.breaks(&holder, |scenario| {
        kubectl(&["delete", "node", scenario.node()]);
        // Without a kubelet, the heartbeat has no owner, so it is deleted here.
        let heartbeat = ["delete", "lease", "-n", "kube-node-lease", scenario.node()];
        kubectl(&heartbeat);
        // The garbage collector deletes the Lease.
        let find = [
            "get",
            "lease",
            "-n",
            "kube-node-maintenance",
            "--ignore-not-found",
        ];
        let deadline = Instant::now() + TIME_LIMIT;
        while !kubectl(&[&find[..], &[scenario.node()]].concat()).is_empty() {
            assert!(Instant::now() < deadline, "the Lease stays");
            sleep(Duration::from_millis(200));
        }
    });
    assert_eq!(holder.first_exit(), LOST);
    scenario.create_node();
    scenario.all_have_a_turn();
    scenario.ends();
}

fn force(scenario: &Scenario) {
    let node = scenario.node();
    scenario.admin(&["release", node, "--force", "--yes", "-m", "nobody answers"]);
}
