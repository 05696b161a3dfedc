//! The resources that a running process uses, as Linux reports them.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, Result};

/// `ESRCH`, which has no `ErrorKind`.
const NO_SUCH_PROCESS: i32 = 3;

/// A running process.
pub(super) struct Process(PathBuf);

impl Process {
    pub(super) fn of(pid: u32) -> Self {
        Self(PathBuf::from(format!("/proc/{pid}")))
    }

    /// The processor time of its running threads. Threads that have ended are not included.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let mut whole = Duration::ZERO;
        for statistics in self.of_threads("schedstat")? {
            let nanos = statistics
                .split_whitespace()
                .next()
                .context("an empty schedstat")?;
            whole += Duration::from_nanos(nanos.parse()?);
        }
        Ok(whole)
    }

    /// The largest size of its resident set, in KiB.
    pub(super) fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(self.0.join("status"))?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|peak| peak.split_whitespace().next())
            .context("no VmHWM in the process's status")?;
        Ok(peak.parse()?)
    }

    /// Its child processes that are still running.
    pub(super) fn children(&self) -> Result<Vec<u32>> {
        let mut children = Vec::new();
        for started in self.of_threads("children")? {
            for pid in started.split_whitespace() {
                children.push(pid.parse()?);
            }
        }
        Ok(children)
    }

    /// How many files and connections it has open.
    pub(super) fn open_files(&self) -> Result<usize> {
        Ok(fs::read_dir(self.0.join("fd"))?.count())
    }

    /// The file `name` of each of its threads. Skips threads that end during the read.
    fn of_threads(&self, name: &str) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        for thread in fs::read_dir(self.0.join("task"))? {
            match fs::read_to_string(thread?.path().join(name)) {
                Ok(text) => texts.push(text),
                Err(error) if has_ended(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(texts)
    }
}

/// Whether the process or thread ended before its file was opened or read.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_process_has_run_used_memory_and_opened_files() {
        let this = Process::of(std::process::id());
        assert!(this.cpu_time().unwrap() > Duration::ZERO);
        assert!(this.peak_memory().unwrap() > 100);
        assert!(this.open_files().unwrap() >= 3);
    }

    #[test]
    fn threads_that_end_meanwhile_are_passed_over() {
        let this = Process::of(std::process::id());
        let seen = AtomicBool::new(false);
        let read = thread::scope(|scope| {
            scope.spawn(|| {
                while !seen.load(Ordering::Relaxed) {
                    thread::spawn(|| {}).join().unwrap();
                }
            });
            let read: Result<Vec<Duration>> = (0..2000).map(|_| this.cpu_time()).collect();
            seen.store(true, Ordering::Relaxed);
            read
        });
        assert_eq!(read.unwrap().len(), 2000);
    }

    #[test]
    fn a_process_has_the_children_that_it_started() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let children = Process::of(std::process::id()).children().unwrap();
        assert!(children.contains(&child.id()), "{children:?}");
        // It ends when its stdin is closed.
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
