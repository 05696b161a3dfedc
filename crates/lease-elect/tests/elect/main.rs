//! Tests the program as a process supervisor or a container runs it, on an in-memory API server and on a real
//! one.
//!
//! Tests wait at most one minute for lines and for ends of processes. If this takes longer, something hangs.
//! They assert the order of events, and that events do not happen too early.

mod client_go;
mod container;
mod hand_over;
#[path = "../../../../tests/support/inherited.rs"]
mod inherited;
mod loss;
mod startup;
mod status;
mod support;

fn main() -> std::process::ExitCode {
    inherited::catch_what_is_ignored();
    let arguments = libtest_mimic::Arguments::from_args();
    let tests = [
        client_go::tests(),
        container::tests(),
        hand_over::tests(),
        loss::tests(),
        startup::tests(),
        status::tests(),
    ];
    libtest_mimic::run(&arguments, tests.into_iter().flatten().collect()).exit_code()
}
