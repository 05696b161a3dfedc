//! A caller as a job of an interactive shell, on a terminal.

use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};
use rustix::process::Signal;

use crate::caller;
use crate::harness::{FAR, Result, is_stopped, send, tests};

tests![
    ctrl_c_reaches_the_command_only,
    ctrl_z_stops_the_job_and_fg_continues_it,
    a_job_that_goes_on_in_the_background_may_come_back,
    a_shell_that_suspends_itself_comes_back_with_its_terminal,
    in_a_pipeline_it_gets_the_terminal_when_it_reads,
    in_a_pipeline_ctrl_z_and_fg_are_for_all_of_it,
    started_in_the_background_it_stops_when_it_reads,
    without_a_shell_around_ctrl_z_stops_nothing,
    killed_commands_leave_the_terminal_as_it_was,
    a_shell_that_stood_still_takes_no_notice,
];

const OUTER: &str = "outer> ";

/// An interactive shell on its own terminal, in which `c` starts a caller.
fn shell() -> std::result::Result<PtySession, Failed> {
    let mut shell = spawn("bash", &["--norc", "--noprofile", "--noediting", "-i"])?;
    shell.exp_string(OUTER)?;
    Ok(shell)
}

fn spawn(program: &str, arguments: &[&str]) -> std::result::Result<PtySession, Failed> {
    let own = std::env::current_exe()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("PS1", OUTER)
        .env("TERM", "dumb")
        .env("OWN", &own)
        .env(
            "BASH_FUNC_c%%",
            format!(
                r#"() {{ "$OWN" {} - 3000 {FAR} {FAR} PS1=inner\>\  -- "$@"; }}"#,
                caller::ARGUMENT
            ),
        );
    let options = Options::new()
        .timeout_ms(Some(30_000))
        .strip_ansi_escape_codes(true);
    let mut session = spawn_with_options(command, options)?;
    // An interactive shell ignores TERM.
    session.process_mut().set_kill_timeout(Some(200));
    Ok(session)
}

