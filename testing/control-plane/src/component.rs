//! One process of the control plane.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::janitor::Janitor;

/// The time limit for readiness. An API server on a busy machine needs much less.
const READINESS_LIMIT: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(25);
/// How often a start is repeated on other ports. Another process may take a port between the check
/// and the start, but not this often.
const PORT_ATTEMPTS: u32 = 5;

/// How to start a process, and how to check that it is ready.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) url: String,
    /// Checks that the process itself is ready. It must fail for another process on the same port.
    pub(crate) ready: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

/// One process: etcd, the API server or the controller manager.
///
/// Every method acts only on this child process, by its process id.
pub struct Component {
    name: &'static str,
    log: PathBuf,
    launch: Launch,
    janitor: Arc<Janitor>,
    child: Mutex<Option<Child>>,
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component")
            .field("name", &self.name)
            .field("url", &self.url())
            .finish()
    }
}

impl Component {
    /// Starts a process. `launch` chooses new ports for each attempt, until an attempt finds them
    /// free.
    pub(crate) fn start(
        name: &'static str,
        janitor: &Arc<Janitor>,
        log: &Path,
        launch: impl Fn() -> Result<Launch>,
    ) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let component = Self {
                name,
                log: log.to_owned(),
                launch: launch()?,
                janitor: Arc::clone(janitor),
                child: Mutex::new(None),
            };
            match component.spawn().and_then(|()| component.await_ready()) {
                Ok(()) => return Ok(component),
                Err(_) if attempt < PORT_ATTEMPTS && component.lost_its_port() => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The name of the process.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The address that it listens on. It stays the same after a restart.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.launch.url
    }

    /// The path of its log. All restarts write to the same file.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The process id, or `None` if it has ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.living().as_ref().map(Child::id)
    }

    /// Kills it with SIGKILL, and waits until it has ended. Does nothing if it has already ended.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&self) -> Result<()> {
        let mut child = self.living();
        if let Some(living) = child.as_mut() {
            living
                .kill()
                .with_context(|| format!("failed to kill {}", self.name))?;
            living.wait()?;
            self.janitor.forget(living.id());
            *child = None;
        }
        Ok(())
    }

    /// Stops it with SIGSTOP, and waits until it has stopped. Its connections stay open, but get no
    /// answers.
    ///
    /// # Errors
    /// If it has ended.
    pub fn stop(&self) -> Result<()> {
        let child = self.living();
        let pid = self.signal(child.as_ref(), Signal::STOP)?;
        // With NOWAIT, the exit status stays available to the thread that waits for the child.
        let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(pid), changes)?;
        ensure!(
            status.is_some_and(|status| status.stopped()),
            "{} ended",
            self.name
        );
        Ok(())
    }

    /// Continues it with SIGCONT after [`stop`](Self::stop).
    ///
    /// # Errors
    /// If it has ended.
    pub fn cont(&self) -> Result<()> {
        let child = self.living();
        self.signal(child.as_ref(), Signal::CONT).map(drop)
    }

    /// Starts it again with the same ports and data, and waits until it is ready. If it is running,
    /// it is killed first.
    ///
    /// # Errors
    /// If it does not become ready. The message has the end of its log.
    pub fn restart(&self) -> Result<()> {
        self.kill()?;
        self.spawn()?;
        self.await_ready()
    }

    /// Waits until the process is ready, for example after [`cont`](Self::cont).
    ///
    /// # Errors
    /// If it ends, or is not ready after 90 seconds. The message has the end of its log.
    pub fn await_ready(&self) -> Result<()> {
        let deadline = Instant::now() + READINESS_LIMIT;
        loop {
            let answer = (self.launch.ready)();
            if self.pid().is_none() {
                bail!(
                    "{} ended before it was ready:\n{}",
                    self.name,
                    self.log_tail()
                );
            }
            match answer {
                Ok(()) => return Ok(()),
                Err(_) if Instant::now() < deadline => thread::sleep(POLL),
                Err(error) => {
                    let context = format!("{} isn't ready:\n{}", self.name, self.log_tail());
                    return Err(error.context(context));
                }
            }
        }
    }

    fn spawn(&self) -> Result<()> {
        let child = self
            .janitor
            .command(&self.launch.program, &self.log)?
            .args(&self.launch.args)
            .spawn()
            .with_context(|| format!("failed to start {}", self.name))?;
        *self.living() = Some(child);
        Ok(())
    }

    /// The child, or `None` if it has ended. While the guard is held, nobody else can wait for the
    /// child, so its process id can't be reused.
    fn living(&self) -> MutexGuard<'_, Option<Child>> {
        let mut child = self.child.lock().expect("no panic under this lock");
        if let Some(known) = child.as_mut()
            && !matches!(known.try_wait(), Ok(None))
        {
            self.janitor.forget(known.id());
            *child = None;
        }
        child
    }

    fn signal(&self, child: Option<&Child>, signal: Signal) -> Result<Pid> {
        let child = child.ok_or_else(|| anyhow!("{} has ended", self.name))?;
        let pid = Pid::from_child(child);
        kill_process(pid, signal).with_context(|| format!("failed to signal {}", self.name))?;
        Ok(pid)
    }

    fn lost_its_port(&self) -> bool {
        self.pid().is_none() && self.log_tail().contains("address already in use")
    }

    fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        let _gone_anyway = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Starts a program that fails with `message` the first `failures` times, and then keeps
    /// running. Returns the number of attempts, and the result.
    fn start(directory: &Path, failures: u32, message: &str) -> (u32, Result<Component>) {
        let janitor = Arc::new(Janitor::start(directory).unwrap());
        let log = directory.join("log");
        let attempts = Cell::new(0);
        let component = Component::start("the program", &janitor, &log, || {
            attempts.set(attempts.get() + 1);
            let script = if attempts.get() <= failures {
                format!("echo '{message}'; exit 1")
            } else {
                "echo up; exec sleep 600".to_owned()
            };
            let log = log.clone();
            Ok(Launch {
                program: "/bin/sh".into(),
                args: vec!["-c".into(), script, directory.display().to_string()],
                url: String::new(),
                ready: Box::new(move || {
                    ensure!(fs::read_to_string(&log)?.ends_with("up\n"));
                    Ok(())
                }),
            })
        });
        (attempts.get(), component)
    }

    #[test]
    fn lost_port_is_replaced_by_another() {
        let directory = tempfile::tempdir().unwrap();
        let (attempts, component) = start(directory.path(), 2, "bind: address already in use");
        assert_eq!(attempts, 3);
        assert!(component.unwrap().pid().is_some());
    }

    #[test]
    fn other_failures_are_reported_at_once_with_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let (attempts, component) = start(directory.path(), 1, "no such flag");
        assert_eq!(attempts, 1);
        assert_eq!(
            component.unwrap_err().to_string(),
            "the program ended before it was ready:\nno such flag"
        );
    }
}
