//! Tests with real commands, run as process groups.

use std::future::poll_fn;
use std::io::{BufRead as _, BufReader, PipeReader, Read as _, pipe};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use boot_clock::now;

use crate::tree::tests::SETSID;
use crate::unix::ps::{Process, processes};
use crate::unix::running::Running;
use crate::unix::start::start;
use crate::{Command, Ended, Event, Exit, Limits, Signal, StartError, Terminal};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

const SECOND: i64 = 1_000_000;

/// A shell command and its output.
struct Shell {
    running: Running,
    output: BufReader<PipeReader>,
}

impl Shell {
    fn start(script: &str, limits: Limits, grace: Duration) -> std::io::Result<Self> {
        let (reader, writer) = pipe()?;
        let command = Command::new(vec!["/bin/sh".into(), "-c".into(), script.into()])
            .terminal(Terminal::Keep)
            .env("TESTS", std::env::current_exe()?)
            .grace(grace)
            .output(writer);
        let running = start(&command, limits).map_err(std::io::Error::other)?;
        Ok(Self {
            running,
            output: BufReader::new(reader),
        })
    }

    /// Starts the script and waits until it prints that it is ready.
    fn ready(script: &str, limits: Limits, grace: Duration) -> std::io::Result<Self> {
        let mut shell = Self::start(script, limits, grace)?;
        assert_eq!(shell.line()?, "ready", "{script}");
        Ok(shell)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Whether `line` is printed. A shell also prints how its children end, so other lines are skipped.
    fn prints(&mut self, line: &str) -> bool {
        let mut lines = (&mut self.output).lines();
        lines.any(|printed| printed.is_ok_and(|printed| printed == line))
    }

    /// All events, and the result at the end.
    async fn events(&mut self) -> std::io::Result<(Vec<Event>, Ended)> {
        let mut events = Vec::new();
        loop {
            match self.next().await? {
                Event::Ended(over) => return Ok((events, over)),
                event => events.push(event),
            }
        }
    }

    async fn next(&mut self) -> std::io::Result<Event> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.running.next());
        next.await.map_err(std::io::Error::other)?
    }
}

fn within(term: i64, kill: i64) -> Limits {
    Limits {
        term_at: now() + term,
        kill_at: now() + kill,
    }
}

const GRACE: Duration = Duration::from_secs(30);
const PS_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_exit_code_and_the_environment_are_those_of_the_command() -> Result {
    let (reader, writer) = pipe()?;
    let command = ["/bin/sh", "-c", "echo $GIVEN; exit 42"];
    let command = Command::new(command.map(Into::into).to_vec())
        .env("GIVEN", "value")
        .output(writer);
    let running = start(&command, Limits::NONE)?;
    drop(command);
    let output = BufReader::new(reader);
    let mut shell = Shell { running, output };
    let (events, over) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Code(42))]);
    assert_eq!(over, Ended::default());
    assert_eq!(shell.line()?, "value");
    assert_eq!(shell.next().await?, Event::Ended(over), "also later");
    Ok(())
}

#[tokio::test]
async fn a_command_that_cannot_be_run_has_the_codes_of_a_shell() -> Result {
    for (program, code, reason) in [
        ("/nowhere/program", 127, "no such file or directory"),
        ("/etc/passwd", 126, "permission denied"),
    ] {
        let (mut reader, writer) = pipe()?;
        let command = Command::new(vec![program.into()]).output(writer);
        let mut running = start(&command, Limits::NONE)?;
        drop(command);
        assert_eq!(running.next().await?, Event::Exited(Exit::Code(code)));
        assert_eq!(running.next().await?, Event::Ended(Ended::default()));
        let mut printed = String::new();
        reader.read_to_string(&mut printed)?;
        let expected = format!("error: failed to run \"{program}\": {reason}\n");
        assert_eq!(printed, expected);
    }
    Ok(())
}

