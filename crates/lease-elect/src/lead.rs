//! The lead: the daemon runs for as long as it is renewed.

use std::ffi::OsString;
use std::time::Duration;

use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::{Error, HeldLease, Standing};
use supervisor::{Command, Event, Exit, Limits, Over, Running, Signals, StartError};

use crate::asked::Asked;
use crate::board::Board;
use crate::exit::Code;
use crate::failure::{Failure, words};
use crate::log;

/// How close to its end a renewal is too late: the supervisor may be asking the daemon to end.
const TOO_LATE: i64 = 100_000;

/// How long the keeper may take to say why the lead was not renewed.
const EXPLANATION: Duration = Duration::from_millis(500);

/// A lead, and what is told of it.
pub(crate) struct Lead {
    pub(crate) held: HeldLease,
    pub(crate) board: Board,
    pub(crate) namespace: String,
    pub(crate) holder: String,
    pub(crate) grace: Duration,
}

/// A daemon at work under a lead.
struct Course<'a> {
    lead: &'a Lead,
    standing: Standing,
    limits: Limits,
    /// The daemon has to end, and that was told.
    is_lost: bool,
    /// It had to end at its limit, and the keeper did not say yet why.
    is_late: bool,
}

/// How the daemon ended.
struct Outcome {
    /// `None` where that is not known.
    exit: Option<Exit>,
    /// The lead was lost meanwhile.
    is_lost: bool,
    /// Nothing of the daemon runs any more.
    is_over: bool,
}

impl Lead {
    /// Runs `daemon` until it and everything that it started have ended, and lets go of the lead.
    ///
    /// # Errors
    /// Where it can't be started.
    pub(crate) async fn run(
        self,
        daemon: Vec<OsString>,
        mut asked: Asked,
    ) -> Result<Code, Failure> {
        let standing = self.held.standing();
        self.board.leads(standing.deadline);
        log::line(format_args!(
            "leading lease {}/{} (transition {}): starting {}",
            self.namespace,
            self.held.node(),
            standing.lease.transitions(),
            daemon
                .first()
                .map_or_else(Default::default, |name| name.to_string_lossy()),
        ));
        let began = match Signals::new() {
            // What came before is not the daemon's.
            Ok(signals) => match futures::FutureExt::now_or_never(asked.heard()) {
                Some(code) => Ok(Err(code)),
                None => {
                    drop(asked);
                    self.course(standing).run(daemon, signals).await.map(Ok)
                }
            },
            Err(error) => Err(Failure::System(error)),
        };
        self.board.ends();
        match began {
            Ok(Ok(outcome)) => Ok(self.end(outcome).await),
            Ok(Err(code)) => {
                log::line("asked to end before the daemon was started");
                self.release().await;
                Ok(code)
            }
            Err(failure) => {
                self.release().await;
                Err(failure)
            }
        }
    }

    fn course(&self, standing: Standing) -> Course<'_> {
        Course {
            lead: self,
            limits: limits(&standing, self.grace),
            standing,
            is_lost: false,
            is_late: false,
        }
    }

    async fn end(self, outcome: Outcome) -> Code {
        if outcome.is_lost {
            return Code::LOST;
        }
        if !outcome.is_over {
            // What may still run needs the lead for as long as it lasts.
            self.held.leave();
            log::line("the lease is not released: it runs out by itself");
        } else if self.release().await {
            return Code::LOST;
        }
        outcome.exit.map_or(Code::FAILED, Code::of_daemon)
    }

    /// Lets another lead at once. Returns whether the lead turned out to be lost.
    async fn release(self) -> bool {
        match self.held.release().await {
            Ok(_) => {
                log::line("released the lease");
                false
            }
            Err(Error::Lost(lost)) => {
                log::line(format_args!("the lead was lost: {lost}"));
                true
            }
            Err(Error::Refused(refused)) => {
                log::line(format_args!("the lead was lost: {refused}"));
                true
            }
            Err(error) => {
                log::line(format_args!(
                    "the lease could not be released, and runs out by itself: {}",
                    words(&error)
                ));
                false
            }
        }
    }

    /// What the daemon is told of its lead, whatever it inherits.
    fn environment(&self, command: Command) -> Command {
        let standing = self.held.standing();
        // A lead is always an acquisition of its own.
        let fencing = self.held.fencing().unwrap_or_default();
        command
            .env("LEASE_ELECT_NAMESPACE", &self.namespace)
            .env("LEASE_ELECT_LEASE", self.held.node())
            .env("LEASE_ELECT_HOLDER", &self.holder)
            .env(
                "LEASE_ELECT_TRANSITIONS",
                standing.lease.transitions().to_string(),
            )
            .env("LEASE_ELECT_FENCING_TOKEN", fencing.to_string())
    }
}

