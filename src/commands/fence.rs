//! `fence`: make sure that nothing runs on a silent node any more, and say so.

mod proof;
mod record;

use std::time::Duration;

use clap::{Args, ValueEnum};
use maintenance_lease::NodeLease;
use pod_safety::Known;
use pod_safety::fencing::steps::{Lock, Step};
use pod_safety::fencing::{How, Proof, Remains, is_of_fencing};

use super::fencing::{Hook, LeaseEnd, Look, Recording, Site, Tries, Written};
use crate::cli::doubts::DoubtArgs;
use crate::cli::duration;
use crate::cli::hook::HookArgs;
use crate::cli::output::{OutputArgs, offers_no_token};
use crate::cli::typed::for_shell;
use crate::cli::writing::{WriteArgs, reason};
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::fencing::{
    Fencing, fenced, hold_lost, hold_not_ended, hold_stays, record_open, stuck, unrecorded,
};
use crate::report::holder::person;
use crate::report::verb::Verb;
use crate::report::with::command_line;
use crate::session::Start;
use crate::terminal::escape;

/// Fence a silent node, so that its pods can run elsewhere
///
/// The pods of a silent node are not replaced where two of them must never run at once, because they
/// may still run behind a broken network. fence makes sure that they don't, and then tells Kubernetes:
/// with HOOK, which powers the node off or, with --isolated, cuts it off from all that its pods could
/// do harm to, and whose success is the proof; or with --powered-off, your word that it is off, and how you know.
///
/// It puts the node on hold, until unfence; runs HOOK on this machine; records who did it, why, when
/// and how on the Node, with its boot ID; and taints it node.kubernetes.io/out-of-service=nodeshutdown.
/// Kubernetes then deletes its pods and detaches its volumes, which fence follows for --timeout. A lock
/// that you have on the node already serves as well, and is left as found. After a crash, run it again:
/// it goes on from where it was. A HOOK whose success was not recorded is run again, once the time of
/// the first is over, or at once with --resume: of one node no two hooks run at a time.
///
/// It refuses (exit code 6) where the kubelet gives signs of life, also once HOOK has run; where the
/// Node is another by then, or tells of another boot, than the one that HOOK or your word was for; where
/// more than 55% of the nodes of its zone are silent, since then the control plane itself may be cut off;
/// and where another tool remediates the node, or that can't be known. Where HOOK fails or takes longer
/// than --hook-timeout, nothing is changed in the cluster: no record, no taint, and a hold that this run
/// took is given back; one that was there before stays. A HOOK that is not there is found out before
/// anything else: exit code 127, or 126 where it can't be executed.
///
/// HOOK gets its words as they are (no shell). Its environment has that of `with` for one node, and
/// MAINT_NODE_ADDRESSES (TYPE=ADDRESS each), MAINT_NODE_INTERNAL_IP, MAINT_NODE_EXTERNAL_IP,
/// MAINT_NODE_HOSTNAME and MAINT_NODE_PROVIDER_ID. The end of what it prints is kept in the record. A
/// dry run prints it and never runs it.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", offers_no_token),
    override_usage = "kubectl maint fence [OPTIONS] NODE --powered-off=HOW
       kubectl maint fence [OPTIONS] NODE -- HOOK [ARGUMENT]...",
    after_help = "Examples:
  kubectl maint fence worker-1 --powered-off=\"I pulled both plugs\"
  kubectl maint fence worker-1 -- ./power-off-ipmi
  kubectl maint fence worker-1 --isolated -- ./isolate
  kubectl maint fence worker-1 --dry-run -- ./power-off-ipmi"
)]
pub(crate) struct FenceArgs {
    /// The node, by name or as node/NAME
    #[arg(value_name = "NODE", add = crate::completion::nodes())]
    pub(crate) node: String,

    /// The node is powered off: how you know
    #[arg(
        long,
        value_name = "HOW",
        conflicts_with = "hook",
        value_parser = given
    )]
    pub(crate) powered_off: Option<String>,

    /// HOOK leaves the node running and cuts it off, at the switch or the storage: unfence takes the
    /// opposite hook for this. Without it, HOOK powers the node off
    #[arg(long, requires = "hook", conflicts_with = "powered_off")]
    pub(crate) isolated: bool,

    #[command(flatten)]
    pub(crate) doubts: DoubtArgs<Insist>,

    #[command(flatten)]
    pub(crate) hook: HookArgs,

    /// How long to follow until its pods and volumes are gone; exit code 4 then, and the node stays
    /// fenced. 0 looks once, a negative time is a week
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
pub(crate) enum Insist {
    /// Most of its zone is silent
    MassLoss,
    /// You may not read how its zone is
    ZoneUnknown,
    /// You may not read whether another tool remediates it
    RemediationUnknown,
}

