//! Processes as shown by `ps`.

use std::collections::HashSet;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::sync::oneshot;

const PS: &str = "/bin/ps";

/// The state of one process at one moment.
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

/// Distinguishes a process from a later process with the same pid.
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

/// All processes, at almost the same moment. Waits at most for `timeout`, because `ps` may hang.
pub(crate) fn processes(timeout: Duration) -> io::Result<Vec<Process>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || sender.send(list()))?;
    let listed = receiver.recv_timeout(timeout);
    listed.map_err(|_| io::ErrorKind::TimedOut)?
}

/// As [`processes`], but without waiting. A separate thread lists the processes, and nothing waits for it.
/// The channel is closed if the thread can't be started.
pub(crate) fn scan() -> oneshot::Receiver<io::Result<Vec<Process>>> {
    let (sender, receiver) = oneshot::channel();
    let _started = thread::Builder::new().spawn(move || sender.send(list()));
    receiver
}

fn list() -> io::Result<Vec<Process>> {
    let columns = ["pid=", "ppid=", "pgid=", "stat=", "lstart="];
    let output = Command::new(PS)
        .arg("-A")
        .args(columns.into_iter().flat_map(|column| ["-o", column]))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        // `ps` must not receive Ctrl-C and Ctrl-Z.
        .process_group(0)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let processes: Vec<Process> = text.lines().filter_map(Process::parse).collect();
    let own = getpid().as_raw_pid();
    // A truncated list must not be treated as a complete one.
    match output.status.success() && processes.iter().any(|process| process.id.pid == own) {
        true => Ok(processes),
        false => Err(io::Error::other(format!("{PS} did not list the processes"))),
    }
}

/// Adds the descendants of `found` among `processes`, each after its parent.
pub(crate) fn add_descendants(found: &mut Vec<Process>, processes: &[Process]) {
    let mut pids: HashSet<i32> = found.iter().map(|process| process.id.pid).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.id.pid) {
        let children = processes.iter().filter(|process| process.parent == parent);
        for child in children {
            if pids.insert(child.id.pid) {
                found.push(child.clone());
            }
        }
        next += 1;
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
        let processes = processes(Duration::from_secs(30)).expect("ps");
        let own = i32::try_from(std::process::id()).expect("a number");
        let shown = processes.iter().find(|process| process.id.pid == own);
        assert!(shown.is_some_and(|process| !process.zombie && !process.id.started.is_empty()));
    }

    #[test]
    fn a_list_that_takes_too_long_is_not_waited_for() {
        let times_out = |_| {
            let listed = processes(Duration::ZERO);
            listed.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
        };
        // This thread may be slower than `ps`.
        assert!((0..100).any(times_out));
    }
}
