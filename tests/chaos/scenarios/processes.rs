//! The holder's `with` is stopped or killed.

use crate::history::Exit;
use crate::support::plane::Access;
use crate::support::scenario::{LOST, Scenario};

#[test]
fn a_stopped_wrapper_keeps_its_command_no_longer_than_its_lease() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "stopped");
    let holder = scenario.begins("a", scenario.usual());
    scenario.joined_by(&["b", "c"]);
    holder.stop();
    scenario.is_cut_off(&holder);
    scenario.others_have_a_turn(&holder);
    // Others have had it: what it believed when it was stopped is long over.
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
