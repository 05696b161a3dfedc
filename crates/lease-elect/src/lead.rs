//! Runs the daemon for as long as this process leads.

use std::ffi::OsString;
use std::future::pending;
use std::time::Duration;

use futures::FutureExt as _;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{Error, HeldLease, HeldState};
use supervisor::under_lease::{CommandOutcome, Progress};
use supervisor::{Command, Exit, Signals};
use tokio::time::{sleep, timeout};

use crate::election_state::ElectionState;
use crate::exit::Code;
use crate::failure::{Failure, words};
use crate::log;
use crate::signals::EndSignals;

/// How long the release may still take after a signal.
const LAST_CHANCE: Duration = Duration::from_secs(2);

/// The leadership of this process, and the names that are printed about it.
pub(crate) struct Lead {
    pub(crate) held: HeldLease,
    pub(crate) election_state: ElectionState,
    pub(crate) namespace: String,
    pub(crate) holder: String,
    pub(crate) grace: Duration,
}

impl Lead {
    /// Runs `daemon` until it and all processes that it started have ended, then releases the lease.
    ///
    /// # Errors
    /// If the daemon can't be started.
    pub(crate) async fn run(
        self,
        daemon: Vec<OsString>,
        mut end_signals: EndSignals,
    ) -> Result<Code, Failure> {
        let held_state = self.held.held_state();
        self.election_state.leads(held_state.deadline);
        log::line(format_args!(
            "leading lease {}/{} (transition {}): starting {}",
            self.namespace,
            self.held.node(),
            held_state.lease.transitions(),
            daemon
                .first()
                .map_or_else(Default::default, |name| name.to_string_lossy()),
        ));
        let signals = match Signals::new() {
            Ok(signals) => signals,
            Err(error) => return self.give_up(Failure::System(error)).await,
        };
        // A signal that arrived before the start is not for the daemon.
        if let Some(code) = end_signals.received().now_or_never() {
            self.election_state.ends();
            log::line("asked to end before the daemon was started");
            self.release().await;
            return Ok(code);
        }
        end_signals.stop();
        let command = self.environment(Command::new(daemon), &held_state);
        let show_progress = |progress: Progress<'_>| show_progress(&self.election_state, progress);
        let held = std::slice::from_ref(&self.held);
        match supervisor::under_lease::run(held, command, self.grace, signals, show_progress).await
        {
            Ok(outcome) => Ok(self.end(&outcome).await),
            Err(error) => self.give_up(error.into()).await,
        }
    }

    /// Ends a leadership without a running daemon.
    async fn give_up(self, failure: Failure) -> Result<Code, Failure> {
        self.election_state.ends();
        self.release().await;
        Err(failure)
    }

    async fn end(self, outcome: &CommandOutcome) -> Code {
        self.election_state.ends();
        if let Some(left) = outcome.left.filter(|left| *left > 0) {
            log::line(format_args!(
                "{left} processes of the daemon can't be ended, and may still run"
            ));
        }
        if outcome.is_lost() {
            return Code::of_daemon(outcome, true);
        }
        if !outcome.is_over() {
            // Processes that may still run need the lease for as long as it lasts.
            self.held.leave();
            log::line("the lease was not released: it expires by itself");
            return Code::of_daemon(outcome, false);
        }
        Code::of_daemon(outcome, self.release().await)
    }

    /// Releases the lease so that another process can lead at once, unless the lease expires first. Returns
    /// true if leadership was found to be lost. A signal leaves little time for it.
    async fn release(self) -> bool {
        let held_state = self.held.held_state();
        let left = held_state.deadline.since(Machine.boot()).to_duration();
        let mut signals = EndSignals::new().ok();
        let interrupted = async {
            match &mut signals {
                Some(signals) => signals.received().await,
                None => pending().await,
            };
            sleep(LAST_CHANCE).await;
        };
        let released = tokio::select! {
            biased;
            released = timeout(left, self.held.release()) => released,
            () = interrupted => {
                log::line("asked to end before the lease was released: if it was not, it expires by itself");
                return false;
            }
        };
        let Ok(released) = released else {
            log::line("the lease could not be released before it expired");
            return false;
        };
        match released {
            Ok(_) => {
                log::line("released the lease");
                false
            }
            Err(Error::Lost(lost)) => {
                log::line(format_args!("lost leadership: {lost}"));
                true
            }
            Err(Error::Refused(refused)) => {
                log::line(format_args!("lost leadership: {refused}"));
                true
            }
            Err(error) => {
                log::line(format_args!(
                    "the lease could not be released, and expires by itself: {}",
                    words(&error)
                ));
                false
            }
        }
    }

    /// Adds the variables about its leadership to the daemon's environment.
    fn environment(&self, command: Command, held_state: &HeldState) -> Command {
        // This process always acquires the lease itself, so a fencing number exists.
        let fencing = self.held.fencing().unwrap_or_default();
        command
            .env("LEASE_ELECT_NAMESPACE", &self.namespace)
            .env("LEASE_ELECT_LEASE", self.held.node())
            .env("LEASE_ELECT_HOLDER", &self.holder)
            .env(
                "LEASE_ELECT_TRANSITIONS",
                held_state.lease.transitions().to_string(),
            )
            .env("LEASE_ELECT_FENCING_NUMBER", fencing.to_string())
    }
}

/// Reports the progress of the daemon on stderr and to the status server.
fn show_progress(election_state: &ElectionState, progress: Progress<'_>) {
    match progress {
        Progress::StateChanged(held_state) => election_state.extend(held_state.deadline),
        Progress::Lost(lost, _) => {
            election_state.ends();
            log::line(format_args!("lost leadership: {lost}; ending the daemon"));
        }
        Progress::Paused => log::line(
            "this machine may have been paused: the daemon is suspended (SIGSTOP) until leadership \
             has been checked",
        ),
        Progress::Resumed => log::line("still the leader: the daemon continues"),
        Progress::Stopped(left) => log::line(format_args!(
            "stopped: the Lease is no longer renewed, and the daemon will be ended in {} s",
            left.as_secs()
        )),
        Progress::StillRunning { after, .. } => log::line(format_args!(
            "the daemon is still running after {after}: the Lease is kept until it ends"
        )),
        Progress::Exited(how) => {
            election_state.ends();
            match how {
                Exit::Code(code) => log::line(format_args!("the daemon exited with code {code}")),
                Exit::Signal(signal) => {
                    log::line(format_args!("the daemon was ended by {signal}"));
                }
            }
        }
        Progress::Left(processes) => log::line(format_args!(
            "the daemon left {processes} of its processes behind: they are ended"
        )),
        Progress::SupervisorLost => {
            log::line("the daemon's supervisor was killed or stopped: everything is ended");
        }
        Progress::FollowFailed(error) => {
            log::line(format_args!("the daemon can't be followed: {error}"));
        }
    }
}
