//! What people and programs are told: the report, the line to type, what became of it, the Events.

use k8s_openapi::api::core::v1::ObjectReference;
use maintenance_lease::{ApiError, Error, Refused};
use pod_safety::Known;
use pod_safety::checks::Level;
use pod_safety::consent::{Missing, flag};
use pod_safety::facts::{NodeSight, Owner};
use pod_safety::report::{Report, Target};

use super::asked::Asked;
use super::carry_out::{Deleted, Work};
use super::look::{First, Look};
use crate::cli::output::Format;
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::safety::{self, Outcome};
use crate::terminal::escape;

impl Work<'_> {
    /// The report, for people.
    pub(super) fn show(&self, reports: &[Report]) {
        let format = self.args.output.format();
        if matches!(format, Format::Text | Format::Wide) {
            let terminal = self.session.terminal;
            terminal.result(self.session.place());
            let brief =
                matches!(self.asked, Asked::Node(_)) && self.args.output.format() != Format::Wide;
            terminal.result(safety::text(reports, brief));
        }
    }

    /// What has changed since the report.
    pub(super) fn show_change(&self, report: &Report) {
        let terminal = self.session.terminal;
        terminal.warn("it is not as it was reported any more:");
        terminal.remark(safety::text(std::slice::from_ref(report), true));
    }

    /// The same and what became of it, for programs.
    ///
    /// # Errors
    /// Where it can't be written in that form, or the form has no place for it.
    pub(super) fn show_data(&self, reports: &[Report], deleted: &[Deleted]) -> Result<(), Failure> {
        let outcomes = deleted
            .iter()
            .map(|deleted| (&deleted.report.target, &deleted.outcome));
        let text = safety::data(
            reports,
            &outcomes.collect::<Vec<_>>(),
            &flag(reports, None),
            self.args.output.format(),
        )?;
        if let Some(text) = text {
            self.session.terminal.data(text);
        }
        Ok(())
    }

    /// Says what is missing, and what to type. So many targets were `deleted` before.
    pub(super) fn ask(&self, look: &Look, missing: &Missing, deleted: usize) -> Code {
        let terminal = self.session.terminal;
        let nothing = match deleted {
            0 => "nothing was deleted",
            _ => "nothing more was deleted",
        };
        let program = self.session.program;
        if missing.refused.is_empty() {
            let what = match &missing.unconfirmed[..] {
                [] => "not confirmed".to_owned(),
                ids => format!("not confirmed: {}", ids.join(", ")),
            };
            terminal.error(&format!("{what}; {nothing}"));
            let line = self.line(program, &look.reports, None);
            terminal.hint(format!("to give that up: {line}"));
            return Code::UNSAFE;
        }
        let refused = missing.refused.join(", ");
        terminal.error(&format!("refused: {refused}; {nothing}"));
        match look.holders().find(|holder| program.is_under(holder)) {
            Some(holder) if missing.refused.contains(&"lease") => {
                let line = self.line(&program.as_holder(holder), &look.reports, None);
                terminal.hint(format!(
                    "this runs under that lock of `with`; to act as its holder: {line}"
                ));
            }
            _ => {
                let line = self.line(program, &look.reports, None);
                terminal.hint(format!("once that is otherwise: {line}"));
            }
        }
        Code::UNSAFE
    }

    /// Says that somebody took the lease of a node after the report said that nobody had it.
    pub(super) fn taken(&self, refused: &Refused) -> Code {
        let refused = escape(&refused.to_string());
        self.session.terminal.error(&format!(
            "refused: lease: {refused} by now; nothing was deleted"
        ));
        Code::UNSAFE
    }

    /// Says that the server lets the caller have no lease, although the report said nothing of it.
    pub(super) fn not_taken(&self, look: &Look, error: &Error) -> Code {
        let terminal = self.session.terminal;
        let error = escape(&error.to_string());
        terminal.error(&format!(
            "not confirmed: lease-unknown: the node can't be locked meanwhile: {error}; nothing was \
             deleted"
        ));
        let line = self.line(self.session.program, &look.reports, Some("lease-unknown"));
        terminal.hint(format!("to go on without the lock: {line}"));
        Code::UNSAFE
    }

    /// Tells what went by itself before it was deleted.
    pub(super) fn tell_gone(&self, first: &mut First, look: &Look) {
        let there = look.first();
        first.retain(|key, _| {
            let is_there = there.contains_key(key);
            if !is_there && !matches!(self.asked, Asked::Node(_)) {
                let (kind, _, name) = key;
                self.session
                    .terminal
                    .result(format!("{kind}/{name} is gone already"));
            }
            is_there
        });
    }

    /// Tells what became of one.
    pub(super) fn tell(&self, target: &Target, outcome: &Outcome) {
        match self.args.output.format() {
            Format::Text | Format::Wide => {
                let suffix = self.args.write.dry_run.suffix();
                let words = outcome.words();
                self.session
                    .terminal
                    .result(format!("{target} {words}{suffix}"));
            }
            Format::Name => self.session.terminal.data(target),
            Format::Json | Format::Yaml | Format::Token => {}
        }
    }

    /// Leaves the evidence where people look later: on what recreates the pod, else on the node.
    pub(super) async fn leave_events(&self, deleted: &[Deleted]) {
        let mut failed: Option<ApiError> = None;
        for one in deleted {
            if one.outcome == Outcome::WasGone {
                continue;
            }
            let note = self.note(one);
            let caller = self.session.locks.identity();
            let regarding = regarding(one);
            let posted = self
                .reader
                .post_event(&regarding, caller, "ForceDeleted", &note)
                .await;
            if let Err(error) = posted {
                failed.get_or_insert(error);
            }
        }
        if let Some(error) = failed {
            self.session.terminal.warn(format!(
                "no Event keeps the evidence: {}",
                escape(&error.to_string())
            ));
        }
    }

    fn note(&self, one: &Deleted) -> String {
        let target = &one.report.target;
        let caller = escape(self.session.locks.identity());
        let why = self.args.message.as_deref().unwrap_or_default();
        let known: Vec<String> = one
            .report
            .checks
            .iter()
            .filter(|verdict| verdict.level != Level::Ok)
            .map(|verdict| format!("{}: {}", verdict.id, verdict.words))
            .collect();
        format!(
            "{caller} deleted {target} (uid {}) by force: \"{}\". Known then: {}",
            target.uid,
            escape(why),
            escape(&known.join("; "))
        )
    }
}

/// What an Event about it is on: what recreates the pod, else its node.
fn regarding(one: &Deleted) -> ObjectReference {
    let target = &one.report.target;
    let of_node = |name: &str, uid: &str| ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    let Some(facts) = &one.facts else {
        return of_node(&target.name, &target.uid);
    };
    match (&facts.owner, &facts.node) {
        (Owner::Controller { reference, .. }, _) => (**reference).clone(),
        (_, Known::Yes(NodeSight::There(there))) => of_node(&facts.pod.node, &there.uid),
        _ => ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: target.namespace.clone(),
            name: Some(target.name.clone()),
            uid: Some(target.uid.clone()),
            ..ObjectReference::default()
        },
    }
}
