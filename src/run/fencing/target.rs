//! The node of `fence` or `unfence`: its state, and the writes to it.

use std::cell::Cell;
use std::ffi::OsStr;

use clap::ValueEnum;
use futures::future::join;
use k8s_openapi::api::core::v1::{Node, Pod};
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::{BootInstant, Now, Span};
use maintenance_lease::{ApiError, Error, Maintenance, NodeEvent, NodeLease, Right};
use pod_safety::Known;
use pod_safety::cluster::{Evidence, Reader};
use pod_safety::facts::Zone;
use pod_safety::fencing::Written;
use serde_json::Value;

use crate::args::fencing::FencingArgs;
use crate::args::lock_id::LockIds;
use crate::args::write::WriteArgs;
use crate::error::{Failure, Verb};
use crate::exit::Code;
use crate::output::fencing::{Fencing, FencingList};
use crate::output::format::Format;
use crate::output::print;
use crate::run::events;
use crate::run::interruption::{Interruption, exit_at_interrupt};
use crate::run::problems::Problems;
use crate::run::session::{FIELD_MANAGER, Session, Start};
use crate::run::variables::HOLDER;
use crate::ui::Terminal;
use crate::words::change::dry_run_suffix;
use crate::words::fencing::watching;
use crate::words::hint_command::Program;

/// How often a write is tried if the Node keeps changing.
const MOST_TRIES: u32 = 10;

/// The node to fence or unfence, and the connection of the command.
pub(crate) struct FencingTarget<'a> {
    pub(crate) session: Session<'a>,
    pub(crate) reader: Reader,
    pub(crate) interrupt: Interruption,
    write: &'a WriteArgs,
    format: Format,
    /// The holder and the lock ids of the `with` that this runs under.
    pub(super) outer: Option<&'a str>,
    pub(super) inherited: Option<LockIds>,
    /// The value of `PATH`.
    pub(super) path: Option<&'a OsStr>,
    pub(crate) node: String,
    /// Whether the Node was read successfully.
    is_seen: Cell<bool>,
}

/// The state of a node, as read.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// When the first read began, by the boot clock.
    pub(crate) begun: BootInstant,
    /// `begun` in the server's time. Other reads may take long, and must not make the heartbeat look
    /// older than it was.
    pub(crate) at: Now,
    pub(crate) evidence: Evidence,
    pub(crate) lease: Option<NodeLease>,
}

impl<'a> FencingTarget<'a> {
    /// Opens the connection. Sends nothing, but `fence` may ask who the API user is.
    ///
    /// # Errors
    /// If the API server can't be reached.
    pub(crate) async fn open<R: ValueEnum + Send + Sync>(
        start: &Start<'a>,
        verb: Verb,
        args: &'a FencingArgs<R>,
        node: String,
    ) -> Result<Self, Failure> {
        let session = start
            .open_for_writing(&args.write, verb == Verb::Fence)
            .await?;
        Ok(Self {
            // From here on Ctrl-C is noticed, also between two steps.
            interrupt: Interruption::listen_once(),
            reader: Reader::new(session.locks.requests().clone()),
            session,
            write: &args.write,
            format: args.output.format(),
            outer: start.environment.get(HOLDER),
            // Without one that can be read, nothing was inherited.
            inherited: LockIds::of(start.environment).ok().flatten(),
            path: start.environment.get_os("PATH"),
            node,
            is_seen: Cell::new(false),
        })
    }
}

