//! The steps of a forced deletion: read, confirm, lock, read again, delete, and wait for the outcome.

use std::collections::BTreeMap;

use futures::future::{join, try_join_all};
use pod_safety::checks::NODE_ALIVE;
use pod_safety::cluster::Deletion;
use pod_safety::consent::{Consent, Missing};
use pod_safety::node_health::is_fresh;
use pod_safety::outcome::Outcome;
use pod_safety::report::{DeletionTarget, Report};

use super::context::Run;
use super::deleted::Deleted;
use super::locks::Locks;
use super::progress::Progress;
use super::read::{Findings, Key, key};
use super::request::Answer;
use super::targets::Targets;
use crate::error::Failure;
use crate::exit::Code;
use crate::run::interruption::Interruption;
use crate::words::fencing::watching;

/// The exit code for the outcomes of all deletions.
fn code(deleted: &[Deleted]) -> Code {
    match deleted.iter().any(|one| one.outcome.is_unfinished()) {
        true => Code::TIMED_OUT,
        false => Code::DONE,
    }
}

/// What was confirmed for each target, as the report showed it.
type Consents = BTreeMap<Key, Consent>;

impl Run<'_> {
    pub(super) async fn run(&self) -> Result<Code, Failure> {
        let ended = Interruption::listen();
        let mut findings = ended.or(self.findings(None)).await?;
        if ended.or(self.heartbeats_change(&findings)).await? {
            findings = ended.or(self.findings(None)).await?;
        }
        let mut progress = Progress::of(findings.first());
        let consent = self.args.consent();
        self.show(&findings.reports);
        let Some(missing) = consent.missing(&findings.reports) else {
            return self.carry_out(findings, progress, &consent, &ended).await;
        };
        let answered = self.questions(&findings.reports, &missing).await?;
        let Some(args) = &answered else {
            progress.refuse(&findings.reports, &consent);
            self.print_outcomes(&findings.reports, &progress)?;
            self.refuse(&findings, &missing, 0);
            return Ok(Code::UNSAFE);
        };
        let run = Run { args, ..*self };
        run.carry_out(findings, progress, &args.consent(), &ended)
            .await
    }

    /// Locks the nodes, deletes what was accepted, and waits for the outcome.
    async fn carry_out(
        &self,
        findings: Findings,
        mut progress: Progress,
        consent: &Consent,
        ended: &Interruption,
    ) -> Result<Code, Failure> {
        let real = !self.args.write.is_dry_run();
        let mut locks = Locks::default();
        if real {
            let taken = self.take(&findings, &mut locks, &mut progress, ended).await;
            if let Err(failure) = taken {
                self.release(&locks, ended).await;
                let code = self.not_locked(&findings, failure, &mut progress);
                self.print_outcomes(&findings.reports, &progress)?;
                return code;
            }
        }
        let consents = findings.reports.iter();
        let consents = consents
            .map(|report| (key(&report.target), consent.bound_to(report)))
            .collect();
        let result = self.delete(&mut progress, &consents, &locks, ended).await;
        if let Err(failure) = &result
            && !progress.is_stopped()
        {
            progress.stop(None, self.item_error(failure));
        }
        // Report an unknown result at once: the requests that follow may hang too.
        let result = match result {
            Err(failure @ Failure::UnknownDeletion { .. }) => Err(self.report_at_once(&failure)),
            result => result,
        };
        if real && (result.is_err() || progress.done() > 0) {
            self.report_not_deleted(&progress.left);
        }
        let reported = match (real, ended.has_come()) {
            (false, _) => self.print_outcomes(&findings.reports, &progress),
            (true, false) => {
                // Write the Events and release the locks first: waiting for the outcome may take long.
                self.record_and_release(&locks, &progress.deleted, ended)
                    .await;
                self.wait_until_gone(&mut progress.deleted, ended).await;
                progress.incomplete = self.incomplete_owners(&progress.deleted, ended).await;
                self.print_outcomes(&findings.reports, &progress)
            }
            (true, true) => {
                self.wait_until_gone(&mut progress.deleted, ended).await;
                let reported = self.print_outcomes(&findings.reports, &progress);
                self.record_and_release(&locks, &progress.deleted, ended)
                    .await;
                reported
            }
        };
        reported?;
        let result = result.map(|done| done.worse(code(&progress.deleted)));
        match ended.has_come() {
            true => result.and(Err(Failure::Interrupted)),
            false => result,
        }
    }

    /// Writes the Events about what was `deleted`, and releases the locks. The Lease of a Node that was
    /// deleted is deleted with it.
    async fn record_and_release(&self, locks: &Locks, deleted: &[Deleted], ended: &Interruption) {
        let is_gone = |one: &Deleted| {
            matches!(
                one.outcome,
                Outcome::Deleted
                    | Outcome::WasGone
                    | Outcome::Unwatched
                    | Outcome::Unseen { .. }
                    | Outcome::PodsLeft { .. }
            )
        };
        let is_node = matches!(self.targets, Targets::Node(_));
        let releasing = async {
            if !is_node || !deleted.iter().any(is_gone) {
                self.release(locks, ended).await;
            }
        };
        join(self.leave_events(deleted), releasing).await;
    }

    /// Deletes what was confirmed. Reads everything again first: changes must be within what was confirmed.
    /// Stops at the first sign of another change, because the data about the other targets is just as old.
    async fn delete(
        &self,
        progress: &mut Progress,
        consents: &Consents,
        locks: &Locks,
        ended: &Interruption,
    ) -> Result<Code, Failure> {
        let findings = self.read_again(progress, ended).await?;
        self.check(&findings, consents, locks, progress);
        if progress.is_stopped() {
            return Ok(Code::UNSAFE);
        }
        for (index, report) in self.targets(&findings).iter().enumerate() {
            if ended.has_come() {
                return Err(Failure::Interrupted);
            }
            let target = &report.target;
            let pod = findings.pods.get(index);
            // The lock is checked last, because that read takes time too.
            let goes_on = !ended.or(self.is_alive(target)).await? && locks.last();
            let answer = match goes_on {
                true => {
                    let pod = pod.map(|facts| &facts.pod);
                    let sent = self.request(target, pod, locks, ended).await;
                    Some(sent.inspect_err(|failure| {
                        progress.stop(Some(target), self.item_error(failure));
                    })?)
                }
                false => None,
            };
            let Some(answer) =
                answer.filter(|answer| !matches!(answer, Answer::Done(Deletion::Changed)))
            else {
                let findings = self.read_again(progress, ended).await?;
                self.check(&findings, consents, locks, progress);
                // Otherwise the last target disappeared meanwhile.
                if !progress.is_stopped() && !findings.reports.is_empty() {
                    let error = self.stopped(target, &findings, progress.done());
                    progress.stop(Some(target), error);
                }
                return Ok(match progress.is_stopped() {
                    true => Code::UNSAFE,
                    false => Code::DONE,
                });
            };
            progress.left.remove(&key(target));
            progress.deleted.push(Deleted {
                facts: pod.cloned(),
                owners: findings.owners.get(index).cloned().unwrap_or_default(),
                outcome: self.outcome(&answer),
                report: report.clone(),
                along: self.along(&findings).to_vec(),
            });
            self.warn_who_may_act(&findings, &progress.deleted);
            let failure = match answer {
                Answer::Lost(error) => {
                    let target = Box::new(target.clone());
                    Failure::UnknownDeletion { target, error }
                }
                Answer::MarkedFailed(failure) => failure,
                Answer::Done(_) => continue,
            };
            progress.stop(Some(target), self.item_error(&failure));
            return Err(failure);
        }
        Ok(Code::DONE)
    }

    /// Watches doubtful heartbeats for a change, which shows a live kubelet with a wrong clock. Skipped if the
    /// caller overrides `node-alive`.
    async fn heartbeats_change(&self, findings: &Findings) -> Result<bool, Failure> {
        if self.args.overrides(NODE_ALIVE) {
            return Ok(false);
        }
        let watching = findings.to_watch.iter().map(|(node, heartbeat)| {
            self.session.terminal.remark(watching(node, *heartbeat));
            self.reader.heartbeat_changes(node, *heartbeat)
        });
        Ok(try_join_all(watching).await?.contains(&true))
    }

    /// Whether the kubelet of the node of `target` is alive by now: its heartbeat has changed since the
    /// report, whatever its clock says. False if the caller overrides `node-alive`.
    async fn is_alive(&self, target: &DeletionTarget) -> Result<bool, Failure> {
        let Some(node) = target.node().filter(|_| !self.args.overrides(NODE_ALIVE)) else {
            return Ok(false);
        };
        match self.reader.heartbeat(node).await {
            Ok(heartbeat) => Ok(is_fresh(heartbeat, self.reader.now())),
            Err(error) if error.is_forbidden() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is left again, and notes what disappeared without this command.
    async fn read_again(
        &self,
        progress: &mut Progress,
        ended: &Interruption,
    ) -> Result<Findings, Failure> {
        let findings = ended.or(self.findings(Some(&progress.left))).await?;
        if !matches!(self.targets, Targets::Node(_)) {
            progress.keep(&findings.first());
        }
        Ok(findings)
    }

    /// Stops if there is more to accept in `findings`, or if a lock has ended, and reports that.
    fn check(
        &self,
        findings: &Findings,
        consents: &Consents,
        locks: &Locks,
        progress: &mut Progress,
    ) {
        if let Some((report, missing)) = self.first_missing(findings, consents) {
            self.show_change(report);
            let error = self.refuse(findings, &missing, progress.done());
            progress.stop(Some(&report.target), error);
        } else if let Some(node) = locks.ended(findings) {
            let error = self.own_ended(node, progress.done());
            progress.stop(None, error);
        }
    }

    /// The first target with more risks now than were accepted. A pod that came to the node later was not
    /// in the report.
    fn first_missing<'l>(
        &self,
        findings: &'l Findings,
        consents: &Consents,
    ) -> Option<(&'l Report, Missing)> {
        findings.reports.iter().find_map(|report| {
            let missing = match consents.get(&key(&report.target)) {
                Some(consent) => consent.missing([report]),
                None => self.args.consent().bound_to_nothing().missing([report]),
            };
            Some((report, missing?))
        })
    }

    /// The targets that get a delete request.
    fn targets<'l>(&self, findings: &'l Findings) -> &'l [Report] {
        match self.targets {
            // The Node's report comes first, then those of its pods.
            Targets::Node(_) => findings.reports.get(..1).unwrap_or_default(),
            Targets::Pods(_) | Targets::Labeled(_) => &findings.reports,
        }
    }

    /// The pods that go with the target of a delete request.
    fn along<'l>(&self, findings: &'l Findings) -> &'l [Report] {
        match self.targets {
            Targets::Node(_) => findings.reports.get(1..).unwrap_or_default(),
            Targets::Pods(_) | Targets::Labeled(_) => &[],
        }
    }
}
