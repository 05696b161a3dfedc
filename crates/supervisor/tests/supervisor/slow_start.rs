//! A supervisor that is stopped or killed after it has started the command and before it reports this.

use std::thread;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process};

use crate::harness::{
    Caller, Process, Result, Setup, is_stopped, only_child, send, tests, unlimited,
};

tests![
    with_a_supervisor_killed_before_it_reports_the_start_nothing_is_left,
    a_supervisor_stopped_before_it_reports_the_start_goes_on,
];

/// The variable that says which processes a supervisor stops as soon as it has a child.
const STOP: &str = "STOP_AT_SPAWN";

/// How many times to try again with a supervisor that reported too early.
const TRIES: usize = 200;

/// A command with a child that outlives it.
const FAMILY: &str = "echo $$; setsid sh -c 'echo $$; exec sleep 1000' & wait";

/// If this process is a supervisor that should stop, starts a thread that stops it while it still waits for
/// its new child.
pub(crate) fn stop_if_asked() {
    let is_supervisor = std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == "__supervise");
    let Some(what) = std::env::var(STOP).ok().filter(|_| is_supervisor) else {
        return;
    };
    let own = getpid();
    let stop = |process: Pid| kill_process(process, Signal::STOP).expect("a signal");
    thread::spawn(move || {
        while only_child(own.as_raw_pid()).is_none() {}
        if what == "both" {
            stop(getppid().expect("a caller"));
        }
        stop(own);
    });
}

fn begin(what: &str) -> (Caller, [Process; 2]) {
    let setup: Setup = unlimited().grace(300).env(format!("{STOP}={what}"));
    let mut caller = setup.begin(["/bin/sh", "-c", FAMILY]);
    let family = [caller.process(), caller.process()];
    (caller, family)
}

fn with_a_supervisor_killed_before_it_reports_the_start_nothing_is_left() -> Result {
    for _ in 0..TRIES {
        let (mut caller, family) = begin("both");
        // A running caller would continue its supervisor.
        caller.has_stopped();
        let supervisor = only_child(caller.own_pid()).expect("a supervisor");
        while !is_stopped(supervisor) {
            thread::yield_now();
        }
        send(supervisor, Signal::KILL);
        caller.signal(Signal::CONT);
        caller.is_answered();
        let events = caller.events();
        family.iter().for_each(Process::is_gone);
        assert!(events.starts_with("SupervisorLost, "), "{events}");
        assert!(events.ends_with("unkillable: 0 }"), "{events}");
        if caller.pid == 0 {
            assert!(!events.contains("Exited"), "{events}");
            assert_eq!(caller.wait().code(), Some(99));
            return Ok(());
        }
    }
    panic!("each of {TRIES} supervisors was stopped too late");
}

fn a_supervisor_stopped_before_it_reports_the_start_goes_on() -> Result {
    // Some supervisors report before they are stopped.
    for _ in 0..20 {
        let (mut caller, family) = begin("supervisor");
        caller.is_answered();
        caller.order("end 0 0");
        let events = caller.events();
        family.iter().for_each(Process::is_gone);
        assert!(events.ends_with("unkillable: 0 }"), "{events}");
        assert!(!events.contains("SupervisorLost"), "{events}");
    }
    Ok(())
}
