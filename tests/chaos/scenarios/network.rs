//! Faults of the network between the holder and the API server. The others have another connection.

use std::time::Duration;

use crate::support::scenario::{DONE, LOST, Scenario};
use crate::support::shared_cluster::Access;
use crate::support::tcp_proxy::{Flow, TcpProxy};

/// Cuts off the holder, waits until it has lost the lock and others have acquired it, and restores the network. The
/// delayed data arrives then.
fn cut(name: &str, sever: impl Fn(&TcpProxy)) {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, name);
    let link = scenario.link();
    let mut options = scenario.usual();
    options.kubeconfig.clone_from(&link.kubeconfig);
    let holder = scenario.begins("a", options);
    scenario.joined_by(&["b", "c"]);
    sever(&link);
    scenario.is_cut_off(&holder);
    assert_eq!(holder.first_exit(), LOST);
    scenario.others_have_a_turn(&holder);
    link.both(Flow::Pass);
    scenario.all_have_a_turn();
    scenario.ends();
}

#[test]
fn a_partition_ends_the_command_in_time() {
    cut("partition", |link| link.both(Flow::Hold));
}

#[test]
fn requests_that_do_not_arrive_renew_nothing() {
    cut("no-requests", |link| link.requests(Flow::Hold));
}

#[test]
fn renewals_without_answers_are_not_trusted() {
    cut("no-answers", |link| link.answers(Flow::Hold));
}

#[test]
fn renewals_whose_answers_are_lost_with_the_connection_are_not_trusted() {
    cut("broken-answers", |link| link.answers(Flow::Break));
}

#[test]
fn a_slow_network_is_tolerated() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "slow");
    let links = [scenario.link(), scenario.link()];
    let mut all_options = links.each_ref().map(|link| {
        link.both(Flow::Slow(Duration::from_millis(150)));
        let mut options = scenario.usual();
        options.kubeconfig.clone_from(&link.kubeconfig);
        options
    });
    // Long enough for several renewals on a busy machine.
    for options in &mut all_options {
        options.lease = Duration::from_secs(15);
    }
    let [one, other] = all_options;
    let holder = scenario.begins("a", one);
    scenario.joins("b", other);
    scenario.joined_by(&["c"]);
    std::thread::sleep(holder.options.lease);
    holder.finishes();
    assert_eq!(holder.first_exit(), DONE);
    scenario.all_have_a_turn();
    scenario.ends();
}