impl FencingTarget<'_> {
    /// Ends the verb: reports the failure, and prints the outcome for programs. Reports an interruption even if
    /// everything finished after Ctrl-C. From here on Ctrl-C ends the process at once.
    ///
    /// # Errors
    /// If the outcome can't be printed.
    pub(crate) async fn end(
        &self,
        verb: Verb,
        result: Result<(), Failure>,
        outcome: Option<Fencing>,
    ) -> Result<Code, Failure> {
        let problems = Problems::changing(&self.session, verb);
        let is_interrupted = self.interrupt.has_come();
        exit_at_interrupt();
        let result = match result {
            Ok(()) if is_interrupted => Err(Failure::Interrupted),
            result => result,
        };
        let error = result.err().map(|failure| problems.report(&failure));
        let outcome = outcome.unwrap_or_else(|| Fencing::new(&self.node));
        let item = outcome.in_dry_run(self.is_dry_run()).with_error(error);
        if let Some(text) = print::data(&FencingList::new(vec![item]), self.format)? {
            self.session.terminal.data(text);
        }
        Ok(problems.end().await)
    }

    pub(crate) fn terminal(&self) -> &Terminal {
        self.session.terminal
    }

    pub(crate) fn locks(&self) -> &Maintenance {
        &self.session.locks
    }

    /// The program in hints.
    pub(crate) fn program(&self) -> &Program {
        self.session.program
    }

    pub(crate) fn now(&self) -> Now {
        self.reader.now()
    }

    /// The server's time at `begun`, computed from later answers. Before the first answer only the local
    /// clock is known.
    pub(crate) fn at(&self, begun: BootInstant) -> Now {
        earlier(self.now(), Machine.boot().since(begun))
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.write.is_dry_run()
    }

    /// The suffix of messages in a dry run.
    pub(crate) fn suffix(&self) -> &'static str {
        dry_run_suffix(self.is_dry_run())
    }

    /// Prints a result for people.
    pub(crate) fn result(&self, line: &str) {
        if self.format.is_for_people() {
            self.terminal().result(line);
        }
    }

    /// Reads the node and its lock, in parallel.
    ///
    /// # Errors
    /// If the Node does not exist any more or never did, if one can't be read, or if it was interrupted.
    pub(crate) async fn observed(&self) -> Result<Observed, Failure> {
        let begun = Machine.boot();
        let looking = async {
            let seeing = self.locks().read(&self.node, false);
            let (evidence, seen) = join(self.reader.evidence(&self.node), seeing).await;
            let evidence = evidence
                .map_err(|error| Right::on_nodes("get").explain(error))?
                .ok_or_else(|| self.missing())?;
            self.is_seen.set(true);
            let lease = seen?.lease;
            let at = self.at(begun);
            Ok(Observed {
                begun,
                at,
                evidence,
                lease,
            })
        };
        self.interrupt.or(looking).await
    }

    /// Watches the heartbeat in `observed` for a change, if it is doubtful: a live kubelet may have a wrong
    /// clock. Whether it was watched, so that the node must be read again.
    ///
    /// # Errors
    /// If it can't be read, or if it was interrupted.
    pub(crate) async fn watch_heartbeat(&self, observed: &Observed) -> Result<bool, Failure> {
        let Some(heartbeat) = observed.evidence.state.to_watch(observed.at) else {
            return Ok(false);
        };
        let terminal = self.terminal();
        terminal.remark(watching(&self.node, heartbeat));
        let watching = self.reader.heartbeat_changes(&self.node, heartbeat);
        self.interrupt.or(async { Ok(watching.await?) }).await?;
        Ok(true)
    }

    /// Reads the pods of the node.
    ///
    /// # Errors
    /// If they can't be read, or if it was interrupted.
    pub(crate) async fn pods(&self) -> Result<Vec<Pod>, Failure> {
        let reading = self.reader.pods_of_node(&self.node);
        self.interrupt.or(async { Ok(reading.await?) }).await
    }

    /// The failure for a missing Node. If it existed before, no similar names are suggested.
    pub(super) fn missing(&self) -> Failure {
        let node = self.node.clone();
        match self.is_seen.get() {
            true => Failure::NodeGone { node },
            false => Error::NodeNotFound(node).into(),
        }
    }

    /// How many nodes of its zone are unreachable, including itself, and of others.
    pub(crate) async fn zone(&self, observed: &Observed) -> Known<Zone> {
        self.reader.zone(&self.node, observed.at).await
    }

    /// Checks, before a hook is run, that the server would accept a patch of the Node: without that right,
    /// the caller must not power it off. If there is no answer, the record of the hook is the next check. False if the
    /// Node changed, or if the server failed: read it again.
    ///
    /// # Errors
    /// If the server refuses the patch for another reason than a changed Node, if there were too many attempts, or if
    /// it was interrupted.
    pub(crate) async fn may_patch(
        &self,
        patch: &Value,
        tries: &mut Attempts,
    ) -> Result<bool, Failure> {
        let patching = self
            .reader
            .patch_node(&self.node, patch, FIELD_MANAGER, true);
        let patching = async { Ok(patching.await) };
        let answer = self.interrupt.or(patching).await?;
        let answer = answer.map(drop);
        let is_answered = matches!(
            answer,
            Err(ApiError::Status(_) | ApiError::NotKubernetes { .. })
        );
        let written = tries.judge(patch, answer)?;
        if written != Written::No && !is_answered {
            return Ok(true);
        }
        match tries.observe_again(&self.node, written).await {
            Ok(()) => Ok(false),
            // A dry run changes nothing.
            Err(Failure::UnknownWrite {
                error: Some(error), ..
            }) => Err(error.into()),
            Err(failure) => Err(failure),
        }
    }

    /// Applies a patch to the Node, at the version that it was made for. After Ctrl-C it waits a moment for
    /// the answer.
    ///
    /// # Errors
    /// If the server refuses it for another reason than a changed Node.
    pub(crate) async fn patch(
        &self,
        patch: &Value,
        tries: &mut Attempts,
    ) -> Result<Written, Failure> {
        let (written, _) = self.patch_and_return_node(patch, tries).await?;
        Ok(written)
    }

    /// The same, with the Node as the server stored it; `None` without such an answer, or in a dry run.
    ///
    /// # Errors
    /// The same.
    pub(crate) async fn patch_and_return_node(
        &self,
        patch: &Value,
        tries: &mut Attempts,
    ) -> Result<(Written, Option<Node>), Failure> {
        if self.is_dry_run() {
            return Ok((Written::Yes, None));
        }
        let patching = self
            .reader
            .patch_node(&self.node, patch, FIELD_MANAGER, false);
        let patching = async { Ok(patching.await) };
        match self.interrupt.with_grace(patching).await {
            Ok(Ok(node)) => Ok((Written::Yes, Some(node))),
            Ok(Err(error)) => Ok((tries.judge(patch, Err(error))?, None)),
            Err(_) => Ok((Written::Unknown, None)),
        }
    }

    /// Writes an Event on the Node.
    pub(crate) async fn post(
        &self,
        evidence: &Evidence,
        reason: &'static str,
        message: String,
        warning: bool,
    ) {
        let event = NodeEvent {
            node: self.node.clone(),
            uid: evidence.uid().to_owned(),
            reason,
            message,
            warning,
        };
        events::post(&self.session, vec![event]).await;
    }
}

