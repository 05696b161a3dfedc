//! The history of a scenario: the commands that ran under the lock of one node, and what was done to that lock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A time of the boot clock, in hundredths of a second since the machine started, as in `/proc/uptime`. This clock also
/// runs while the machine sleeps. It is the same for all processes, and is never set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Boot(pub(crate) u64);

impl Boot {
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/uptime").expect("Linux tells it");
        let uptime = text.split_whitespace().next().expect("a number");
        uptime.parse().expect("a number with two decimals")
    }

    pub(crate) fn plus(self, length: Duration) -> Self {
        let hundredths = u64::try_from(length.as_millis() / 10).expect("a short time");
        Self(self.0 + hundredths)
    }
}

impl FromStr for Boot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (seconds, hundredths) = text.split_once('.')?;
            let whole = hundredths.len() == 2;
            Some((
                seconds.parse::<u64>().ok()?,
                hundredths.parse::<u64>().ok()?,
            ))
            .filter(|_| whole)
        };
        let (seconds, hundredths) = parse().ok_or_else(|| format!("not a time: {text}"))?;
        Ok(Self(seconds * 100 + hundredths))
    }
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl fmt::Debug for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How a run of `with` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    /// Killed by the scenario.
    Killed,
}

/// One run of `with`, and the traces of its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// A unique name: the contender's name and a number.
    pub(crate) name: String,
    /// The duration of its lease.
    pub(crate) lease: Duration,
    pub(crate) exit: Exit,
    /// Before `with` was started.
    pub(crate) started: Boot,
    /// After it had ended.
    pub(crate) returned: Boot,
    pub(crate) work: Option<CommandActivity>,
}

/// The traces of a command that ran, including the processes that it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandActivity {
    pub(crate) began: Boot,
    /// The last line that it wrote. Commands write one every few hundredths of a second.
    pub(crate) last: Boot,
    /// Whether the command ran to its end.
    pub(crate) finished: bool,
}

/// What was done to the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Renewals of this run that are sent after `at` do not reach the server. Its command must end within `duration`
    /// after that.
    CutOff {
        run: String,
        at: Boot,
        duration: Duration,
    },
    /// The lock of this run was taken away between `from` and `until`, on purpose or from outside. Its command may act
    /// until it notices, and until `duration` after `until` at the latest.
    Broken {
        run: String,
        from: Boot,
        until: Boot,
        duration: Duration,
    },
    /// An administrator's hold was in place between these times, and no command may begin in between.
    Hold { from: Boot, until: Boot },
}

/// The history of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) runs: Vec<Run>,
    pub(crate) events: Vec<Event>,
}

/// One line per run and event, to debug a failure.
impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            let Run {
                name,
                lease: _,
                exit,
                started,
                returned,
                work,
            } = run;
            write!(f, "{started} to {returned}: {name} ended with {exit:?}")?;
            match work {
                Some(work) if work.finished => {
                    writeln!(f, ", worked {} to {}", work.began, work.last)?;
                }
                Some(work) => writeln!(f, ", was seen {} to {}", work.began, work.last)?,
                None => writeln!(f)?,
            }
        }
        for event in &self.events {
            writeln!(f, "{event:?}")?;
        }
        Ok(())
    }
}

impl History {
    /// Adds what the commands wrote to the runs. Each line has a word, the name of the run and the time.
    pub(crate) fn read(&mut self, journal: &str) -> Result<(), String> {
        for line in journal.lines() {
            let Some([word, name, time]) = words(line) else {
                return Err(format!("not a line of a command: {line}"));
            };
            let at = time.parse()?;
            let run = self.runs.iter_mut().find(|run| run.name == name);
            let run = run.ok_or_else(|| format!("nobody started {name}"))?;
            match (word, &mut run.work) {
                ("begin", work @ None) => {
                    *work = Some(CommandActivity {
                        began: at,
                        last: at,
                        finished: false,
                    });
                }
                ("alive", Some(work)) => work.last = work.last.max(at),
                ("end", Some(work)) => {
                    work.last = work.last.max(at);
                    work.finished = true;
                }
                _ => return Err(format!("out of order: {line}")),
            }
        }
        Ok(())
    }
}

fn words(line: &str) -> Option<[&str; 3]> {
    line.split(' ').collect::<Vec<_>>().try_into().ok()
}
