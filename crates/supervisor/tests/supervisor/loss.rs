//! If any process is killed or stopped, the command does not outlive its limits.

use rustix::process::Signal;

use crate::harness::{Caller, FAR, Process, Result, is_past, send, tests, unlimited};

tests![
    with_a_killed_caller_everything_ends,
    with_a_killed_caller_nobody_has_longer_than_the_limit,
    with_its_handle_dropped_everything_ends,
    with_a_stopped_caller_everything_ends_at_the_limit,
    with_a_killed_supervisor_the_caller_ends_the_rest,
    a_command_that_ends_after_its_supervisor_was_killed_is_reported,
    with_both_killed_the_command_itself_dies,
    with_both_stopped_everything_ends_when_the_supervisor_goes_on,
    with_both_stopped_everything_ends_when_the_caller_goes_on,
    with_both_stopped_a_command_that_ends_after_its_limit_is_late,
    terminal_signals_and_term_do_not_end_the_supervisor,
];

/// A command with a child that has left its session. Both ignore TERM and print their pids.
const FAMILY: &str = "trap '' TERM; echo $$; setsid sh -c 'echo $$; while :; do sleep 1000; done' & \
                      while :; do sleep 1000; done";

fn with_a_killed_caller_everything_ends() -> Result {
    let mut caller = unlimited().grace(300).sh(FAMILY);
    let (command, daemon) = (caller.process(), caller.process());
    let supervisor = Process::new(caller.supervisor());
    caller.signal(Signal::KILL);
    command.is_gone();
    daemon.is_gone();
    supervisor.is_gone();
    assert_eq!(caller.rest(), b"");
    Ok(())
}

fn with_a_killed_caller_nobody_has_longer_than_the_limit() -> Result {
    let mut caller = unlimited().grace(60_000).sh(FAMILY);
    let (command, daemon) = (caller.process(), caller.process());
    caller.limits(FAR, 1_000);
    caller.signal(Signal::KILL);
    command.is_gone();
    daemon.is_gone();
    Ok(())
}

fn with_its_handle_dropped_everything_ends() -> Result {
    let mut caller = unlimited().grace(300).sh(FAMILY);
    let (command, daemon) = (caller.process(), caller.process());
    let supervisor = Process::new(caller.supervisor());
    caller.order("drop");
    assert_eq!(caller.event(), "dropped");
    command.is_gone();
    daemon.is_gone();
    supervisor.is_gone();
    Ok(())
}

fn with_a_stopped_caller_everything_ends_at_the_limit() -> Result {
    let mut caller = unlimited().sh(FAMILY);
    let (command, daemon) = (caller.process(), caller.process());
    caller.limits(700, 1_200);
    caller.signal(Signal::STOP);
    command.is_gone();
    daemon.is_gone();
    caller.signal(Signal::CONT);
    let events = caller.events();
    assert!(
        events.starts_with("OutOfTime, Exited(Signal(Signal(9))), Ended { "),
        "{events}"
    );
    Ok(())
}

fn with_a_killed_supervisor_the_caller_ends_the_rest() -> Result {
    let mut caller = unlimited().grace(300).sh(FAMILY);
    let (command, daemon) = (caller.process(), caller.process());
    send(caller.supervisor(), Signal::KILL);
    let events = caller.events();
    assert!(
        events.starts_with("SupervisorLost, Exited(Signal(Signal(9))), "),
        "{events}"
    );
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    command.is_gone();
    daemon.is_gone();
    assert_eq!(caller.rest(), b"");
    Ok(())
}

fn a_command_that_ends_after_its_supervisor_was_killed_is_reported() -> Result {
    let mut caller = unlimited().sh("echo ready; exec sleep 1000");
    assert_eq!(caller.line(), "ready");
    send(caller.supervisor(), Signal::KILL);
    assert_eq!(
        caller.events(),
        "SupervisorLost, Exited(Signal(Signal(9))), Ended { unkillable: 0 }"
    );
    assert_eq!(caller.wait().code(), Some(137));
    Ok(())
}

fn with_both_killed_the_command_itself_dies() -> Result {
    let mut caller = unlimited().sh("echo $$; exec sleep 1000");
    let command = caller.process();
    let supervisor = caller.supervisor();
    caller.signal(Signal::STOP);
    send(supervisor, Signal::KILL);
    caller.signal(Signal::KILL);
    command.is_gone();
    assert_eq!(caller.rest(), b"");
    Ok(())
}

/// Stops a caller and its supervisor until the limits have passed. No process can end the command then. Returns the supervisor.
fn stop_both(caller: &mut Caller) -> i32 {
    let supervisor = caller.supervisor();
    caller.limits(8_000, 8_300);
    // A running caller would continue a supervisor that has stopped.
    caller.signal(Signal::STOP);
    caller.has_stopped();
    send(supervisor, Signal::STOP);
    is_past(8_300);
    supervisor
}

/// A command and its child whose caller and supervisor are stopped, and whose limits have passed.
fn with_both_stopped() -> (Caller, [Process; 2], i32) {
    let mut caller = unlimited().grace(300).sh(FAMILY);
    let family = [caller.process(), caller.process()];
    let supervisor = stop_both(&mut caller);
    assert!(family.iter().all(Process::lives));
    (caller, family, supervisor)
}

fn with_both_stopped_a_command_that_ends_after_its_limit_is_late() -> Result {
    let mut caller = unlimited().sh("echo ready; exec sleep 1000");
    assert_eq!(caller.line(), "ready");
    let command = Process::new(caller.pid);
    stop_both(&mut caller);
    send(caller.pid, Signal::USR1);
    command.is_gone();
    caller.signal(Signal::CONT);
    let events = caller.events();
    assert_eq!(
        events,
        "OutOfTime, Exited(Signal(Signal(10))), Ended { unkillable: 0 }"
    );
    Ok(())
}

fn with_both_stopped_everything_ends_when_the_supervisor_goes_on() -> Result {
    let (mut caller, family, supervisor) = with_both_stopped();
    send(supervisor, Signal::CONT);
    family.iter().for_each(Process::is_gone);
    caller.signal(Signal::CONT);
    let events = caller.events();
    assert!(events.starts_with("OutOfTime, Exited("), "{events}");
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    Ok(())
}

fn with_both_stopped_everything_ends_when_the_caller_goes_on() -> Result {
    let (mut caller, family, _) = with_both_stopped();
    caller.signal(Signal::CONT);
    family.iter().for_each(Process::is_gone);
    let events = caller.events();
    assert!(events.starts_with("OutOfTime, Exited("), "{events}");
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    Ok(())
}

fn terminal_signals_and_term_do_not_end_the_supervisor() -> Result {
    let mut caller =
        unlimited().sh("trap 'exit 5' USR1; echo ready; while :; do sleep 1000 & wait; done");
    assert_eq!(caller.line(), "ready");
    let supervisor = caller.supervisor();
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::TSTP,
    ] {
        send(supervisor, signal);
    }
    caller.signal(Signal::USR1);
    let events = caller.events();
    assert!(events.starts_with("Exited(Code(5)), "), "{events}");
    assert!(!events.contains("SupervisorLost"), "{events}");
    Ok(())
}
