//! Reports the outcome for each node: in words and as data, with the next step, the Events and the exit code.

use std::time::Duration;

use futures::future::join_all;
use maintenance_lease::protocol::Instant;
use maintenance_lease::{Change, Done, Error, NodeEvent, NodeLease, NodeRow, Target};
use node_keys::{Asked, Cordon};

use super::confirm::Confirmed;
use super::events;
use super::interruption::{Interruption, LAST_CHANCE, exit_at_interrupt};
use super::lock_command::LockCommand;
use super::lock_set::{Results, release_acquired};
use super::parallel::in_order;
use super::problems::Problems;
use super::session::Session;
use super::side_effects::SideEffects;
use crate::args::nodes::Selection;
use crate::error::{Failure, Kind, LockAfter, Verb};
use crate::exit::Code;
use crate::output::error_code::ErrorCode;
use crate::output::item::{Item, NodeList};
use crate::output::item_error::ItemError;
use crate::words::change::{self, ChangeContext, dry_run_suffix};
use crate::words::event;
use crate::words::keys;
use crate::words::next_steps::next_step;
use crate::words::verb::{Outcomes, how_to_lock_others};

/// Reports the results for the nodes as they come.
pub(crate) struct LockReport<'a> {
    command: &'a LockCommand<'a>,
    /// The locks of others that may be taken over.
    pub(crate) confirmed: Option<&'a Confirmed>,
    /// The caller's reason for a takeover.
    pub(crate) because: Option<&'a str>,
    selection: &'a Selection,
    problems: Problems<'a>,
    is_going_on: bool,
    /// When the first of the locks expires, and its duration in seconds.
    expires: Option<(Instant, u32)>,
    outcomes: Outcomes,
    /// How many were not tried, because others were refused.
    skipped: usize,
    /// Whether a node failed for a reason other than its lock.
    has_failed: bool,
    items: Vec<Item>,
    acquired: Vec<Change>,
    /// Locks that last longer than was requested.
    not_extended: Vec<Change>,
    side_effects: SideEffects,
    events: Vec<NodeEvent>,
    /// What to write on Nodes.
    keys: Option<KeysToSet<'a>>,
}

/// What the command asks for on the Nodes of the locks in `changes`.
struct KeysToSet<'a> {
    changes: Vec<Change>,
    asked: Option<&'a Asked>,
}

impl<'a> LockReport<'a> {
    pub(crate) fn new(command: &'a LockCommand<'a>, selection: &'a Selection) -> Self {
        Self {
            command,
            confirmed: None,
            because: None,
            selection,
            problems: Problems::changing(&command.session, command.verb),
            is_going_on: false,
            expires: None,
            outcomes: Outcomes::default(),
            skipped: 0,
            has_failed: false,
            items: Vec::new(),
            acquired: Vec::new(),
            not_extended: Vec::new(),
            side_effects: SideEffects::default(),
            events: Vec::new(),
            keys: None,
        }
    }

    /// Runs `work` for each of `targets`, reports each result as it comes, and returns the exit code.
    ///
    /// # Errors
    /// If the result can't be printed.
    pub(crate) async fn each<F>(
        mut self,
        targets: Vec<Target>,
        work: impl Fn(Target) -> F,
    ) -> Result<Code, Failure>
    where
        F: Future<Output = Result<Change, Failure>>,
    {
        let command = self.command;
        let session = &command.session;
        let work = |target| session.report_slow(work(target));
        let may_land = |node: &str| session.locks.has_open_write(node);
        let report = |node: &str, result| self.add(node, result);
        let count = command.node_progress();
        let interrupted = in_order(targets, count, work, may_land, report).await;
        self.end(interrupted).await
    }

