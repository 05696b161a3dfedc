//! The return of a node to service, step by step.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::{Error, NodeLease};
use pod_safety::fencing::unfencing::{self, Refusal};
use pod_safety::fencing::{Record, Written, patch};

use super::args::UnfenceRisk;
use crate::args::fencing::FencingArgs;
use crate::error::{Failure, FencingRefusal, FencingWrite, HookError};
use crate::output::fencing::Fencing;
use crate::run::fencing::{Attempts, FencingTarget, Hook, Observed, Timeout};
use crate::words::event;
use crate::words::fencing::{self, awaited, hold_not_ended};
use crate::words::next_steps::own_holds_stay;
use crate::words::with::command_line;

/// An unfencing in progress.
pub(super) struct UnfenceRun<'a> {
    pub(super) args: &'a FencingArgs<UnfenceRisk>,
    pub(super) target: &'a FencingTarget<'a>,
    pub(super) hook: Hook<'a>,
    /// The hold of the fencing, as found.
    pub(super) hold: Option<NodeLease>,
    /// Whether the node was fenced when it was judged last. If not, it may have a hold.
    pub(super) is_fenced: bool,
    /// The hook has succeeded, or would in a dry run.
    pub(super) is_undone: bool,
    /// The outcome for programs, once there is one.
    pub(super) outcome: Option<Fencing>,
}

impl<'a> UnfenceRun<'a> {
    pub(super) fn new(
        args: &'a FencingArgs<UnfenceRisk>,
        target: &'a FencingTarget<'a>,
        hook: Hook<'a>,
    ) -> Self {
        Self {
            args,
            target,
            hook,
            hold: None,
            is_fenced: false,
            is_undone: false,
            outcome: None,
        }
    }
}

