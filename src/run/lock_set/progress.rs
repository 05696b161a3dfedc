//! Prints what a caller waits for, one line per change. On a terminal, another line below it counts down,
//! or counts nodes.

use std::time::Duration;

use maintenance_lease::{Blocked, Progress, SetProgress};

use crate::error::Verb;
use crate::run::node_progress::NodeProgress;
use crate::run::session::Session;
use crate::words::waiting::{self, SetWait};

/// How often the countdown is updated.
const TICK: Duration = Duration::from_secs(1);

/// A report from a set.
#[derive(Debug)]
pub(super) enum SetUpdate {
    /// How many nodes are held, and how many were refused or failed.
    Count(SetWait, usize),
    Blocked(Box<Blocked>),
    /// Changes can't be watched, for this reason.
    Unwatched(String),
}

impl SetUpdate {
    pub(super) fn of(progress: &SetProgress<'_>) -> Option<Self> {
        let set = SetWait {
            taken: progress.held,
            all: progress.all,
        };
        match &progress.waiting {
            None => Some(Self::Count(set, progress.refused)),
            Some(Progress::Blocked(blocked)) => Some(Self::Blocked(Box::new((*blocked).clone()))),
            Some(Progress::Unwatched(why)) => Some(Self::Unwatched(why.to_string())),
            Some(_) => None,
        }
    }
}

/// The lines.
pub(super) struct Line<'a> {
    session: &'a Session<'a>,
    verb: Verb,
    /// Whether to report waits. A command that tries only once does not wait.
    reports_waits: bool,
    blocked: Option<Blocked>,
    count: NodeProgress<'a>,
}

impl<'a> Line<'a> {
    pub(super) fn new(session: &'a Session<'a>, verb: Verb, reports_waits: bool) -> Self {
        Self {
            session,
            verb,
            reports_waits,
            blocked: None,
            count: NodeProgress::new(session.terminal, verb),
        }
    }

    pub(super) fn apply(&mut self, reported: SetUpdate) {
        match reported {
            SetUpdate::Count(set, refused) => self.count(set, refused),
            SetUpdate::Blocked(blocked) => {
                let known = self.blocked.as_ref();
                if self.reports_waits && !known.is_some_and(|known| blocked.is_still(known)) {
                    let request = self.session.request_context(self.verb);
                    self.session
                        .terminal
                        .remark(waiting::line(&blocked, request));
                }
                self.blocked = Some(*blocked);
                self.show();
            }
            SetUpdate::Unwatched(why) => {
                self.session.terminal.warn(waiting::watch_failed(&why));
                self.show();
            }
        }
    }

    /// Shows how many nodes are locked by now, after the wait has ended.
    fn count(&mut self, set: SetWait, failed: usize) {
        if self.blocked.take().is_some() {
            self.session.terminal.end_live();
        }
        self.count.update(set, failed);
    }

    /// Completes when the line needs an update; never if there is none.
    pub(super) async fn due(&self) {
        if self.blocked.is_some() && self.session.terminal.shows_live() {
            tokio::time::sleep(TICK).await;
        } else {
            self.count.due().await;
        }
    }

    /// Shows the countdown, or else the node count, if the terminal supports it.
    pub(super) fn show(&self) {
        match &self.blocked {
            None => self.count.show(),
            Some(blocked) if self.reports_waits => {
                let now = self.session.locks.server_time().now();
                let line = waiting::short(blocked, now);
                self.session.terminal.live(&line);
            }
            Some(_) => {}
        }
    }
}
