//! All processes of a command are stopped, and then continue as before.

use rustix::process::Signal;

use crate::harness::{Caller, FAR, Process, Result, is_stopped, send, tests, unlimited};

tests![
    all_of_it_stands_still_and_goes_on,
    processes_stopped_by_a_user_stay_stopped,
    forking_processes_are_stopped,
    term_runs_the_handler,
    the_limits_hold_meanwhile,
    stopped_processes_die_with_their_caller,
    stopped_processes_die_with_their_supervisor,
    ending_processes_are_not_stopped,
];

/// A process in its own session that prints its pid and the signals that it receives.
const DISTANT: &str = r#"setsid sh -c 'trap "echo heard; exit" USR1; echo $$; while :; do sleep 0.1; done' & \
                         trap 'wait; exit 3' USR1; while :; do sleep 0.1; done"#;

fn frozen(caller: &mut Caller) {
    caller.order("freeze");
    assert_eq!(caller.event(), "Frozen");
}

fn all_of_it_stands_still_and_goes_on() -> Result {
    let mut caller = unlimited().sh(DISTANT);
    let distant: i32 = caller.line().parse()?;
    for _ in 0..3 {
        frozen(&mut caller);
        assert!(is_stopped(caller.pid) && is_stopped(distant));
        caller.order("thaw");
        assert_eq!(caller.event(), "Thawed");
        assert!(!is_stopped(caller.pid) && !is_stopped(distant));
    }
    // Signals that are sent while it is stopped arrive afterwards.
    frozen(&mut caller);
    send(distant, Signal::USR1);
    caller.signal(Signal::USR1);
    caller.order("thaw");
    assert_eq!(caller.line(), "heard");
    assert_eq!(
        caller.events(),
        "Thawed, Exited(Code(3)), Ended { unkillable: 0 }"
    );
    Ok(())
}

fn processes_stopped_by_a_user_stay_stopped() -> Result {
    let mut caller = unlimited().sh(r#"sh -c 'echo $$; kill -STOP $$; echo on' &
        until read -r _ _ state _ </proc/$!/stat && [ "$state" = T ]; do :; done
        echo stopped; wait; exit 3"#);
    let stopped: i32 = caller.line().parse()?;
    assert_eq!(caller.line(), "stopped");
    frozen(&mut caller);
    caller.order("thaw");
    assert_eq!(caller.event(), "Thawed");
    assert!(is_stopped(stopped) && !is_stopped(caller.pid));
    send(stopped, Signal::CONT);
    assert_eq!(caller.line(), "on");
    assert!(caller.events().starts_with("Exited(Code(3)), "));
    Ok(())
}

fn forking_processes_are_stopped() -> Result {
    let mut caller = unlimited().sh("echo on; while :; do sh -c 'sh -c :'; done");
    assert_eq!(caller.line(), "on");
    frozen(&mut caller);
    assert!(is_stopped(caller.pid));
    caller.order("thaw");
    assert_eq!(caller.event(), "Thawed");
    caller.order(&format!("end 0 {FAR}"));
    assert!(caller.events().ends_with("unkillable: 0 }"));
    Ok(())
}

/// Prints a line when it receives TERM.
const POLITE: &str = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.1; done";

fn term_runs_the_handler() -> Result {
    let mut caller = unlimited().sh(POLITE);
    assert_eq!(caller.line(), "ready");
    frozen(&mut caller);
    caller.order(&format!("end 0 {FAR}"));
    assert_eq!(caller.line(), "asked");
    assert!(caller.events().starts_with("Exited(Code(3)), "));
    Ok(())
}

fn the_limits_hold_meanwhile() -> Result {
    let mut caller = unlimited().sh(POLITE);
    assert_eq!(caller.line(), "ready");
    frozen(&mut caller);
    caller.limits(300, FAR);
    // It is unknown whether the command may run at all, so it gets no time to end.
    let events = caller.events();
    assert!(
        events.starts_with("OutOfTime, Exited(Signal(Signal(9)))"),
        "{events}"
    );
    assert!(!events.contains("Code(3)"), "{events}");
    assert_eq!(caller.rest(), b"");
    Ok(())
}

fn stopped_processes_die_with_their_caller() -> Result {
    let mut caller = unlimited().sh(DISTANT);
    let distant = caller.process();
    frozen(&mut caller);
    caller.signal(Signal::KILL);
    distant.is_gone();
    assert_eq!(caller.rest(), b"");
    Ok(())
}

fn stopped_processes_die_with_their_supervisor() -> Result {
    let mut caller = unlimited().sh(DISTANT);
    let (command, distant) = (Process::new(caller.pid), caller.process());
    frozen(&mut caller);
    caller.order("lose");
    command.is_gone();
    distant.is_gone();
    assert!(caller.events().starts_with("SupervisorLost, "));
    Ok(())
}

fn ending_processes_are_not_stopped() -> Result {
    let mut caller = unlimited().sh(
        "trap 'echo asked; while :; do sleep 0.1; done' TERM; trap 'echo over; exit 3' USR1; \
             echo ready; while :; do sleep 0.1; done",
    );
    assert_eq!(caller.line(), "ready");
    caller.order(&format!("end 0 {FAR}"));
    assert_eq!(caller.line(), "asked");
    caller.order("freeze");
    caller.signal(Signal::USR1);
    assert_eq!(caller.line(), "over");
    assert!(caller.events().starts_with("Exited(Code(3)), "));
    Ok(())
}
