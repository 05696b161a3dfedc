//! Read, decide, write: the one loop behind every verb.
//!
//! It ends with a decision, or with the caller's time. A write whose answer was lost is settled by
//! reading again, and by sending the very same write on the same resource version: whichever of the
//! two lands first makes the other fail.

use std::time::Duration;

use bytes::Bytes;

use super::api::Api;
use super::error::ApiError;
use super::imagine::imagined;
use super::nodes::NodeRow;
use super::open_writes::Mark;
use super::patch::{Extras, merge_patch, object};
use super::reads::{Seen, Sight};
use super::writes::WriteOptions;
use crate::bugs::{self, Bug};
use crate::env::backoff;
use crate::jumps::Jumps;
use crate::lease::NodeLease;
use crate::outcome::{Aside, Change, Done, Error, Refused, Right};
use crate::protocol::{
    Acquisition, BootInstant, Caller, Decision, Lease, Names, Now, Outcome, Refusal, State, Verb,
    Write, deadline, decide, judge, state,
};

/// Whether writes count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// They do.
    #[default]
    None,
    /// The decision is taken and nothing is sent.
    Client,
    /// The server checks them and stores nothing.
    Server,
}

/// What a caller wants done to a node's Lease.
pub(crate) struct Task<'a> {
    pub(crate) node: &'a str,
    pub(crate) verb: Verb,
    pub(crate) caller: Caller,
    pub(crate) names: Names,
    /// The acquisition that is meant, where the caller named or confirmed one.
    pub(crate) meant: Option<Acquisition>,
    pub(crate) extras: Extras,
    /// What was read already, so that nothing is read twice.
    pub(crate) seen: Option<Seen>,
    /// The Node, as soon as it was read.
    pub(crate) row: Option<NodeRow>,
    pub(crate) write_options: &'a WriteOptions,
    pub(crate) dry_run: DryRun,
    /// How long to go on; `None`: until there is a decision.
    pub(crate) patience: Option<Duration>,
    /// A lost race ends it, as [`Error::Contended`]: a watch will tell what came of it.
    pub(crate) once: bool,
}

/// A write that was sent, on what.
struct Sent {
    write: Write,
    on: Option<NodeLease>,
    /// Before the first time that it was sent.
    at: BootInstant,
    /// How the clocks stood then.
    jumps: Jumps,
}

impl Task<'_> {
    /// The verb as a participle: what happens to the node.
    fn intent(&self) -> &'static str {
        match self.verb {
            Verb::Acquire { .. } | Verb::Elect(_) => "acquired",
            Verb::Renew { .. } => "renewed",
            Verb::Release | Verb::ForceRelease => "released",
            Verb::Hold { .. } => "put on hold",
            Verb::Unhold { .. } => "taken off hold",
        }
    }

    /// The Node itself matters to verbs that begin something.
    fn needs_node(&self) -> bool {
        matches!(self.verb, Verb::Acquire { .. } | Verb::Hold { .. })
    }

    /// The verb is for the acquisition that is read first. One that breaks a lock is for what was
    /// confirmed, which no read stands in for.
    fn pins_first_read(&self) -> bool {
        matches!(
            self.verb,
            Verb::Renew { .. } | Verb::Release | Verb::Unhold { another: false }
        )
    }

    /// It is a hold, and what `lease` is held for is not what it is for.
    fn meets_another_purpose(&self, lease: Option<&NodeLease>) -> bool {
        let purpose = lease.and_then(NodeLease::purpose);
        let is_hold = matches!(self.verb, Verb::Hold { .. });
        is_hold && purpose.is_some() && purpose != self.extras.purpose.as_deref()
    }

    fn reduce(&mut self, lease: Option<&NodeLease>) -> Option<Lease> {
        lease.map(|lease| lease.reduced(&mut self.names))
    }
}

impl Api {
    /// Decides `verb` on what was seen of the node, without carrying it out.
    pub(crate) fn check(
        &self,
        node: &str,
        verb: Verb,
        caller: Caller,
        seen: &Seen,
        names: &mut Names,
    ) -> Result<(), Error> {
        sight(node, &seen.row)?;
        let reduced = seen.lease.as_ref().map(|lease| lease.reduced(names));
        let now = self.time.now();
        decide(verb, caller, reduced.as_ref(), None, now)
            .map(drop)
            .map_err(|refusal| {
                self.refused(node, refusal, seen.lease.as_ref(), reduced.as_ref(), now)
            })
    }

    /// Carries `task` out.
    pub(crate) async fn change(&self, task: Task<'_>) -> Result<Change, Error> {
        let mut open = None;
        let result = self.read_decide_write(task, &mut open).await;
        if !matches!(result, Err(Error::Unknown { .. })) {
            open.into_iter().for_each(Mark::settle);
        }
        result
    }