#[tokio::test]
async fn nothing_starts_without_a_command_or_after_the_limit() {
    let none = start(&Command::new(Vec::new()), Limits::NONE);
    assert!(matches!(none, Err(StartError::NoCommand)));
    let command = Command::new(vec!["/bin/true".into()]);
    let late = start(&command, within(-1, SECOND));
    assert!(matches!(late, Err(StartError::TooLate)));
}

#[tokio::test]
async fn it_is_asked_to_end_at_the_first_limit() -> Result {
    let script = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut shell = Shell::ready(script, within(SECOND, 60 * SECOND), GRACE)?;
    let (events, over) = shell.events().await?;
    assert_eq!(events, [Event::OutOfTime, Event::Exited(Exit::Code(3))]);
    assert_eq!(over, Ended::default());
    assert!(shell.prints("asked"));
    Ok(())
}

#[tokio::test]
async fn what_does_not_end_is_killed_at_the_second_limit() -> Result {
    let script = "trap '' TERM; sh -c 'echo ready; while :; do sleep 0.05; done'";
    let mut shell = Shell::ready(script, within(SECOND, 2 * SECOND), GRACE)?;
    let (events, over) = shell.events().await?;
    let killed = Event::Exited(Exit::Signal(Signal::KILL));
    assert_eq!(events, [Event::OutOfTime, killed]);
    assert_eq!(over, Ended::default());
    // The output ends only when all processes have ended.
    shell.output.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[tokio::test]
async fn a_renewal_gives_it_more_time_and_an_end_none() -> Result {
    let script = "trap '' TERM; echo ready; read -r line < /dev/null; while :; do sleep 0.05; done";
    let mut shell = Shell::ready(script, within(SECOND, SECOND), GRACE)?;
    shell.running.limits(within(60 * SECOND, 60 * SECOND));
    let waiting = tokio::time::timeout(Duration::from_millis(1500), shell.running.next());
    assert!(waiting.await.is_err(), "it is still running");
    shell.running.end(within(0, 0));
    let (events, over) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Signal(Signal::KILL))]);
    assert_eq!(over, Ended::default());
    Ok(())
}

#[tokio::test]
async fn what_the_command_left_in_its_group_is_ended() -> Result {
    let script = "(trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done) & read -r x < /dev/null; exit 0";
    let mut shell = Shell::ready(script, Limits::NONE, GRACE)?;
    let (events, over) = shell.events().await?;
    assert_eq!(events[0], Event::Exited(Exit::Code(0)));
    assert!(matches!(events[1..], [Event::Left(1..)]), "{events:?}");
    assert_eq!(over, Ended::default());
    assert!(shell.prints("asked"));
    Ok(())
}

#[tokio::test]
async fn what_it_left_is_killed_after_the_grace() -> Result {
    let script = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) &";
    let mut shell = Shell::ready(script, Limits::NONE, Duration::from_millis(500))?;
    let (events, over) = shell.events().await?;
    assert_eq!(events[0], Event::Exited(Exit::Code(0)));
    assert!(matches!(events[1..], [Event::Left(1..)]), "{events:?}");
    assert_eq!(over, Ended::default());
    shell.output.read_to_end(&mut Vec::new())?;
    Ok(())
}

/// The jobs of an interactive shell do this.
#[tokio::test]
async fn a_child_in_a_group_of_its_own_is_ended_too() -> Result {
    let child = "sh -c \"trap '' TERM; echo ready; while :; do sleep 0.05; done\"";
    let script = format!("trap '' TERM; {SETSID} {child}; :");
    let mut shell = Shell::ready(&script, within(SECOND, 2 * SECOND), GRACE)?;
    let (events, over) = shell.events().await?;
    assert_eq!(events[0], Event::OutOfTime);
    assert_eq!(over, Ended::default());
    shell.output.read_to_end(&mut Vec::new())?;
    Ok(())
}

