//! All processes of a command are gone by its limits.

use rustix::process::Signal;

use crate::harness::{FAR, Process, Result, limited, send, tests, unlimited};

tests![
    it_is_asked_to_end_at_the_first_limit,
    a_command_that_ignores_term_is_killed_at_the_second_limit,
    renewed_limits_let_it_go_on,
    ending_it_asks_at_once_and_kills_at_the_limit,
    processes_that_left_the_tree_are_found,
    a_stopped_process_gets_the_signal,
    processes_without_open_files_are_ended,
    endless_forks_are_ended,
    endless_forks_into_new_sessions_are_ended,
    orphans_get_a_signal_and_are_then_killed,
    orphans_may_end_by_themselves,
    a_stopped_supervisor_is_continued_at_once,
    a_stopped_supervisor_keeps_the_limits,
];

/// A process that ignores TERM. It prints its pid when it is ready.
const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 1000; done";

fn it_is_asked_to_end_at_the_first_limit() -> Result {
    let mut caller = unlimited()
        .sh("trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 1000 & wait; done");
    assert_eq!(caller.line(), "ready");
    caller.limits(300, FAR);
    assert_eq!(caller.line(), "asked");
    let events = caller.events();
    assert!(
        events.starts_with("OutOfTime, Exited(Code(3)), "),
        "{events}"
    );
    assert!(events.ends_with("Ended { unkillable: 0 }"), "{events}");
    Ok(())
}

fn a_command_that_ignores_term_is_killed_at_the_second_limit() -> Result {
    let mut caller = unlimited().sh("trap '' TERM; echo ready; exec sleep 1000");
    assert_eq!(caller.line(), "ready");
    caller.limits(300, 600);
    let events = caller.events();
    assert_eq!(
        events,
        "OutOfTime, Exited(Signal(Signal(9))), Ended { unkillable: 0 }"
    );
    assert_eq!(caller.rest(), b"");
    Ok(())
}

fn renewed_limits_let_it_go_on() -> Result {
    let mut caller = limited(20_000, 20_000).sh("echo ready; exec sleep 1000");
    assert_eq!(caller.line(), "ready");
    caller.limits(FAR, FAR);
    caller.limits(300, 300);
    assert!(caller.events().contains("Exited("));
    Ok(())
}

fn ending_it_asks_at_once_and_kills_at_the_limit() -> Result {
    let mut caller = unlimited().sh(STUBBORN);
    let command = caller.process();
    caller.order("end 0 500");
    let events = caller.events();
    assert!(
        events.starts_with("Exited(Signal(Signal(9))), Ended { "),
        "{events}"
    );
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    command.is_gone();
    Ok(())
}

fn processes_that_left_the_tree_are_found() -> Result {
    let script = format!(
        "(setsid sh -c \"setsid sh -c '{}' & exit\" &); sleep 1000",
        STUBBORN.replace('\'', "'\\\\''").replace('$', "\\$")
    );
    let mut caller = unlimited().sh(&script);
    let daemon = caller.process();
    caller.order("end 0 500");
    assert!(caller.events().ends_with("unkillable: 0 }"));
    daemon.is_gone();
    Ok(())
}

fn a_stopped_process_gets_the_signal() -> Result {
    let mut caller = unlimited().sh(
        "sh -c 'trap \"echo heard; exit\" TERM; echo $$; kill -STOP $$; sleep 1000' & wait; wait",
    );
    let stopped = caller.process();
    caller.order(&format!("end 0 {FAR}"));
    assert_eq!(caller.line(), "heard");
    stopped.is_gone();
    Ok(())
}

fn processes_without_open_files_are_ended() -> Result {
    let mut caller =
        unlimited().sh("trap '' TERM; echo $$; exec <&- >&- 2>&-; while :; do :; sleep 1000; done");
    let command = caller.process();
    caller.order("end 0 300");
    command.is_gone();
    assert!(caller.events().ends_with("unkillable: 0 }"));
    Ok(())
}

/// Each process lives just long enough to start the next one, and TERM is ignored.
const COMET: &str = r#"TAIL=sh -c "$TAIL" & exit"#;

fn endless_forks_are_ended() -> Result {
    ends_a_comet(COMET)
}

fn endless_forks_into_new_sessions_are_ended() -> Result {
    ends_a_comet(&COMET.replace("=", "=setsid "))
}

fn ends_a_comet(comet: &str) -> Result {
    let mut caller = unlimited()
        .env(comet)
        .sh(r#"trap '' TERM; sh -c "$TAIL"; echo away; sleep 1000"#);
    assert_eq!(caller.line(), "away");
    caller.order("end 0 200");
    let events = caller.events();
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    assert_eq!(caller.rest(), b"");
    Ok(())
}

fn orphans_get_a_signal_and_are_then_killed() -> Result {
    let mut caller = unlimited()
        .grace(2_000)
        .sh("trap '' TERM; sh -c 'echo $$; while :; do sleep 1000; done' & exit 4");
    let left = caller.process();
    let events = caller.events();
    assert!(events.starts_with("Exited(Code(4)), Left("), "{events}");
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    left.is_gone();
    assert_eq!(caller.wait().code(), Some(4));
    Ok(())
}

fn orphans_may_end_by_themselves() -> Result {
    let mut caller = unlimited().sh("sleep 1000 & exit 0");
    let events = caller.events();
    assert_eq!(events, "Exited(Code(0)), Left(1), Ended { unkillable: 0 }");
    Ok(())
}

fn a_stopped_supervisor_is_continued_at_once() -> Result {
    let mut caller = unlimited().sh("echo ready; exec sleep 1000");
    assert_eq!(caller.line(), "ready");
    send(caller.supervisor(), Signal::STOP);
    send(caller.pid, Signal::KILL);
    assert_eq!(
        caller.events(),
        "Exited(Signal(Signal(9))), Ended { unkillable: 0 }"
    );
    Ok(())
}

fn a_stopped_supervisor_keeps_the_limits() -> Result {
    let mut caller = unlimited().sh(STUBBORN);
    let command = caller.process();
    let supervisor = Process::new(caller.supervisor());
    send(caller.supervisor(), Signal::STOP);
    caller.limits(300, 600);
    let events = caller.events();
    assert!(!events.contains("SupervisorLost"), "{events}");
    assert!(events.ends_with("unkillable: 0 }"), "{events}");
    command.is_gone();
    supervisor.is_gone();
    Ok(())
}
