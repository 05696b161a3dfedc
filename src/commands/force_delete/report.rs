//! What people and programs see: the report, the next command, the outcomes.

use std::collections::BTreeSet;

use maintenance_lease::protocol::{Refusal, identity};
use maintenance_lease::{Error, NodeLease, Refused};
use pod_safety::Known;
use pod_safety::checks::{LEASE, Level, NOT_DELETING, UNREAD};
use pod_safety::consent::{Missing, flags};
use pod_safety::facts::Lock;
use pod_safety::fencing::is_of_fencing;
use pod_safety::outcome::Outcome;
use pod_safety::report::{DeletionTarget, Report};

use super::context::Run;
use super::deleted::Deleted;
use super::progress::{Progress, code};
use super::read::{Findings, First};
use super::targets::Targets;
use crate::error::{Failure, is_refused_by_server};
use crate::exit::Code;
use crate::output::error_code::ErrorCode;
use crate::output::force_deletion::ForceDeletionList;
use crate::output::format::Format;
use crate::output::item_error::ItemError;
use crate::output::safety::{self, Detail};
use crate::run::problems;
use crate::text::escape;
use crate::words::change::{dry_run_suffix, may_still_act};
use crate::words::failure;
use crate::words::fencing::incomplete;
use crate::words::force_deletion as words;
use crate::words::hint_command::Program;
use crate::words::holder_name::of_node;
use crate::words::node_state;
use crate::words::refusal::{fenced, running_command};

