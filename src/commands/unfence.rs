//! `unfence`: return a fenced node to service.

mod hold;

use std::time::Duration;

use clap::{Args, ValueEnum};
use maintenance_lease::NodeLease;
use pod_safety::fencing::back::{self, Refusal};
use pod_safety::fencing::{Record, patch};

use crate::args::duration;
use crate::args::hook::HookArgs;
use crate::args::output::{OutputArgs, offers_no_lock_id};
use crate::args::risks::DoubtArgs;
use crate::args::write::WriteArgs;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::output::fencing::Fencing;
use crate::output::format::Format;
use crate::run::fencing::{Hook, Look, Patience, Site, Tries, Written};
use crate::run::session::Start;
use crate::text::escape;
use crate::words::fencing::{
    awaited, fenced_anew, gone_after_hook, hold_not_ended, return_open, silent_after_hook, stays,
};
use crate::words::with::command_line;

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
    pub(crate) doubts: DoubtArgs<Insist>,

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
pub(crate) enum Insist {
    /// The node may not have been restarted since it was fenced
    BootId,
}

pub(crate) async fn run(args: &UnfenceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let site = Site::open(start, &args.node, &args.write, args.output).await?;
    let mut course = Course {
        args,
        site: &site,
        hook: Hook::new(&site, &args.hook)?,
        hold: None,
        is_undone: false,
    };
    let result = match course.run().await {
        Ok(()) => Ok(()),
        Err(failure) => Err(course.give_up(failure).await),
    };
    Ok(site.end(Verb::Unfence, result).await)
}

/// An unfencing in progress.
struct Course<'a> {
    args: &'a UnfenceArgs,
    site: &'a Site<'a>,
    hook: Hook<'a>,
    /// The hold of the fencing, as found.
    hold: Option<NodeLease>,
    /// The hook has succeeded, or would in a dry run.
    is_undone: bool,
}

