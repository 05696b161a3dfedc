//! A caller as the first process of a container.

use std::process::{Command, Stdio};

use libtest_mimic::{Completion, Trial};

use crate::harness::{FAR, Setup, unlimited};

/// Where tests that need a process namespace should be left out instead of failing: this system lets
/// nobody make one.
const WITHOUT_PID_NAMESPACE: &str = "TESTS_WITHOUT_PID_NAMESPACE";

/// Left out only where somebody said so.
pub(crate) fn tests() -> Vec<Trial> {
    vec![
        Trial::ignorable_test(
            "container::orphans_are_reaped_and_own_children_left_alone",
            || {
                Ok(in_a_container(|setup| {
                    let mut caller = setup.sh("exec sleep 1000");
                    caller.order("orphan");
                    assert_eq!(caller.event(), "own child Some(7), no zombie left");
                    caller.order(&format!("end 0 {FAR}"));
                    assert!(
                        caller
                            .events()
                            .ends_with("Over(Over { killed: 0, unkillable: 0 })")
                    );
                }))
            },
        ),
        Trial::ignorable_test(
            "container::with_a_killed_supervisor_the_rest_is_ended",
            || {
                Ok(in_a_container(|setup| {
                    let mut caller = setup.sh("setsid sleep 1000 & echo ready; exec sleep 1000");
                    assert_eq!(caller.line(), "ready");
                    caller.order("lose");
                    let events = caller.events();
                    assert!(events.starts_with("SupervisorLost, "), "{events}");
                    assert!(events.ends_with("unkillable: 0 })"), "{events}");
                    assert_eq!(caller.rest(), b"");
                }))
            },
        ),
    ]
}

fn in_a_container(test: impl FnOnce(Setup)) -> Completion {
    let new = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let as_user: Vec<&str> = new
        .into_iter()
        .chain(["--user", "--map-root-user"])
        .collect();
    let wrappers = [&new[..], &as_user];
    let Some(wrapper) = wrappers.into_iter().find(|wrapper| works(wrapper)) else {
        let hint = "no process namespace can be made here";
        assert!(
            std::env::var_os(WITHOUT_PID_NAMESPACE).is_some(),
            "{hint}; with {WITHOUT_PID_NAMESPACE}=1 this test is left out"
        );
        return Completion::ignored_with(hint);
    };
    test(unlimited().by(wrapper));
    Completion::Completed
}

fn works(wrapper: &[&str]) -> bool {
    Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
