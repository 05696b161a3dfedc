//! The arguments of `fence`.

use clap::{Args, ValueEnum};
use pod_safety::fencing::steps::AcceptedRisks;

use crate::args::fencing::FencingArgs;
use crate::args::output::{offers_no_lock_id, templates};
use crate::args::write::{TicketArgs, non_empty_reason};
use crate::error::InvalidValue;
use crate::words::hint_command::NO_PROOF;

/// Fence an unreachable node to let its pods run elsewhere
///
/// Kubernetes does not replace some pods of an unreachable node, because they may still be running.
/// fence proves that they are not, and then tells Kubernetes. The proof is either a HOOK that powers the
/// node off (or cuts it off, with --isolated), or your word (--powered-off).
///
/// On a terminal, you confirm by typing the name of the node. HOOK runs on this machine, without a shell. If it
/// fails, the node is not fenced. If it succeeds, the node gets the taint node.kubernetes.io/out-of-service:
/// Kubernetes deletes the pods and detaches the volumes. The node stays on hold until you unfence it.
///
/// The command refuses (exit code 6) if the kubelet is alive or if too many nodes are unreachable. It also refuses if
/// another tool is repairing the node, or if nothing recreates some of its pods. If fence itself is
/// interrupted, run the command again. docs/fencing.md explains the checks and the exit codes. docs/fencing-hooks.md
/// explains how to write a HOOK.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].node}",
        "NODE:.node,FENCED:.fenced"
    )),
    override_usage = "kubectl maint fence [OPTIONS] NODE --powered-off=HOW
       kubectl maint fence [OPTIONS] NODE -- HOOK [ARGUMENT]...",
    after_help = "Examples:
  kubectl maint fence worker-1 --powered-off=\"I pulled both plugs\"
  kubectl maint fence worker-1 -- ./power-off-ipmi
  kubectl maint fence worker-1 --suspect -- ./power-off-ipmi"
)]
pub(crate) struct FenceArgs {
    /// Without a hook: how you know that the node is off
    #[arg(
        long,
        value_name = "HOW",
        conflicts_with = "hook",
        value_parser = how
    )]
    pub(crate) powered_off: Option<String>,

    /// HOOK cuts the node off instead of powering it off
    ///
    /// The node keeps running, but cannot reach anything that its pods could damage, such as storage.
    /// To unfence it, first end everything that runs on the node, then use a hook that reconnects it.
    #[arg(long, requires = "hook", conflicts_with = "powered_off")]
    pub(crate) isolated: bool,

    /// Fence a node that hangs although it still reports
    ///
    /// For example, its kernel locks up, or its disk is gone. The node is put on hold, cordoned and powered off
    /// first. It is recorded and tainted only after it has stopped reporting. If it still reports after --timeout,
    /// the exit code is 4, and only the hold stays. You must confirm this, in scripts with --yes. It needs a HOOK:
    /// --powered-off is no proof for a node that still reports.
    #[arg(long)]
    pub(crate) suspect: bool,

    #[command(flatten)]
    pub(crate) common: FencingArgs<FenceRisk>,

    #[command(flatten)]
    pub(crate) ticket: TicketArgs,
}

impl FenceArgs {
    /// The risks that the operator accepts.
    pub(super) fn accepted(&self) -> AcceptedRisks {
        let accepts = |risk| self.common.risks.accepts(&risk);
        AcceptedRisks {
            mass_loss: accepts(FenceRisk::MassLoss),
            unread: accepts(FenceRisk::Unread),
            no_owner: accepts(FenceRisk::NoOwner),
        }
    }
}

/// The risks that an operator can accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FenceRisk {
    /// Most nodes of the zone, or all nodes, are unreachable
    MassLoss,
    /// Could not check the other nodes, or whether another tool is repairing the node
    Unread,
    /// Pods of the node are lost, because nothing recreates them
    NoOwner,
}

fn how(typed: &str) -> Result<String, InvalidValue> {
    if typed.trim() == NO_PROOF {
        return Err(InvalidValue::PlaceholderOfProof);
    }
    non_empty_reason(typed, InvalidValue::NoProof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_no_proof() {
        assert_eq!(how("I pulled the plug"), Ok("I pulled the plug".to_owned()));
        assert_eq!(how(" HOW YOU KNOW"), Err(InvalidValue::PlaceholderOfProof));
        assert_eq!(how(" "), Err(InvalidValue::NoProof));
    }
}
