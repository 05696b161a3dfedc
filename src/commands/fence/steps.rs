//! A fencing, step by step.

use std::collections::BTreeSet;
use std::time::Duration;

use maintenance_lease::protocol::LockId;
use maintenance_lease::{Change, NodeLease};
use node_keys::{Asked, Cordon, Finding};
use pod_safety::Known;
use pod_safety::fencing::steps::{AcceptedRisks, Lock, Step, Unread};
use pod_safety::fencing::{
    Cost, How, Proof, Record, Recording, Remains, UnchangedHeartbeat, Written, is_of_fencing,
};
use pod_safety::node_health::Status;
use pod_safety::owners::PodOwner;

use super::args::FenceArgs;
use crate::error::{Failure, FencingRefusal, FencingWrite};
use crate::output::fencing::Fencing;
use crate::run::fencing::{Attempts, FencingTarget, Hook, Observed, Timeout};
use crate::ui::Terminal;
use crate::words::fencing::{
    self, Question, fenced, hold_ended, hold_lost, hold_not_ended, hold_stays, unrecorded,
};
use crate::words::holder_name::person;
use crate::words::with::command_line;

/// How long reads are retried after a hook has succeeded, to record it.
const RECORD_RETRIES: Duration = Duration::from_secs(120);

/// How often the record is written if something removes it again.
const MOST_RECORDS: u32 = 2;

/// A fencing in progress.
pub(super) struct FenceRun<'a> {
    pub(super) args: &'a FenceArgs,
    pub(super) target: &'a FencingTarget<'a>,
    pub(super) hook: Hook<'a>,
    /// The proof that nothing runs on the node, once there is one, and the machine that it is about.
    pub(super) proof: Option<Proof>,
    /// The hold that this run took, until the record depends on it.
    pub(super) taken: Option<NodeLease>,
    /// The acquisition under which this run works.
    pub(super) under: Option<LockId>,
    /// The record that this run replaces.
    pub(super) replaced: Option<Record>,
    /// Whether the Node of the hold was labeled, or could not be.
    pub(super) is_labeled: bool,
    /// The fencing number of that hold.
    pub(super) number: Option<u64>,
    /// The record of this run.
    pub(super) recording: Recording,
    /// How often it was written.
    pub(super) records: u32,
    /// An earlier run took a hold and ended before it wrote its record.
    pub(super) has_found_hold: bool,
    /// Whether a doubtful heartbeat was watched already.
    pub(super) is_watched: bool,
    /// How long the node has been unreachable, if it is a suspect.
    pub(super) unchanged: Option<UnchangedHeartbeat>,
    /// How long to wait for that, once the node is proven to be off.
    pub(super) suspect_timeout: Option<Timeout>,
    /// Whether the operator has confirmed the fencing, or nobody has to.
    pub(super) is_confirmed: bool,
    /// The risks that the operator accepts.
    pub(super) accepted: AcceptedRisks,
    /// The pods that nothing recreates and whose loss was accepted on the terminal.
    pub(super) accepted_losses: Vec<String>,
    /// The reason, if one was given.
    pub(super) why: Option<String>,
    /// Whether an annotation that is no record was reported.
    pub(super) has_warned_of_unreadable: bool,
    /// What other tools did to the node, as reported last.
    pub(super) findings: Vec<Finding>,
    /// The cost that was reported last.
    pub(super) cost: Cost,
    /// The owners of its pods.
    pub(super) owners: BTreeSet<PodOwner>,
    /// The node is fenced under a lease, which ends by itself.
    pub(super) is_under_lease: bool,
    /// The risks that could not be read.
    pub(super) unread: Vec<Unread>,
    /// How long failed reads are retried.
    pub(super) retries: Timeout,
    /// The outcome for programs, once there is one.
    pub(super) outcome: Option<Fencing>,
}

