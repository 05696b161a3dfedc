//! The course of a command under its locks: it has until the earliest of their deadlines, which every
//! renewal moves, and is ended where one of them is lost.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select_all;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{HeldLease, Lost, LostBy, Standing, Subject};
use supervisor::{Event, Exit, Limits, Over, Running, Signals, StartError};

use crate::failure::Failure;
use crate::report::loss::{self, Stage};
use crate::session::Session;

/// How long before a deadline everything is killed that is left: as long as that may take.
pub(super) const RESERVE: Duration = Duration::from_secs(1);

/// How close to its end a renewal is too late: the supervisor may be asking the command to end.
const TOO_LATE: i64 = 100_000;

/// How long a keeper may take to say why it did not renew.
const EXPLANATION: Duration = Duration::from_millis(500);

/// How it ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// How the command ended, where that is known.
    pub(super) exit: Option<Exit>,
    /// The nodes whose lock was lost meanwhile; that was told.
    pub(super) lost: Vec<String>,
    /// What it took to end everything; `None` where it is not known whether all has ended.
    pub(super) over: Option<Over>,
}

impl Outcome {
    /// Of a command that was not run.
    pub(super) fn nothing() -> Self {
        Self {
            exit: None,
            lost: Vec::new(),
            over: Some(Over::default()),
        }
    }
}

/// A command at work.
struct Course<'a> {
    session: &'a Session<'a>,
    held: &'a [HeldLease],
    standings: Vec<Standing>,
    grace: Duration,
    limits: Limits,
    lost: Vec<String>,
    stage: Stage,
    /// It had to end at its limit, and the keeper did not say yet why.
    is_late: bool,
}

/// Runs `command` until it and everything that it started have ended.
///
/// # Errors
/// Where it can't be started.
pub(super) async fn run(
    session: &Session<'_>,
    held: &[HeldLease],
    command: supervisor::Command,
    grace: Duration,
) -> Result<Outcome, Failure> {
    let mut signals = Signals::new()
        .map_err(|error| Failure::input(format!("no signals can be heard: {error}")))?;
    let standings: Vec<Standing> = held.iter().map(HeldLease::standing).collect();
    let mut course = Course {
        session,
        held,
        limits: limits(&standings, grace),
        standings,
        grace,
        lost: Vec::new(),
        stage: Stage::NotBegun,
        is_late: false,
    };
    let mut running = match command.grace(grace).start(course.limits).await {
        Ok(running) => running,
        Err(StartError::TooLate) => return Ok(course.never_began().await),
        Err(error) => return Err(Failure::input(error.to_string())),
    };
    course.stage = Stage::AtWork;
    let mut exit = None;
    loop {
        tokio::select! {
            biased;
            () = course.changed() => course.follow(&mut running),
            signal = signals.next() => running.signal(signal),
            event = running.next() => match event {
                Ok(Event::Stopped(_)) => {
                    running.suspend();
                }
                Ok(Event::Continued) => {}
                Ok(Event::Exited(how)) => {
                    exit = Some(how);
                    course.stage = Stage::Over;
                    course.look_at_the_clock();
                }
                Ok(Event::Left(processes)) => session.terminal.remark(loss::left(processes)),
                Ok(Event::SupervisorLost) => session.terminal.warn(
                    "the command's supervisor was killed or stopped: everything is ended",
                ),
                Ok(Event::Over(over)) => return Ok(course.over(exit, Some(over)).await),
                Err(error) => {
                    session.terminal.error(&format!("the command can't be followed: {error}"));
                    return Ok(course.over(exit, None).await);
                }
            }
        }
    }
}

impl Course<'_> {
    /// Waits until one of the locks stands otherwise.
    async fn changed(&mut self) {
        let changes = self.held.iter().zip(&self.standings);
        let changes = changes.map(|(held, known)| held.changed(known).boxed());
        let (standing, index, _) = select_all(changes).await;
        self.standings[index] = standing;
        if let Some(lost) = self.standings[index].lost.clone() {
            self.tell(&lost);
        }
    }

    /// Gives the command as much time as its locks have.
    fn follow(&mut self, running: &mut Running) {
        let now = now();
        if !self.lost.is_empty() {
            // Asked to end once, it can only have less time.
            self.limits = Limits {
                term_at: now,
                kill_at: self
                    .limits
                    .kill_at
                    .min(now.saturating_add(micros(self.grace))),
            };
            running.end(self.limits);
        } else if self.is_late || now.saturating_add(TOO_LATE) >= self.limits.term_at {
            self.is_late = true;
            running.end(self.limits);
        } else {
            self.limits = limits(&self.standings, self.grace);
            running.limits(self.limits);
        }
    }

    /// Notices that the command had to end.
    fn look_at_the_clock(&mut self) {
        self.is_late |= now() >= self.limits.term_at;
    }

    async fn over(mut self, exit: Option<Exit>, over: Option<Over>) -> Outcome {
        self.look_at_the_clock();
        if self.is_late && self.lost.is_empty() {
            self.explain().await;
        }
        Outcome {
            exit,
            lost: self.lost,
            over,
        }
    }

    /// The locks ran out before the command was started.
    async fn never_began(mut self) -> Outcome {
        self.explain().await;
        Outcome {
            exit: None,
            lost: self.lost,
            over: Some(Over::default()),
        }
    }

    /// Says why the command had to end, as the keeper has it.
    async fn explain(&mut self) {
        let explained = async {
            while self.lost.is_empty() {
                self.changed().await;
            }
        };
        let _ = tokio::time::timeout(EXPLANATION, explained).await;
        let earliest = self
            .standings
            .iter()
            .min_by_key(|standing| standing.stop_at);
        if let Some(standing) = earliest.filter(|_| self.lost.is_empty()) {
            let lost = Lost {
                subject: Subject::Node,
                node: standing.lease.node().to_owned(),
                by: LostBy::Expiry,
                lease: Some(standing.lease.clone()),
                problem: None,
            };
            self.tell(&lost);
        }
    }

    fn tell(&mut self, lost: &Lost) {
        self.lost.push(lost.node.clone());
        let (message, hint) = loss::lines(
            lost,
            self.stage,
            self.session.locks.server_time().now(),
            self.session.program,
        );
        self.session.terminal.error(&message);
        self.session.terminal.hint(hint);
    }
}

/// Until the earliest deadline, less what it takes to end everything by then.
fn limits(standings: &[Standing], grace: Duration) -> Limits {
    let term_at = standings
        .iter()
        .map(|standing| standing.stop_at.as_micros())
        .min();
    let term_at = term_at.unwrap_or(i64::MAX);
    Limits {
        term_at,
        kill_at: term_at.saturating_add(micros(grace)),
    }
}

fn now() -> i64 {
    Machine.boot().as_micros()
}

fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