/// The child must be found before the signal ends its parent.
#[tokio::test]
async fn a_child_whose_parent_ends_first_is_ended_too() -> Result {
    for (child, grace) in [
        // TERM ends it.
        ("sh -c 'echo ready; while :; do sleep 0.05; done'", 60),
        // It ignores TERM, so it is killed.
        (
            "sh -c \"trap '' TERM; echo ready; while :; do sleep 0.05; done\"",
            1,
        ),
        // It is killed without TERM.
        ("sh -c 'echo ready; while :; do sleep 0.05; done'", 0),
    ] {
        let script = format!("{SETSID} {child}; :");
        let limits = within(SECOND, (1 + grace) * SECOND);
        let mut shell = Shell::ready(&script, limits, GRACE)?;
        let (events, over) = shell.events().await?;
        assert_eq!(events[0], Event::OutOfTime, "{script}");
        assert_eq!(over, Ended::default(), "{script}");
        // The output ends only when all processes have ended.
        shell.output.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

/// The command must not continue to run while its processes are listed.
#[tokio::test]
async fn a_killed_command_stops_before_its_processes_are_listed() -> Result {
    let mut shell = Shell::start("echo $$; while :; do :; done", Limits::NONE, GRACE)?;
    let command: i32 = shell.line()?.parse()?;
    shell.running.end(within(0, 0));
    {
        let mut next = pin!(shell.running.next());
        poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_ready())).await;
    }
    shell.running.signal(Signal::CONT);
    // The list has not been waited for.
    let runs = |process: &Process| process.id.pid == command && !process.stopped && !process.zombie;
    for attempt in 0.. {
        if !processes(PS_TIMEOUT)?.iter().any(runs) {
            break;
        }
        assert!(attempt < 200, "it still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (events, over) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Signal(Signal::KILL))]);
    assert_eq!(over, Ended::default());
    Ok(())
}

#[tokio::test]
async fn a_child_whose_parent_ended_before_the_limit_is_ended_too() -> Result {
    let child = "sh -c 'echo ready; while :; do sleep 0.05; done'";
    let script = format!("({SETSID} {child} & sleep 3); sleep 60");
    let mut shell = Shell::ready(&script, within(4 * SECOND, 5 * SECOND), GRACE)?;
    let (events, over) = shell.events().await?;
    assert_eq!(events[0], Event::OutOfTime);
    assert_eq!(over, Ended::default());
    shell.output.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[tokio::test]
async fn a_process_that_left_the_group_and_its_parent_is_noticed() -> Result {
    let daemon = "sh -c 'echo $$; while :; do sleep 0.05; done'";
    let script = format!("{SETSID} {daemon} & read -r x < /dev/null; exit 0");
    let mut shell = Shell::start(&script, Limits::NONE, GRACE)?;
    let daemon: i32 = shell.line()?.parse()?;
    let (events, over) = shell.events().await?;
    let daemon = rustix::process::Pid::from_raw(daemon).expect("a process id");
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL)?;
    assert_eq!(events, [Event::Exited(Exit::Code(0)), Event::LeftGroup]);
    assert_eq!(over.unkillable, 1);
    Ok(())
}

#[tokio::test]
async fn signals_reach_the_whole_group() -> Result {
    let script = "trap 'echo parent; exit 7' USR1; (trap '' TERM; trap 'echo child; exit' USR1; echo ready; while :; do sleep 0.05; done) & wait; wait";
    let mut shell = Shell::ready(script, Limits::NONE, GRACE)?;
    shell.running.signal(Signal::USR1);
    let (events, _) = shell.events().await?;
    assert_eq!(events[0], Event::Exited(Exit::Code(7)));
    let mut printed = String::new();
    shell.output.read_to_string(&mut printed)?;
    assert!(
        printed.contains("child") && printed.contains("parent"),
        "{printed}"
    );
    Ok(())
}

#[tokio::test]
async fn a_command_that_a_signal_ends_has_its_number() -> Result {
    // Uses TERM, because shells ignore INT in commands that they start in the background.
    let mut shell = Shell::start("kill -TERM $$", Limits::NONE, GRACE)?;
    let (events, _) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Signal(Signal::TERM))]);
    Ok(())
}

