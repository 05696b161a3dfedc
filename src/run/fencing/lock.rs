//! The lock during fence and unfence: one that the caller already holds, or a hold that lasts as long as
//! the node is fenced.

use maintenance_lease::protocol::{LockId, Now, State};
use maintenance_lease::{Change, Done, Error, Hold, Maintenance, NodeLease};
use node_keys::{Asked, OptOuts};
use pod_safety::fencing::fencing_hold::{PURPOSE, is_of_fencing, protects_fencing};
use pod_safety::fencing::steps::Lock;

use super::run_hook::GRACE;
use super::target::{FencingTarget, Observed};
use crate::args::lock_id::LockIds;
use crate::args::protect::asked;
use crate::error::{Failure, FencingRefusal, FencingWrite, HookError, LockAfter};
use crate::run::side_effects::SideEffects;
use crate::run::variables::is_held_by;
use crate::words::fencing as words;

impl FencingTarget<'_> {
    /// Whose lock the node has. The caller holds it by a lease that has not expired, by a hold, or by the
    /// `with` that this runs under. That of `with` only counts if the lock id is the same.
    pub(crate) fn lock(&self, lease: Option<&NodeLease>) -> Lock {
        let is_callers = |lease: &NodeLease| self.is_of_outer(lease) || self.locks().is_own(lease);
        Lock::of(lease, self.now(), is_callers)
    }

    /// Whether the caller has locked the node by a lease, which ends by itself, and not by a hold.
    pub(crate) fn is_under_lease(&self, lease: Option<&NodeLease>) -> bool {
        let state = lease.map(|lease| lease.state(self.now()));
        self.lock(lease) == Lock::Callers && matches!(state, Some(State::Held { .. }))
    }

    fn is_of_outer(&self, lease: &NodeLease) -> bool {
        is_held_by(lease, self.outer) && is_acquired_by(lease, &self.node, self.inherited.as_ref())
    }

    /// Checks, before anybody is asked, that the server would accept the hold.
    ///
    /// # Errors
    /// For example, if the namespace of the Leases is missing, or if it was interrupted.
    pub(crate) async fn may_hold(
        &self,
        reason: String,
        ticket: Option<&str>,
        cordon: bool,
    ) -> Result<(), Failure> {
        let locks = self.locks().in_dry_run();
        let options = hold_options(reason, ticket, cordon);
        let holding = locks.hold(&self.node, &options);
        self.interrupt
            .or(async { Ok(holding.await.map(drop)?) })
            .await
    }

    /// Puts the node on hold for as long as it is fenced. After Ctrl-C it waits a moment for the answer.
    ///
    /// # Errors
    /// For example, if somebody else holds the lock, or if the result of the write is unknown.
    pub(crate) async fn hold(
        &self,
        reason: String,
        ticket: Option<&str>,
        cordon: bool,
    ) -> Result<Change, Failure> {
        let options = hold_options(reason, ticket, cordon);
        let locks = self.locks();
        let change = self
            .write_lock(locks.hold(&self.node, &options))
            .await
            .map_err(|failure| match failure {
                Failure::Lock(Error::NodeNotFound(_)) => self.missing(),
                failure => self.if_unknown(FencingWrite::Hold, failure),
            })?;
        let terminal = self.terminal();
        let mut side_effects = SideEffects::default();
        side_effects.add(&change);
        side_effects.print(terminal, self.suffix());
        terminal.remark(words::on_hold(&self.node) + self.suffix());
        Ok(change)
    }

    /// The hold of a fencing, if it is the caller's.
    pub(crate) fn own_hold<'l>(&self, observed: &'l Observed) -> Option<&'l NodeLease> {
        let lease = observed.lease.as_ref();
        lease.filter(|lease| is_of_fencing(lease, self.now()) && self.locks().is_own(lease))
    }

    /// Labels the Node of this hold, and cordons it if `cordon` is set. Reports why if that fails: the hold counts without the
    /// label.
    ///
    /// # Errors
    /// If the Node is not cordoned as wanted, or that the command was interrupted.
    pub(crate) async fn label(&self, hold: &NodeLease, cordon: bool) -> Result<(), Failure> {
        let asked = keys_of_fencing(cordon);
        let labeling = self.session.label(hold, &asked);
        let is_labeled = self
            .interrupt
            .with_grace(async { Ok(labeling.await) })
            .await?;
        match is_labeled || !cordon {
            true => Ok(()),
            false => Err(Failure::Hook(HookError::NotCordoned {
                node: self.node.clone(),
            })),
        }
    }

    /// Checks, before the Node is changed, that the server would accept the end of the hold in `lease`. Another lock that
    /// has replaced it needs no end.
    ///
    /// # Errors
    /// For example, if a policy denies it, or if it was interrupted.
    pub(crate) async fn may_unhold(&self, lease: &NodeLease) -> Result<(), Failure> {
        let locks = self.locks().in_dry_run();
        let checking = async { Ok(self.end_hold(&locks, lease).await.map(drop)?) };
        match self.interrupt.or(checking).await {
            Err(failure) if words::taken_by(&failure).is_some() => Ok(()),
            // Only the write itself can show it.
            Err(Failure::Lock(Error::Api(error))) if error.lacks_dry_run_support() => Ok(()),
            // A dry run never takes effect.
            Err(Failure::Lock(Error::Unknown { source, .. })) => Err(Error::Api(source).into()),
            checked => checked,
        }
    }

    /// Ends the hold in `lease`, and no other, and then removes the held label. After Ctrl-C it waits a moment for the
    /// answers.
    ///
    /// # Errors
    /// If it was replaced by another lock, if it can't be written, or if the result is unknown.
    pub(crate) async fn unhold(&self, lease: &NodeLease) -> Result<(), Failure> {
        let end = self.end_hold(self.locks(), lease);
        let change = self
            .write_lock(self.session.end_lock(end))
            .await
            .map_err(|failure| self.if_unknown(FencingWrite::EndHold, failure))?;
        let is_ended = change.done == Done::Released;
        let terminal = self.terminal();
        terminal.remark(words::end_of_hold(&self.node, is_ended) + self.suffix());
        Ok(())
    }

    async fn end_hold(&self, locks: &Maintenance, lease: &NodeLease) -> Result<Change, Error> {
        locks.unhold(&self.node, Some(lease)).await
    }

    /// The `failure` of a write, unless its result is unknown.
    fn if_unknown(&self, write: FencingWrite, failure: Failure) -> Failure {
        match failure.lock_after() {
            LockAfter::Unknown => self.unknown(write, failure),
            LockAfter::Unchanged | LockAfter::Kept => failure,
        }
    }

    /// The failure of a write whose result is unknown, because of `why`.
    pub(crate) fn unknown(&self, write: FencingWrite, why: Failure) -> Failure {
        Failure::UnknownFencing {
            node: self.node.clone(),
            write,
            why: Box::new(why),
        }
    }

    /// Writes to the node's Lease. After Ctrl-C it waits a moment for the answer.
    ///
    /// # Errors
    /// If the write fails, or if it was interrupted, with or without a write under way.
    async fn write_lock<T>(
        &self,
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        let written = self.interrupt.with_grace(async { Ok(write.await?) }).await;
        match written {
            Err(Failure::Interrupted) if self.locks().has_open_write(&self.node) => {
                Err(Failure::InterruptedWrite {
                    node: self.node.clone(),
                })
            }
            written => written,
        }
    }

    /// Marks the Lease of a node as fenced, or removes the mark. `status` needs it, because it does not read whole
    /// Nodes that look ready.
    pub(crate) async fn set_fenced_annotation(&self, lease: Option<&NodeLease>, fenced: bool) {
        if lease.is_none_or(|lease| lease.is_fenced() == fenced) || self.is_dry_run() {
            return;
        }
        let marking = self.locks().mark_fenced(&self.node, fenced);
        if let Err(failure) = self
            .interrupt
            .with_grace(async { Ok(marking.await?) })
            .await
        {
            let terminal = self.terminal();
            terminal.warn(words::not_marked(&self.node, fenced, &failure));
        }
    }

    /// Checks that a lease that the caller already held lasts as long as the hook may take, because nobody
    /// renews it. A hold has no end, and an outer `with` renews its lease.
    pub(crate) fn check_lasts(
        &self,
        lease: Option<&NodeLease>,
        limit: std::time::Duration,
    ) -> Result<(), Failure> {
        let now = self.now();
        let needed = limit + GRACE;
        let left = lease.and_then(|lease| {
            let left = lease.state(now).left_at_least(now)?;
            let is_renewed = is_acquired_by(lease, &self.node, self.inherited.as_ref());
            (left < needed.into() && !is_renewed).then_some(left)
        });
        match left {
            None => Ok(()),
            Some(left) => Err(FencingRefusal::ShortLock {
                node: self.node.clone(),
                left,
                needed,
            }
            .into()),
        }
    }
}

