//! `fence`: prove that nothing runs on an unreachable node any more, and tell Kubernetes.

mod cost;
mod proof;
mod record;

use std::time::Duration;

use clap::{Args, ValueEnum};
use maintenance_lease::NodeLease;
use pod_safety::Known;
use pod_safety::fencing::steps::{Lock, Step};
use pod_safety::fencing::{How, Proof, Remains, is_of_fencing};

use crate::args::duration;
use crate::args::hook::HookArgs;
use crate::args::output::{OutputArgs, offers_no_lock_id};
use crate::args::risks::RiskArgs;
use crate::args::write::{WriteArgs, reason};
use crate::error::{Failure, FencingWrite, InputError, InvalidValue, Obstacle, Verb};
use crate::exit::Code;
use crate::output::fencing::Fencing;
use crate::run::fencing::{
    Attempts, FencingTarget, Hook, LeaseEnd, Observed, Recording, Timeout, Written,
};
use crate::run::session::Start;
use crate::text::escape;
use crate::words::fencing::{fenced, hold_lost, hold_not_ended, hold_stays, unrecorded};
use crate::words::holder::person;
use crate::words::with::command_line;

/// Fence an unreachable node to let its pods run elsewhere
///
/// Kubernetes does not replace some pods of an unreachable node, because they may still be running.
/// fence proves that they are not, and then tells Kubernetes. The proof is either a HOOK that powers the
/// node off (or cuts it off, with --isolated), or your word (--powered-off).
///
/// The node is put on hold until unfence. HOOK runs on this machine, without a shell. Its result is
/// recorded on the Node, which gets the taint node.kubernetes.io/out-of-service. Kubernetes then
/// deletes the pods and detaches the volumes. If HOOK fails, the node is not fenced. After a crash,
/// run the same command again.
///
/// The command refuses (exit code 6) if the kubelet is alive, if most nodes of a larger zone or all nodes
/// are unreachable, if another tool is repairing the node, or if nothing recreates some of its pods.
/// docs/fencing.md explains the checks, the exit codes, the variables for HOOK, and how to write one.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_lock_id),
    override_usage = "kubectl maint fence [OPTIONS] NODE --powered-off=HOW
       kubectl maint fence [OPTIONS] NODE -- HOOK [ARGUMENT]...",
    after_help = "Examples:
  kubectl maint fence worker-1 --powered-off=\"I pulled both plugs\"
  kubectl maint fence worker-1 -- ./power-off-ipmi
  kubectl maint fence worker-1 --isolated -- ./isolate
  kubectl maint fence worker-1 --dry-run -- ./power-off-ipmi"
)]
pub(crate) struct FenceArgs {
    /// Node name, as NAME or node/NAME
    #[arg(value_name = "NODE")]
    pub(crate) node: String,

    /// Fence without a hook: say how you know that the node is off
    #[arg(
        long,
        value_name = "HOW",
        conflicts_with = "hook",
        value_parser = given
    )]
    pub(crate) powered_off: Option<String>,

    /// HOOK cuts the node off instead of powering it off
    ///
    /// The node keeps running, but cannot reach anything that its pods could damage, such as storage.
    /// To unfence it, use a hook that does the opposite.
    #[arg(long, requires = "hook", conflicts_with = "powered_off")]
    pub(crate) isolated: bool,

    #[command(flatten)]
    pub(crate) doubts: RiskArgs<Risk>,

    #[command(flatten)]
    pub(crate) hook: HookArgs,

    /// Stop waiting for pods and volumes to go after this long; 0 checks once
    ///
    /// The exit code is then 4, and the node stays fenced. A negative time means one week.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5m",
        allow_hyphen_values = true,
        value_parser = duration::timeout
    )]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The doubts that an operator may know better about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Risk {
    /// Most nodes of the zone, or all nodes, are unreachable
    MassLoss,
    /// The state of the zone is unknown: no permission to read it
    ZoneUnknown,
    /// It is unknown whether another tool is repairing the node
    RemediationUnknown,
    /// Pods of the node are lost, because nothing recreates them
    NoOwner,
}

fn given(typed: &str) -> Result<String, InvalidValue> {
    if typed.trim().is_empty() {
        return Err(InvalidValue::NoProof);
    }
    reason(typed)
}