    /// `open` is the write that was sent last, unless it is known to be over.
    async fn read_decide_write(
        &self,
        mut task: Task<'_>,
        open: &mut Option<Mark>,
    ) -> Result<Change, Error> {
        let begun = self.env.boot();
        let mut asides = Vec::new();
        let seen = match task.seen.take() {
            Some(seen) => seen,
            None => self
                .see(task.node, task.needs_node())
                .await
                .map_err(|error| self.lease_right("get").explain(error))?,
        };
        let needs_node = task.needs_node() && self.repository.locks_nodes();
        if needs_node {
            check_node(&mut task, &seen.row, &mut asides)?;
        }
        task.row = seen.row.into_row();

        let mut lease = seen.lease;
        let first_uid = lease.as_ref().map(|lease| lease.uid.clone());
        let mut unsettled: Option<Sent> = None;
        let mut conflicts = 0;
        let mut tries = 0;
        loop {
            let reduced = task.reduce(lease.as_ref());
            if let Some(seen) = &reduced {
                self.open_writes.passed(task.node, seen.version.0);
            }
            if task.meant.is_none() && tries == 0 && task.pins_first_read() {
                task.meant = reduced.as_ref().and_then(Lease::acquisition);
            }
            // Before the present is looked at: who is stopped between the two must not believe for
            // longer than what the write says.
            let at = self.env.boot();
            let jumps = Jumps::from(&*self.env, &self.time);
            let (sent, resent) = match self.settle(&mut task, unsettled.take(), reduced.as_ref()) {
                Settled::Landed(sent) => {
                    asides.push(Aside::AnswerLost);
                    return Ok(self.done(&mut task, *sent, lease, asides));
                }
                Settled::Unsettled(sent) => (*sent, true),
                Settled::Nothing => {
                    open.take().into_iter().for_each(Mark::settle);
                    if lease.as_ref().map(|lease| &lease.uid) != first_uid.as_ref() && needs_node {
                        // A Lease goes with its Node: the Node that was seen may be another by now.
                        let row = self
                            .node_row(task.node)
                            .await
                            .map_err(|error| Right::on_nodes("get").explain(error))?;
                        check_node(&mut task, &row, &mut asides)?;
                    }
                    match self.decide(&mut task, reduced.as_ref(), &lease)? {
                        Decision::Write(write) => {
                            let on = lease.take();
                            (
                                Sent {
                                    write,
                                    on,
                                    at,
                                    jumps,
                                },
                                false,
                            )
                        }
                        Decision::AlreadyFree => {
                            return Ok(self.nothing(&mut task, Done::AlreadyFree, lease, asides));
                        }
                        Decision::AlreadyHeld => {
                            return Ok(self.nothing(&mut task, Done::AlreadyHeld, lease, asides));
                        }
                    }
                }
            };
            if task.dry_run == DryRun::Client {
                let imagined = imagined(&sent.write, sent.on.as_ref(), &task, &self.repository);
                return Ok(self.done(&mut task, sent, Some(imagined), asides));
            }
            let mut wait = backoff(&*self.env, tries);
            if task.dry_run == DryRun::None && open.is_none() {
                let on = sent.on.as_ref().map(|on| on.version.0);
                *open = Some(self.open_writes.open(task.node, on));
            }
            let problem = match self.send_write(&task, &sent).await {
                Ok(answer) => match NodeLease::from_json(&answer, &self.repository) {
                    Err(why) => {
                        unsettled = Some(sent);
                        ApiError::Unreadable(why)
                    }
                    Ok(after) => {
                        let reduced = after.reduced(&mut task.names);
                        let on = task.reduce(sent.on.as_ref());
                        if judge(&sent.write, on.as_ref(), Some(&reduced)) == Outcome::Failed {
                            return Err(Error::Unknown {
                                subject: self.repository.subject(),
                                node: task.node.to_owned(),
                                intent: task.intent(),
                                source: ApiError::Unreadable(
                                    "it stored other fields than were sent".to_owned(),
                                ),
                            });
                        }
                        self.open_writes.passed(task.node, reduced.version.0);
                        if sent.on.is_none() {
                            asides.push(Aside::LeaseCreated);
                        }
                        return Ok(self.done(&mut task, sent, Some(after), asides));
                    }
                },
                Err(error) if error.leaves_writes_unknown() => {
                    unsettled = Some(sent);
                    error
                }
                Err(error) if error.is_throttled() => {
                    if let Some(seconds) = error.status().and_then(|status| status.retry_after) {
                        wait = wait.max(Duration::from_secs(seconds));
                    }
                    unsettled = resent.then_some(sent);
                    error
                }
                Err(error) if error.is_conflict() => {
                    conflicts += 1;
                    if task.once && !resent {
                        return Err(Error::Contended {
                            subject: self.repository.subject(),
                            node: task.node.to_owned(),
                            intent: task.intent(),
                            conflicts,
                            waited: Duration::ZERO,
                        });
                    }
                    unsettled = resent.then_some(sent);
                    error
                }
                Err(error)
                    if error.is_not_found()
                        && sent.on.is_none()
                        && self.repository.locks_nodes() =>
                {
                    if task.dry_run == DryRun::Server {
                        asides.push(Aside::NamespaceCreated);
                        let imagined = imagined(&sent.write, None, &task, &self.repository);
                        return Ok(self.done(&mut task, sent, Some(imagined), asides));
                    }
                    let created =
                        self.create_namespace(task.write_options)
                            .await
                            .map_err(|error| {
                                Right {
                                    verb: "create",
                                    resource: "namespaces",
                                    namespace: None,
                                }
                                .explain(error)
                            })?;
                    if created && !asides.contains(&Aside::NamespaceCreated) {
                        asides.push(Aside::NamespaceCreated);
                    }
                    unsettled = resent.then_some(sent);
                    wait = Duration::ZERO;
                    error
                }
                // The Lease went away meanwhile: read again, decide again.
                Err(error) if error.is_not_found() && sent.on.is_some() => {
                    unsettled = resent.then_some(sent);
                    error
                }
                Err(error) if resent => {
                    return Err(Error::Unknown {
                        subject: self.repository.subject(),
                        node: task.node.to_owned(),
                        intent: task.intent(),
                        source: error,
                    });
                }
                Err(error) => return Err(self.explain_write(error, sent.on.is_some())),
            };
            if unsettled.is_none() {
                open.take().into_iter().for_each(Mark::settle);
            }
            tries += 1;
            lease = self
                .read_again(
                    &task,
                    begun,
                    wait,
                    tries,
                    unsettled.is_some(),
                    problem,
                    conflicts,
                )
                .await?;
        }
    }