impl UnfenceRun<'_> {
    pub(super) async fn run(&mut self) -> Result<(), Failure> {
        let target = self.target;
        let observed = target.observed().await?;
        // What it does would not be undone, and may not be recorded yet.
        self.hook.check_alone(&observed)?;
        self.hold = self.hold_of_fencing(&observed).cloned();
        self.is_fenced = self.evidence(&observed).is_fenced();
        self.check_lock(&observed)?;
        if !self.is_fenced {
            // An earlier run ended before its last step.
            if let Some(hold) = &self.hold {
                self.confirm_unfinished(hold).await?;
                // Another hook may have started while the operator answered.
                self.hook.clear_other(&target.observed().await?).await?;
                target.unhold(hold).await?;
            }
            return self.end_unfenced(&observed).await;
        }
        let meant = observed.evidence.state.record.clone();
        let observed = match self.confirm(meant.as_ref()).await? {
            true => {
                // Everything was read before the operator answered, so it may be outdated.
                let observed = target.observed().await?;
                self.check_again(meant.as_ref(), &observed)?;
                observed
            }
            false => observed,
        };
        if let Some(hold) = &self.hold
            && !target.is_dry_run()
        {
            target.may_unhold(hold).await?;
        }
        self.undo(&observed).await?;
        // A dry run can't know what a hook would change.
        let observed = match self.is_undone && target.is_dry_run() {
            true => observed,
            false => self.wait_until_fit(observed).await?,
        };
        if !self.evidence(&observed).is_fenced() {
            // The Node was replaced, or somebody else unfenced it first.
            self.is_fenced = false;
            self.hook.remove_record().await;
            if let (Some(hold), Some(lease)) = (&self.hold, &observed.lease)
                && hold.lock_id() == lease.lock_id()
            {
                target.unhold(hold).await?;
            }
            return self.end_unfenced(&observed).await;
        }
        self.check_again(meant.as_ref(), &observed)?;
        let observed = self.clear(observed).await?;
        self.report(&(fencing::unfenced(&target.node) + target.suffix()));
        // The caller may have taken over the hold of the fencing, and may still be working on the node.
        let lease = observed.lease.as_ref().filter(|_| self.hold.is_none());
        if lease.is_some_and(|lease| lease.is_hold() && target.locks().is_own(lease)) {
            let stays = own_holds_stay(std::slice::from_ref(&target.node), target.program());
            target.terminal().remark(stays);
        }
        let ended = self.end_hold().await;
        if ended.is_ok() {
            target
                .set_fenced_annotation(observed.lease.as_ref(), false)
                .await;
        }
        if !target.is_dry_run() {
            self.post(&observed).await;
        }
        ended
    }

    /// Ends the hold if the Node is gone, because nothing else of the fencing is left. Returns the failure
    /// to report last.
    pub(super) async fn end_after_failure(&self, failure: Failure) -> Failure {
        let target = self.target;
        self.hook.remove_record().await;
        let stays_fenced = matches!(
            failure,
            Failure::Interrupted
                | Failure::Fencing(FencingRefusal::FencedAgain { .. })
                | Failure::Lock(Error::Refused(_))
                | Failure::Hook(HookError::Running { .. })
        );
        if stays_fenced && self.is_fenced && self.is_undone && !target.is_dry_run() {
            let stays = fencing::undone_but_fenced(&target.node, target.program());
            target.terminal().remark(stays);
        } else if matches!(failure, Failure::Interrupted) && self.outcome.is_none() {
            self.report_unchanged();
        }
        if !matches!(failure, Failure::NodeGone { .. }) {
            return failure;
        }
        // If the Lease is gone, it was deleted together with the Node.
        if let Some(hold) = &self.hold
            && let Err(failure) = target.unhold(hold).await
        {
            let terminal = target.terminal();
            terminal.warn(hold_not_ended(&target.node, &failure, target.program()));
        }
        match self.is_undone && !target.is_dry_run() {
            true => Failure::Hook(HookError::NodeGone {
                node: target.node.clone(),
            }),
            false => failure,
        }
    }

    /// Reports what stays as it was found, after an interruption.
    fn report_unchanged(&self) {
        let node = &self.target.node;
        let terminal = self.target.terminal();
        if self.is_fenced || self.hold.is_some() {
            terminal.remark(fencing::unchanged(node, self.is_fenced));
        }
    }

    /// Ends without a change if the node is not fenced.
    async fn end_unfenced(&mut self, observed: &Observed) -> Result<(), Failure> {
        let target = self.target;
        target
            .set_fenced_annotation(observed.lease.as_ref(), false)
            .await;
        self.report(&fencing::not_fenced(&target.node));
        Ok(())
    }

    /// Runs the hook, if there is one.
    async fn undo(&mut self, observed: &Observed) -> Result<(), Failure> {
        let target = self.target;
        if self.hook.is_none() {
            return Ok(());
        }
        if target.is_dry_run() {
            self.hook.check_alone(observed)?;
            let line = command_line(&self.args.hook.hook);
            let terminal = target.terminal();
            terminal.remark(fencing::dry_run_hook(&line));
            self.is_undone = true;
            return Ok(());
        }
        let meant = observed.evidence.state.record.as_ref();
        let mut observed = observed.clone();
        let mut tries = Attempts::default();
        loop {
            let patch = patch::unfenced(&observed.evidence.raw);
            if target.may_patch(&patch, &mut tries).await?
                && self.hook.run(&observed, None, &mut tries).await?.is_some()
            {
                self.is_undone = true;
                return Ok(());
            }
            observed = target.observed().await?;
            self.check_again(meant, &observed)?;
        }
    }

    /// Reads the node until it may return to service, or is not fenced any more: once, or for some time
    /// after a hook.
    async fn wait_until_fit(&self, first: Observed) -> Result<Observed, Failure> {
        let target = self.target;
        let (limit, seen) = match self.is_undone {
            // What was read before the hook does not show its effect.
            true => (self.args.timeout, None),
            false => (Duration::ZERO, Some(first)),
        };
        let mut timeout = Timeout::of(limit);
        let mut observed = match seen {
            Some(observed) => observed,
            None => {
                timeout
                    .read(target, async || target.observed().await)
                    .await?
            }
        };
        let mut is_announced = false;
        let mut is_watched = false;
        loop {
            if !self.evidence(&observed).is_fenced() {
                return Ok(observed);
            }
            let Err(refusal) = self.may_unfence(&observed) else {
                return Ok(observed);
            };
            let is_doubtful =
                matches!(refusal, Refusal::Unreachable | Refusal::HeartbeatUnknown(_));
            if is_doubtful && !is_watched && limit.is_zero() {
                is_watched = true;
                if target.watch_heartbeat(&observed).await? {
                    observed = target.observed().await?;
                    continue;
                }
            }
            if timeout.remaining().is_zero() {
                return Err(match refusal {
                    Refusal::Unreachable if self.is_undone => {
                        Failure::Hook(HookError::StillUnreachable {
                            node: target.node.clone(),
                            waited: limit,
                        })
                    }
                    refusal => self.unfence_refused(refusal),
                });
            }
            if !is_announced {
                let terminal = target.terminal();
                terminal.remark(awaited(&target.node, limit));
                is_announced = true;
            }
            let line = fencing::awaiting(&target.node);
            timeout.pause_with(target, &line).await?;
            observed = timeout
                .read(target, async || target.observed().await)
                .await?;
        }
    }

    /// Removes record and taint.
    ///
    /// # Errors
    /// Also if one of them is still there after the write.
    async fn clear(&self, mut observed: Observed) -> Result<Observed, Failure> {
        let target = self.target;
        let meant = observed.evidence.state.record.clone();
        let mut tries = Attempts::default();
        loop {
            let patch = patch::unfenced(&observed.evidence.raw);
            let version = observed.evidence.version().to_owned();
            let (written, node) = target.patch_and_return_node(&patch, &mut tries).await?;
            if written == Written::Yes {
                self.must_be_unfenced(node.as_ref())?;
                if !target.is_dry_run() {
                    let node = target.reader.evidence(&target.node);
                    let again = target.interrupt.or(async { Ok(node.await?) }).await;
                    // If the Node can't be read, the answer to the write counts.
                    let again = again.ok().flatten().map(|evidence| evidence.node);
                    self.must_be_unfenced(again.as_ref())?;
                }
                return Ok(observed);
            }
            let observe_again = async {
                tries.observe_again(&target.node, written).await?;
                target.observed().await
            };
            observed = observe_again.await.map_err(|failure| match written {
                Written::Unknown => target.unknown(FencingWrite::Return, failure),
                Written::No | Written::Yes => failure,
            })?;
            if !self.evidence(&observed).is_fenced() {
                return Ok(observed);
            }
            let checked = self.check_again(meant.as_ref(), &observed);
            let checked = checked.and_then(|()| self.judge(&observed));
            let is_open = written == Written::Unknown && observed.evidence.version() == version;
            checked.map_err(|failure| match is_open {
                true => target.unknown(FencingWrite::Return, failure),
                false => failure,
            })?;
        }
    }

    /// Something may keep the taint or the record on the Node, or put it back.
    fn must_be_unfenced(&self, node: Option<&Node>) -> Result<(), Failure> {
        match node.map(patch::marks) {
            None | Some((false, false)) => Ok(()),
            Some(_) => Err(Failure::StaysFenced {
                node: self.target.node.clone(),
            }),
        }
    }

    /// The fencing must be the one that was confirmed: another one is somebody else's decision. Nobody may have started a hook
    /// or locked the node since.
    fn check_again(&self, meant: Option<&Record>, observed: &Observed) -> Result<(), Failure> {
        if observed.evidence.state.record.as_ref() != meant {
            return Err(Failure::Fencing(FencingRefusal::FencedAgain {
                node: self.target.node.clone(),
            }));
        }
        self.hook.check_alone(observed)?;
        self.check_lock(observed)
    }

    fn judge(&self, observed: &Observed) -> Result<(), Failure> {
        self.may_unfence(observed)
            .map_err(|why| self.unfence_refused(why))
    }

    fn unfence_refused(&self, why: Refusal) -> Failure {
        let node = self.target.node.clone();
        Failure::Fencing(FencingRefusal::Unfence { node, why })
    }

    fn may_unfence(&self, observed: &Observed) -> Result<(), Refusal> {
        let accepts = self.args.risks.accepts(&UnfenceRisk::BootId);
        self.evidence(observed)
            .may_unfence(self.target.now(), accepts)
    }

    pub(super) fn evidence(&self, observed: &Observed) -> unfencing::UnfenceEvidence {
        let evidence = &observed.evidence;
        unfencing::UnfenceEvidence {
            state: evidence.state.clone(),
            is_annotated: evidence.is_annotated(),
            is_undone: self.is_undone,
        }
    }

    /// Reports that the node is in service.
    fn report(&mut self, line: &str) {
        self.target.result(line);
        self.outcome = Some(Fencing::unfenced(&self.target.node));
    }

    async fn post(&self, observed: &Observed) {
        let target = self.target;
        let risks = &self.args.risks;
        let without_restart = risks.accepts(&UnfenceRisk::BootId);
        let caller = target.locks().identity();
        let message = event::unfencing(caller, without_restart, risks.message.as_deref());
        target
            .post(&observed.evidence, "NodeUnfenced", message, without_restart)
            .await;
    }
}
