//! Processes as shown by `/proc`.

use std::collections::HashMap;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open, pidfd_send_signal,
};

/// How many times a process is read again if its parent ended while `/proc` was read.
const READ_AGAIN: usize = 16;

/// The state of one process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: Identity,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// It has ended. If only its first thread has ended, it is alive.
    pub(crate) zombie: bool,
    /// It is stopped, by a signal or by its tracer.
    pub(crate) stopped: bool,
}

/// Distinguishes a process from all others, including a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// The start time in clock ticks since boot.
    started: u64,
}

/// The result of sending a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Delivered,
    Gone,
    Refused,
}

/// Checks that `/proc` shows this process and its descendants with the pids that they use themselves.
///
/// # Errors
///
/// If `/proc` is not mounted, or shows another process namespace.
pub(crate) fn check_proc() -> io::Result<()> {
    let shown = fs::read_link("/proc/self")?;
    if shown.as_os_str() == getpid().as_raw_pid().to_string().as_str() {
        return Ok(());
    }
    Err(io::Error::other(
        "it shows another process namespace (unshare --mount-proc mounts this one's)",
    ))
}

impl Process {
    pub(crate) fn read(pid: i32) -> io::Result<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat"))?;
        Self::parse(pid, &stat).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("/proc/{pid}/stat can't be understood"),
            )
        })
    }

    /// Parses `/proc/PID/stat`. The command's name is in parentheses and may contain any byte, so the fields
    /// start after the last parenthesis.
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            stopped: matches!(state, "T" | "t"),
            zombie: matches!(state, "Z" | "X") && fields.get(17)?.parse::<u32>().ok()? <= 1,
            id: Identity {
                pid,
                started: fields.get(19)?.parse().ok()?,
            },
        })
    }

    /// Sends `signals`, in this order, to exactly this process and never to a later one with the same pid.
    ///
    /// A descendant stays one until it ends, because sub-reapers adopt it. So it is enough to check that the
    /// process is still the same one.
    pub(crate) fn send(&self, signals: &[Signal]) -> Sent {
        let Some(pid) = Pid::from_raw(self.id.pid) else {
            return Sent::Gone;
        };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Some(descriptor),
            Err(Errno::SRCH) => return Sent::Gone,
            // The kernel or the container does not support pidfds.
            Err(_) => None,
        };
        if !Self::read(pid.as_raw_pid()).is_ok_and(|now| now.id == self.id && !now.zombie) {
            return Sent::Gone;
        }
        for &signal in signals {
            let sent = match &descriptor {
                Some(descriptor) => pidfd_send_signal(descriptor, signal),
                None => kill_process(pid, signal),
            };
            match sent {
                Ok(()) => {}
                Err(Errno::PERM) => return Sent::Refused,
                Err(_) => return Sent::Gone,
            }
        }
        Sent::Delivered
    }
}

/// The process group of this process; 0 if the group was created outside this container.
pub(crate) fn own_group() -> i32 {
    nix::unistd::getpgrp().as_raw()
}

/// The session of this process; 0 if the session was created outside this container.
pub(crate) fn own_session() -> i32 {
    nix::unistd::getsid(None).map_or(0, nix::unistd::Pid::as_raw)
}

/// All processes, at almost the same moment.
#[derive(Debug)]
pub(crate) struct Table(HashMap<i32, Process>);

impl Table {
    /// Reads `/proc`. If the parent of a process ended in the meantime, the process is read again until it
    /// shows its new parent. So it can't be missed.
    pub(crate) fn read() -> io::Result<Self> {
        let mut table = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            if let Some(pid) = name.to_str().and_then(|name| name.parse().ok())
                && let Ok(process) = Process::read(pid)
            {
                table.insert(pid, process);
            }
        }
        for _ in 0..READ_AGAIN {
            let orphans: Vec<i32> = table
                .values()
                .filter(|process| process.parent != 0 && !table.contains_key(&process.parent))
                .flat_map(|process| [process.id.pid, process.parent])
                .collect();
            if orphans.is_empty() {
                break;
            }
            for pid in orphans {
                match Process::read(pid) {
                    Ok(process) => table.insert(pid, process),
                    Err(_) => table.remove(&pid),
                };
            }
        }
        Ok(Self(table))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> {
        self.0.values()
    }

    pub(crate) fn get(&self, pid: i32) -> Option<&Process> {
        self.0.get(&pid)
    }

    /// The processes below `root`, parents before their children, without zombies. A child of `root` and its
    /// descendants are included only if `counts` returns true for the child.
    pub(crate) fn below(&self, root: i32, counts: impl Fn(&Process) -> bool) -> Vec<Process> {
        let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
        for process in self.all() {
            children.entry(process.parent).or_default().push(*process);
        }
        let mut found = children.remove(&root).unwrap_or_default();
        found.retain(counts);
        let mut next = 0;
        while let Some(process) = found.get(next) {
            found.extend(children.remove(&process.id.pid).unwrap_or_default());
            next += 1;
        }
        found.retain(|process| !process.zombie);
        found
    }
}

/// The pid of the parent process.
pub(crate) fn parent() -> i32 {
    getppid().map_or(0, Pid::as_raw_pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_hides_nothing() {
        let stat = b"42 (a) S 1 (\xff) T 7 8 9 34816 8 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1234 5";
        let process = Process::parse(42, stat).expect("a process");
        assert_eq!((process.parent, process.group, process.session), (7, 8, 9));
        assert!(process.stopped);
        assert_eq!(
            process.id,
            Identity {
                pid: 42,
                started: 1234
            }
        );
    }

    #[test]
    fn a_process_that_lost_its_first_thread_is_alive() {
        let stat = |threads| format!("42 (x) Z 7 8 9 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 9 5");
        let zombie = |threads| Process::parse(42, stat(threads).as_bytes()).map(|p| p.zombie);
        assert_eq!((zombie(1), zombie(2)), (Some(true), Some(false)));
    }

    #[test]
    fn parents_come_before_their_children_and_others_are_left_out() {
        let process = |pid, parent, zombie| Process {
            id: Identity { pid, started: 0 },
            parent,
            group: pid,
            session: 1,
            zombie,
            stopped: false,
        };
        let table = Table(HashMap::from_iter(
            [
                process(10, 1, false),
                process(13, 10, false),
                process(12, 13, true),
                process(11, 12, false),
                process(14, 10, false),
                process(15, 14, false),
                process(16, 1, false),
            ]
            .map(|process| (process.id.pid, process)),
        ));
        let below: Vec<i32> = table
            .below(10, |child| child.id.pid != 14)
            .iter()
            .map(|process| process.id.pid)
            .collect();
        assert_eq!(below, [13, 11]);
    }
}
