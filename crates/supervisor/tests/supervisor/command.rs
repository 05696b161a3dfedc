//! Tests that the supervisor does not change what the command sees.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use libtest_mimic::Failed;
use rustix::process::Signal;

use crate::harness::{FAR, Result, limited, send, tests, unlimited};

tests![
    its_exit_code_is_passed_on,
    its_signal_is_passed_on,
    missing_commands_have_the_codes_of_a_shell,
    its_arguments_are_exactly_those_given,
    arguments_of_a_megabyte_arrive,
    variables_are_set_and_removed_and_the_last_value_counts,
    its_stdin_is_the_very_same_open_file,
    signals_reach_it,
    its_signal_mask_and_dispositions_are_a_fresh_process_ones,
    ignored_signals_stay_ignored,
    the_exit_code_is_known_even_if_sigchld_was_ignored,
    a_stop_is_for_both_and_so_is_going_on,
    stopped_by_somebody_it_is_left_so,
    a_second_one_is_refused_while_it_runs,
    without_time_it_is_not_started,
];

const OVER: &str = "Ended { unkillable: 0 }";

fn its_exit_code_is_passed_on() -> Result {
    let mut caller = unlimited().sh("exit 7");
    assert_eq!(caller.events(), format!("Exited(Code(7)), {OVER}"));
    assert_eq!(caller.wait().code(), Some(7));
    Ok(())
}

fn its_signal_is_passed_on() -> Result {
    let mut caller = unlimited().sh("kill -USR1 $$");
    assert_eq!(
        caller.events(),
        format!("Exited(Signal(Signal(10))), {OVER}")
    );
    assert_eq!(caller.wait().code(), Some(138));
    Ok(())
}

fn missing_commands_have_the_codes_of_a_shell() -> Result {
    for (program, code) in [
        ("/nowhere/at/all", 127),
        ("no-such-command", 127),
        ("/", 126),
    ] {
        let mut caller = unlimited().run([program]);
        assert_eq!(caller.events(), format!("Exited(Code({code})), {OVER}"));
    }
    Ok(())
}

fn its_arguments_are_exactly_those_given() -> Result {
    let odd = OsStr::from_bytes(b"\xff\xfe $(x) 'y'\n");
    let argv = ["printf", "<%s>", "", "--", "-x", "a b", "__exec"].map(OsStr::new);
    let mut caller = unlimited().run(argv.into_iter().chain([odd]));
    assert_eq!(
        caller.rest(),
        b"<><--><-x><a b><__exec><\xff\xfe $(x) 'y'\n>"
    );
    Ok(())
}

fn arguments_of_a_megabyte_arrive() -> Result {
    let many = vec!["x".repeat(100_000); 10];
    let argv = ["/bin/sh", "-c", "printf %s \"$*\" | wc -c", "sh"].map(str::to_owned);
    let mut caller = unlimited().run(argv.into_iter().chain(many));
    assert_eq!(caller.line().trim(), "1000009");
    Ok(())
}

fn variables_are_set_and_removed_and_the_last_value_counts() -> Result {
    let odd = OsString::from_vec(b"ODD=\xff=\xfe".to_vec());
    let mut caller = unlimited()
        .env("INHERITED=first")
        .env("INHERITED=second")
        .env("REMOVED")
        .env(odd)
        .sh(r#"printf '%s|%s|%s' "$INHERITED" "${REMOVED-none}" "$ODD""#);
    assert_eq!(caller.rest(), b"second|none|\xff=\xfe");
    Ok(())
}

fn its_stdin_is_the_very_same_open_file() -> Result {
    let mut file = tempfile::tempfile()?;
    file.write_all(b"abcdef")?;
    file.rewind()?;
    let theirs: File = file.try_clone()?;
    let mut caller = unlimited()
        .stdin(theirs)
        .run(["dd", "bs=4", "count=1", "status=none"]);
    assert_eq!(caller.rest(), b"abcd");
    assert_eq!(file.stream_position()?, 4);
    Ok(())
}

fn signals_reach_it() -> Result {
    let traps = "for s in INT TERM HUP QUIT USR1 USR2; do trap \"echo $s\" $s; done";
    let mut caller = unlimited().sh(&format!(
        "{traps}; echo ready; while :; do sleep 9 & wait; done"
    ));
    assert_eq!(caller.line(), "ready");
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        caller.signal(signal);
        assert_eq!(caller.line(), name);
    }
    Ok(())
}

