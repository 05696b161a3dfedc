//! Tells whom a caller waits for, in a line a change; on a terminal with another below it that counts
//! down.

use std::future::pending;
use std::time::Duration;

use maintenance_lease::{Blocked, Progress};

use crate::report::refusal::Asked;
use crate::report::verb::Verb;
use crate::report::waiting::{self, Queue};
use crate::session::Session;

/// How often the line that counts down is shown anew.
const TICK: Duration = Duration::from_secs(1);

/// What a waiter told.
#[derive(Debug)]
pub(super) enum Told {
    Blocked(Box<Blocked>),
    /// Nothing can be watched, for this reason.
    Blind(String),
}

impl Told {
    pub(super) fn of(progress: &Progress<'_>) -> Option<Self> {
        match progress {
            Progress::Blocked(blocked) => Some(Self::Blocked(Box::new((*blocked).clone()))),
            Progress::Blind(why) => Some(Self::Blind(why.to_string())),
            _ => None,
        }
    }
}

/// The lines, of which the one that counts down goes away with this.
pub(super) struct Line<'a> {
    session: &'a Session<'a>,
    verb: Verb,
    queue: Queue,
    /// It is told: somebody who only looks once waits for nobody.
    is_told: bool,
    blocked: Option<Blocked>,
}

impl<'a> Line<'a> {
    pub(super) fn new(session: &'a Session<'a>, verb: Verb, queue: Queue, is_told: bool) -> Self {
        Self {
            session,
            verb,
            queue,
            is_told,
            blocked: None,
        }
    }

    /// What stands in the way, as far as that is known.
    pub(super) fn blocked(&self) -> Option<&Blocked> {
        self.blocked.as_ref()
    }

    pub(super) fn take_in(&mut self, told: Told) {
        match told {
            Told::Blocked(blocked) => {
                let known = self.blocked.replace(*blocked);
                if let Some(blocked) = self.blocked()
                    && self.is_told
                    && !known.is_some_and(|known| blocked.is_still(&known))
                {
                    let asked = Asked {
                        verb: self.verb,
                        caller: self.session.locks.identity(),
                        program: self.session.program,
                        now: self.session.locks.server_time().now(),
                        waited: false,
                    };
                    let line = waiting::line(blocked, self.queue, asked);
                    self.session.terminal.remark(line);
                }
                self.show();
            }
            Told::Blind(why) => {
                self.session.terminal.warn(waiting::blind(&why));
                self.show();
            }
        }
    }

    /// Completes when the line is due to be shown anew; never where there is none.
    pub(super) async fn due(&self) {
        if self.blocked.is_some() && self.session.terminal.live_width().is_some() {
            tokio::time::sleep(TICK).await;
        } else {
            pending::<()>().await;
        }
    }

    /// Shows the one that counts down, where it can be shown.
    pub(super) fn show(&self) {
        let terminal = self.session.terminal;
        let blocked = self.blocked().filter(|_| self.is_told);
        if let Some((blocked, width)) = blocked.zip(terminal.live_width()) {
            let now = self.session.locks.server_time().now();
            terminal.live(&waiting::short(blocked, self.queue, now, width));
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.session.terminal.end_live();
    }
}