fn given(typed: &str) -> Result<String, String> {
    if typed.trim().is_empty() {
        return Err("say how you know that the node is off".to_owned());
    }
    reason(typed)
}

pub(crate) async fn run(args: &FenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    if args.powered_off.is_none() && args.hook.hook.is_empty() {
        return Err(Failure::usage(
            "missing proof that the node is off: give `--powered-off=HOW` or `-- HOOK`",
            format!(
                "{program} fence {node} --powered-off=\"HOW YOU KNOW\"; or {program} fence {node} -- HOOK",
                program = start.program,
                node = for_shell(&args.node)
            ),
        ));
    }
    args.doubts.warn_of_old_name(start.terminal);
    let site = Site::open(start, &args.node, &args.write, args.output).await?;
    let hook = Hook::new(&site, &args.hook)?;
    let mut course = Course {
        args,
        site: &site,
        hook,
        proof: None,
        taken: None,
        number: None,
        recording: Recording::Absent,
        has_found_hold: false,
        lease_end: None,
    };
    let result = match course.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(course.give_back(failure).await),
    };
    let code = site.end(Verb::Fence, result).await;
    course.tell_lease_end();
    Ok(code)
}

/// A fencing on its way.
struct Course<'a> {
    args: &'a FenceArgs,
    site: &'a Site<'a>,
    hook: Hook<'a>,
    /// How it is known that nothing runs on the node, once it is, and on which machine.
    proof: Option<Proof>,
    /// The hold that this took, as long as nothing rests on it.
    taken: Option<NodeLease>,
    /// The fencing number of that.
    number: Option<u64>,
    /// The record of this run.
    recording: Recording,
    /// There is the hold of an earlier run that was broken off before its record.
    has_found_hold: bool,
    /// When the lease ends under which the node is fenced, where that is no hold.
    lease_end: Option<LeaseEnd>,
}