pub(crate) async fn run(args: &FenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    if args.powered_off.is_none() && args.hook.hook.is_empty() {
        let node = args.node.clone();
        return Err(InputError::NoProof { node }.into());
    }
    let target = FencingTarget::open(start, Verb::Fence, &args.node, &args.write, args.output);
    let target = target.await?;
    let hook = match Hook::new(&target, &args.hook) {
        Ok(hook) => hook,
        Err(failure) => return target.end(Verb::Fence, Err(failure), None).await,
    };
    let mut run = FenceRun {
        args,
        target: &target,
        hook,
        proof: None,
        taken: None,
        number: None,
        recording: Recording::Absent,
        has_found_hold: false,
        is_watched: false,
        is_weighed: false,
        lease_end: None,
        retries: Timeout::of(Duration::ZERO),
        outcome: None,
    };
    let result = match run.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(run.give_back(failure).await),
    };
    let code = target.end(Verb::Fence, result, run.outcome.take()).await;
    run.report_lease_end();
    code
}

/// How long reads are retried after a hook has succeeded, to record it.
const RECORD_RETRIES: Duration = Duration::from_secs(120);

/// A fencing in progress.
struct FenceRun<'a> {
    args: &'a FenceArgs,
    target: &'a FencingTarget<'a>,
    hook: Hook<'a>,
    /// The proof that nothing runs on the node, once there is one, and the machine that it is about.
    proof: Option<Proof>,
    /// The hold that this run took, until the record depends on it.
    taken: Option<NodeLease>,
    /// The fencing number of that hold.
    number: Option<u64>,
    /// The record of this run.
    recording: Recording,
    /// An earlier run took a hold and ended before it wrote its record.
    has_found_hold: bool,
    /// Whether a doubtful heartbeat was watched already.
    is_watched: bool,
    /// Whether the cost was reported already, and accepted if necessary.
    is_weighed: bool,
    /// When the lease ends under which the node is fenced; `None` if that is a hold.
    lease_end: Option<LeaseEnd>,
    /// How long failed reads are retried.
    retries: Timeout,
    /// The outcome for programs, once there is one.
    outcome: Option<Fencing>,
}