/// The failed attempts of writes to a Node.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    count: u32,
    /// The last error; `None` if no answer was awaited.
    error: Option<ApiError>,
    /// The version of the Node for which the last patch was refused as if the Node had changed.
    refused: Option<Value>,
}

impl Attempts {
    /// The result of `patch`, by its `answer`.
    ///
    /// # Errors
    /// If the server refuses it for another reason than a changed Node. Something on the way may use the same codes, but
    /// then the Node has the same version when it is read again.
    fn judge(&mut self, patch: &Value, answer: Result<(), ApiError>) -> Result<Written, Failure> {
        let Err(error) = answer else {
            return Ok(Written::Yes);
        };
        let written = if error.is_conflict() || error.is_not_found() {
            let version = Some(patch["metadata"]["resourceVersion"].clone());
            if std::mem::replace(&mut self.refused, version.clone()) == version {
                return Err(error.into());
            }
            Written::No
        } else if error.leaves_writes_unknown() {
            Written::Unknown
        } else {
            return Err(Right::on_nodes("patch").explain(error).into());
        };
        self.error = Some(error);
        Ok(written)
    }

    /// Counts a failed attempt.
    ///
    /// # Errors
    /// After too many attempts.
    pub(crate) async fn observe_again(
        &mut self,
        node: &str,
        written: Written,
    ) -> Result<(), Failure> {
        self.count += 1;
        let error = self.error.take();
        if self.count < MOST_TRIES {
            tokio::time::sleep(std::time::Duration::from_millis(50 * u64::from(self.count))).await;
            return Ok(());
        }
        let node = node.to_owned();
        Err(match (written, error) {
            (Written::No, Some(error)) => Failure::KeepsChanging { node, error },
            (_, error) => Failure::UnknownWrite { node, error },
        })
    }
}

/// The time `span` before `now`.
fn earlier(now: Now, span: Span) -> Now {
    Now::between(now.earliest - span, now.latest - span)
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;

    use super::*;

    #[test]
    fn a_heartbeat_does_not_age_while_other_things_are_read() {
        let now = Now::at(Instant::from_micros(100_000_000));
        let before = earlier(now, Span::seconds(30));
        assert_eq!(before, Now::at(Instant::from_micros(70_000_000)));
    }
}
