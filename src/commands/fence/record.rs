//! The record of a fencing: its contents, and how people and programs get to see it.

use maintenance_lease::NodeLease;
use pod_safety::fencing::{Proof, Record, Remains, is_of_fencing, patch};
use pod_safety::wire::rfc3339;
use serde_json::Value;

use super::steps::FenceRun;
use crate::output::fencing::Fencing;
use crate::run::fencing::{LeaseEnd, Observed};
use crate::text::escape;
use crate::words::fencing::{fenced, lease_ends, lease_ends_with_outer, replacing};

impl FenceRun<'_> {
    /// Reports that the node is fenced, in words and as an Event.
    pub(super) async fn report(&mut self, observed: &Observed, record: &Record, already: bool) {
        let target = self.target;
        self.lease_end = target.lease_end(observed.lease.as_ref());
        let line = fenced(&target.node, record, already);
        target.result(&line);
        self.outcome = Some(Fencing::fenced(&target.node, record, &Remains::default()));
        if !already {
            let why = record.why.as_deref().map(|why| format!(": \"{why}\""));
            let earlier = self.replaced.as_ref().map(replacing).unwrap_or_default();
            let message = line + &escape(&why.unwrap_or_default()) + &earlier;
            target
                .post(&observed.evidence, "NodeFenced", message, true)
                .await;
        }
    }

    /// Reports last that the lease under which the node is fenced may end before `unfence`.
    pub(super) fn report_lease_end(&self) {
        let target = self.target;
        let words = match self.lease_end {
            None => return,
            Some(LeaseEnd::At(until)) => {
                lease_ends(&target.node, until, target.now().latest, target.program())
            }
            Some(LeaseEnd::WithOuter) => lease_ends_with_outer(&target.node, target.program()),
        };
        target.session.terminal.remark(words);
    }

    /// The record, and the patch that writes it.
    pub(super) fn record(&self, observed: &Observed, proof: Proof) -> (Record, Value) {
        let target = self.target;
        let now = target.now();
        let hold = observed
            .lease
            .as_ref()
            .filter(|lease| is_of_fencing(lease, now) && target.session.locks.is_own(lease));
        let record = Record {
            who: target.session.locks.identity().to_owned(),
            why: self.args.doubts.message.clone(),
            when: rfc3339(now.latest),
            how: proof.how,
            boot_id: proof.of.boot_id,
            node_uid: proof.of.uid,
            hold: hold.and_then(NodeLease::lock_id).map(|id| id.to_string()),
        };
        let patch = patch::fenced(&observed.evidence.raw, &record, now.latest);
        (record, patch)
    }

    pub(super) fn why(&self) -> String {
        let how = match &self.args.powered_off {
            Some(how) => format!("powered off: {how}"),
            None => format!("with {}", self.hook.program()),
        };
        match &self.args.doubts.message {
            Some(why) => format!("{why} ({how})"),
            None => how,
        }
    }
}