    /// Reports the results for `nodes`, in this order, and returns the exit code.
    ///
    /// # Errors
    /// If the result can't be printed.
    pub(crate) async fn all(
        mut self,
        nodes: &[String],
        mut results: Results,
    ) -> Result<Code, Failure> {
        if let Some(nodes) = results.to_retry(nodes, self.command.verb) {
            self.problems.retry_for(&nodes);
        }
        for node in nodes {
            match results.by_node.remove(node) {
                Some(result) => self.add(node, result),
                None => self.left_alone(node, results.interrupted),
            }
        }
        self.end(results.interrupted).await
    }

    /// The same, and sets on the Nodes of the locks what they ask for. If a Node is not cordoned as `asked`, that is an
    /// error.
    ///
    /// # Errors
    /// If the result can't be printed.
    pub(crate) async fn all_protected(
        mut self,
        nodes: &[String],
        results: Results,
        asked: Option<&'a Asked>,
    ) -> Result<Code, Failure> {
        let changes = results.by_node.values().flatten().cloned().collect();
        self.keys = Some(KeysToSet { changes, asked });
        self.all(nodes, results).await
    }

    fn add(&mut self, node: &str, result: Result<Change, Failure>) {
        match result {
            Ok(change) => self.succeeded(&change),
            Err(failure) => {
                let nodes = match failure.lock_after() {
                    LockAfter::Unchanged => &mut self.outcomes.left,
                    LockAfter::Kept => &mut self.outcomes.done,
                    LockAfter::Unknown => &mut self.outcomes.open,
                };
                nodes.push(node.to_owned());
                self.has_failed |= !matches!(failure, Failure::Lock(Error::Refused(_)));
                let error = self.problems.report(&failure);
                let now = self.command.session.locks.server_time().now();
                self.items.push(Item::failed(node, &failure, error, now));
            }
        }
    }

    fn succeeded(&mut self, change: &Change) {
        let command = self.command;
        let session = &command.session;
        let terminal = session.terminal;
        let now = session.locks.server_time().now();
        let is_extended = change.unused_duration().is_none();
        if !is_extended {
            self.not_extended.push(change.clone());
        }
        let nodes = match is_extended || command.verb != Verb::Renew {
            true => &mut self.outcomes.done,
            false => &mut self.outcomes.left,
        };
        nodes.push(change.node.clone());
        self.is_going_on |= matches!(change.done, Done::Acquired | Done::Renewed);
        if let Some((end, lease)) = change.until().zip(change.lease.as_ref()) {
            let first = (end, lease.duration_seconds());
            self.expires = Some(self.expires.map_or(first, |known| known.min(first)));
        }
        self.side_effects.add(change);
        let broken = self.is_broken(change);
        let context = ChangeContext {
            now,
            is_dry_run: command.is_dry_run(),
            broken,
            unnamed: *self.selection == Selection::Mine,
        };
        session.report_before(change, now);
        if change.done == Done::AlreadyHeld {
            self.report_unchanged_hold(change);
        }
        if change.done == Done::AlreadyFree && self.because.is_some() {
            terminal.warn(change::reason_not_stored(&change.node));
        }
        if self.command.args.output.format().is_for_people() {
            terminal.result(change::line(change, context));
        }
        self.items.push(Item::of_change(change, now));
        if command.is_dry_run() {
            return;
        }
        if change.done == Done::Acquired {
            self.acquired.push(change.clone());
        }
        if let Some(warning) = change::may_act_until(change, now).filter(|_| broken) {
            terminal.warn(warning);
        }
        let because = self.because;
        let caller = session.locks.identity();
        let events = event::of(change, command.verb, caller, broken, because);
        self.events.extend(events);
    }

    /// Reports which flags had no effect, because the caller has the node on hold.
    fn report_unchanged_hold(&mut self, change: &Change) {
        let Session {
            program, terminal, ..
        } = &self.command.session;
        let asked = self.keys.as_ref().and_then(|keys| keys.asked);
        let cordons = asked.map(|asked| asked.cordon == Cordon::Set);
        let Some(text) = change::hold_unchanged(&change.node, program, cordons) else {
            return;
        };
        let cordons = cordons == Some(true);
        // If the requested cordon is missing, the command fails.
        let is_cordoned = change.row.as_ref().is_some_and(NodeRow::is_cordoned);
        match cordons && !is_cordoned {
            true => {
                self.problems.note(Kind::Other);
                terminal.error(&text);
            }
            false => terminal.warn(text),
        }
        let flag = if cordons { "--cordon" } else { "" };
        let named = program.narrowed(std::slice::from_ref(&change.node));
        terminal.hint(change::change_hold(change.lease.as_ref(), flag, &named));
    }