impl<'a> FenceRun<'a> {
    /// # Errors
    /// If the hook does not exist or can't be executed, or if this system does not support hooks.
    pub(super) fn new(args: &'a FenceArgs, target: &'a FencingTarget<'a>) -> Result<Self, Failure> {
        Ok(Self {
            args,
            target,
            hook: Hook::new(target, &args.common.hook)?,
            proof: None,
            taken: None,
            under: None,
            replaced: None,
            is_labeled: false,
            number: None,
            recording: Recording::Absent,
            records: 0,
            has_found_hold: false,
            is_watched: false,
            unchanged: None,
            suspect_timeout: None,
            is_confirmed: false,
            accepted: args.accepted(),
            accepted_losses: Vec::new(),
            why: args.common.risks.message.clone(),
            has_warned_of_unreadable: false,
            findings: Vec::new(),
            cost: Cost::default(),
            owners: BTreeSet::new(),
            is_under_lease: false,
            unread: Vec::new(),
            retries: Timeout::of(Duration::ZERO),
            outcome: None,
        })
    }
}

impl FenceRun<'_> {
    /// Fences the node, and waits until nothing is left of it.
    pub(super) async fn run(&mut self) -> Result<(), Failure> {
        if self.target.is_dry_run() {
            return self.dry_run().await;
        }
        let observed = self.fence().await?;
        self.follow(&observed).await
    }

    /// Fences the node. Returns how it was seen last.
    async fn fence(&mut self) -> Result<Observed, Failure> {
        let mut tries = Attempts::default();
        loop {
            let (observed, step) = self.observe().await?;
            if self.confirm(step, &observed).await? {
                // Everything was read before the operator answered, so it may be outdated.
                continue;
            }
            if self.label_hold(&observed).await? {
                continue;
            }
            match (step, self.proof.clone()) {
                (Step::AwaitReportsToStop, _) => self.await_reports_to_stop(&observed).await?,
                (Step::Hold, _) => {
                    self.warn_of_unknown(&observed);
                    self.take_hold().await?;
                }
                (Step::HoldAgain, _) => {
                    self.warn_of_ended_hold(&observed);
                    // The record depends on this hold from the start, so it is never released.
                    self.hold().await?;
                    self.is_labeled = false;
                }
                (Step::Fence, _) | (Step::Record, None) => {
                    self.works_under(&observed);
                    if !self.may_record(&observed, &mut tries).await? {
                        continue;
                    }
                    let running = self.hook.run(&observed, self.number, &mut tries);
                    if let Some(output) = running.await? {
                        self.proof = Some(self.by_hook(&observed, output));
                        // The hook is the expensive part, so its success is not lost to a short outage.
                        self.retries = Timeout::of(RECORD_RETRIES);
                    }
                }
                (Step::Record, Some(_)) if self.records == MOST_RECORDS => {
                    self.outcome = None;
                    return Err(Failure::NotKept {
                        node: self.target.node.clone(),
                    });
                }
                // The lease has expired since it was read: this process may have been stopped meanwhile.
                (Step::Record, Some(_))
                    if self.target.lock(observed.lease.as_ref()) != Lock::Callers => {}
                (Step::Record, Some(proof)) => {
                    self.works_under(&observed);
                    let (record, written) = self.write_record(&observed, proof, &mut tries).await?;
                    let recording = std::mem::take(&mut self.recording);
                    self.recording =
                        recording.after(written, record.clone(), observed.evidence.version());
                    if written == Written::Yes {
                        self.records += 1;
                        self.report(&observed, &record, false).await;
                    } else {
                        tries.observe_again(&self.target.node, written).await?;
                    }
                }
                (Step::Follow, _) => {
                    self.report_fenced(&observed).await;
                    return Ok(observed);
                }
            }
        }
    }

    /// Waits until the next read of a suspect that still reports.
    ///
    /// # Errors
    /// If it has reported for too long after it was proven to be off. Its hold stays: the proof was wrong, and
    /// the operator has to find out why.
    async fn await_reports_to_stop(&mut self, observed: &Observed) -> Result<(), Failure> {
        let target = self.target;
        let (node, terminal) = (&target.node, target.terminal());
        self.works_under(observed);
        // The node was powered off meanwhile, so this is not lost to a short outage either.
        self.retries = Timeout::of(RECORD_RETRIES);
        let timeout = match &self.suspect_timeout {
            Some(timeout) => timeout,
            None => {
                terminal.remark(fencing::waits_for_reports_to_stop(
                    node,
                    self.args.common.timeout,
                ));
                self.suspect_timeout
                    .insert(Timeout::of(self.args.common.timeout))
            }
        };
        if !timeout.remaining().is_zero() {
            return timeout
                .pause_with(target, &fencing::waiting_for_reports_to_stop(node))
                .await;
        }
        (self.taken, self.proof, self.has_found_hold) = (None, None, false);
        Err(Failure::Fencing(FencingRefusal::StillReports {
            node: node.clone(),
            waited: self.args.common.timeout,
        }))
    }

    /// Asks once for the name of the node before the first change. Returns whether an answer was given. A
    /// script that names the node has confirmed it, unless the node still reports.
    ///
    /// # Errors
    /// If the hold would be refused, if another name is given, or if nobody can answer.
    async fn confirm(&mut self, step: Step, observed: &Observed) -> Result<bool, Failure> {
        let target = self.target;
        if self.is_confirmed || matches!(step, Step::HoldAgain | Step::Follow) {
            return Ok(false);
        }
        self.is_confirmed = true;
        let is_needed = self.args.suspect || Terminal::can_ask();
        if self.args.common.yes || !is_needed {
            return Ok(false);
        }
        if step == Step::Hold && Terminal::can_ask() {
            let ticket = self.args.ticket.ticket.as_deref();
            target
                .may_hold(self.hold_reason(), ticket, self.args.suspect)
                .await?;
        }
        let place = target.session.place();
        let state = &observed.evidence.state;
        let is_unreachable =
            state.is_fresh(observed.at) == Some(false) && state.status() == Some(Status::Unknown);
        let reports = self.args.suspect && !is_unreachable;
        let hook = reports.then(|| self.hook.program());
        let takes_hold = step == Step::Hold;
        let hook = hook.as_deref().map(|hook| (hook, takes_hold));
        let question = Question::to_fence(&place, &target.node, hook);
        let terminal = target.terminal();
        terminal
            .confirm_name(&question.facts, &question.text, &target.node)
            .await?;
        Ok(true)
    }

    async fn hold(&self) -> Result<Change, Failure> {
        let ticket = self.args.ticket.ticket.as_deref();
        // Nothing new is scheduled to a suspect, because it is about to be powered off.
        let cordon = self.args.suspect;
        self.target.hold(self.hold_reason(), ticket, cordon).await
    }

    /// Takes the hold that this run ends again if it fails.
    async fn take_hold(&mut self) -> Result<(), Failure> {
        let change = self.hold().await?;
        self.number = change.fencing;
        self.under = change.lease.as_ref().and_then(NodeLease::lock_id);
        self.taken = change.lease;
        Ok(())
    }

    /// Labels the Node of this fencing's hold, also if an earlier run ended before it could. Renews the hold of a run that did not
    /// cordon, if this one does. Returns whether the Node or the hold may have changed.
    ///
    /// # Errors
    /// If the hold is refused, or that the command was interrupted.
    async fn label_hold(&mut self, observed: &Observed) -> Result<bool, Failure> {
        let Some(hold) = self.target.own_hold(observed) else {
            return Ok(false);
        };
        if self.is_labeled {
            return Ok(false);
        }
        let cordon = self.args.suspect;
        let cordons = Asked::of(hold).is_some_and(|asked| asked.cordon == Cordon::Set);
        if cordon && !cordons {
            self.hold().await?;
            return Ok(true);
        }
        self.is_labeled = true;
        self.target.label(hold, cordon).await?;
        Ok(true)
    }

    /// Remembers the acquisition under which this run works, to notice its end.
    fn works_under(&mut self, observed: &Observed) {
        if self.under.is_none() {
            self.under = observed.lease.as_ref().and_then(NodeLease::lock_id);
        }
    }

    /// Whether an earlier run left only its hold behind.
    pub(super) fn is_hold_only(&self, observed: &Observed) -> bool {
        self.target.own_hold(observed).is_some()
            && self.taken.is_none()
            && observed.evidence.state.record.is_none()
            && self.hook.other(observed).is_none()
    }

    /// Finds out whether a record was written if the answer was lost.
    pub(super) async fn settle_record(&mut self, observed: &Observed) {
        if !self.recording.is_open() {
            return;
        }
        // Both are written at once: an earlier record may be there without the taint.
        let state = &observed.evidence.state;
        let is_tainted = state.out_of_service.is_asserted();
        let read = state.record.as_ref().filter(|_| is_tainted);
        let recording = std::mem::take(&mut self.recording);
        self.recording = recording.judged(read, observed.evidence.version());
        if self.recording.is_there()
            && let Some(record) = read
        {
            self.report(observed, record, false).await;
        }
    }

    /// Undoes what this run did if no record was written, and reports what stays. Returns the failure to
    /// report last.
    pub(super) async fn release_own_hold(&mut self, failure: Failure) -> Failure {
        let (target, terminal) = (self.target, self.target.terminal());
        let is_gone = matches!(failure, Failure::NodeGone { .. });
        // A Node that is gone needs no more writes.
        if self.recording.is_open() && !is_gone {
            // The record may still be written, so the lock stays.
            let hook = self.hook.id().map(ToOwned::to_owned);
            return target.unknown(FencingWrite::Record { hook }, failure);
        }
        self.hook.remove_record().await;
        let is_recorded = self.recording.is_there();
        if is_recorded && !is_gone {
            return failure;
        }
        if let Some(hold) = self.taken.take() {
            if let Err(failure) = target.unhold(&hold).await {
                terminal.warn(hold_not_ended(&target.node, &failure, target.program()));
            }
        } else if self.has_found_hold && !is_gone {
            terminal.warn(hold_stays(&target.node, target.program()));
        }
        if let Some(Proof {
            how: How::Hook { isolated, .. },
            ..
        }) = self.proof
            && !is_recorded
        {
            terminal.warn(unrecorded(&target.node, isolated));
        }
        failure
    }

    /// Warns of accepted risks that could not be read, and if it is unknown when the kubelet was last alive.
    fn warn_of_unknown(&self, observed: &Observed) {
        let (node, terminal) = (&self.target.node, self.target.terminal());
        let state = &observed.evidence.state;
        if let (Known::Yes(_), Known::Unknown(why)) =
            (&state.heartbeat, state.trusted_heartbeat(observed.at))
        {
            terminal.warn(fencing::odd_clock(node, &why));
        }
        for unread in &self.unread {
            terminal.warn(fencing::not_known(&format!("node/{node}"), unread));
        }
    }

    /// Warns if the hold of the fencing was ended, and somebody else has the lock now.
    pub(super) fn warn_of_lost_hold(&self, observed: &Observed) {
        let target = self.target;
        let record = observed.evidence.state.record.as_ref();
        let took_hold = record.is_some_and(|record| record.hold.is_some());
        if let Some(lease) = &observed.lease
            && took_hold
            && target.lock(Some(lease)) == Lock::Others
            && !is_of_fencing(lease, target.now())
        {
            target
                .terminal()
                .warn(hold_lost(&target.node, &person(lease)));
        }
    }

    /// Warns if somebody ended the lock under which this run works, so that nobody has it now.
    fn warn_of_ended_hold(&self, observed: &Observed) {
        if let Some(lease) = &observed.lease
            && self.under.is_some()
            && lease.lock_id().is_none()
        {
            let (node, terminal) = (&self.target.node, self.target.terminal());
            terminal.warn(hold_ended(node, lease));
        }
    }

    /// Reports what would be done, without doing it.
    async fn dry_run(&mut self) -> Result<(), Failure> {
        let target = self.target;
        let terminal = target.terminal();
        let (mut observed, step) = self.observe().await?;
        if matches!(step, Step::Hold | Step::HoldAgain) {
            self.hold().await?;
        }
        if matches!(step, Step::HoldAgain | Step::Follow) {
            if let Some(record) = &observed.evidence.state.record {
                self.report(&observed, record, true).await;
            }
            return Ok(());
        }
        let proof = match self.proof.clone() {
            Some(proof) => proof,
            None => {
                let hook_timeout = self.args.common.hook.hook_timeout;
                target.check_lasts(observed.lease.as_ref(), hook_timeout)?;
                let hook = command_line(&self.args.common.hook.hook);
                terminal.remark(fencing::dry_run_hook(&hook));
                self.by_hook(&observed, String::new())
            }
        };
        let mut tries = Attempts::default();
        let record = loop {
            match self
                .write_record(&observed, proof.clone(), &mut tries)
                .await?
            {
                (record, Written::Yes) => break record,
                (_, written) => tries.observe_again(&target.node, written).await?,
            }
            (observed, _) = self.observe().await?;
        };
        self.is_under_lease = target.is_under_lease(observed.lease.as_ref());
        let line = fenced(&target.node, &record, false);
        target.result(&(line + target.suffix()));
        self.outcome = Some(Fencing::fenced(&target.node, &record, &Remains::default()));
        Ok(())
    }
}
