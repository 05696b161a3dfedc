//! What all verbs that change locks have in common: from the selected nodes to the results, which are
//! reported in the order of the nodes.

use std::time::Duration;

use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Change, Done, DryRun, Error, NodeEvent, NodeLease, Sight};

use super::confirm::{self, Confirmed};
use super::events;
use super::items;
use super::parallel::{self, Completion};
use super::problems::Problems;
use super::side_effects::SideEffects;
use super::targets::{self, Target, Targets};
use crate::args::change::ChangingArgs;
use crate::args::nodes::Selection;
use crate::args::take_expired::TakeExpiredArgs;
use crate::args::until::Until;
use crate::error::{Failure, Kind, LockAfter, Verb};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::item::{Item, NodeList};
use crate::output::item_error::ItemError;
use crate::output::print;
use crate::run::session::{Session, Start};
use crate::words::change::{self, ChangeContext, dry_run_suffix};
use crate::words::error_code::ErrorCode;
use crate::words::failure;
use crate::words::program::Program;
use crate::words::time::{clock, remaining};
use crate::words::verb::Outcomes;

/// A verb that is running.
pub(crate) struct VerbRun<'a> {
    pub(crate) session: Session<'a>,
    pub(crate) args: &'a ChangingArgs,
    pub(crate) verb: Verb,
}

impl<'a> VerbRun<'a> {
    /// Opens a session for `verb`. Sends nothing, but may ask who the API user is.
    ///
    /// # Errors
    /// If the API server can't be reached, or if the caller's identity is not valid for a holder.
    pub(crate) async fn begin(
        start: &Start<'a>,
        args: &'a ChangingArgs,
        verb: Verb,
    ) -> Result<Self, Failure> {
        let session = start.writing(&args.write).await?;
        if matches!(verb, Verb::Acquire | Verb::Hold | Verb::With) {
            let learning = async {
                session.learn_api_user(start.environment).await;
                Ok(())
            };
            parallel::or_interrupted(learning).await?;
        }
        Ok(Self {
            session,
            args,
            verb,
        })
    }

    /// The nodes that `selection` means, after a confirmation if there are many.
    ///
    /// # Errors
    /// If they can't be found, or are not confirmed.
    pub(crate) async fn targets(
        &self,
        selection: &Selection,
        with_nodes: bool,
    ) -> Result<Targets, Failure> {
        let targets = self.find(selection, with_nodes).await?;
        let confirmed =
            confirm::many_nodes(&self.session, self.args, self.verb, selection, &targets).await;
        self.reported(&targets.to_names(), confirmed)?;
        Ok(targets)
    }

    /// The nodes that `selection` means, read, and the locks of others that may be taken over: those that
    /// were shown. Asks once, also if there are many nodes.
    ///
    /// # Errors
    /// If they can't be found or read, if the answer is no, or if nobody can answer.
    pub(crate) async fn targets_to_take_over(
        &self,
        selection: &Selection,
        with_nodes: bool,
    ) -> Result<(Targets, Confirmed), Failure> {
        let targets = self.find(selection, with_nodes).await?;
        let targets = self.read(targets, with_nodes).await?;
        let confirmed =
            confirm::breaking(&self.session, self.args, self.verb, selection, &targets).await;
        let confirmed = self.reported(&targets.to_names(), confirmed)?;
        Ok((targets, confirmed))
    }

    async fn find(&self, selection: &Selection, with_nodes: bool) -> Result<Targets, Failure> {
        let finding = targets::find(
            &self.session,
            selection.clone(),
            with_nodes,
            self.verb,
            self.args.nodes.parallel,
        );
        match parallel::or_interrupted(finding).await {
            // Nothing is left to release, as for a node that is already free.
            Err(Failure::NothingFound(nothing))
                if *selection == Selection::Mine
                    && matches!(self.verb, Verb::Release | Verb::Unhold) =>
            {
                let (what, hint) = failure::nothing_found(&nothing, self.session.program);
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                self.session.terminal.remark(format!("{what}{hint}"));
                Ok(Targets {
                    nodes: Vec::new(),
                    single: false,
                })
            }
            found => self.reported(selection.names(), found),
        }
    }

