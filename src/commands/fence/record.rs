//! The record of a fencing: its contents, and how people and programs get to see it.

use maintenance_lease::NodeLease;
use pod_safety::fencing::{Proof, Record, is_of_fencing, patch};
use pod_safety::wire::rfc3339;
use serde_json::Value;

use super::Course;
use crate::error::Failure;
use crate::output::fencing::Fencing;
use crate::output::format::Format;
use crate::run::fencing::{LeaseEnd, Look};
use crate::text::escape;
use crate::words::fencing::{fenced, lease_ends, lease_ends_with_outer};

impl Course<'_> {
    /// Reports that the node is fenced, in words and as an Event.
    pub(super) async fn tell(&mut self, look: &Look, record: &Record, already: bool) {
        let site = self.site;
        self.lease_end = site.lease_end(look.lease.as_ref());
        let line = fenced(&site.node, record, already);
        self.result(line.clone());
        if !already {
            let why = record.why.as_deref().map(|why| format!(": \"{why}\""));
            let message = line + &escape(&why.unwrap_or_default());
            site.post(&look.evidence, "NodeFenced", message, true).await;
        }
    }

    /// Reports last that the lease under which the node is fenced may end before `unfence`.
    pub(super) fn tell_lease_end(&self) {
        let site = self.site;
        let words = match self.lease_end {
            None => return,
            Some(LeaseEnd::At(until)) => {
                lease_ends(&site.node, until, site.now().latest, site.program())
            }
            Some(LeaseEnd::WithOuter) => lease_ends_with_outer(&site.node, site.program()),
        };
        site.session.terminal.remark(words);
    }

    /// Prints the outcome if data was requested.
    pub(super) fn print(&self, outcome: Fencing<'_>) -> Result<(), Failure> {
        let outcome = outcome.in_dry_run(self.site.is_dry_run());
        if let Some(text) = outcome.print(self.args.output.format())? {
            self.site.session.terminal.data(text);
        }
        Ok(())
    }

    pub(super) fn result(&self, line: String) {
        if matches!(self.args.output.format(), Format::Text | Format::Wide) {
            self.site.session.terminal.result(line);
        }
    }

    /// The record, and the patch that writes it.
    pub(super) fn record(&self, look: &Look, proof: Proof) -> (Record, Value) {
        let site = self.site;
        let now = site.now();
        let hold = look
            .lease
            .as_ref()
            .filter(|lease| is_of_fencing(lease, now) && site.session.locks.is_own(lease));
        let record = Record {
            who: site.session.locks.identity().to_owned(),
            why: self.args.doubts.message.clone(),
            when: rfc3339(now.latest),
            how: proof.how,
            boot_id: proof.of.boot_id,
            node_uid: proof.of.uid,
            hold: hold.and_then(NodeLease::lock_id).map(|id| id.to_string()),
        };
        let patch = patch::fenced(&look.evidence.raw, &record, now.latest);
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
