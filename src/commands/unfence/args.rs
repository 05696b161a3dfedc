//! The arguments of `unfence`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::duration;
use crate::args::hook::HookArgs;
use crate::args::output::{OutputArgs, offers_no_lock_id};
use crate::args::risks::RiskArgs;
use crate::args::write::WriteArgs;

/// Return a fenced node to service
///
/// Removes the fencing record and the taint, and ends the hold that fence placed. A lock that was
/// there before fence stays. The command refuses (exit code 6) unless the kubelet is alive and the
/// node was restarted after it was fenced, that is, its boot ID has changed.
///
/// If you give a HOOK, it runs first; then the node has --timeout to come back (exit code 4). If the
/// node was powered off, HOOK should power it on. If it was cut off with --isolated, HOOK reconnects
/// it and must first stop whatever was running there: the node then does not need a restart.
///
/// You are asked to confirm if somebody else fenced the node, or if fencing stopped before it was
/// recorded.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_lock_id),
    override_usage = "kubectl maint unfence [OPTIONS] NODE [-- HOOK [ARGUMENT]...]",
    after_help = "Examples:
  kubectl maint unfence worker-1
  kubectl maint unfence worker-1 -- ./power-on-ipmi
  kubectl maint unfence worker-1 -- ./isolate open
  kubectl maint unfence worker-1 --accept-risk=boot-id -m \"it ran no pods\""
)]
pub(crate) struct UnfenceArgs {
    /// Node name, as NAME or node/NAME
    #[arg(value_name = "NODE")]
    pub(crate) node: String,

    #[command(flatten)]
    pub(crate) doubts: RiskArgs<Risk>,

    #[command(flatten)]
    pub(crate) hook: HookArgs,

    /// Stop waiting for the node after this long, after HOOK; 0 checks once
    ///
    /// The exit code is then 4. A negative time means one week.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        allow_hyphen_values = true,
        value_parser = duration::timeout
    )]
    pub(crate) timeout: Duration,

    /// Answer yes to the confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The doubts that an operator may know better about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Risk {
    /// The node may not have been restarted since it was fenced
    BootId,
}
