//! Runs a command whose time limit is extended by every renewal, and which is ended if a lease is lost.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{pending, select_all};
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{HeldLease, HeldState, Lost, LostBy};
use tokio::time::{Instant, sleep_until};

use crate::under_lease::{CommandOutcome, Progress, Stage};
use crate::{Command, Event, Exit, Limits, Running, Signal, Signals, StartError};

/// How long before a deadline all remaining processes are killed. Killing them may take this long.
const RESERVE: Duration = Duration::from_secs(1);

/// How long a command may take to end after a signal before this is reported.
const END: Duration = Duration::from_secs(2);

/// How long to wait for a keeper to report why it did not renew.
const EXPLANATION: Duration = Duration::from_millis(500);

/// How long before its deadline a command is asked to end, if it has `grace` between TERM and KILL. This is
/// the value for [`Keep::stop`](maintenance_lease::Keep::stop).
#[must_use]
pub fn stop(grace: Duration) -> Duration {
    grace.saturating_add(RESERVE)
}

/// Runs `command` until it and all processes that it started have ended, and forwards `signals` to it. The
/// leases in `held` must be kept with [`stop`] of the same `grace`. The caller releases them if
/// [`CommandOutcome::is_over`].
///
/// # Errors
/// If the command can't be started. A lease that was lost before the start is not an error.
///
/// # Caveats
/// Dropping the future ends the command, as dropping [`Running`] does.
pub async fn run(
    held: &[HeldLease],
    command: Command,
    grace: Duration,
    mut signals: Signals,
    report: impl FnMut(Progress<'_>),
) -> Result<CommandOutcome, StartError> {
    let mut run = LeasedRun::new(held, grace, report);
    if !run.may_begin().await {
        return Ok(run.outcome(None, Some(0)));
    }
    let mut running = match command.grace(grace).start(run.limits).await {
        Ok(running) => running,
        Err(StartError::TooLate) => {
            run.explain().await;
            return Ok(run.outcome(None, Some(0)));
        }
        Err(error) => return Err(error),
    };
    run.stage = Stage::Running;
    let mut exit = None;
    let mut asked_to_end = None;
    let left = loop {
        tokio::select! {
            biased;
            index = run.changed() => {
                run.follow(&mut running);
                // This may block, if nobody reads what is reported.
                run.tell(index);
            }
            signal = signals.next() => {
                running.signal(signal);
                if signal.asks_to_end() && !run.is_reported_running {
                    asked_to_end.get_or_insert((signal, Instant::now() + END));
                }
            }
            event = running.next() => match event {
                Ok(Event::Stopped(_)) => run.stop(&mut running),
                Ok(Event::OutOfTime) => {
                    run.is_late = true;
                    run.follow(&mut running);
                }
                Ok(Event::Frozen) => run.report(Progress::Paused),
                Ok(Event::Thawed) => run.report(Progress::Resumed),
                Ok(Event::Exited(how)) => {
                    exit = Some(how);
                    run.stage = match run.is_late {
                        true => Stage::OutOfTime,
                        false => Stage::Ended,
                    };
                    run.report(Progress::Exited(how));
                }
                Ok(Event::Left(processes)) => run.report(Progress::Left(processes)),
                Ok(Event::SupervisorLost) => run.report(Progress::SupervisorLost),
                Ok(Event::Ended { unkillable }) => break Some(unkillable),
                Err(error) => {
                    run.report(Progress::FollowFailed(&error));
                    break None;
                }
            },
            after = still_running(asked_to_end) => {
                asked_to_end = None;
                run.still_running(after, running.pid());
            }
        }
    };
    if run.is_late {
        run.explain().await;
    }
    Ok(run.outcome(exit, left))
}

/// A running command.
struct LeasedRun<'a, T> {
    held: &'a [HeldLease],
    held_states: Vec<HeldState>,
    grace: Duration,
    limits: Limits,
    stage: Stage,
    lost: Vec<String>,
    /// It had to end at its limit, even if no keeper reports why.
    is_late: bool,
    /// It must be stopped while a lease is checked.
    is_checking: bool,
    /// It was already reported that the command still runs although it was asked to end.
    is_reported_running: bool,
    report: T,
}