impl Course<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        let site = self.site;
        let look = site.look().await?;
        self.hold = self.hold_of_fencing(&look).cloned();
        if self.hold.is_none() {
            self.check_lock(&look)?;
        }
        if !self.sight(&look).is_fenced() {
            // An earlier run ended before its last step, or another run executes its hook now.
            if let Some(hold) = &self.hold {
                self.hook.check_alone(&look)?;
                self.confirm_unfinished(hold).await?;
                // Another hook may have started while the operator answered.
                self.hook.clear_other(&site.look().await?).await?;
                site.unhold(hold).await?;
            }
            return self.leave(&look).await;
        }
        let meant = look.evidence.signs.record.clone();
        let look = match &self.hold {
            Some(hold) if self.confirm(hold, meant.as_ref()).await? => {
                // Everything was read before the operator answered, so it may be outdated.
                let look = site.look().await?;
                self.expect(meant.as_ref(), &look)?;
                look
            }
            _ => look,
        };
        self.undo(&look).await?;
        // A dry run can't know what a hook would change.
        let look = match self.is_undone && site.is_dry_run() {
            true => look,
            false => self.await_fit(look).await?,
        };
        if !self.sight(&look).is_fenced() {
            // The Node was replaced, or somebody else unfenced it first.
            self.hook.withdraw().await;
            if let (Some(hold), Some(lease)) = (&self.hold, &look.lease)
                && hold.lock_id() == lease.lock_id()
            {
                site.unhold(hold).await?;
            }
            return self.leave(&look).await;
        }
        self.expect(meant.as_ref(), &look)?;
        let look = self.clear(look).await?;
        self.tell(&format!("node/{} unfenced{}", site.node, site.suffix()))?;
        let ended = self.end_hold().await;
        if ended.is_ok() {
            site.mark(look.lease.as_ref(), false).await;
        }
        if !site.is_dry_run() {
            self.post(&look).await;
        }
        ended
    }

    /// Ends the hold if the Node is gone, because nothing else of the fencing is left. Returns the failure
    /// to report last.
    async fn give_up(&self, failure: Failure) -> Failure {
        let site = self.site;
        self.hook.withdraw().await;
        if !matches!(failure, Failure::NodeGone { .. }) {
            return failure;
        }
        // If the Lease is gone, it was deleted together with the Node.
        if let Some(hold) = &self.hold
            && let Err(failure) = site.unhold(hold).await
        {
            let terminal = site.session.terminal;
            terminal.warn(hold_not_ended(&site.node, &failure, site.program()));
        }
        match self.is_undone && !site.is_dry_run() {
            true => gone_after_hook(&site.node),
            false => failure,
        }
    }

    /// Ends without a change if the node is not fenced.
    async fn leave(&self, look: &Look) -> Result<(), Failure> {
        let site = self.site;
        site.mark(look.lease.as_ref(), false).await;
        self.tell(&format!("node/{} is not fenced", site.node))
    }

    /// Runs the hook, if there is one.
    async fn undo(&mut self, look: &Look) -> Result<(), Failure> {
        let site = self.site;
        if self.hook.is_none() {
            return Ok(());
        }
        if site.is_dry_run() {
            self.hook.check_alone(look)?;
            let line = command_line(&self.args.hook.hook);
            let terminal = site.session.terminal;
            terminal.remark(format!("would run on this machine: {line}"));
            self.is_undone = true;
            return Ok(());
        }
        let patch = patch::unfenced(&look.evidence.raw);
        site.may_patch(&patch).await?;
        let meant = look.evidence.signs.record.as_ref();
        let mut look = look.clone();
        let mut tries = Tries::default();
        while self.hook.run(&look, None, &mut tries).await?.is_none() {
            look = site.look().await?;
            self.expect(meant, &look)?;
        }
        self.is_undone = true;
        Ok(())
    }

    /// Reads the node until it may return to service, or is not fenced any more: once, or for some time
    /// after a hook.
    async fn await_fit(&self, first: Look) -> Result<Look, Failure> {
        let site = self.site;
        let (limit, seen) = match self.is_undone {
            // What was read before the hook does not show its effect.
            true => (self.args.timeout, None),
            false => (Duration::ZERO, Some(first)),
        };
        let mut patience = Patience::of(limit);
        let mut look = match seen {
            Some(look) => look,
            None => patience.read(site, async || site.look().await).await?,
        };
        let mut is_told = false;
        loop {
            if !self.sight(&look).is_fenced() {
                return Ok(look);
            }
            let Err(refusal) = self.may_return(&look) else {
                return Ok(look);
            };
            if patience.rest().is_zero() {
                return Err(match refusal {
                    Refusal::Silent if !limit.is_zero() => {
                        silent_after_hook(&site.node, limit, site.program())
                    }
                    refusal => stays(&site.node, &refusal, site.program()),
                });
            }
            if !is_told {
                let terminal = site.session.terminal;
                terminal.remark(awaited(&site.node, limit));
                is_told = true;
            }
            patience.pause(site).await?;
            look = patience.read(site, async || site.look().await).await?;
        }
    }

    /// Removes record and taint.
    async fn clear(&self, mut look: Look) -> Result<Look, Failure> {
        let site = self.site;
        let meant = look.evidence.signs.record.clone();
        let mut tries = Tries::default();
        loop {
            let written = site.patch(&patch::unfenced(&look.evidence.raw)).await?;
            if written == Written::Yes {
                return Ok(look);
            }
            let again = async {
                tries.again(&site.node, written).await?;
                site.look().await
            };
            look = again.await.map_err(|failure| match written {
                Written::Unknown => return_open(&site.node, &failure, site.program()),
                Written::No | Written::Yes => failure,
            })?;
            if !self.sight(&look).is_fenced() {
                return Ok(look);
            }
            self.expect(meant.as_ref(), &look)?;
            self.judge(&look)?;
        }
    }

    /// The fencing must be the one that was confirmed: another one is somebody else's decision.
    fn expect(&self, meant: Option<&Record>, look: &Look) -> Result<(), Failure> {
        match look.evidence.signs.record.as_ref() == meant {
            true => Ok(()),
            false => Err(fenced_anew(&self.site.node, self.site.program())),
        }
    }

    fn judge(&self, look: &Look) -> Result<(), Failure> {
        let site = self.site;
        self.may_return(look)
            .map_err(|refusal| stays(&site.node, &refusal, site.program()))
    }

    fn may_return(&self, look: &Look) -> Result<(), Refusal> {
        let insists = self.args.doubts.insists(&Insist::BootId);
        self.sight(look).may_return(self.site.now(), insists)
    }

    fn sight(&self, look: &Look) -> back::Sight {
        let evidence = &look.evidence;
        back::Sight {
            signs: evidence.signs.clone(),
            is_annotated: evidence.is_annotated(),
            is_undone: self.is_undone,
        }
    }

    fn tell(&self, line: &str) -> Result<(), Failure> {
        let terminal = self.site.session.terminal;
        let format = self.args.output.format();
        let outcome = Fencing::unfenced(&self.site.node).in_dry_run(self.site.is_dry_run());
        match outcome.print(format)? {
            Some(text) => terminal.data(text),
            None if matches!(format, Format::Text | Format::Wide) => terminal.result(line),
            None => {}
        }
        Ok(())
    }

    async fn post(&self, look: &Look) {
        let site = self.site;
        let caller = escape(site.session.locks.identity());
        let insisted = match self.args.doubts.insists(&Insist::BootId) {
            true => " without proof of a restart",
            false => "",
        };
        let why = self
            .args
            .doubts
            .message
            .as_deref()
            .map(|why| format!(": \"{}\"", escape(why)));
        let message = format!(
            "{caller} unfenced the node{insisted}{}",
            why.unwrap_or_default()
        );
        let is_odd = !insisted.is_empty();
        site.post(&look.evidence, "NodeUnfenced", message, is_odd)
            .await;
    }
}