    /// Judges a write whose answer was lost by what was read since.
    fn settle(
        &self,
        task: &mut Task<'_>,
        unsettled: Option<Sent>,
        seen: Option<&Lease>,
    ) -> Settled {
        let Some(sent) = unsettled else {
            return Settled::Nothing;
        };
        let on = task.reduce(sent.on.as_ref());
        match judge(&sent.write, on.as_ref(), seen) {
            Outcome::Landed => Settled::Landed(Box::new(sent)),
            Outcome::Unsettled => Settled::Unsettled(Box::new(sent)),
            Outcome::Failed => Settled::Nothing,
        }
    }

    fn decide(
        &self,
        task: &mut Task<'_>,
        seen: Option<&Lease>,
        lease: &Option<NodeLease>,
    ) -> Result<Decision, Error> {
        let now = self.time.now();
        let lease = lease.as_ref();
        match decide(task.verb, task.caller, seen, task.meant, now) {
            Ok(Decision::Write(Write::Renew { .. })) if task.meets_another_purpose(lease) => {
                Err(Refusal::OwnHold)
            }
            decision => decision,
        }
        .map_err(|refusal| self.refused(task.node, refusal, lease, seen, now))
    }

    async fn send_write(&self, task: &Task<'_>, sent: &Sent) -> Result<Bytes, ApiError> {
        match &sent.on {
            Some(on) => {
                let mut patch = merge_patch(&sent.write, on, &task.extras, &task.names);
                if task.once
                    && bugs::active(Bug::WaiterWithoutVersion)
                    && let Some(metadata) = patch["metadata"].as_object_mut()
                {
                    metadata.remove("resourceVersion");
                }
                self.patch_lease(task.node, &patch, task.write_options)
                    .await
            }
            None => {
                let repository = &self.repository;
                let lease = object(
                    &sent.write,
                    task.node,
                    repository,
                    &task.extras,
                    &task.names,
                );
                self.create_lease(&lease, task.write_options).await
            }
        }
    }