    /// Whether it ended somebody else's lock before it expired.
    fn is_broken(&self, change: &Change) -> bool {
        let is_confirmed = self
            .confirmed
            .is_some_and(|it| it.contains_key(&change.node));
        let before = change.before.as_ref().and_then(NodeLease::holder);
        let ended = matches!(change.done, Done::Released | Done::Acquired);
        is_confirmed && before.is_some() && ended
    }

    /// Records an unchanged node: the command was interrupted, or failed for other nodes.
    fn left_alone(&mut self, node: &str, interrupted: bool) {
        let code = match interrupted {
            true => ErrorCode::Interrupted,
            false => {
                self.skipped += 1;
                ErrorCode::OtherFailed
            }
        };
        let error = ItemError::of(code, self.command.verb.not_done(node, interrupted));
        self.items.push(Item::skipped(node, error));
        self.outcomes.left.push(node.to_owned());
    }

    /// Sets on the Nodes what the locks ask for, and adds to the data which of them are labeled.
    async fn set_keys(&mut self) {
        let Some(KeysToSet { changes, asked }) = self.keys.take() else {
            return;
        };
        if self.command.is_dry_run() {
            return;
        }
        let session = &self.command.session;
        let protected = session.set_keys(&changes, asked).await;
        let failed = protected.iter().filter(|it| it.is_uncordoned);
        let failed: Vec<&str> = failed.map(|it| &*it.node).collect();
        if !failed.is_empty() {
            let is_hold = self.command.verb == Verb::Hold;
            let hint = keys::release_uncordoned(is_hold, &failed, session.program);
            session.terminal.hint(hint);
            self.problems.note(Kind::Other);
        }
        for it in &protected {
            let mut items = self.items.iter_mut();
            if let Some(item) = items.find(|item| item.node == it.node) {
                item.labeled = Some(it.is_labeled);
            }
        }
    }

    /// Prints the data and the summary, writes on the Nodes, then the Events, and returns the exit code.
    async fn end(mut self, mut interrupted: bool) -> Result<Code, Failure> {
        // The data says whether the Nodes are labeled. In words, the outcome is printed already.
        if !self.command.args.output.format().is_for_people() {
            let interruption = Interruption::listen();
            let setting = async {
                self.set_keys().await;
                Ok(())
            };
            // What was not written yet is not written any more: the locks are released.
            let _ = interruption.with_grace(setting).await;
            if interruption.has_come() {
                interrupted = true;
                self.release_interrupted().await;
                for change in &self.acquired {
                    let kept = change::kept_interrupted(&change.node);
                    self.command.session.terminal.warn(kept);
                }
            }
        }
        if interrupted && self.problems.any() {
            self.problems.note(Kind::Interrupted);
        } else if interrupted {
            self.problems.report(&Failure::Interrupted);
        }
        let (command, is_for_people) = (
            self.command,
            self.command.args.output.format().is_for_people(),
        );
        let session = &command.session;
        let terminal = session.terminal;
        let suffix = dry_run_suffix(command.is_dry_run());
        self.problems.report_groups();
        let now = session.locks.server_time().now();
        if let Some(hint) = change::how_to_extend(&self.not_extended, now, session.program) {
            terminal.hint(hint);
        }
        self.side_effects.print(terminal, suffix);
        let items = std::mem::take(&mut self.items);
        let list = NodeList::new(items).single(self.selection.is_single());
        if let Err(error) = terminal.print(&list, command.args.output.format()) {
            terminal.unprinted(&error);
        }
        if !is_for_people && !self.acquired.is_empty() {
            terminal.needs_reader();
        }
        if terminal.has_failed() {
            self.release_unwritten().await;
            self.is_going_on = false;
        }
        if self.is_going_on && !command.is_dry_run() && is_for_people {
            let outcomes = &self.outcomes;
            let is_fenced = self.acquired.iter().any(Change::is_fenced);
            let next = next_step(
                command.verb,
                outcomes,
                self.expires,
                is_fenced,
                session.program,
                now,
            );
            if let Some(next) = next {
                terminal.remark(next);
            }
        }
        let outcomes = &self.outcomes;
        let is_nothing_done = outcomes.done.is_empty() && outcomes.open.is_empty();
        match command.verb.summary(outcomes, command.is_dry_run()) {
            Some(summary) => {
                let can_be_partial =
                    command.verb == Verb::Acquire && !session.program.waits() && !self.has_failed;
                let skipped = self.skipped * usize::from(can_be_partial && is_nothing_done);
                let partial = how_to_lock_others(skipped);
                terminal.remark(format!("{summary}{partial}{suffix}"));
            }
            None if interrupted && is_nothing_done => terminal.remark(command.verb.nothing_done()),
            None => {}
        }
        exit_at_interrupt();
        // Before the Events: the node must be protected even if nobody takes them.
        self.set_keys().await;
        events::post(session, self.events).await;
        Ok(self.problems.end().await)
    }