    /// Reads what was not read yet, for verbs that need it before they ask.
    ///
    /// # Errors
    /// If something can't be read.
    pub(crate) async fn read(
        &self,
        targets: Targets,
        with_nodes: bool,
    ) -> Result<Targets, Failure> {
        let nodes = targets.to_names();
        let looking = targets::read(&self.session, targets, with_nodes, self.args.nodes.parallel);
        self.reported(&nodes, parallel::or_interrupted(looking).await)
    }

    /// Reads `targets`, and asks before expired locks are taken whose nodes are NotReady or cordoned. Returns
    /// the targets and the locks that were confirmed: none if nobody can answer, if no question is needed, or
    /// if the answer is no and `partial` lets the other nodes be locked.
    ///
    /// # Errors
    /// If something can't be read, or if the answer is no.
    pub(crate) async fn read_and_confirm_unfinished(
        &self,
        targets: Targets,
        take: TakeExpiredArgs,
        partial: bool,
    ) -> Result<(Targets, Vec<NodeLease>), Failure> {
        let targets = self.read(targets, true).await?;
        if take.take_expired {
            return Ok((targets, Vec::new()));
        }
        match confirm::unfinished(&self.session, self.args, self.verb, &targets).await {
            Ok(confirmed) if confirmed.is_empty() => Ok((targets, confirmed)),
            // The answer took time: a node may have been cordoned meanwhile.
            Ok(confirmed) => Ok((self.read(targets.unread(), true).await?, confirmed)),
            Err(Failure::Declined) if partial => Ok((targets, Vec::new())),
            Err(failure) => self
                .reported(&targets.to_names(), Err(failure))
                .map(|confirmed| (targets, confirmed)),
        }
    }

    /// Runs the verb on each of `targets`, reports the results and returns the exit code.
    pub(crate) async fn each<F>(
        &self,
        targets: Targets,
        mut report: ChangeReport<'_>,
        work: impl Fn(Target) -> F,
    ) -> Result<Code, Failure>
    where
        F: Future<Output = Result<Change, Failure>>,
    {
        let parallel = self.args.nodes.parallel;
        let single = targets.single;
        let may_land = |node: &str| self.session.locks.has_open_write(node);
        let completion =
            parallel::in_order(targets.nodes, parallel, work, may_land, |node, result| {
                report.add(node, result);
            })
            .await;
        if completion == Completion::Interrupted {
            report.interrupted();
        }
        report.end(single).await
    }

    /// The present, in server time.
    ///
    /// # Errors
    /// If it is not known, because this machine was paused after the last answer.
    pub(crate) fn now(&self) -> Result<Now, Failure> {
        let now = self.session.locks.server_time().now();
        match now.bounded {
            true => Ok(now),
            false => Err(Failure::UnknownTime),
        }
    }

    /// The duration of locks of `nodes` that end at `until`.
    ///
    /// # Errors
    /// If that is in the past or too far ahead, or if the present is not known.
    pub(crate) fn duration_until(
        &self,
        nodes: &[String],
        until: Until,
    ) -> Result<Duration, Failure> {
        let duration = |now| Ok(until.duration(now)?);
        self.reported(nodes, self.now().and_then(duration))
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.args.write.dry_run != DryRun::None
    }

    /// Reports a problem that ends the command, in the words of this session and for each of `nodes`.
    pub(crate) fn reported<T>(
        &self,
        nodes: &[String],
        result: Result<T, Failure>,
    ) -> Result<T, Failure> {
        result.map_err(|failure| {
            let problems = Problems::changing(&self.session, self.verb);
            let error = problems.report(&failure);
            let format = self.args.output.format();
            match items::print_failed(&self.session, nodes, &error, format) {
                Ok(()) => Failure::Reported(failure.kind(Some(self.verb))),
                Err(unprintable) => unprintable.into(),
            }
        })
    }
}

/// Distinguishes a node that was never locked from one that does not exist.
///
/// # Errors
/// If it does not exist, or can't be read.
pub(crate) async fn must_exist(session: &Session<'_>, node: &str) -> Result<(), Failure> {
    match session.locks.see_node(node).await? {
        Sight::Missing => Err(Error::NodeNotFound(node.to_owned()).into()),
        _ => Ok(()),
    }
}