impl Course<'_> {
    async fn run(
        mut self,
        daemon: Vec<OsString>,
        mut signals: Signals,
    ) -> Result<Outcome, Failure> {
        let lead = self.lead;
        let command = lead.environment(Command::new(daemon)).grace(lead.grace);
        let mut running = match command.start(self.limits).await {
            Ok(running) => running,
            Err(StartError::TooLate) => {
                self.explain().await;
                return Ok(self.outcome(None, true));
            }
            Err(error) => return Err(error.into()),
        };
        let mut exit = None;
        loop {
            tokio::select! {
                biased;
                standing = lead.held.changed(&self.standing) => self.follow(standing, &mut running),
                signal = signals.next() => running.signal(signal),
                event = running.next() => match event {
                    Ok(Event::Stopped(_)) => {
                        running.suspend();
                    }
                    Ok(Event::Continued) => {}
                    Ok(Event::Exited(how)) => {
                        self.look_at_the_clock();
                        lead.board.ends();
                        told_exit(how);
                        exit = Some(how);
                    }
                    Ok(Event::Left(processes)) => log::line(format_args!(
                        "the daemon left {processes} of its processes behind: they are ended"
                    )),
                    Ok(Event::SupervisorLost) => {
                        log::line("the daemon's supervisor was killed: everything is ended");
                    }
                    Ok(Event::Over(over)) => return Ok(self.over(exit, Some(over)).await),
                    Err(error) => {
                        log::line(format_args!("the daemon can't be followed: {error}"));
                        return Ok(self.over(exit, None).await);
                    }
                }
            }
        }
    }

    /// Gives the daemon as much time as the lead has.
    fn follow(&mut self, standing: Standing, running: &mut Running) {
        self.standing = standing;
        let now = now();
        if let Some(lost) = self.standing.lost.clone() {
            self.lose(lost);
            // Asked to end once, it can only have less time.
            self.limits = Limits {
                term_at: now,
                kill_at: self
                    .limits
                    .kill_at
                    .min(now.saturating_add(micros(self.lead.grace))),
            };
            running.end(self.limits);
        } else if self.is_late || now.saturating_add(TOO_LATE) >= self.limits.term_at {
            self.is_late = true;
            running.end(self.limits);
        } else {
            self.lead.board.goes_on(self.standing.deadline);
            self.limits = limits(&self.standing, self.lead.grace);
            running.limits(self.limits);
        }
    }

    fn look_at_the_clock(&mut self) {
        self.is_late |= now() >= self.limits.term_at;
    }

    async fn over(mut self, exit: Option<Exit>, over: Option<Over>) -> Outcome {
        self.look_at_the_clock();
        if self.is_late {
            self.explain().await;
        }
        if let Some(over) = over.filter(|over| over.unkillable > 0) {
            log::line(format_args!(
                "{} processes of the daemon can't be ended, and may still run",
                over.unkillable
            ));
        }
        self.outcome(exit, over.is_some_and(|over| over.unkillable == 0))
    }

    fn outcome(&self, exit: Option<Exit>, is_over: bool) -> Outcome {
        Outcome {
            exit,
            is_lost: self.is_lost,
            is_over,
        }
    }

    /// Says why the daemon had to end, as the keeper has it.
    async fn explain(&mut self) {
        if self.is_lost {
            return;
        }
        let explained = tokio::time::timeout(EXPLANATION, self.lead.held.expiry()).await;
        match explained {
            Ok(lost) => self.lose(lost),
            Err(_) => self.lose("it could not be renewed in time"),
        }
    }

    fn lose(&mut self, how: impl std::fmt::Display) {
        if !std::mem::replace(&mut self.is_lost, true) {
            self.lead.board.ends();
            log::line(format_args!(
                "the lead was lost: {how}; the daemon has to end"
            ));
        }
    }
}

fn told_exit(exit: Exit) {
    match exit {
        Exit::Code(code) => log::line(format_args!("the daemon exited with code {code}")),
        Exit::Signal(signal) => log::line(format_args!("the daemon was ended by {signal}")),
    }
}

/// Until the deadline, less what it takes to end everything by then.
fn limits(standing: &Standing, grace: Duration) -> Limits {
    let term_at = standing.stop_at.as_micros();
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
