//! Reports what a fencing costs before anything is changed.

use pod_safety::cluster::Removed;
use pod_safety::fencing::Cost;
use pod_safety::fencing::steps::Step;

use super::args::Risk;
use super::steps::FenceRun;
use crate::error::{Failure, FencingRefusal};
use crate::run::fencing::Observed;
use crate::words::fencing::cost;

impl FenceRun<'_> {
    /// Reports what the fencing costs, and reports it again if it changed before the operator answered. Reports
    /// nothing if `step` shows that the node is fenced already.
    ///
    /// # Errors
    /// If its pods can't be listed, or if nothing recreates some and that is not accepted.
    pub(super) async fn weigh(&mut self, step: Step, observed: &Observed) -> Result<(), Failure> {
        if self.is_weighed || matches!(step, Step::HoldAgain | Step::Follow) {
            return Ok(());
        }
        let target = self.target;
        let reading = async { Ok(target.reader.pods_of_node(&target.node).await?) };
        let pods = target.or_interrupted(reading).await?;
        let taint = &observed.evidence.signs.out_of_service;
        self.leaving = Removed::by_fencing(&pods, taint, target.now());
        let found = Cost::of(&pods, taint);
        if found != self.cost {
            for line in cost(&target.node, &found) {
                target.session.terminal.remark(line);
            }
            self.cost = found.clone();
        }
        if !found.no_owner.is_empty() && !self.args.common.risks.accepts(&Risk::NoOwner) {
            return Err(Failure::Fencing(FencingRefusal::NoOwner {
                node: target.node.clone(),
                pods: found.no_owner,
            }));
        }
        self.is_weighed = true;
        Ok(())
    }
}
