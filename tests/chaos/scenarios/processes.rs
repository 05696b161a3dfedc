//! The holder's `with` is stopped or killed.

use crate::history::Exit;
use crate::support::scenario::{LOST, Scenario};
use crate::support::shared_cluster::Access;

/// The exit code of a run whose command was killed.
const KILLED: Exit = Exit::Code(128 + 9);

/// The exit code of a run that does not know how its command ended.
const UNKNOWN: Exit = Exit::Code(125);

#[test]
fn a_stopped_wrapper_keeps_its_command_no_longer_than_its_lease() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "stopped");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    holder.stop();
    scenario.is_cut_off(&holder);
    scenario.others_have_a_turn(&holder);
    // Others have acquired the lock in between, so the lease that it knew has long expired.
    holder.goes_on();
    assert_eq!(holder.first_exit(), LOST);
    scenario.all_have_a_turn();
    scenario.ends();
}

#[test]
fn a_killed_wrapper_takes_its_command_along() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "killed");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    holder.is_killed();
    scenario.is_cut_off(&holder);
    assert_eq!(holder.first_exit(), Exit::Killed);
    scenario.all_have_a_turn();
    scenario.ends();
}

/// All processes that the command started are killed too, before others get the lock.
#[test]
fn a_killed_supervisor_takes_the_command_and_all_it_started_along() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "supervisor");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    holder.loses_its_supervisor();
    // The exit code is unknown if the supervisor was killed before it reported the process id.
    let exit = holder.first_exit();
    assert!(matches!(exit, KILLED | UNKNOWN), "{exit:?}");
    scenario.others_have_a_turn(&holder);
    scenario.all_have_a_turn();
    scenario.ends();
}
