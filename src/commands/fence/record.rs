//! The record of a fencing: its contents, and how people and programs get to see it.

use maintenance_lease::NodeLease;
use maintenance_lease::protocol::Instant;
use pod_safety::fencing::{Proof, Record, Remains, Written, patch};
use pod_safety::wire::rfc3339;

use super::steps::FenceRun;
use crate::error::Failure;
use crate::output::fencing::Fencing;
use crate::run::fencing::{Attempts, KEPT_OUTPUT, Observed};
use crate::words::event;
use crate::words::fencing::{fenced, hold_reason, lease_ends};

impl FenceRun<'_> {
    /// Reports once that the node is fenced, in words and as an Event.
    pub(super) async fn report(&mut self, observed: &Observed, record: &Record, already: bool) {
        let target = self.target;
        if self.outcome.is_some() {
            return;
        }
        self.is_under_lease = target.is_under_lease(observed.lease.as_ref());
        target.result(&fenced(&target.node, record, already));
        self.outcome = Some(Fencing::fenced(&target.node, record, &Remains::default()));
        if !already {
            let message = event::fencing(&target.node, record, self.replaced.as_ref());
            target
                .post(&observed.evidence, "NodeFenced", message, true)
                .await;
        }
    }

    /// The outcome for programs so far.
    pub(super) fn take_outcome(&mut self) -> Fencing {
        let outcome = self.outcome.take();
        let outcome = outcome.unwrap_or_else(|| Fencing::new(&self.target.node));
        outcome.with_findings(&self.findings)
    }

    /// Reports that the node is fenced, if somebody else or an earlier run did it, and marks its Lease.
    pub(super) async fn report_fenced(&mut self, observed: &Observed) {
        if let Some(record) = &observed.evidence.state.record
            && !self.recording.is_there()
        {
            self.report(observed, record, true).await;
        }
        self.warn_of_lost_hold(observed);
        self.target
            .set_fenced_annotation(observed.lease.as_ref(), true)
            .await;
    }

    /// Reports last that the lease under which the node is fenced may end before `unfence`.
    pub(super) fn report_lease_end(&self) {
        let target = self.target;
        if self.is_under_lease {
            let ends = lease_ends(&target.node, target.program());
            target.terminal().remark(ends);
        }
    }

    /// Checks that the record of a hook could be written, with the longest output: all annotations of a Node together have a
    /// limit. False if the Node changed: read it again.
    ///
    /// # Errors
    /// If the server would refuse it, or if it was interrupted.
    pub(super) async fn may_record(
        &self,
        observed: &Observed,
        tries: &mut Attempts,
    ) -> Result<bool, Failure> {
        // In JSON, no character is longer than a control character.
        let proof = self.by_hook(observed, "\u{1}".repeat(KEPT_OUTPUT));
        let now = self.target.now().latest;
        let record = self.record(observed, proof, now);
        let patch = patch::fenced(&observed.evidence.raw, &record, now);
        self.target.may_patch(&patch, tries).await
    }

    /// Writes the record and taints the Node.
    ///
    /// # Errors
    /// If the server refuses it.
    pub(super) async fn write_record(
        &self,
        observed: &Observed,
        proof: Proof,
        tries: &mut Attempts,
    ) -> Result<(Record, Written), Failure> {
        let target = self.target;
        let now = target.now().latest;
        let record = self.record(observed, proof, now);
        let patch = patch::fenced(&observed.evidence.raw, &record, now);
        let written = target.patch(&patch, tries).await?;
        Ok((record, written))
    }

    fn record(&self, observed: &Observed, proof: Proof, now: Instant) -> Record {
        let target = self.target;
        let hold = target.own_hold(observed);
        Record {
            who: target.locks().identity().to_owned(),
            why: self.why.clone(),
            when: rfc3339(now),
            how: proof.how,
            boot_id: proof.of.boot_id,
            node_uid: proof.of.uid,
            hold: hold.and_then(NodeLease::lock_id).map(|id| id.to_string()),
        }
    }

    /// The reason of the hold of this fencing.
    pub(super) fn hold_reason(&self) -> String {
        let why = self.why.as_deref();
        hold_reason(why, self.args.powered_off.as_deref(), &self.hook.program())
    }
}
