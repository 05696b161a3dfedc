//! Wall clocks are an hour apart.

use std::time::Duration;

use crate::faketime;
use crate::history::Exit;
use crate::support::contender::{Contender, Manner};
use crate::support::plane::Access;
use crate::support::scenario::{DONE, Scenario};

const HOUR: i64 = 3600;

/// Where the test for clocks that libfaketime moves should say why it is not run, instead of failing.
const WITHOUT_FAKETIME: &str = "CHAOS_WITHOUT_FAKETIME";

/// All have the same wrong time: a holder that is killed is still succeeded, and nobody sooner.
#[test]
fn a_server_whose_clock_is_an_hour_from_everybodys() {
    let access = Access::shared();
    let scenarios = [("server-ahead", HOUR), ("server-behind", -HOUR)].map(|(name, ahead)| {
        let mut scenario = Scenario::new(&access, name);
        let gate = scenario.gate(ahead);
        let mut manner = scenario.usual();
        manner.kubeconfig.clone_from(&gate.kubeconfig);
        let holder = scenario.begins("a", manner.clone());
        scenario.joins("b", manner.clone());
        scenario.joins("c", manner);
        holder.is_killed();
        scenario.is_cut_off(&holder);
        (scenario, holder, gate)
    });
    for (scenario, holder, _gate) in scenarios {
        assert_eq!(holder.first_exit(), Exit::Killed);
        scenario.all_have_a_turn();
        scenario.ends();
    }
}

/// What it wrote holds for an hour by everybody else's clock; who gives it back is succeeded at once.
#[test]
fn a_holder_that_is_told_a_time_an_hour_ahead() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "holder-ahead");
    let gate = scenario.gate(HOUR);
    let manner = Manner {
        kubeconfig: gate.kubeconfig.clone(),
        // By its clock all others have run out: no second time.
        once: true,
        ..scenario.usual()
    };
    let holder = scenario.begins("a", manner);
    scenario.joined_by(&["b", "c"]);
    // Renewed a few times.
    std::thread::sleep(holder.manner.lease + Duration::from_secs(4));
    holder.finishes();
    assert_eq!(holder.first_exit(), DONE);
    scenario.others_have_a_turn(&holder);
    scenario.ends();
}

/// Each contender's own clock is another; the server's time is the same for all.
#[test]
fn contenders_whose_own_clocks_are_hours_apart() {
    let Some(library) = faketime::library() else {
        let hint = "libfaketime is not installed (Debian: apt-get install faketime)";
        assert!(
            std::env::var_os(WITHOUT_FAKETIME).is_some(),
            "{hint}; with {WITHOUT_FAKETIME}=1 this test is left out"
        );
        say(&format!(
            "{hint}: clocks that differ between contenders were NOT tested"
        ));
        return;
    };
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "faketime");
    let off = |scenario: &Scenario, by: &str| Manner {
        variables: [
            ("LD_PRELOAD", library.to_str().expect("a path in text")),
            ("FAKETIME", by),
            // Only the wall clock is wrong.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        ..scenario.usual()
    };
    let holder = scenario.begins("a", off(&scenario, "+1h"));
    let behind = scenario.joins("b", off(&scenario, "-1h"));
    let right = scenario.joins("c", scenario.usual());
    holder.is_killed();
    scenario.is_cut_off(&holder);
    assert_eq!(holder.first_exit(), Exit::Killed);
    scenario.all_have_a_turn();
    let told = [&holder, &behind, &right].map(Contender::first_log);
    scenario.ends();
    let off = |how: &str| format!("{how} the API server's; the server's counts");
    assert!(told[0].contains(&off("ahead of")), "{}", told[0]);
    assert!(told[1].contains(&off("behind")), "{}", told[1]);
    assert!(!told[2].contains("the local clock is"), "{}", told[2]);
}

fn say(text: &str) {
    use std::io::Write as _;
    // Past the test harness, which keeps what a test prints that passes.
    let _nobody_listens = writeln!(std::io::stderr(), "warning: {text}");
}