/// Prints the lines of the command's signals in `/proc`.
const SIGNALS: &str = r"sed -n /^Sig[BIC][lg]/p /proc/self/status";

/// The signals that the parent of the tests ignores. Rust also ignores SIGPIPE, which is removed.
fn ignored_here() -> std::result::Result<Option<u64>, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("SigIgn:"));
    Ok(line.and_then(ignored).map(|set| set & !0x1000))
}

/// The ignored signals below 32. The C library uses some of the others.
fn ignored(line: &str) -> Option<u64> {
    let set = line.strip_prefix("SigIgn:")?;
    Some(u64::from_str_radix(set.trim(), 16).ok()? & 0x7fff_ffff)
}

fn its_signal_mask_and_dispositions_are_a_fresh_process_ones() -> Result {
    let mut caller = unlimited().run(["/bin/sh", "-c", &format!("exec {SIGNALS}")]);
    assert_eq!(caller.line(), "SigBlk:\t0000000000000000");
    assert_eq!(ignored(&caller.line()), ignored_here()?);
    assert_eq!(caller.line(), "SigCgt:\t0000000000000000");
    Ok(())
}

fn ignored_signals_stay_ignored() -> Result {
    let mut caller = unlimited()
        .by(&["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
        .sh(&format!(
            "{SIGNALS}; kill -HUP $PPID; echo alive; read line"
        ));
    assert_eq!(caller.line(), "SigBlk:\t0000000000000000");
    assert_eq!(ignored(&caller.line()), ignored_here()?.map(|set| set | 1));
    caller.signal(Signal::HUP);
    assert_eq!(caller.line().split(':').next(), Some("SigCgt"));
    assert_eq!(caller.line(), "alive");
    assert_eq!(caller.events(), format!("Exited(Code(1)), {OVER}"));
    Ok(())
}

fn the_exit_code_is_known_even_if_sigchld_was_ignored() -> Result {
    let mut caller = unlimited()
        .by(&["env", "--ignore-signal=CHLD"])
        .sh("exit 7");
    assert_eq!(caller.events(), format!("Exited(Code(7)), {OVER}"));
    Ok(())
}

/// A command that prints when it continues after a stop.
const NOTICES_CONT: &str =
    "trap 'echo continued' CONT; echo ready; while :; do sleep 1000 & wait; done";

fn a_stop_is_for_both_and_so_is_going_on() -> Result {
    let mut caller = unlimited().sh(NOTICES_CONT);
    assert_eq!(caller.line(), "ready");
    caller.signal(Signal::TSTP);
    assert_eq!(caller.event(), "Stopped(Signal(20))");
    caller.has_stopped();
    caller.signal(Signal::CONT);
    assert_eq!(caller.line(), "continued");
    Ok(())
}

fn stopped_by_somebody_it_is_left_so() -> Result {
    let mut caller = unlimited().sh(NOTICES_CONT);
    assert_eq!(caller.line(), "ready");
    send(caller.pid, Signal::STOP);
    assert_eq!(caller.event(), "Stopped(Signal(19))");
    caller.order("again");
    assert!(caller.event().starts_with("error "));
    send(caller.pid, Signal::CONT);
    assert_eq!(caller.line(), "continued");
    Ok(())
}

fn a_second_one_is_refused_while_it_runs() -> Result {
    let mut caller = unlimited().sh("exec sleep 1000");
    caller.order("again");
    caller.order("end 0 0");
    let refusal = "error a command already runs under this process";
    assert!(caller.events().contains(refusal));
    Ok(())
}

fn without_time_it_is_not_started() -> Result {
    let mut caller = limited(-1, FAR).sh("echo started");
    assert_eq!(
        caller.event(),
        "error there is no time left to run the command"
    );
    assert_eq!(caller.rest(), b"");
    Ok(())
}
