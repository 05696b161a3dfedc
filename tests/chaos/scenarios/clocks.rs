//! Wall clocks that are one hour apart.

use std::path::Path;
use std::time::Duration;

use crate::history::Exit;
use crate::support::contender::{Contender, ContenderOptions};
use crate::support::scenario::{DONE, Scenario};
use crate::support::shared_cluster::Access;
use crate::support::tcp_proxy::Flow;
use crate::wall_clock::{self, Clock};

const HOUR: i64 = 3600;

/// All contenders see the same wrong server time. After the holder is killed, others acquire the lock, but not too
/// early.
#[test]
fn a_server_whose_clock_is_an_hour_off() {
    let access = Access::shared();
    let scenarios = [("server-ahead", HOUR), ("server-behind", -HOUR)].map(|(name, ahead)| {
        let mut scenario = Scenario::new(&access, name);
        let proxy = scenario.proxy(ahead);
        let mut options = scenario.usual();
        options.kubeconfig.clone_from(&proxy.kubeconfig);
        let holder = scenario.begins("a", options.clone());
        scenario.joins("b", options.clone());
        scenario.joins("c", options);
        holder.is_killed();
        scenario.is_cut_off(&holder);
        (scenario, holder, proxy)
    });
    for (scenario, holder, _proxy) in scenarios {
        assert_eq!(holder.first_exit(), Exit::Killed);
        scenario.all_have_a_turn();
        scenario.ends();
    }
}

/// By the clocks of the others, this lock ends one hour later than it should. After its release, others acquire it at
/// once.
#[test]
fn a_holder_that_sees_a_server_time_an_hour_ahead() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "holder-ahead");
    let proxy = scenario.proxy(HOUR);
    let options = ContenderOptions {
        kubeconfig: proxy.kubeconfig.clone(),
        // By its server time, the locks of all others have expired, so it must not try a second time.
        once: true,
        ..scenario.usual()
    };
    let holder = scenario.begins("a", options);
    scenario.joined_by(&["b", "c"]);
    // The lock is renewed several times.
    std::thread::sleep(holder.options.lease + Duration::from_secs(4));
    holder.finishes();
    assert_eq!(holder.first_exit(), DONE);
    scenario.others_have_a_turn(&holder);
    scenario.ends();
}

/// The clock of each contender differs. The server's time is the same for all.
#[test]
fn contenders_whose_own_clocks_are_hours_apart() {
    let Some(library) = wall_clock::library() else {
        return;
    };
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "faketime");
    let off = |scenario: &Scenario, by| faked(scenario, &library, &[("FAKETIME", by)]);
    let holder = scenario.begins("a", off(&scenario, "+1h"));
    let behind = scenario.joins("b", off(&scenario, "-1h"));
    let right = scenario.joins("c", scenario.usual());
    holder.is_killed();
    scenario.is_cut_off(&holder);
    assert_eq!(holder.first_exit(), Exit::Killed);
    scenario.all_have_a_turn();
    let log = [&holder, &behind, &right].map(Contender::first_log);
    scenario.ends();
    let off = |how: &str| format!("{how} the API server's;");
    assert!(log[0].contains(&off("ahead of")), "{}", log[0]);
    assert!(log[1].contains(&off("behind")), "{}", log[1]);
    assert!(!log[2].contains("the local clock is"), "{}", log[2]);
}

/// A jump of the wall clock looks like a pause. The clock of the waiting contender is also one hour ahead, and that
/// contender does not trust it. The holder checks its lock and continues.
#[test]
fn clocks_that_jump_ahead_again_and_again() {
    let Some(library) = wall_clock::library() else {
        return;
    };
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "jumps");
    let clock = Clock::ahead(scenario.directory(), HOUR);
    // Answers are delayed to make checks visible.
    let link = scenario.link();
    link.answers(Flow::Slow(Duration::from_millis(400)));
    let options = ContenderOptions {
        kubeconfig: link.kubeconfig.clone(),
        lease: Duration::from_secs(20),
        ..faked(&scenario, &library, &clock.fault())
    };
    let holder = scenario.begins("a", options);
    let waiter = scenario.joins("b", faked(&scenario, &library, &clock.fault()));
    for jumps in 1..=8 {
        // The jumps add up to more than the lease, and some occur during renewals. There are 3 s between them, because
        // a check takes over 1 s, and another jump would invalidate it.
        std::thread::sleep(Duration::from_secs(3));
        clock.set(HOUR + jumps * 5);
    }
    holder.finishes();
    assert_eq!(holder.first_exit(), DONE);
    scenario.all_have_a_turn();
    let log = holder.first_log();
    let waited = waiter.first_log();
    scenario.ends();
    assert!(log.contains("this machine may have been paused"), "{log}");
    assert!(waited.contains("the local clock is"), "{waited}");
}

fn faked(scenario: &Scenario, library: &Path, fault: &[(&str, &str)]) -> ContenderOptions {
    let variables = wall_clock::environment(library, fault).into_iter();
    ContenderOptions {
        variables: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..scenario.usual()
    }
}