impl Course<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        if self.site.is_dry_run() {
            return self.rehearse().await;
        }
        let mut tries = Tries::default();
        loop {
            let look = self.site.look().await?;
            self.take_word(&look);
            self.judge_record(&look).await;
            self.has_found_hold = self.is_broken_off(&look);
            match (self.next(&look).await?, self.proof.clone()) {
                (Step::Hold, _) => {
                    self.warn_of_unknown(&look);
                    let change = self.site.hold(&self.why()).await?;
                    self.number = change.fencing;
                    self.taken = change.lease;
                }
                (Step::HoldAgain, _) => {
                    // It rests on the record from the beginning, and so is never given back.
                    self.site.hold(&self.why()).await?;
                }
                (Step::Fence, _) | (Step::Record, None) => {
                    let (_, patch) = self.record(&look, self.by_hook(&look, String::new()));
                    self.site.may_patch(&patch).await?;
                    let running = self.hook.run(&look, self.number, &mut tries);
                    self.proof = running.await?.map(|output| self.by_hook(&look, output));
                }
                (Step::Record, Some(proof)) => {
                    let (record, patch) = self.record(&look, proof);
                    let written = self.site.patch(&patch).await?;
                    let recording = std::mem::take(&mut self.recording);
                    self.recording = recording.after(written, record.clone(), &look);
                    if written == Written::Yes {
                        self.tell(&look, &record, false).await;
                    } else {
                        tries.again(&self.site.node, written).await?;
                    }
                }
                (Step::Follow, _) => return self.follow(&look).await,
            }
        }
    }

    /// Whether a hold stands there that an earlier run took, and nothing else of it.
    fn is_broken_off(&self, look: &Look) -> bool {
        let site = self.site;
        let hold = look
            .lease
            .as_ref()
            .filter(|lease| is_of_fencing(lease, site.now()) && site.session.locks.is_own(lease));
        hold.is_some()
            && self.taken.is_none()
            && look.evidence.signs.record.is_none()
            && self.hook.other(look).is_none()
    }

    /// Finds out what became of a record whose answer was lost.
    async fn judge_record(&mut self, look: &Look) {
        if !self.recording.is_open() {
            return;
        }
        self.recording = std::mem::take(&mut self.recording).judged(look);
        if self.recording.is_there()
            && let Some(record) = &look.evidence.signs.record
        {
            self.tell(look, record, false).await;
        }
    }

    /// Leaves the cluster as it was found, where nothing was recorded, and tells of what stays.
    /// Returns what to tell at last.
    async fn give_back(&mut self, failure: Failure) -> Failure {
        let (site, terminal) = (self.site, self.site.session.terminal);
        let is_gone = matches!(failure, Failure::NodeGone { .. });
        // Nothing is written any more to a Node that is gone.
        if self.recording.is_open() && !is_gone {
            // The node may be fenced at any time: its lock stays.
            let by_hook = !self.hook.is_none();
            return record_open(&site.node, &failure, by_hook, site.program());
        }
        self.hook.withdraw().await;
        let is_recorded = self.recording.is_there();
        if is_recorded && !is_gone {
            return failure;
        }
        if let Some(hold) = self.taken.take() {
            if let Err(failure) = site.unhold(&hold).await {
                terminal.warn(hold_not_ended(&site.node, &failure, site.program()));
            }
        } else if self.has_found_hold && !is_gone {
            terminal.warn(hold_stays(&site.node, site.program()));
        }
        if let Some(Proof {
            how: How::Hook { isolated, .. },
            ..
        }) = self.proof
            && !is_recorded
        {
            terminal.warn(unrecorded(&site.node, isolated));
        }
        failure
    }

    /// Nobody could say whether another tool is at work on the node, or when its kubelet was last alive.
    fn warn_of_unknown(&self, look: &Look) {
        let signs = &look.evidence.signs;
        if let (Known::Yes(_), Known::Unknown(why)) = (&signs.heartbeat, signs.heard(look.at)) {
            self.site.session.terminal.warn(format!(
                "node/{} is unreachable, but {}",
                self.site.node,
                escape(&why.to_string())
            ));
        }
        if let Known::Unknown(why) = &look.evidence.remediation {
            self.site.session.terminal.warn(format!(
                "unknown whether another tool is remediating node/{}: {}",
                self.site.node,
                escape(&why.to_string())
            ));
        }
    }

    /// The hold of the fencing was ended, and somebody else has the node now.
    fn warn_of_lost_hold(&self, look: &Look) {
        let site = self.site;
        let record = look.evidence.signs.record.as_ref();
        let took_hold = record.is_some_and(|record| record.hold.is_some());
        if let Some(lease) = &look.lease
            && took_hold
            && site.lock(Some(lease)) == Lock::Others
            && !is_of_fencing(lease, site.now())
        {
            site.session
                .terminal
                .warn(hold_lost(&site.node, &person(lease)));
        }
    }

    /// Says what would be done, and does nothing of it.
    async fn rehearse(&mut self) -> Result<(), Failure> {
        let site = self.site;
        let terminal = site.session.terminal;
        let mut look = site.look().await?;
        self.take_word(&look);
        let step = self.next(&look).await?;
        if matches!(step, Step::Hold | Step::HoldAgain) {
            site.hold(&self.why()).await?;
        }
        if matches!(step, Step::HoldAgain | Step::Follow) {
            return match &look.evidence.signs.record {
                Some(record) => {
                    self.tell(&look, record, true).await;
                    self.print(Fencing::fenced(&site.node, record, &Remains::default()))
                }
                None => Ok(()),
            };
        }
        let proof = match self.proof.clone() {
            Some(proof) => proof,
            None => {
                self.hook.check_alone(&look)?;
                let hook = command_line(&self.args.hook.hook);
                terminal.remark(format!("would run on this machine: {hook}"));
                self.by_hook(&look, String::new())
            }
        };
        let mut tries = Tries::default();
        let record = loop {
            let (record, patch) = self.record(&look, proof.clone());
            match site.patch(&patch).await? {
                Written::Yes => break record,
                written => tries.again(&site.node, written).await?,
            }
            look = site.look().await?;
            self.next(&look).await?;
        };
        self.lease_end = site.lease_end(look.lease.as_ref());
        let line = fenced(&site.node, &record, false);
        self.result(line + site.suffix());
        self.print(Fencing::fenced(&site.node, &record, &Remains::default()))
    }

    async fn follow(&mut self, look: &Look) -> Result<(), Failure> {
        if let Some(record) = &look.evidence.signs.record
            && !self.recording.is_there()
        {
            self.tell(look, record, true).await;
        }
        self.warn_of_lost_hold(look);
        let site = self.site;
        site.mark(look.lease.as_ref(), true).await;
        let remains = site
            .follow(&look.evidence.signs.out_of_service, self.args.timeout)
            .await?;
        if remains.is_over() {
            site.session.terminal.remark(format!(
                "node/{}: nothing is left to evict or detach",
                site.node
            ));
        }
        if let Some(record) = &look.evidence.signs.record {
            self.print(Fencing::fenced(&site.node, record, &remains))?;
        }
        match remains.is_over() {
            true => Ok(()),
            false => {
                let (timeout, program) = (self.args.timeout, site.program());
                Err(stuck(&site.node, &remains, timeout, program))
            }
        }
    }
}