impl Run<'_> {
    /// Prints the report, for people. With `--quiet`, findings that are not ok are still printed if a risk
    /// is accepted or refused: nobody should confirm what they were not shown.
    pub(super) fn show(&self, reports: &[Report]) {
        let terminal = self.session.terminal;
        let place = self.session.place();
        let output = self.args.output;
        match output.format() {
            Format::Json | Format::Yaml | Format::Template(..) => {}
            format @ (Format::Text | Format::Wide) if !output.quiet => {
                let shown = match format {
                    Format::Wide => Detail::All,
                    _ => Detail::Brief,
                };
                terminal.result(place);
                if !reports.is_empty() {
                    terminal.result(self.lines(reports, shown, terminal.width()));
                }
            }
            _ if reports.iter().any(needs_consent) => {
                let columns = terminal.stderr_width();
                terminal.raw_stderr(place);
                terminal.raw_stderr(self.lines(reports, Detail::Problems, columns));
            }
            _ => {}
        }
    }

    fn lines(&self, reports: &[Report], detail: Detail, columns: Option<usize>) -> String {
        safety::text(reports, detail, &self.args.overrides, columns)
    }

    /// Prints what has changed since the report.
    pub(super) fn show_change(&self, report: &Report) {
        let terminal = self.session.terminal;
        terminal.warn(words::changed(&report.target));
        terminal.raw_stderr(self.lines(
            std::slice::from_ref(report),
            Detail::Brief,
            terminal.stderr_width(),
        ));
    }

    /// Prints the reports and outcomes, for programs.
    ///
    /// # Errors
    /// If it can't be serialized.
    fn show_data(&self, reports: &[Report], progress: &Progress) -> Result<(), Failure> {
        let deleted = progress.deleted.iter();
        let outcomes = deleted.map(|deleted| (&deleted.report.target, &deleted.outcome));
        let list = ForceDeletionList::new(
            reports,
            &outcomes.collect::<Vec<_>>(),
            |report| progress.error(&report.target),
            &progress.incomplete,
            flags(reports, progress.to_accept, None),
        );
        self.session
            .terminal
            .print(&list, self.args.output.format())?;
        Ok(())
    }

    /// The failure, for programs.
    pub(super) fn item_error(&self, failure: &Failure) -> ItemError {
        let (message, hint) = failure::lines(failure, self.session.program, None);
        ItemError::new(failure, message, hint, self.reader.now())
    }

    /// Reports what is missing, and the next command. `deleted` targets were deleted before.
    pub(super) fn refuse(
        &self,
        findings: &Findings,
        missing: &Missing,
        deleted: usize,
    ) -> ItemError {
        let program = self.session.program;
        let is_locked = missing.blocked.contains(&LEASE);
        let outer = findings.holders().find(|holder| program.is_under(holder));
        let line = |program: &Program| self.line(program, &findings.reports, None);
        let hint = match outer.filter(|_| is_locked) {
            _ if missing.blocked.is_empty() => Some(words::to_delete(missing, &line(program))),
            Some(holder) => {
                let as_holder = program.as_holder(identity::person(holder));
                Some(words::inside_with(&line(&as_holder)))
            }
            None => {
                let first = self.first_step(findings.holders(), findings.fencing());
                first
                    .filter(|_| is_locked)
                    .or_else(|| {
                        let undeleted = undeleted(&findings.reports);
                        let holder = findings.holders().next();
                        words::first_step(&missing.blocked, holder, &undeleted, program)
                    })
                    .map(|first| words::after(&first, &line(program)))
            }
        };
        let nodes = findings.reports.iter().filter_map(Report::to_fence);
        let nodes: BTreeSet<&str> = nodes.filter(|_| !is_locked).collect();
        let to_fence = words::fence_instead(&nodes, program);
        let hints = to_fence.into_iter().chain(hint);
        self.stop(code(missing), words::refused(missing, deleted), hints)
    }

    /// Reports why nothing more is deleted, and what to do.
    fn stop(
        &self,
        code: ErrorCode,
        message: String,
        hints: impl IntoIterator<Item = String>,
    ) -> ItemError {
        let terminal = self.session.terminal;
        terminal.error(&message);
        for hint in hints {
            terminal.hint(hint);
        }
        ItemError::of(code, message)
    }

    /// What to do before the deletion about a lock of one of `holders`, or about the fencing of a node.
    fn first_step<'a>(
        &self,
        mut holders: impl Iterator<Item = &'a str>,
        fencing: Option<(&str, bool)>,
    ) -> Option<String> {
        let caller = self.session.locks.identity();
        let running_command = holders.find_map(|holder| running_command(holder, caller));
        let to_end = || {
            let (node, is_fenced) = fencing?;
            Some(fenced::to_end(node, is_fenced, self.session.program))
        };
        running_command.map(|(_, words)| words).or_else(to_end)
    }

    /// Reports that `target` changed after the check, although there is nothing new to accept. The data
    /// about the other targets is just as old.
    pub(super) fn stopped(
        &self,
        target: &DeletionTarget,
        findings: &Findings,
        deleted: usize,
    ) -> ItemError {
        let mut left = findings.reports.iter();
        if let Some(report) = left.find(|report| report.target.uid == target.uid) {
            self.show_change(report);
        }
        let line = self.line(self.session.program, &findings.reports, None);
        let (message, hint) = words::stopped(target, deleted, &line);
        self.stop(ErrorCode::Unsafe, message, [hint])
    }

    /// Reports why nothing is deleted if the nodes can't be locked.
    ///
    /// # Errors
    /// The failure, if it is not a refusal.
    pub(super) fn not_locked(
        &self,
        findings: &Findings,
        failure: Failure,
        progress: &mut Progress,
    ) -> Result<Code, Failure> {
        let error = match &failure {
            Failure::Reported(_) => return Err(failure),
            Failure::Lock(Error::Refused(refused)) => self.taken(findings, refused),
            Failure::Lock(error) if is_refused_by_server(error) => {
                progress.to_accept = Some(UNREAD);
                self.not_taken(findings, error)
            }
            _ => {
                let (message, hint) = failure::lines(&failure, self.session.program, None);
                let message = words::not_locked(&message);
                self.session.terminal.error(&message);
                if let Some(hint) = &hint {
                    self.session.terminal.hint(hint);
                }
                let error = ItemError::new(&failure, message, hint, self.reader.now());
                progress.stop(None, error);
                return Err(Failure::Reported(failure.kind(None)));
            }
        };
        progress.stop(None, error);
        Ok(Code::UNSAFE)
    }

    /// Reports that somebody acquired the lock of a node after the report showed it as free.
    fn taken(&self, findings: &Findings, refused: &Refused) -> ItemError {
        let lease = refused.lease.as_ref();
        let why = match refused.refusal {
            Refusal::Held | Refusal::AdminHold => {
                node_state::line(&refused.node, lease, self.reader.now())
            }
            _ => escape(&refused.to_string()),
        };
        let holder = lease.and_then(NodeLease::holder).into_iter();
        let fencing = lease.filter(|lease| is_of_fencing(lease, self.reader.now()));
        let fencing = fencing.map(|lease| (lease.node(), lease.is_fenced()));
        let first = self.first_step(holder, fencing);
        let hint = first.map(|first| {
            let line = self.line(self.session.program, &findings.reports, None);
            words::after(&first, &line)
        });
        self.stop(ErrorCode::Locked, words::taken(&why), hint)
    }

    /// Reports that the caller's own lock of `node` has ended since the report. `deleted` targets were
    /// deleted before.
    pub(super) fn own_ended(&self, node: &str, deleted: usize) -> ItemError {
        self.stop(ErrorCode::Expired, words::own_ended(node, deleted), None)
    }

    /// Reports who held the lock that was deleted together with a Node in `deleted`.
    pub(super) fn warn_who_may_act(&self, findings: &Findings, deleted: &[Deleted]) {
        let Some(Deleted {
            outcome: Outcome::Deleted,
            ..
        }) = deleted.last()
        else {
            return;
        };
        let Targets::Node(node) = self.targets else {
            return;
        };
        if let Some(Known::Yes(Lock::Another { holder, until, .. })) = findings.locks.get(node) {
            let holder = of_node(holder);
            let now = self.reader.now();
            let terminal = self.session.terminal;
            terminal.warn(may_still_act(&holder, node, *until, now));
        }
    }

    /// Reports that the server refuses the caller a lock, although the report did not mention it.
    fn not_taken(&self, findings: &Findings, error: &Error) -> ItemError {
        let line = self.line(self.session.program, &findings.reports, Some(UNREAD));
        let (message, hint) = words::lock_refused(error, &line);
        self.stop(ErrorCode::NotConfirmed, message, [hint])
    }

    /// Reports which targets of `first` were not deleted because the command ended before.
    pub(super) fn report_not_deleted(&self, first: &First) {
        // The pods of a Node would have been deleted with it.
        let is_target = |kind: &str| match self.targets {
            Targets::Node(_) => kind == "node",
            Targets::Pods(_) | Targets::Labeled(_) => true,
        };
        let left: Vec<String> = first
            .keys()
            .filter(|(kind, ..)| is_target(kind))
            .map(|(kind, _, name)| format!("{kind}/{name}"))
            .collect();
        if !left.is_empty() {
            self.session.terminal.error(&words::not_deleted(&left));
        }
    }

    /// Reports a problem before the command ends.
    pub(super) fn report_at_once(&self, failure: &Failure) -> Failure {
        problems::report(self.session.terminal, self.session.program, failure);
        Failure::Reported(failure.kind(None))
    }

    /// Reports the outcomes, in words or as data.
    ///
    /// # Errors
    /// As [`show_data`](Self::show_data).
    pub(super) fn print_outcomes(
        &self,
        reports: &[Report],
        progress: &Progress,
    ) -> Result<(), Failure> {
        if self.args.output.format().is_for_people() {
            let suffix = dry_run_suffix(self.args.write.is_dry_run());
            for Deleted {
                report, outcome, ..
            } in &progress.deleted
            {
                let target = &report.target;
                let words = words::outcome(target, outcome);
                self.session
                    .terminal
                    .result(format!("{target} {words}{suffix}"));
            }
            for owner in &progress.incomplete {
                self.session.terminal.remark(incomplete(owner));
            }
        }
        self.show_data(reports, progress)
    }
}

/// The namespaces and names of the pods that were not deleted yet.
fn undeleted(reports: &[Report]) -> Vec<(&str, &str)> {
    let is_undeleted = |report: &&Report| {
        let mut checks = report.checks.iter();
        checks.any(|verdict| verdict.id == NOT_DELETING && verdict.level == Level::Blocker)
    };
    let undeleted = reports.iter().filter(is_undeleted);
    let pods = undeleted.filter_map(|report| {
        let DeletionTarget {
            namespace, name, ..
        } = &report.target;
        Some((namespace.as_deref()?, name.as_str()))
    });
    pods.collect()
}

/// Whether something in it must be confirmed.
fn needs_consent(report: &Report) -> bool {
    report
        .checks
        .iter()
        .any(|verdict| verdict.level > Level::Info)
}
