//! Processes as `ps` shows them.

use std::io;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

const PS: &str = "/bin/ps";

/// One process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: Identity,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// It has ended.
    pub(crate) zombie: bool,
    /// It is stopped, by a signal or by its tracer.
    pub(crate) stopped: bool,
}

/// Distinguishes a process from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    started: String,
}

/// The result of sending a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Delivered,
    Gone,
    Refused,
}

/// All processes, at nearly one moment.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let output = Command::new(PS)
        .args(["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let processes: Vec<Process> = text.lines().filter_map(Process::parse).collect();
    match processes.is_empty() {
        true => Err(io::Error::other(format!("{PS} shows no processes"))),
        false => Ok(processes),
    }
}

impl Process {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let mut number = || fields.next()?.parse().ok();
        let (pid, parent, group) = (number()?, number()?, number()?);
        let state = fields.next()?;
        Some(Self {
            id: Identity {
                pid,
                started: fields.collect(),
            },
            parent,
            group,
            zombie: state.starts_with('Z'),
            stopped: state.starts_with(['T', 't']),
        })
    }

    /// Sends `signals` in this order.
    pub(crate) fn send(&self, signals: &[Signal]) -> Sent {
        let Some(pid) = Pid::from_raw(self.id.pid) else {
            return Sent::Gone;
        };
        for &signal in signals {
            match kill_process(pid, signal) {
                Ok(()) => {}
                Err(Errno::PERM) => return Sent::Refused,
                Err(_) => return Sent::Gone,
            }
        }
        Sent::Delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_linux_and_macos_are_read() {
        let lines = [
            (
                "   42    7    8 Ss   Wed Nov 25 22:45:13 2026",
                false,
                false,
            ),
            (
                "   42    7    8 T+   Wed 25 Nov 22:45:13 2026    ",
                false,
                true,
            ),
            ("   42    7    8 Z    Wed Nov 25 22:45:13 2026", true, false),
        ];
        for (line, zombie, stopped) in lines {
            let process = Process::parse(line).expect("a process");
            assert_eq!((process.id.pid, process.parent, process.group), (42, 7, 8));
            assert_eq!(
                (process.zombie, process.stopped),
                (zombie, stopped),
                "{line}"
            );
        }
        assert_eq!(Process::parse("  PID  PPID"), None);
    }

    #[test]
    fn this_process_is_shown() {
        let processes = processes().expect("ps");
        let own = i32::try_from(std::process::id()).expect("a number");
        let shown = processes.iter().find(|process| process.id.pid == own);
        assert!(shown.is_some_and(|process| !process.zombie && !process.id.started.is_empty()));
    }
}