impl<'a, T: FnMut(Progress<'_>)> LeasedRun<'a, T> {
    fn new(held: &'a [HeldLease], grace: Duration, report: T) -> Self {
        let held_states: Vec<HeldState> = held.iter().map(HeldLease::held_state).collect();
        let mut run = Self {
            held,
            grace,
            limits: limits(&held_states, grace),
            held_states,
            stage: Stage::NotStarted,
            lost: Vec::new(),
            is_late: false,
            is_checking: false,
            is_reported_running: false,
            report,
        };
        for index in 0..run.held_states.len() {
            run.note_loss(index);
            run.tell(index);
        }
        run
    }

    fn report(&mut self, progress: Progress<'_>) {
        (self.report)(progress);
    }

    /// Waits until it is known that every lease is held. Returns false if one is lost.
    async fn may_begin(&mut self) -> bool {
        while self.lost.is_empty() && self.must_check() {
            let index = self.changed().await;
            self.tell(index);
        }
        self.limits = limits(&self.held_states, self.grace);
        self.lost.is_empty()
    }

    fn must_check(&self) -> bool {
        self.held_states
            .iter()
            .any(|held_state| held_state.checking)
    }

    /// Waits until the state of one of the leases changes, and returns its index.
    async fn changed(&mut self) -> usize {
        let changes = self.held.iter().zip(&self.held_states);
        let changes = changes.map(|(held, known)| held.changed(known).boxed());
        let (held_state, index, _) = select_all(changes).await;
        self.held_states[index] = held_state;
        self.note_loss(index);
        index
    }

    /// Remembers the lease if it is lost.
    fn note_loss(&mut self, index: usize) {
        if let Some(lost) = &self.held_states[index].lost {
            self.lost.push(lost.node.clone());
        }
    }

    /// Reports the new state of one of the leases.
    fn tell(&mut self, index: usize) {
        let held_state = &self.held_states[index];
        (self.report)(match &held_state.lost {
            Some(lost) => Progress::Lost(lost, self.stage),
            None => Progress::StateChanged(held_state),
        });
    }

    /// Gives the command as much time as its leases have left.
    fn follow(&mut self, running: &mut Running) {
        if !self.lost.is_empty() || self.is_late {
            let now = now();
            let left = match self.must_check() {
                true => now,
                false => limits(&self.held_states, self.grace).kill_at,
            };
            // Once asked to end, the command can only get less time, and none while a lease must be checked.
            self.limits = Limits {
                term_at: now,
                kill_at: self.limits.kill_at.min(left).min(after(now, self.grace)),
            };
            running.end(self.limits);
        } else {
            self.limits = limits(&self.held_states, self.grace);
            running.limits(self.limits);
            self.hold_still(running);
        }
    }

    /// Stops this process together with its command, as a shell expects of a job. Does nothing if the command
    /// is already being ended.
    fn stop(&mut self, running: &mut Running) {
        let left = self.limits.term_at.saturating_sub(now());
        if !self.lost.is_empty() || self.is_late || left <= 0 {
            return;
        }
        let left = Duration::from_micros(left.unsigned_abs());
        running.suspend(|| self.report(Progress::Stopped(left)));
    }

    /// Reports that the command still runs although it received the signal `after`. Does nothing if the
    /// command is already being ended.
    fn still_running(&mut self, after: Signal, pid: Option<u32>) {
        if self.stage == Stage::Running && self.lost.is_empty() && !self.is_late {
            self.is_reported_running = true;
            self.report(Progress::StillRunning { after, pid });
        }
    }

    /// Stops the command while one of its leases has to be checked.
    fn hold_still(&mut self, running: &mut Running) {
        let must_check = self.must_check();
        if std::mem::replace(&mut self.is_checking, must_check) == must_check {
            return;
        }
        match must_check {
            true => running.freeze(),
            false => running.thaw(),
        }
    }

    /// Reports why the command had to end, as the keeper of its lease knows it.
    async fn explain(&mut self) {
        let explained = async {
            while self.lost.is_empty() {
                let index = self.changed().await;
                self.tell(index);
            }
        };
        let _ = tokio::time::timeout(EXPLANATION, explained).await;
        let leases = self.held.iter().zip(&self.held_states);
        let earliest = leases.min_by_key(|(_, held_state)| held_state.stop_at);
        if let Some((held, held_state)) = earliest.filter(|_| self.lost.is_empty()) {
            // The lease was renewed at the last moment, when the command was already being ended.
            let lost = Lost {
                subject: held.subject(),
                node: held.node().to_owned(),
                by: LostBy::Expiry,
                lease: Some(held_state.lease.clone()),
                problem: None,
            };
            self.lost.push(lost.node.clone());
            self.report(Progress::Lost(&lost, self.stage));
        }
    }

    fn outcome(self, exit: Option<Exit>, left: Option<usize>) -> CommandOutcome {
        CommandOutcome {
            exit,
            lost: self.lost,
            left,
        }
    }
}

/// Returns the signal that asked the command to end, once the command should have ended.
async fn still_running(asked_to_end: Option<(Signal, Instant)>) -> Signal {
    match asked_to_end {
        Some((signal, by)) => {
            sleep_until(by).await;
            signal
        }
        None => pending().await,
    }
}

/// The earliest deadline, minus the time that is needed to end all processes.
fn limits(held_states: &[HeldState], grace: Duration) -> Limits {
    let stops = held_states
        .iter()
        .map(|held_state| held_state.stop_at.as_micros());
    let term_at = stops.min().unwrap_or(i64::MAX);
    Limits {
        term_at,
        kill_at: after(term_at, grace),
    }
}

fn now() -> i64 {
    Machine.boot().as_micros()
}

fn after(instant: i64, length: Duration) -> i64 {
    instant.saturating_add(i64::try_from(length.as_micros()).unwrap_or(i64::MAX))
}
