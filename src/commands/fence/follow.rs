//! Waits until the node is empty, and reports which owners of its pods are not complete yet.

use super::steps::FenceRun;
use crate::error::{Failure, Obstacle};
use crate::output::fencing::Fencing;
use crate::run::fencing::{Observed, Timeout};
use crate::words::fencing;

impl FenceRun<'_> {
    /// Waits until everything that can be removed from the fenced node is gone.
    ///
    /// # Errors
    /// If that takes longer than --timeout, if the node is alive again, or if it was interrupted.
    pub(super) async fn follow(&mut self, observed: &Observed) -> Result<(), Failure> {
        let followed = self.follow_removal(observed).await;
        if let Err(Failure::Interrupted) = followed {
            let stays = fencing::stays_fenced(&self.target.node, self.target.program());
            self.target.terminal().remark(stays);
        }
        followed
    }

    async fn follow_removal(&mut self, observed: &Observed) -> Result<(), Failure> {
        let target = self.target;
        let timeout = Timeout::of(self.args.common.timeout);
        let followed = target.follow(observed, timeout).await;
        if let Err(Failure::NodeGone { .. } | Failure::NoLongerFenced { .. }) = followed {
            self.outcome = None;
        }
        let remains = followed?;
        let outcome = observed
            .evidence
            .state
            .record
            .as_ref()
            .map(|record| Fencing::fenced(&target.node, record, &remains));
        if !remains.is_over() {
            self.outcome = outcome;
            return Err(Failure::TimedOut {
                node: target.node.clone(),
                waited: self.args.common.timeout,
                obstacle: Some(Obstacle::Remains(Box::new(remains))),
            });
        }
        let terminal = target.terminal();
        if remains.attachments.value().is_some() {
            terminal.remark(fencing::nothing_left(&target.node));
        }
        let reading = target.reader.incomplete(&self.owners);
        let interrupt = &target.interrupt;
        let incomplete = interrupt.or(async { Ok(reading.await) }).await;
        let incomplete = incomplete.unwrap_or_default();
        for owner in &incomplete {
            terminal.remark(fencing::incomplete(owner));
        }
        self.outcome = outcome.map(|outcome| outcome.with_incomplete(incomplete));
        Ok(())
    }
}
