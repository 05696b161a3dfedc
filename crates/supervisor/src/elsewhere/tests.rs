//! Tests with real commands, run as process groups.

use std::io::{BufRead as _, BufReader, PipeReader, Read as _, pipe};
use std::time::Duration;

use boot_clock::now;

use crate::elsewhere::running::{Running, start};
use crate::{Command, Event, Exit, Limits, Signal, StartError};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

const SECOND: i64 = 1_000_000;

const NO_LIMIT: Limits = Limits {
    term_at: i64::MAX,
    kill_at: i64::MAX,
};

/// A shell command and its output.
struct Shell {
    running: Running,
    output: BufReader<PipeReader>,
}

impl Shell {
    fn start(script: &str, limits: Limits, grace: Duration) -> std::io::Result<Self> {
        let (reader, writer) = pipe()?;
        let command = Command::new(vec!["/bin/sh".into(), "-c".into(), script.into()])
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
    async fn events(&mut self) -> std::io::Result<(Vec<Event>, usize)> {
        let mut events = Vec::new();
        loop {
            match self.next().await? {
                Event::Ended { unkillable } => return Ok((events, unkillable)),
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

#[tokio::test]
async fn the_exit_code_and_the_environment_are_those_of_the_command() -> Result {
    let (reader, writer) = pipe()?;
    let command = ["/bin/sh", "-c", "echo $GIVEN; exit 42"];
    let command = Command::new(command.map(Into::into).to_vec())
        .env("GIVEN", "value")
        .output(writer);
    let running = start(&command, NO_LIMIT)?;
    drop(command);
    let output = BufReader::new(reader);
    let mut shell = Shell { running, output };
    let (events, over) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Code(42))]);
    assert_eq!(over, 0);
    assert_eq!(shell.line()?, "value");
    assert_eq!(
        shell.next().await?,
        Event::Ended { unkillable: over },
        "also later"
    );
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
        let mut running = start(&command, NO_LIMIT)?;
        drop(command);
        assert_eq!(running.next().await?, Event::Exited(Exit::Code(code)));
        assert_eq!(running.next().await?, Event::Ended { unkillable: 0 });
        let mut printed = String::new();
        reader.read_to_string(&mut printed)?;
        let expected = format!("error: failed to run \"{program}\": {reason}\n");
        assert_eq!(printed, expected);
    }
    Ok(())
}

#[tokio::test]
async fn nothing_starts_without_a_command_or_after_the_limit() {
    let none = start(&Command::new(Vec::new()), NO_LIMIT);
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
    assert_eq!(over, 0);
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
    assert_eq!(over, 0);
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
    assert_eq!(over, 0);
    Ok(())
}

#[tokio::test]
async fn what_the_command_left_in_its_group_is_ended() -> Result {
    let script = "(trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done) & read -r x < /dev/null; exit 0";
    let mut shell = Shell::ready(script, NO_LIMIT, GRACE)?;
    let (events, over) = shell.events().await?;
    assert_eq!(events[0], Event::Exited(Exit::Code(0)));
    assert!(matches!(events[1..], [Event::Left(1..)]), "{events:?}");
    assert_eq!(over, 0);
    assert!(shell.prints("asked"));
    Ok(())
}

#[tokio::test]
async fn what_it_left_is_killed_after_the_grace() -> Result {
    let script = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) &";
    let mut shell = Shell::ready(script, NO_LIMIT, Duration::from_millis(500))?;
    let (events, over) = shell.events().await?;
    assert_eq!(events[0], Event::Exited(Exit::Code(0)));
    assert!(matches!(events[1..], [Event::Left(1..)]), "{events:?}");
    assert_eq!(over, 0);
    shell.output.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[tokio::test]
async fn signals_reach_the_whole_group() -> Result {
    let script = "trap 'echo parent; exit 7' USR1; (trap '' TERM; trap 'echo child; exit' USR1; echo ready; while :; do sleep 0.05; done) & wait; wait";
    let mut shell = Shell::ready(script, NO_LIMIT, GRACE)?;
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
async fn dropping_it_kills_the_group() -> Result {
    let script = "trap '' TERM; sh -c 'echo ready; while :; do sleep 0.05; done'";
    let shell = Shell::ready(script, NO_LIMIT, GRACE)?;
    let Shell {
        running,
        mut output,
    } = shell;
    drop(running);
    output.read_to_end(&mut Vec::new())?;
    Ok(())
}

#[tokio::test]
async fn a_stop_is_reported_and_a_signal_continues_it() -> Result {
    let mut shell = Shell::start("kill -STOP $$; exit 7", NO_LIMIT, GRACE)?;
    assert_eq!(shell.next().await?, Event::Stopped(Signal::STOP));
    shell.running.signal(Signal::CONT);
    let (events, _) = shell.events().await?;
    assert_eq!(events, [Event::Exited(Exit::Code(7))]);
    Ok(())
}
