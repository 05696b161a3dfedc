//! Reports what a fencing costs, and what other tools do to the node, before anything is changed. Asks for the risks that
//! the operator has not accepted.

use k8s_openapi::api::core::v1::Node;
use node_keys::{Activity, findings};
use pod_safety::fencing::Cost;
use pod_safety::fencing::steps::{Refusal, Unread};

use super::steps::FenceRun;
use crate::args::write::reason;
use crate::error::Failure;
use crate::run::fencing::Observed;
use crate::ui::Terminal;
use crate::words::fencing::{REASON, cost, risk};
use crate::words::force_deletion::accept;
use crate::words::other_tools::sentence;

impl FenceRun<'_> {
    /// Reports what other tools do to the node, and the cost, unless that was reported already.
    pub(super) fn report_cost(&mut self, observed: &Observed, found: Cost) {
        self.report_findings(&observed.evidence.node);
        if found != self.cost {
            let target = self.target;
            for line in cost(&target.node, &found) {
                target.terminal().remark(line);
            }
            self.cost = found;
        }
    }

    fn report_findings(&mut self, node: &Node) {
        let target = self.target;
        let mut findings = findings(node);
        // Neither stops a fencing, which has its own words about the taint.
        findings.retain(|finding| {
            ![Activity::Cordoned, Activity::OutOfService].contains(&finding.activity)
        });
        for finding in &findings {
            if !self.findings.contains(finding) {
                let words = sentence(finding, target.now());
                let terminal = target.terminal();
                terminal.warn(format!("node/{}: {words}", target.node));
            }
        }
        self.findings = findings;
    }

    /// Asks on a terminal whether the risk behind a refusal is accepted, and why. Returns whether it is.
    ///
    /// # Errors
    /// If the answer is no, or if the command was interrupted.
    pub(super) async fn accept(&mut self, why: &Refusal) -> Result<bool, Failure> {
        let target = self.target;
        let id = match why {
            Refusal::MassLoss(_) => "mass-loss",
            Refusal::NoOwner(_) => "no-owner",
            Refusal::Unread(unread) if unread.iter().all(Unread::is_acceptable) => "unread",
            _ => return Ok(false),
        };
        if self.args.common.yes || target.is_dry_run() || !Terminal::can_ask() {
            return Ok(false);
        }
        let terminal = target.terminal();
        let risk = risk(why).unwrap_or_default();
        let fact = format!("  node/{}: {risk}", target.node);
        terminal.confirm(&[fact], &accept(id), false).await?;
        match why {
            Refusal::MassLoss(_) => self.accepted.mass_loss = true,
            // A pod that arrives later was not in the question.
            Refusal::NoOwner(pods) => self.accepted_losses.extend(pods.iter().cloned()),
            _ => self.accepted.unread = true,
        }
        if self.why.is_none() {
            let typed = terminal.line(REASON).await?;
            let typed = reason(&typed).ok().filter(|typed| !typed.is_empty());
            self.why = Some(typed.ok_or(Failure::Declined)?);
        }
        Ok(true)
    }
}
