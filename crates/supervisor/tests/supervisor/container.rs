//! A caller as the first process of a container.

use std::process::{Command, Stdio};

use libtest_mimic::{Completion, Trial};
use rustix::process::Signal;

use crate::harness::{FAR, Setup, unlimited};

/// Set this variable if the system does not allow process namespaces. The tests that need one are then
/// skipped instead of failing.
const WITHOUT_PID_NAMESPACE: &str = "TESTS_WITHOUT_PID_NAMESPACE";

/// These tests are skipped only on request.
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
                    assert!(caller.events().ends_with("Ended { unkillable: 0 }"));
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
                    assert!(events.ends_with("unkillable: 0 }"), "{events}");
                    assert_eq!(caller.rest(), b"");
                }))
            },
        ),
        Trial::ignorable_test(
            "container::with_its_first_process_everything_dies_at_once",
            || {
                Ok(in_a_container(|setup| {
                    // The grace period is longer than the test waits, so the kernel must end the processes.
                    let mut caller = setup
                        .grace(FAR)
                        .sh("trap '' TERM; setsid sleep 1000 & echo ready; sleep 1000");
                    assert_eq!(caller.line(), "ready");
                    caller.signal(Signal::KILL);
                    assert_eq!(caller.rest(), b"");
                }))
            },
        ),
        Trial::ignorable_test("container::with_anothers_proc_nothing_is_started", || {
            Ok(with_anothers_proc(|setup| {
                let mut caller = setup.sh("echo started");
                assert_eq!(
                    caller.events(),
                    "error /proc cannot be used to find the processes of a command: it shows \
                         another process namespace (unshare --mount-proc mounts this one's)"
                );
                assert_eq!(caller.rest(), b"");
            }))
        }),
        Trial::ignorable_test("container::whom_proc_hides_is_reported_as_left", || {
            Ok(with_hidden_proc(|setup| {
                let mut caller = setup.grace(100).sh(HIDDEN);
                assert_eq!(caller.line(), "hidden");
                assert_eq!(
                    caller.events(),
                    "Exited(Code(0)), Left(1), Ended { unkillable: 1 }"
                );
            }))
        }),
        Trial::ignorable_test(
            "container::with_a_killed_supervisor_whom_proc_hides_is_reported",
            || {
                Ok(with_hidden_proc(|setup| {
                    let script = HIDDEN.replace("exit 0", "exec sleep 1000");
                    let mut caller = setup.grace(100).sh(&script);
                    assert_eq!(caller.line(), "hidden");
                    caller.order("lose");
                    let events = caller.events();
                    assert!(events.starts_with("SupervisorLost, "), "{events}");
                    assert!(events.ends_with("Ended { unkillable: 1 }"), "{events}");
                }))
            },
        ),
    ]
}

/// Leaves a process behind that `/proc` does not show, and prints a line once it is hidden.
const HIDDEN: &str = "setsid /mnt/unreadable 1000 & \
                      while [ -e /proc/$! ]; do sleep 0.01; done; echo hidden; exit 0";

/// Runs its arguments with a `/proc` that hides processes that this user may not trace. An example is
/// `/mnt/unreadable`, a copy of `sleep` that can't be read. A user with all capabilities would see it.
const HIDES: &str = "mount -t proc -o hidepid=2 proc /proc && mount -t tmpfs tmpfs /mnt &&
    cp \"$(command -v sleep)\" /mnt/unreadable && chmod 111 /mnt/unreadable || exit
    exec setpriv --bounding-set=-all --inh-caps=-all $AS \"$@\"";

fn in_a_container(test: impl FnOnce(Setup)) -> Completion {
    let new = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let as_user: Vec<&str> = new
        .into_iter()
        .chain(["--user", "--map-root-user"])
        .collect();
    with_one_of([&new, &as_user], test)
}

fn with_anothers_proc(test: impl FnOnce(Setup)) -> Completion {
    let new = ["unshare", "--pid", "--fork", "--kill-child"];
    let as_user: Vec<&str> = new
        .into_iter()
        .chain(["--user", "--map-root-user"])
        .collect();
    with_one_of([&new, &as_user], test)
}

fn with_hidden_proc(test: impl FnOnce(Setup)) -> Completion {
    let new = ["unshare", "--pid", "--fork", "--kill-child", "--mount"];
    let shell = ["sh", "-c", HIDES, "sh"];
    // The group root sees all processes.
    let outside = ["env", "AS=--regid 65534 --clear-groups"].into_iter();
    let as_root: Vec<&str> = outside.chain(new).chain(shell).collect();
    let inside = new.into_iter().chain(["--user", "--map-root-user"]);
    let as_user: Vec<&str> = inside.chain(shell).collect();
    with_one_of([&as_root, &as_user], test)
}

/// Runs the test with callers that are started by the first of these wrappers that works here.
fn with_one_of(wrappers: [&[&str]; 2], test: impl FnOnce(Setup)) -> Completion {
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
