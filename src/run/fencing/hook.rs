//! The hook of a run: recorded on the Node before it starts, to keep other runs from starting one too, and
//! removed from there if it fails.

use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::{BootInstant, Now};
use pod_safety::cluster::Evidence;
use pod_safety::fencing::{Attempt, Written, patch};

use super::run_hook::{GRACE, run};
use super::target::{Attempts, FencingTarget, Observed};
use super::variables::set_all;
use crate::args::hook::HookArgs;
use crate::error::{Failure, FencingWrite, HookError};
use crate::run::program::check;
use crate::words::fencing::hook_stays;

/// The hook of a run.
pub(crate) struct Hook<'a> {
    target: &'a FencingTarget<'a>,
    args: &'a HookArgs,
    id: String,
    /// When the record was first sent, which is when the hook's time starts.
    begun: Option<(BootInstant, Now)>,
    /// The version of the Node for which the record was sent, if no answer came.
    open_on: Option<String>,
}

impl<'a> Hook<'a> {
    /// The hook that was typed, if any.
    ///
    /// # Errors
    /// If the program does not exist or can't be executed.
    pub(crate) fn new(target: &'a FencingTarget<'a>, args: &'a HookArgs) -> Result<Self, Failure> {
        if let Some(program) = args.hook.first() {
            check(program, target.path)?;
        }
        let mut nonce = [0; 10];
        Machine.random(&mut nonce);
        Ok(Self {
            target,
            args,
            id: nonce.iter().map(|byte| format!("{byte:02x}")).collect(),
            begun: None,
            open_on: None,
        })
    }

    /// Whether no hook was typed.
    pub(crate) fn is_none(&self) -> bool {
        self.args.hook.is_empty()
    }

    /// The program, without arguments.
    pub(crate) fn program(&self) -> String {
        let program = self.args.hook.first();
        program.map_or_else(String::new, |program| {
            program.to_string_lossy().into_owned()
        })
    }

    /// The id under which it is recorded; `None` if no hook was typed.
    pub(crate) fn id(&self) -> Option<&str> {
        (!self.is_none()).then_some(&*self.id)
    }

    /// The hook of another run that may still be running for the node.
    pub(crate) fn other(&self, observed: &Observed) -> Option<Attempt> {
        let attempt = observed.evidence.attempt()?;
        let is_ended = self.args.resume.as_ref() == Some(&attempt.id);
        let bars = attempt.id != self.id && !is_ended && attempt.may_run(self.target.now());
        bars.then_some(attempt)
    }

    /// Checks that no other hook is running for the node.
    ///
    /// # Errors
    /// If one may be running.
    pub(crate) fn check_alone(&self, observed: &Observed) -> Result<(), HookError> {
        match self.other(observed) {
            Some(other) => Err(HookError::Running {
                node: self.target.node.clone(),
                other,
                now: self.target.now().latest,
            }),
            None => Ok(()),
        }
    }

    /// Records the hook on the Node, runs it with node and lock in its environment, and returns the end of
    /// its output. `fencing` is the number of an acquisition by this command. `None` if it was not run
    /// because the Node changed: read it again.
    ///
    /// # Errors
    /// If another hook may be running, if the lock may end before the hook does, or if the hook can't be
    /// run or fails.
    pub(crate) async fn run(
        &mut self,
        observed: &Observed,
        fencing: Option<u64>,
        tries: &mut Attempts,
    ) -> Result<Option<String>, Failure> {
        let target = self.target;
        self.check_alone(observed)?;
        target.check_lasts(observed.lease.as_ref(), self.args.hook_timeout)?;
        let now = (Machine.boot(), target.now());
        let (begun, since) = *self.begun.get_or_insert(now);
        let is_there = observed
            .evidence
            .attempt()
            .is_some_and(|it| it.id == self.id);
        if !is_there {
            let announcement = self.announcement(since);
            let patch = patch::announced(&observed.evidence.raw, &announcement);
            let written = target.patch(&patch, tries).await?;
            let is_open = written == Written::Unknown;
            self.open_on = is_open.then(|| observed.evidence.version().to_owned());
            if written != Written::Yes {
                tries.observe_again(&target.node, written).await?;
                return Ok(None);
            }
        }
        if target.interrupt.has_come() {
            return Err(Failure::Interrupted);
        }
        let command = supervisor::Command::new(self.args.hook.clone());
        let command = set_all(command, observed, fencing);
        let terminal = target.terminal();
        let ended = run(terminal, command, begun, self.args.hook_timeout).await?;
        let node = target.node.clone();
        let has_output = !ended.output.is_empty();
        if target.interrupt.has_come() || ended.is_interrupted {
            return Err(HookError::Interrupted { node, has_output }.into());
        }
        match ended.failed {
            Some(end) => Err(HookError::Failed {
                node,
                end,
                has_output,
            }
            .into()),
            None => Ok(Some(ended.output)),
        }
    }

    fn announcement(&self, since: Now) -> Attempt {
        let limit = self.args.hook_timeout + GRACE;
        Attempt {
            id: self.id.clone(),
            who: self.target.locks().identity().to_owned(),
            program: self.program(),
            since: since.latest,
            until: Attempt::end(since, limit.into()),
        }
    }

    /// Removes the record of the hook, if there is one, because the hook has ended. If that fails, the hook
    /// counts as running until its recorded end.
    pub(crate) async fn remove_record(&self) {
        if self.begun.is_none() {
            return;
        }
        let target = self.target;
        if let Err(failure) = target.interrupt.with_grace(self.clear_own()).await {
            let terminal = target.terminal();
            terminal.warn(hook_stays(
                &target.node,
                &self.id,
                &failure,
                target.program(),
            ));
        }
    }

    /// Removes the record of a hook that is known to have ended.
    ///
    /// # Errors
    /// If it may still be running, if the Node can't be read or written, or if it was interrupted.
    pub(crate) async fn clear_other(&self, observed: &Observed) -> Result<(), Failure> {
        self.check_alone(observed)?;
        match observed.evidence.attempt() {
            Some(other) => {
                let clearing = self.clear(&other.id);
                let cleared = self.target.interrupt.with_grace(clearing).await;
                cleared.map(drop)
            }
            None => Ok(()),
        }
    }

    /// Removes the record of this hook, even after an interruption, because nobody else would.
    async fn clear_own(&self) -> Result<(), Failure> {
        match self.clear(&self.id).await? {
            // Its write got no answer, and may still take effect.
            Some(node) if self.open_on.as_deref() == Some(node.version()) => Err(self
                .target
                .unknown(FencingWrite::Hook, Failure::Interrupted)),
            _ => Ok(()),
        }
    }

    /// Removes the record with this id. Returns the Node if it exists and has no such record.
    async fn clear(&self, id: &str) -> Result<Option<Evidence>, Failure> {
        let target = self.target;
        let mut tries = Attempts::default();
        loop {
            let Some(evidence) = target.reader.evidence(&target.node).await? else {
                return Ok(None);
            };
            if evidence.attempt().is_none_or(|it| it.id != id) {
                return Ok(Some(evidence));
            }
            let patch = patch::withdrawn(&evidence.raw);
            match target.patch(&patch, &mut tries).await? {
                Written::Yes => return Ok(None),
                written => tries.observe_again(&target.node, written).await?,
            }
        }
    }
}