/// The text with the next steps, after the program did what was requested. `nodes` is the list as a command
/// takes it.
pub(crate) type Then = fn(&Program, nodes: &str, got: &Acquired) -> String;

/// The locks that the program got.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acquired {
    /// The number of nodes.
    pub(crate) count: usize,
    /// When the first of them expires, and its duration, in words.
    pub(crate) expires: Option<String>,
}

/// Reports the results for the nodes as they come.
pub(crate) struct ChangeReport<'a> {
    work: &'a VerbRun<'a>,
    problems: Problems<'a>,
    /// The locks of others that may be taken over.
    confirmed: Option<&'a Confirmed>,
    /// Why a lock of another is taken over, in the caller's words.
    because: Option<&'a str>,
    /// The next step after a lock was acquired or extended.
    then: Option<Then>,
    /// Whether the nodes were not named.
    unnamed: bool,
    /// The requested duration.
    duration: Option<Duration>,
    goes_on: bool,
    /// When the first of the locks expires, and its duration in seconds.
    expires: Option<(Instant, u32)>,
    outcomes: Outcomes,
    items: Vec<Item>,
    side_effects: SideEffects,
    events: Vec<NodeEvent>,
}

impl<'a> ChangeReport<'a> {
    pub(crate) fn new(work: &'a VerbRun<'a>) -> Self {
        Self {
            work,
            problems: Problems::changing(&work.session, work.verb),
            confirmed: None,
            because: None,
            then: None,
            unnamed: false,
            duration: None,
            goes_on: false,
            expires: None,
            outcomes: Outcomes::default(),
            items: Vec::new(),
            side_effects: SideEffects::default(),
            events: Vec::new(),
        }
    }

    /// Reports the locks in `confirmed` as those of others.
    pub(crate) fn breaking(mut self, confirmed: &'a Confirmed) -> Self {
        self.confirmed = Some(confirmed);
        self
    }

    /// Sets why a lock of another is taken over.
    pub(crate) fn because(mut self, because: Option<&'a str>) -> Self {
        self.because = because;
        self
    }

