//! Waits until the node is empty, and until the pods that were removed from it run again.

use std::future::pending;

use pod_safety::Removed;
use pod_safety::outcome::Outcome;

use super::steps::FenceRun;
use crate::error::{Failure, Obstacle};
use crate::output::fencing::Fencing;
use crate::run::elapsed::show_elapsed;
use crate::run::fencing::{Observed, Timeout};
use crate::run::replacements::outcomes;
use crate::words::fencing;
use crate::words::waiting::WAITING_FOR_REPLACEMENTS;

impl FenceRun<'_> {
    /// Waits until everything that can be removed from the fenced node is gone, and until its pods run again.
    ///
    /// # Errors
    /// If that takes longer than `timeout`, if the node is alive again, or if it was interrupted.
    pub(super) async fn follow(
        &mut self,
        observed: &Observed,
        timeout: &mut Timeout,
    ) -> Result<(), Failure> {
        let followed = self.follow_removal(observed, timeout).await;
        if let Err(Failure::Interrupted) = followed {
            let stays = fencing::stays_fenced(&self.target.node, self.target.program());
            self.target.terminal().remark(stays);
        }
        followed
    }

    async fn follow_removal(
        &mut self,
        observed: &Observed,
        timeout: &mut Timeout,
    ) -> Result<(), Failure> {
        let target = self.target;
        let followed = target.follow(observed, timeout).await;
        if let Err(Failure::NodeGone { .. } | Failure::NoLongerFenced { .. }) = followed {
            self.outcome = None;
        }
        let remains = followed?;
        self.check_lock_at_end(observed).await;
        let is_empty = remains.is_over();
        if let Some(record) = &observed.evidence.state.record {
            self.outcome = Some(Fencing::fenced(&target.node, record, &remains));
        }
        if !is_empty {
            return Err(self.timed_out(Obstacle::Remains(Box::new(remains))));
        }
        let terminal = target.terminal();
        terminal.remark(fencing::nothing_left(&target.node, &remains));
        let record = observed.evidence.state.record.as_ref();
        match record.and_then(|record| record.removed.clone()) {
            Some(recorded) => self.remember(recorded),
            None if self.is_seen_before => {}
            None => terminal.remark(fencing::gone_before(&target.node, target.program())),
        }
        self.follow_replacements(timeout).await
    }

    /// Waits until the pods that were removed run again, or until their controllers want no replacement.
    ///
    /// # Errors
    /// If some do not run again in time, or if it was interrupted.
    async fn follow_replacements(&mut self, timeout: &Timeout) -> Result<(), Failure> {
        let removed = std::mem::take(&mut self.leaving);
        if removed.is_empty() {
            return Ok(());
        }
        let target = self.target;
        let terminal = target.terminal();
        let (count, rest) = (removed.len(), timeout.remaining());
        if !rest.is_zero() {
            terminal.remark(fencing::awaiting_replacements(&target.node, count, rest));
        }
        let outcomes = outcomes(&target.common.reader, &removed, rest, pending());
        let outcomes = show_elapsed(terminal, WAITING_FOR_REPLACEMENTS, outcomes);
        let outcomes = target
            .common
            .interrupt
            .or(async { Ok(outcomes.await) })
            .await?;
        let pods: Vec<(Removed, Outcome)> = removed.into_iter().zip(outcomes).collect();
        let now = target.now();
        let outcome = self.outcome.take();
        self.outcome = outcome.map(|outcome| outcome.with_removed(&pods, now));
        if pods.iter().any(|(_, outcome)| outcome.is_unfinished()) {
            for line in fencing::not_back(&pods, now) {
                terminal.remark(line);
            }
            return Err(self.timed_out(Obstacle::NotBack(pods)));
        }
        let is_back =
            |(_, outcome): &&(Removed, Outcome)| matches!(outcome, Outcome::Replaced { .. });
        if let back @ 1.. = pods.iter().filter(is_back).count() {
            terminal.remark(fencing::back(&target.node, back));
        }
        Ok(())
    }

    fn timed_out(&self, obstacle: Obstacle) -> Failure {
        Failure::TimedOut {
            node: self.target.node.clone(),
            waited: self.args.common.timeout,
            obstacle: Some(obstacle),
        }
    }
}