impl FenceRun<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        if self.target.is_dry_run() {
            return self.rehearse().await;
        }
        let mut tries = Attempts::default();
        loop {
            let (observed, step) = self.observe().await?;
            self.weigh(step, &observed).await?;
            match (step, self.proof.clone()) {
                (Step::Hold, _) => {
                    self.warn_of_unknown(&observed);
                    let change = self.target.hold(&self.why()).await?;
                    self.number = change.fencing;
                    self.taken = change.lease;
                }
                (Step::HoldAgain, _) => {
                    // The record depends on this hold from the start, so it is never released.
                    self.target.hold(&self.why()).await?;
                }
                (Step::Fence, _) | (Step::Record, None) => {
                    let (_, patch) = self.record(&observed, self.by_hook(&observed, String::new()));
                    self.target.may_patch(&patch).await?;
                    let running = self.hook.run(&observed, self.number, &mut tries);
                    if let Some(output) = running.await? {
                        self.proof = Some(self.by_hook(&observed, output));
                        // The hook is the expensive part, so its success is not lost to a short outage.
                        self.retries = Timeout::of(RECORD_RETRIES);
                    }
                }
                (Step::Record, Some(proof)) => {
                    let (record, patch) = self.record(&observed, proof);
                    let written = self.target.patch(&patch).await?;
                    let recording = std::mem::take(&mut self.recording);
                    self.recording = recording.after(written, record.clone(), &observed);
                    if written == Written::Yes {
                        self.report(&observed, &record, false).await;
                    } else {
                        tries.observe_again(&self.target.node, written).await?;
                    }
                }
                (Step::Follow, _) => return self.follow(&observed).await,
            }
        }
    }

    /// Whether an earlier run left only its hold behind.
    fn is_broken_off(&self, observed: &Observed) -> bool {
        let target = self.target;
        let hold = observed.lease.as_ref().filter(|lease| {
            is_of_fencing(lease, target.now()) && target.session.locks.is_own(lease)
        });
        hold.is_some()
            && self.taken.is_none()
            && observed.evidence.signs.record.is_none()
            && self.hook.other(observed).is_none()
    }

    /// Finds out whether a record was written if the answer was lost.
    async fn judge_record(&mut self, observed: &Observed) {
        if !self.recording.is_open() {
            return;
        }
        self.recording = std::mem::take(&mut self.recording).judged(observed);
        if self.recording.is_there()
            && let Some(record) = &observed.evidence.signs.record
        {
            self.report(observed, record, false).await;
        }
    }

    /// Undoes what this run did if no record was written, and reports what stays. Returns the failure to
    /// report last.
    async fn give_back(&mut self, failure: Failure) -> Failure {
        let (target, terminal) = (self.target, self.target.session.terminal);
        let is_gone = matches!(failure, Failure::NodeGone { .. });
        // A Node that is gone needs no more writes.
        if self.recording.is_open() && !is_gone {
            // The record may still be written, so the lock stays.
            let hook = self.hook.id().map(ToOwned::to_owned);
            return target.unknown(FencingWrite::Record { hook }, failure);
        }
        self.hook.withdraw().await;
        let is_recorded = self.recording.is_there();
        if is_recorded && !is_gone {
            return failure;
        }
        if let Some(hold) = self.taken.take() {
            if let Err(failure) = target.unhold(&hold).await {
                terminal.warn(hold_not_ended(&target.node, &failure, target.program()));
            }
        } else if self.has_found_hold && !is_gone {
            terminal.warn(hold_stays(&target.node, target.program()));
        }
        if let Some(Proof {
            how: How::Hook { isolated, .. },
            ..
        }) = self.proof
            && !is_recorded
        {
            terminal.warn(unrecorded(&target.node, isolated));
        }
        failure
    }

    /// Warns if it is unknown whether another tool works on the node, or when its kubelet was last alive.
    fn warn_of_unknown(&self, observed: &Observed) {
        let signs = &observed.evidence.signs;
        if let (Known::Yes(_), Known::Unknown(why)) = (&signs.heartbeat, signs.heard(observed.at)) {
            self.target.session.terminal.warn(format!(
                "node/{} is unreachable, but {}",
                self.target.node,
                escape(&why.to_string())
            ));
        }
        if let Known::Unknown(why) = &observed.evidence.remediation {
            self.target.session.terminal.warn(format!(
                "unknown whether another tool is remediating node/{}: {}",
                self.target.node,
                escape(&why.to_string())
            ));
        }
    }

    /// Warns if the hold of the fencing was ended, and somebody else has the lock now.
    fn warn_of_lost_hold(&self, observed: &Observed) {
        let target = self.target;
        let record = observed.evidence.signs.record.as_ref();
        let took_hold = record.is_some_and(|record| record.hold.is_some());
        if let Some(lease) = &observed.lease
            && took_hold
            && target.lock(Some(lease)) == Lock::Others
            && !is_of_fencing(lease, target.now())
        {
            target
                .session
                .terminal
                .warn(hold_lost(&target.node, &person(lease)));
        }
    }

    /// Reports what would be done, without doing it.
    async fn rehearse(&mut self) -> Result<(), Failure> {
        let target = self.target;
        let terminal = target.session.terminal;
        let (mut observed, step) = self.observe().await?;
        self.weigh(step, &observed).await?;
        if matches!(step, Step::Hold | Step::HoldAgain) {
            target.hold(&self.why()).await?;
        }
        if matches!(step, Step::HoldAgain | Step::Follow) {
            if let Some(record) = &observed.evidence.signs.record {
                self.report(&observed, record, true).await;
            }
            return Ok(());
        }
        let proof = match self.proof.clone() {
            Some(proof) => proof,
            None => {
                self.hook.check_alone(&observed)?;
                let hook = command_line(&self.args.hook.hook);
                terminal.remark(format!("would run on this machine: {hook}"));
                self.by_hook(&observed, String::new())
            }
        };
        let mut tries = Attempts::default();
        let record = loop {
            let (record, patch) = self.record(&observed, proof.clone());
            match target.patch(&patch).await? {
                Written::Yes => break record,
                written => tries.observe_again(&target.node, written).await?,
            }
            (observed, _) = self.observe().await?;
        };
        self.lease_end = target.lease_end(observed.lease.as_ref());
        let line = fenced(&target.node, &record, false);
        target.result(&(line + target.suffix()));
        self.outcome = Some(Fencing::fenced(&target.node, &record, &Remains::default()));
        Ok(())
    }

    async fn follow(&mut self, observed: &Observed) -> Result<(), Failure> {
        if let Some(record) = &observed.evidence.signs.record
            && !self.recording.is_there()
        {
            self.report(observed, record, true).await;
        }
        self.warn_of_lost_hold(observed);
        let target = self.target;
        target.mark(observed.lease.as_ref(), true).await;
        let remains = target
            .follow(&observed.evidence.signs.out_of_service, self.args.timeout)
            .await?;
        if remains.is_over() {
            target.session.terminal.remark(format!(
                "node/{}: nothing is left to evict or detach",
                target.node
            ));
        }
        if let Some(record) = &observed.evidence.signs.record {
            self.outcome = Some(Fencing::fenced(&target.node, record, &remains));
        }
        match remains.is_over() {
            true => Ok(()),
            false => Err(Failure::TimedOut {
                node: target.node.clone(),
                waited: self.args.timeout,
                obstacle: Some(Obstacle::Remains(Box::new(remains))),
            }),
        }
    }
}
