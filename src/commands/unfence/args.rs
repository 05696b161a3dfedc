//! The arguments of `unfence`.

use clap::{Args, ValueEnum};

use crate::args::fencing::FencingArgs;
use crate::args::output::{offers_no_lock_id, templates};

/// Return a fenced node to service
///
/// Removes the fencing record and the taint, and ends the hold that fence placed. A lock that was
/// there before fence stays. The command refuses (exit code 6) unless the kubelet is alive and the
/// node was restarted after it was fenced, that is, its boot ID has changed.
///
/// If you give a HOOK, it runs first. The node must then come back within --timeout (else exit code 4). If
/// the node was powered off, HOOK should power it on. If it was cut off with --isolated, first end everything
/// that runs on the node. HOOK then reconnects it, and the node does not need a restart.
///
/// You are asked to confirm if somebody else fenced the node, or if fencing stopped before it was
/// recorded.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].node}",
        "NODE:.node,FENCED:.fenced"
    )),
    override_usage = "kubectl maint unfence [OPTIONS] NODE [-- HOOK [ARGUMENT]...]",
    after_help = "Examples:
  kubectl maint unfence worker-1
  kubectl maint unfence worker-1 -- ./power-on-ipmi
  kubectl maint unfence worker-1 -- ./isolate open
  kubectl maint unfence worker-1 --accept-risk=boot-id -m \"it ran no pods\""
)]
pub(crate) struct UnfenceArgs {
    #[command(flatten)]
    pub(crate) common: FencingArgs<UnfenceRisk>,
}

/// The risks that an operator can accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnfenceRisk {
    /// The node may not have been restarted since it was fenced
    BootId,
}