#[tokio::test]
async fn it_stops_while_it_starts_processes() -> Result {
    let script = "echo ready; while :; do sleep 0; done";
    let mut shell = Shell::ready(script, Limits::NONE, GRACE)?;
    for _ in 0..20 {
        shell.running.freeze();
        assert_eq!(shell.next().await?, Event::Frozen);
        shell.running.thaw();
        assert_eq!(shell.next().await?, Event::Thawed);
    }
    shell.running.end(within(0, 0));
    shell.events().await?;
    Ok(())
}

#[tokio::test]
async fn it_stands_still_until_it_is_continued() -> Result {
    let script = "trap 'echo passed on' USR1; echo ready; while :; do sleep 0.05; echo tick; done";
    let mut shell = Shell::ready(script, Limits::NONE, GRACE)?;
    shell.running.freeze();
    assert_eq!(shell.next().await?, Event::Frozen);
    shell.running.signal(Signal::USR1);
    shell.running.signal(Signal::CONT);
    let waiting = tokio::time::timeout(Duration::from_millis(300), shell.running.next());
    assert!(waiting.await.is_err(), "it stands still");
    shell.running.thaw();
    assert_eq!(shell.next().await?, Event::Thawed);
    assert!(shell.prints("passed on"));
    shell.running.end(within(0, 0));
    let (events, over) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Signal(Signal::KILL))]);
    assert_eq!(over, Ended::default());
    Ok(())
}

#[tokio::test]
async fn it_stands_still_again_at_once() -> Result {
    let script = "echo $$; while :; do sleep 0.05; echo tick; done";
    let mut shell = Shell::start(script, Limits::NONE, GRACE)?;
    let pid: i32 = shell.line()?.parse()?;
    shell.running.freeze();
    assert_eq!(shell.next().await?, Event::Frozen);
    for _ in 0..5 {
        shell.running.thaw();
        shell.running.freeze();
        assert_eq!(shell.next().await?, Event::Thawed);
        assert_eq!(shell.next().await?, Event::Frozen);
    }
    let processes = processes(PS_TIMEOUT)?;
    let command = processes.iter().find(|process| process.id.pid == pid);
    assert!(command.is_some_and(|process| process.stopped));
    shell.running.end(within(0, 0));
    shell.events().await?;
    Ok(())
}

#[tokio::test]
async fn a_stopped_command_is_killed_at_the_first_limit() -> Result {
    let script = "trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done";
    let mut shell = Shell::ready(script, within(2 * SECOND, 60 * SECOND), GRACE)?;
    shell.running.freeze();
    let (events, over) = shell.events().await?;
    let killed = Event::Exited(Exit::Signal(Signal::KILL));
    assert_eq!(events, [Event::Frozen, Event::OutOfTime, killed]);
    assert_eq!(over, Ended::default());
    assert!(!shell.prints("asked"));
    Ok(())
}

#[tokio::test]
async fn dropping_it_kills_what_the_command_left() -> Result {
    let script = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & exit 0";
    let mut shell = Shell::ready(script, Limits::NONE, GRACE)?;
    assert_eq!(shell.next().await?, Event::Exited(Exit::Code(0)));
    drop(shell.running);
    shell.output.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[tokio::test]
async fn dropping_it_kills_the_group() -> Result {
    let script = "trap '' TERM; sh -c 'echo ready; while :; do sleep 0.05; done'";
    let shell = Shell::ready(script, Limits::NONE, GRACE)?;
    let Shell {
        running,
        mut output,
    } = shell;
    drop(running);
    output.read_to_end(&mut Vec::new())?;
    Ok(())
}