fn ctrl_c_reaches_the_command_only() -> Result {
    let mut shell = shell()?;
    shell.send_line("c bash --norc --noprofile --noediting -i")?;
    shell.exp_string("inner> ")?;
    // The command has the terminal once it prints something itself. Before that, the shell may receive the
    // Ctrl-C.
    shell.send_line(r#"sh -c 'echo be""gun; exec sleep 1000'"#)?;
    shell.exp_string("begun")?;
    shell.send_control('c')?;
    shell.exp_string("inner> ")?;
    shell.send_line("exit")?;
    shell.exp_string(OUTER)?;
    shell.send_line(
        "c sh -c 'trap \"echo caught; exit 3\" INT; echo be\"\"gun; sleep 1000 & wait'",
    )?;
    shell.exp_string("begun")?;
    shell.send_control('c')?;
    shell.exp_string("caught")?;
    shell.exp_string(OUTER)?;
    shell.send_line("echo code $?")?;
    shell.exp_string("code 3")?;
    Ok(())
}

/// Prints that it runs, and then the line that it reads.
const READER: &str = r#"sh -c 'echo be""gun; read x; echo "<$x>"'"#;

fn ctrl_z_stops_the_job_and_fg_continues_it() -> Result {
    let mut shell = shell()?;
    // A continued process has the terminal by then, and its read is interrupted.
    shell.send_line(
        r#"c sh -c 'trap "echo be\"\"gun" CONT; echo be""gun; until read x; do :; done; echo "<$x>"'"#,
    )?;
    for _ in 0..2 {
        shell.exp_string("begun")?;
        shell.send_control('z')?;
        shell.exp_string("Stopped")?;
        shell.exp_string(OUTER)?;
        shell.send_line("fg")?;
    }
    shell.exp_string("begun")?;
    shell.send_line("input")?;
    shell.exp_string("<input>")?;
    shell.exp_string(OUTER)?;
    shell.send_line("jobs; echo no''thing")?;
    assert!(!shell.exp_string("nothing")?.contains("Stopped"));
    Ok(())
}

fn a_job_that_goes_on_in_the_background_may_come_back() -> Result {
    let mut shell = shell()?;
    shell
        .send_line(r#"c sh -c 'echo be""gun; kill -STOP $$; echo go""ing; read x; echo "<$x>"'"#)?;
    shell.exp_string("begun")?;
    shell.exp_string("Stopped")?;
    shell.exp_string(OUTER)?;
    shell.send_line("bg")?;
    // It prints, then reads, which stops it again.
    shell.exp_string("going")?;
    shell.send_line("until jobs -s | grep -q c; do sleep 0.1; done; fg; echo af''ter")?;
    shell.send_line("input")?;
    shell.exp_string("<input>")?;
    shell.exp_string("after")?;
    Ok(())
}

fn a_shell_that_suspends_itself_comes_back_with_its_terminal() -> Result {
    let mut shell = shell()?;
    shell.send_line("c bash --norc --noprofile --noediting -i")?;
    shell.exp_string("inner> ")?;
    shell.send_line("suspend")?;
    shell.exp_string("Stopped")?;
    shell.exp_string(OUTER)?;
    shell.send_line("fg")?;
    shell.exp_string("inner> ")?;
    shell.send_line("echo $((6 * 7))")?;
    shell.exp_string("42")?;
    Ok(())
}

fn in_a_pipeline_it_gets_the_terminal_when_it_reads() -> Result {
    let mut shell = shell()?;
    shell.send_line(&format!("c {READER} | cat"))?;
    shell.exp_string("begun")?;
    shell.send_line("input")?;
    shell.exp_string("<input>")?;
    shell.exp_string(OUTER)?;
    shell.send_line("echo x | c sh -c 'cat; echo be\"\"gun; read y </dev/tty; echo \"<$y>\"'")?;
    shell.exp_string("begun")?;
    shell.send_line("more")?;
    shell.exp_string("<more>")?;
    shell.exp_string(OUTER)?;
    Ok(())
}

fn in_a_pipeline_ctrl_z_and_fg_are_for_all_of_it() -> Result {
    let mut shell = shell()?;
    shell.send_line(r#"c sh -c 'read x; echo be""gun; read x; echo "<$x>"' | cat"#)?;
    shell.send_line("once")?;
    shell.exp_string("begun")?;
    shell.send_control('z')?;
    shell.exp_string("Stopped")?;
    shell.exp_string(OUTER)?;
    shell.send_line("fg")?;
    shell.send_line("input")?;
    shell.exp_string("<input>")?;
    shell.exp_string(OUTER)?;
    Ok(())
}

fn started_in_the_background_it_stops_when_it_reads() -> Result {
    let mut shell = shell()?;
    shell.send_line(&format!("c {READER} &"))?;
    shell.exp_string("begun")?;
    shell.send_line("until jobs -s | grep -q c; do sleep 0.1; done; fg; echo af''ter")?;
    shell.send_line("input")?;
    shell.exp_string("<input>")?;
    shell.exp_string("after")?;
    Ok(())
}

fn without_a_shell_around_ctrl_z_stops_nothing() -> Result {
    let mut alone = spawn(
        "bash",
        &[
            "-c",
            &format!(
                r#"OWN=$OWN; set -- {READER}; exec "$OWN" {} - 3000 {FAR} {FAR} -- "$@""#,
                caller::ARGUMENT
            ),
        ],
    )?;
    alone.exp_string("begun")?;
    alone.send_control('z')?;
    alone.send_line("input")?;
    alone.exp_string("<input>")?;
    alone.exp_eof()?;
    Ok(())
}

fn killed_commands_leave_the_terminal_as_it_was() -> Result {
    let mut shell = shell()?;
    shell.send_line("c sh -c 'stty raw -echo; kill -KILL $$'; stty -a")?;
    let modes = shell.exp_string(OUTER)?;
    for mode in ["icanon", "isig", "icrnl", "opost"] {
        assert!(modes.split_whitespace().any(|word| word == mode), "{modes}");
    }
    Ok(())
}

fn a_shell_that_stood_still_takes_no_notice() -> Result {
    let mut shell = shell()?;
    shell.send_line("c bash --norc --noprofile --noediting -i")?;
    shell.exp_string("inner> ")?;
    // A job that a user stopped, and a job in the foreground.
    shell.send_line("sh -c 'echo be\"\"gun; exec sleep 1000'")?;
    shell.exp_string("begun")?;
    shell.send_control('z')?;
    shell.exp_string("Stopped")?;
    shell.exp_string("inner> ")?;
    shell.send_line(r#"read -r _ _ _ caller _ </proc/$PPID/stat; echo "cal""ler:$caller:""#)?;
    shell.exp_string("caller:")?;
    let caller: i32 = shell.exp_string(":")?.parse()?;
    shell.exp_string("inner> ")?;
    shell.send_line("echo $$; sh -c 'echo $$; read x; echo \"<$x>\"'")?;
    let mut process = || -> std::result::Result<i32, Failed> {
        Ok(shell.exp_regex("[0-9]+\r?\n")?.1.trim().parse()?)
    };
    let both = [process()?, process()?];
    for _ in 0..3 {
        send(caller, Signal::USR1);
        eventually(|| both.iter().all(|&pid| is_stopped(pid)));
        send(caller, Signal::USR2);
        eventually(|| !both.iter().any(|&pid| is_stopped(pid)));
    }
    shell.send_line("input")?;
    let seen = shell.exp_string("<input>")?;
    assert!(!seen.contains("Stopped"), "{seen}");
    shell.exp_string("inner> ")?;
    shell.send_line("jobs; echo no''thing else")?;
    let jobs = shell.exp_string("nothing else")?;
    assert_eq!(jobs.matches("Stopped").count(), 1, "{jobs}");
    shell.send_line("disown -a; exit 7")?;
    shell.exp_string(OUTER)?;
    shell.send_line("echo code $?")?;
    shell.exp_string("code 7")?;
    Ok(())
}

/// Waits for a condition that nothing reports.
fn eventually(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it never is");
        std::thread::yield_now();
    }
}