    /// Waits, then reads the Lease again; gives up where the caller's time is over, or where
    /// nothing can be read and no write hangs in the air.
    #[expect(
        clippy::too_many_arguments,
        reason = "the loop's whole state, in one place"
    )]
    async fn read_again(
        &self,
        task: &Task<'_>,
        begun: BootInstant,
        mut wait: Duration,
        mut tries: u32,
        unsettled: bool,
        mut problem: ApiError,
        conflicts: u32,
    ) -> Result<Option<NodeLease>, Error> {
        loop {
            let waited = Duration::from_micros(
                u64::try_from(self.env.boot().since(begun).as_micros()).unwrap_or(0),
            );
            if task
                .patience
                .is_some_and(|patience| waited.saturating_add(wait) >= patience)
            {
                let subject = self.repository.subject();
                let node = task.node.to_owned();
                let intent = task.intent();
                return Err(if unsettled {
                    Error::Unknown {
                        subject,
                        node,
                        intent,
                        source: problem,
                    }
                } else if problem.is_conflict() || problem.is_not_found() {
                    Error::Contended {
                        subject,
                        node,
                        intent,
                        conflicts,
                        waited,
                    }
                } else {
                    Error::Api(problem)
                });
            }
            self.env.sleep(wait).await;
            match self.lease(task.node).await {
                Ok(lease) => return Ok(lease),
                Err(error) if unsettled || error.is_throttled() => {
                    tries += 1;
                    wait = backoff(&*self.env, tries);
                    problem = error;
                }
                Err(error) => return Err(self.lease_right("get").explain(error)),
            }
        }
    }

    fn nothing(
        &self,
        task: &mut Task<'_>,
        done: Done,
        lease: Option<NodeLease>,
        asides: Vec<Aside>,
    ) -> Change {
        let state_before = state(task.reduce(lease.as_ref()).as_ref(), self.time.now());
        Change {
            node: task.node.to_owned(),
            row: task.row.take(),
            done,
            before: lease.clone(),
            state_before,
            lease,
            deadline: None,
            fencing: None,
            asides,
            jumps: Jumps::from(&*self.env, &self.time),
        }
    }

    fn done(
        &self,
        task: &mut Task<'_>,
        sent: Sent,
        after: Option<NodeLease>,
        asides: Vec<Aside>,
    ) -> Change {
        let state_before: State = state(task.reduce(sent.on.as_ref()).as_ref(), self.time.now());
        let done = match sent.write {
            Write::Acquire { .. } => Done::Acquired,
            Write::Renew { .. } => Done::Renewed,
            Write::Release { .. } => Done::Released,
        };
        let mut after = after;
        if task.dry_run != DryRun::None
            && done == Done::Acquired
            && let Some(after) = &mut after
        {
            // Nothing was acquired: no token stands for it.
            after.notes.nonce = None;
        }
        let held = after
            .as_ref()
            .filter(|_| done != Done::Released && task.dry_run == DryRun::None);
        Change {
            node: task.node.to_owned(),
            row: task.row.take(),
            done,
            deadline: held.map(|lease| self.believed_until(&sent, lease.duration)),
            fencing: held
                .filter(|_| done == Done::Acquired)
                .map(|lease| lease.version.0),
            before: sent.on,
            state_before,
            lease: after,
            asides,
            jumps: sent.jumps,
        }
    }

    /// The refusal of `refusal` on what was seen at `now`.
    pub(crate) fn refused(
        &self,
        node: &str,
        refusal: Refusal,
        lease: Option<&NodeLease>,
        reduced: Option<&Lease>,
        now: Now,
    ) -> Error {
        Error::Refused(Box::new(Refused {
            subject: self.repository.subject(),
            node: node.to_owned(),
            refusal,
            lease: lease.cloned(),
            state: state(reduced, now),
        }))
    }

    fn explain_write(&self, error: ApiError, existed: bool) -> Error {
        if error
            .status()
            .is_some_and(|status| status.has_cause("NamespaceTerminating"))
        {
            return Error::NamespaceTerminating(self.repository.namespace().to_owned());
        }
        self.lease_right(if existed { "patch" } else { "create" })
            .explain(error)
    }
}

impl Api {
    fn believed_until(&self, sent: &Sent, answered: u32) -> BootInstant {
        let from = if bugs::active(Bug::DeadlineAfterAnswer) {
            self.env.boot()
        } else {
            sent.at
        };
        let duration = match sent.write {
            Write::Acquire { duration, .. } | Write::Renew { duration, .. }
                if bugs::active(Bug::AskedDuration) =>
            {
                duration
            }
            _ => answered,
        };
        deadline(from, duration)
    }
}

/// What a read says of the write before it.
enum Settled {
    /// There is none, or it failed.
    Nothing,
    Landed(Box<Sent>),
    Unsettled(Box<Sent>),
}

fn check_node(task: &mut Task<'_>, row: &Sight, asides: &mut Vec<Aside>) -> Result<(), Error> {
    match sight(task.node, row)? {
        Some(row) => task.extras.node_uid = Some(row.uid.clone()),
        None if asides.contains(&Aside::NodeUnreadable) => {}
        None => asides.push(Aside::NodeUnreadable),
    }
    Ok(())
}

/// The Node's row, if it may be read; a Node that is gone or going is an error.
fn sight<'a>(node: &str, row: &'a Sight) -> Result<Option<&'a NodeRow>, Error> {
    match row {
        Sight::Row(row) if row.deleting => Err(Error::NodeDeleting(node.to_owned())),
        Sight::Row(row) => Ok(Some(row)),
        Sight::Missing => Err(Error::NodeNotFound(node.to_owned())),
        Sight::Forbidden | Sight::Unread => Ok(None),
    }
}