    /// Takes the locks that this command acquired, except those that replaced another one: their end would not bring that one
    /// back.
    fn take_new(&mut self) -> Vec<Change> {
        let locks = &self.command.session.locks;
        let acquired = std::mem::take(&mut self.acquired).into_iter();
        let (new, kept) = acquired.partition(|change| locks.is_new(change));
        self.acquired = kept;
        new
    }

    /// Releases what was acquired, because the command was interrupted before the data was printed. There is a short time
    /// limit.
    async fn release_interrupted(&mut self) {
        let new = self.take_new();
        let session = &self.command.session;
        let releasing = { new.iter() }.map(|change| release_new(session, change, LAST_CHANCE));
        let released = join_all(releasing).await;
        for (change, released) in new.iter().zip(released) {
            let node = &change.node;
            self.events.retain(|event| event.node != *node);
            self.outcomes.done.retain(|other| other != node);
            match released {
                Ok(()) => self.left_alone(node, true),
                Err(failure) => self.add(node, Err(failure)),
            }
            let mut items = self.items.iter();
            if let Some(index) = items.position(|item| item.node == *node) {
                self.items.swap_remove(index);
            }
        }
    }

    /// Releases what was acquired, because its lock ids could not be written: a script takes the command for
    /// failed. A lock that replaced another one stays, since its end would not bring that one back.
    async fn release_unwritten(&mut self) {
        let new = self.take_new();
        let session = &self.command.session;
        let is_released = |node: &str| new.iter().any(|change| change.node == node);
        if let Some(keys) = &mut self.keys {
            keys.changes.retain(|change| !is_released(&change.node));
        }
        self.events.retain(|event| !is_released(&event.node));
        for change in &self.acquired {
            let kept = change::kept_unwritten(&change.node, change.lock_id());
            session.terminal.warn(kept);
        }
        for change in &new {
            let released = release_new(session, change, Duration::MAX).await;
            if let Err(failure) = released {
                self.problems.report(&failure);
            } else {
                let released = change::released_unwritten(&change.node);
                session.terminal.warn(released);
            }
        }
    }
}

/// Releases a lock that this command acquired, and then removes what it set. Each has this time limit. Returns why the lock could
/// not be released.
async fn release_new(
    session: &Session<'_>,
    change: &Change,
    limit: Duration,
) -> Result<(), Failure> {
    release_acquired(&session.locks, change, limit).await?;
    if let Some(lease) = &change.lease {
        session.remove_keys(lease, limit).await;
    }
    Ok(())
}