fn hold_options(reason: String, ticket: Option<&str>, cordon: bool) -> Hold {
    let keys = keys_of_fencing(cordon).to_string();
    let options = Hold::new(reason).purpose(PURPOSE).keys(keys);
    match ticket {
        Some(ticket) => options.ticket(ticket),
        None => options,
    }
}

fn keys_of_fencing(cordon: bool) -> Asked {
    asked(cordon, OptOuts::None)
}

/// Checks that the lock in `lease`, if there is one, may be ended before its node is unfenced.
///
/// # Errors
/// If only `unfence` may end it.
pub(crate) fn may_end(lease: Option<&NodeLease>, now: Now) -> Result<(), FencingRefusal> {
    match lease.filter(|lease| protects_fencing(lease, now)) {
        Some(lease) => Err(FencingRefusal::EndLock {
            lock: Box::new(lease.clone()),
            now,
        }),
        None => Ok(()),
    }
}

/// Whether the lock ids of an outer `with` include the acquisition in `lease`.
fn is_acquired_by(lease: &NodeLease, node: &str, ids: Option<&LockIds>) -> bool {
    lease
        .lock_id()
        .is_some_and(|id| names_acquisition(ids, node, &id))
}

fn names_acquisition(ids: Option<&LockIds>, node: &str, id: &LockId) -> bool {
    ids.and_then(|ids| ids.of_node(node)) == Some(id)
}

#[cfg(test)]
mod tests {
    use connect::Environment;

    use super::*;
    use crate::args::lock_id;

    #[test]
    fn the_lock_of_an_outer_command_is_that_very_acquisition() {
        const UID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let id = |end: &str| format!("{UID}.{end}");
        let ours: LockId = id("1.n").parse().expect("a lock id");
        for (ids, is_it) in [
            (id("1.n"), true),
            (format!("worker-1={}", id("1.n")), true),
            (
                format!("worker-2={} worker-1={}", id("1.v"), id("1.n")),
                true,
            ),
            (format!("worker-2={}", id("1.n")), false),
            (id("2.n"), false),
            (String::new(), false),
        ] {
            let environment = Environment::of_variables([(lock_id::VARIABLE, ids.as_str())]);
            let ids = LockIds::of(&environment).ok().flatten();
            let names = names_acquisition(ids.as_ref(), "worker-1", &ours);
            assert_eq!(names, is_it, "{ids:?}");
        }
    }
}
