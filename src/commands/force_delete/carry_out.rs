//! The steps of a forced deletion: read, confirm, lock, read again, delete, and wait for the outcome.

use std::collections::BTreeMap;

use futures::future::{join, try_join_all};
use maintenance_lease::{DryRun, Error};
use pod_safety::cluster::Deletion;
use pod_safety::consent::{Consent, Missing};
use pod_safety::node_health::is_fresh;
use pod_safety::outcome::Outcome;
use pod_safety::report::{DeletionTarget, Report};

use super::context::Run;
use super::deleted::Deleted;
use super::locks::Locks;
use super::read::{Findings, First, Key, key};
use super::request::Answer;
use super::targets::Targets;
use crate::error::{Failure, is_forbidden};
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
        let mut findings = match ended.or(self.findings(None)).await {
            Ok(findings) => findings,
            Err(failure) => return self.print_unread(failure),
        };
        if ended.or(self.heartbeats_change(&findings)).await? {
            findings = ended.or(self.findings(None)).await?;
        }
        let deleted = std::mem::take(&mut findings.held);
        let consent = self.args.consent();
        self.show(&findings.reports);
        if findings.reports.is_empty() {
            self.print_outcomes(&findings.reports, &deleted, &consent)?;
            return Ok(code(&deleted));
        }
        let Some(missing) = consent.missing(&findings.reports) else {
            return self.carry_out(findings, deleted, &consent, &ended).await;
        };
        let answered = self.questions(&findings.reports, &missing).await?;
        let Some(args) = &answered else {
            self.print_outcomes(&findings.reports, &deleted, &consent)?;
            return Ok(self.refuse(&findings, &missing, 0));
        };
        let run = Run { args, ..*self };
        run.carry_out(findings, deleted, &args.consent(), &ended)
            .await
    }

    /// Locks the nodes, deletes what was accepted, and waits for the outcome.
    async fn carry_out(
        &self,
        findings: Findings,
        mut deleted: Vec<Deleted>,
        consent: &Consent,
        ended: &Interruption,
    ) -> Result<Code, Failure> {
        let real = self.args.write.dry_run == DryRun::None;
        let mut locks = Locks::default();
        if real {
            let taken = self.take(&findings, &mut locks, ended).await;
            if let Err(failure) = taken {
                self.release(&locks, ended).await;
                return match failure {
                    Failure::Lock(Error::Refused(refused)) => Ok(self.taken(&findings, &refused)),
                    Failure::Lock(error) if is_forbidden(&error) => {
                        Ok(self.not_taken(&findings, &error))
                    }
                    failure => Err(failure),
                };
            }
        }
        let consents = findings.reports.iter();
        let consents = consents
            .map(|report| (key(&report.target), consent.bound_to(report)))
            .collect();
        let mut first = findings.first();
        let result = self
            .delete(&mut first, &consents, &locks, ended, &mut deleted)
            .await;
        // Report an unknown result at once: the requests that follow may hang too.
        let result = match result {
            Err(failure @ Failure::UnknownDeletion { .. }) => Err(self.report_at_once(&failure)),
            result => result,
        };
        if real && (result.is_err() || done(&deleted) > 0) {
            self.report_not_deleted(&first);
        }
        let reported = match (real, ended.has_come()) {
            (false, _) => self.print_outcomes(&findings.reports, &deleted, consent),
            (true, false) => {
                // Write the Events and release the locks first: waiting for the outcome may take long.
                self.record_and_release(&locks, &deleted, ended).await;
                self.follow_outcomes(&mut deleted, ended).await;
                self.print_outcomes(&findings.reports, &deleted, consent)
            }
            (true, true) => {
                self.follow_outcomes(&mut deleted, ended).await;
                let reported = self.print_outcomes(&findings.reports, &deleted, consent);
                self.record_and_release(&locks, &deleted, ended).await;
                reported
            }
        };
        reported?;
        let result = result.map(|done| done.worse(code(&deleted)));
        match deleted.iter().any(|one| one.outcome == Outcome::Unwatched) {
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
    /// On entry, `first` has what was read before; on return, what is left of it.
    async fn delete(
        &self,
        first: &mut First,
        consents: &Consents,
        locks: &Locks,
        ended: &Interruption,
        deleted: &mut Vec<Deleted>,
    ) -> Result<Code, Failure> {
        let (findings, code) = self.read_again(first, ended, deleted).await?;
        if let Some(code) = self.refused(&findings, consents, locks, deleted) {
            return Ok(code);
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
                    let pod = pod.map(|seen| &seen.facts.pod);
                    Some(self.request(target, pod, locks, ended).await?)
                }
                false => None,
            };
            let Some(answer) =
                answer.filter(|answer| !matches!(answer, Answer::Done(Deletion::Changed)))
            else {
                let (findings, code) = self.read_again(first, ended, deleted).await?;
                let refused = self.refused(&findings, consents, locks, deleted);
                return Ok(match refused {
                    Some(worse) => code.worse(worse),
                    // The last target disappeared meanwhile.
                    None if findings.reports.is_empty() => code,
                    None => self.stopped(target, &findings, done(deleted)),
                });
            };
            first.remove(&key(target));
            deleted.push(Deleted {
                seen: pod.cloned(),
                outcome: self.outcome(&answer),
                report: report.clone(),
                along: self.along(&findings).to_vec(),
            });
            self.warn_who_may_act(&findings, deleted);
            match answer {
                Answer::Lost(error) => {
                    let target = Box::new(target.clone());
                    return Err(Failure::UnknownDeletion { target, error });
                }
                Answer::MarkedFailed(failure) => return Err(failure),
                Answer::Done(_) => {}
            }
        }
        Ok(code)
    }

    /// Watches doubtful heartbeats for a change, which shows a live kubelet with a wrong clock. Skipped if the
    /// caller overrides `node-alive`.
    async fn heartbeats_change(&self, findings: &Findings) -> Result<bool, Failure> {
        if self.args.overrides("node-alive") {
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
        let Some(node) = target.node().filter(|_| !self.args.overrides("node-alive")) else {
            return Ok(false);
        };
        match self.reader.heartbeat(node).await {
            Ok(heartbeat) => Ok(is_fresh(heartbeat, self.reader.now())),
            Err(error) if error.is_forbidden() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the rest of `first` again, and reports what disappeared without this command.
    async fn read_again(
        &self,
        first: &mut First,
        ended: &Interruption,
        deleted: &mut Vec<Deleted>,
    ) -> Result<(Findings, Code), Failure> {
        let mut code = Code::DONE;
        let findings = ended.or(self.findings(Some(first))).await?;
        for key in &findings.unmatched {
            if first.remove(key).is_some() {
                self.report_unmatched(key);
                code = Code::UNSAFE;
            }
        }
        self.report_gone(first, &findings);
        for held in &findings.held {
            if first.remove(&key(&held.report.target)).is_some() {
                deleted.push(held.clone());
            }
        }
        Ok((findings, code))
    }

    /// Reports why nothing more is deleted, if there is more to accept in `findings`, or a lock has ended.
    fn refused(
        &self,
        findings: &Findings,
        consents: &Consents,
        locks: &Locks,
        deleted: &[Deleted],
    ) -> Option<Code> {
        if let Some((report, missing)) = self.first_missing(findings, consents) {
            self.show_change(report);
            return Some(self.refuse(findings, &missing, done(deleted)));
        }
        let node = locks.ended(findings)?;
        Some(self.own_ended(node, done(deleted)))
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

/// How many targets this command has deleted.
fn done(deleted: &[Deleted]) -> usize {
    deleted.iter().filter(|one| !one.was_held()).count()
}