    /// Prints the next step after a lock was acquired or extended.
    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = Some(then);
        self
    }

    /// Reports which locks were released, if `selection` did not name the nodes.
    pub(crate) fn of(mut self, selection: &Selection) -> Self {
        self.unnamed = *selection == Selection::Mine;
        self
    }

    /// Reports locks that already last longer than this.
    pub(crate) fn requested(mut self, duration: Option<Duration>) -> Self {
        self.duration = duration;
        self
    }

    /// Suggests a retry for these `nodes` only, from here on.
    pub(crate) fn retry_for(&mut self, nodes: &[String]) {
        let program = self.work.session.program.narrowed(nodes);
        self.problems.retry_as(program);
    }

    /// Reports the result for `node`.
    pub(crate) fn add(&mut self, node: &str, result: Result<Change, Failure>) {
        match result {
            Ok(change) => self.succeeded(&change),
            Err(failure) => {
                let nodes = match failure.lock_after() {
                    LockAfter::Unchanged => &mut self.outcomes.left,
                    LockAfter::Kept => &mut self.outcomes.done,
                    LockAfter::Unknown => &mut self.outcomes.open,
                };
                nodes.push(node.to_owned());
                let error = self.problems.report(&failure);
                let now = self.work.session.locks.server_time().now();
                self.items.push(Item::failed(node, &failure, error, now));
            }
        }
    }

    fn succeeded(&mut self, change: &Change) {
        let &VerbRun {
            ref session,
            args,
            verb,
        } = self.work;
        let terminal = session.terminal;
        let now = session.locks.server_time().now();
        self.outcomes.done.push(change.node.clone());
        self.goes_on |= matches!(change.done, Done::Acquired | Done::Renewed);
        if let Some((end, lease)) = change.until().zip(change.lease.as_ref()) {
            let first = (end, lease.duration_seconds());
            self.expires = Some(self.expires.map_or(first, |known| known.min(first)));
        }
        self.side_effects.add(change);
        let broken = self.is_broken(change);
        if let Some(expired) = change::expired(change, now) {
            terminal.warn(expired);
        }
        if let Some(note) = change::note(change) {
            terminal.remark(note);
        }
        if change.done == Done::AlreadyFree && self.because.is_some() {
            let node = &change.node;
            terminal.warn(format!("node/{node} was already free: -m was not stored"));
        }
        if is_for_people(args.output.format()) {
            let context = ChangeContext {
                now,
                dry_run: args.write.dry_run,
                broken,
                unnamed: self.unnamed,
                duration: self.duration,
            };
            terminal.result(change::line(change, context));
        }
        if let Some(stays) = change::stays(change, self.duration, now, session.program) {
            terminal.remark(stays);
        }
        self.items.push(Item::of_change(change, now));
        if self.work.is_dry_run() {
            return;
        }
        if let Some(warning) = change::still_acting(change, now).filter(|_| broken) {
            terminal.warn(warning);
        }
        let caller = session.locks.identity();
        let events = events::of(change, verb, caller, broken, self.because);
        self.events.extend(events);
    }

    /// Whether it ended another's lock that had not expired.
    fn is_broken(&self, change: &Change) -> bool {
        let confirmed = self.confirmed.and_then(|leases| leases.get(&change.node));
        let before = change.before.as_ref().and_then(NodeLease::holder);
        let ended = matches!(change.done, Done::Released | Done::Acquired);
        confirmed.is_some() && before.is_some() && ended
    }

    /// Records a node that is as before: the command was interrupted, or had problems with other nodes.
    pub(crate) fn left_alone(&mut self, node: String, completion: Completion) {
        let failed = self.work.verb.failed(&node);
        let error = match completion {
            Completion::Complete => ItemError::of(
                ErrorCode::OtherFailed,
                format!("{failed}: another node failed"),
            ),
            Completion::Interrupted => {
                ItemError::of(ErrorCode::Interrupted, format!("{failed}: interrupted"))
            }
        };
        self.items.push(Item::skipped(&node, error));
        self.outcomes.left.push(node);
    }

    /// Records that Ctrl-C came before the end.
    pub(crate) fn interrupted(&mut self) {
        if self.problems.any() {
            self.problems.note(Kind::Interrupted);
        } else {
            self.problems.report(&Failure::Interrupted);
        }
    }

    /// Prints the summary, writes the Events, and returns the exit code; `single` if one node was named.
    ///
    /// # Errors
    /// If the result can't be printed.
    pub(crate) async fn end(self, single: bool) -> Result<Code, Failure> {
        let &VerbRun {
            ref session,
            args,
            verb,
        } = self.work;
        let terminal = session.terminal;
        self.problems.report_groups();
        self.side_effects
            .print(terminal, dry_run_suffix(args.write.dry_run));
        let list = NodeList::new(self.items).single(single);
        if let Some(text) = print::data(&list, args.output.format())? {
            terminal.data(text);
        }
        let dry_run = self.work.is_dry_run();
        let is_for_people = is_for_people(args.output.format());
        if let Some(then) = self
            .then
            .filter(|_| self.goes_on && !dry_run && is_for_people)
        {
            let got = Acquired {
                count: self.outcomes.done.len(),
                expires: self.expires.map(|(end, duration)| {
                    let now = session.locks.server_time().now().latest;
                    let duration = remaining(Span::seconds(duration));
                    format!("{} (in {duration})", clock(end, now))
                }),
            };
            terminal.remark(next(then, session.program, &self.outcomes, &got));
        }
        if let Some(summary) = verb.summary(&self.outcomes, dry_run) {
            terminal.remark(format!("{summary}{}", dry_run_suffix(args.write.dry_run)));
        }
        parallel::exit_at_interrupt();
        events::post(session, self.events).await;
        Ok(self.problems.end().await)
    }
}

/// The next step for all nodes that the program was asked to work on, or for those that it locked.
fn next(then: Then, program: &Program, outcomes: &Outcomes, got: &Acquired) -> String {
    let node = match &outcomes.done[..] {
        [node] => node,
        _ => "NODE...",
    };
    if outcomes.left.is_empty() && outcomes.open.is_empty() {
        then(program, program.nodes(node), got)
    } else {
        let some = program.narrowed(&outcomes.done);
        then(program, some.nodes(node), got)
    }
}

/// Whether the format is words, and not data for scripts.
fn is_for_people(format: Format) -> bool {
    matches!(format, Format::Text | Format::Wide)
}
