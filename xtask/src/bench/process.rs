//! What a running process takes of the machine, as Linux counts it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A process that runs.
pub(super) struct Process(PathBuf);

impl Process {
    pub(super) fn of(pid: u32) -> Self {
        Self(PathBuf::from(format!("/proc/{pid}")))
    }

    /// The time that its threads ran on a processor.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let mut whole = Duration::ZERO;
        for thread in fs::read_dir(self.0.join("task"))? {
            let statistics = fs::read_to_string(thread?.path().join("schedstat"))?;
            let nanos = statistics
                .split_whitespace()
                .next()
                .context("an empty schedstat")?;
            whole += Duration::from_nanos(nanos.parse()?);
        }
        Ok(whole)
    }

    /// The largest that its resident set ever was, in KiB.
    pub(super) fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(self.0.join("status"))?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|peak| peak.split_whitespace().next())
            .context("no VmHWM in the process's status")?;
        Ok(peak.parse()?)
    }

    /// The processes that it started and that run still.
    pub(super) fn children(&self) -> Result<Vec<u32>> {
        let mut children = Vec::new();
        for thread in fs::read_dir(self.0.join("task"))? {
            let started = fs::read_to_string(thread?.path().join("children"))?;
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
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_has_run_used_memory_and_opened_files() {
        let this = Process::of(std::process::id());
        assert!(this.cpu_time().unwrap() > Duration::ZERO);
        assert!(this.peak_memory().unwrap() > 100);
        assert!(this.open_files().unwrap() >= 3);
    }

    #[test]
    fn a_process_has_the_children_that_it_started() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let children = Process::of(std::process::id()).children().unwrap();
        assert!(children.contains(&child.id()), "{children:?}");
        // Without its stdin it ends.
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
