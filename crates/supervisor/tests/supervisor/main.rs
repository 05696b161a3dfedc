//! Tests with real processes under a supervisor. The tests and the caller that each of them starts run this
//! binary. So do the supervisor and the stage before the command, which the library starts.
//!
//! No test sleeps for a fixed time. The tests wait for lines, ends of streams and process descriptors. If
//! this takes longer than half a minute, something hangs.

#[cfg(target_os = "linux")]
mod caller;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod container;
#[cfg(target_os = "linux")]
mod deadline;
#[cfg(target_os = "linux")]
mod freeze;
#[cfg(target_os = "linux")]
mod harness;
#[cfg(target_os = "linux")]
#[path = "../../../../tests/support/inherited.rs"]
mod inherited;
#[cfg(target_os = "linux")]
mod job;
#[cfg(target_os = "linux")]
mod loss;
#[cfg(target_os = "linux")]
mod slow_start;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    slow_start::stop_if_asked();
    if let Some(code) = supervisor::entry(std::env::args_os()) {
        return code;
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == caller::ARGUMENT)
    {
        return caller::main();
    }
    inherited::catch_what_is_ignored();
    let arguments = libtest_mimic::Arguments::from_args();
    let tests = [
        command::tests(),
        container::tests(),
        deadline::tests(),
        freeze::tests(),
        job::tests(),
        loss::tests(),
        slow_start::tests(),
    ];
    libtest_mimic::run(&arguments, tests.into_iter().flatten().collect()).exit_code()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
