//! Messages about the progress of the command.

use std::collections::{BTreeMap, BTreeSet};

use crate::platform::ENDS_STOPPED_COMMANDS;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{HeldState, Lost, NodeLease};
use supervisor::under_lease::{Progress, Stage};

use crate::run::session::Session;
use crate::ui::Terminal;
use crate::words::{loss, with};

/// Prints what the operator needs to know about the command.
pub(super) struct Messages<'a> {
    session: &'a Session<'a>,
    /// The Leases as last held, by node.
    held: BTreeMap<String, NodeLease>,
    /// The nodes with a reported renewal failure.
    failing: BTreeSet<String>,
    /// What was lost while the command had the terminal.
    lost: Vec<Lost>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(session: &'a Session<'a>) -> Self {
        Self {
            session,
            held: BTreeMap::new(),
            failing: BTreeSet::new(),
            lost: Vec::new(),
        }
    }

    pub(super) fn report(&mut self, progress: Progress<'_>) {
        let terminal = self.session.terminal;
        match progress {
            Progress::StateChanged(held_state) => self.state_changed(held_state),
            Progress::Lost(lost, stage) => {
                self.lose(lost, stage);
                if stage == Stage::Running && Terminal::is_stderr_one() {
                    self.lost.push(lost.clone());
                }
            }
            Progress::Paused => terminal.warn(with::PAUSED),
            Progress::Resumed => terminal.remark(with::RESUMED),
            Progress::Stopped(left) => {
                let now = self.now();
                let end = now.latest + left.into();
                // A hold has no end.
                let end = Some(end).filter(|end| *end != Instant::UNREADABLE);
                terminal.warn(loss::stopped(end, now, ENDS_STOPPED_COMMANDS));
            }
            Progress::StillRunning { after, pid } => {
                terminal.warn(loss::still_running(after, pid));
            }
            Progress::Left(processes) => terminal.remark(loss::left(processes)),
            Progress::SupervisorLost => terminal.warn(with::SUPERVISOR_LOST),
            Progress::FollowFailed(error) => terminal.error(&with::not_followed(error)),
            Progress::Exited(_) => {}
        }
    }

    /// Reports the losses again after the command has ended: a full-screen program may have erased the
    /// first message.
    pub(super) fn repeat(&self) {
        for lost in &self.lost {
            self.lose(lost, Stage::Ended);
        }
    }

    fn lose(&self, lost: &Lost, stage: Stage) {
        let before = self.held.get(&lost.node);
        let (message, hint) = loss::lines(lost, before, stage, self.now(), self.session.program);
        self.session.terminal.error(&message);
        if stage != Stage::Ended {
            self.session.terminal.hint(hint);
        }
    }

    /// Reports renewals that fail while there is time left, and when that time is over.
    fn state_changed(&mut self, held_state: &HeldState) {
        let terminal = self.session.terminal;
        let node = held_state.lease.node();
        self.held.insert(node.to_owned(), held_state.lease.clone());
        match &held_state.problem {
            Some(problem) => {
                if self.failing.insert(node.to_owned()) {
                    let now = self.now();
                    let end = now.latest + held_state.stop_at.since(Machine.boot());
                    terminal.warn(loss::warning(node, problem, end, now));
                }
            }
            None => {
                if self.failing.remove(node) {
                    terminal.remark(with::renewed_again(node));
                }
            }
        }
    }

    fn now(&self) -> Now {
        self.session.locks.server_time().now()
    }
}
