//! On a terminal: a question for each kind of risk, the name of a whole node, and the reason.

use pod_safety::consent::Missing;
use pod_safety::report::Report;

use super::args::ForceDeleteArgs;
use super::context::Run;
use super::targets::Targets;
use crate::args::write::reason;
use crate::error::Failure;
use crate::text::escape;
use crate::ui::Terminal;
use crate::words::force_deletion::{self as words, REASON};

impl Run<'_> {
    /// Asks for what is `missing`, after the report was shown. Returns the arguments with the answers; `None` if nobody
    /// can answer, or if one answer is no.
    ///
    /// # Errors
    /// If it was interrupted, or if the terminal is gone.
    pub(super) async fn questions(
        &self,
        reports: &[Report],
        missing: &Missing,
    ) -> Result<Option<ForceDeleteArgs>, Failure> {
        let is_shown = self.args.output.format().is_for_people();
        let is_dry_run = self.args.write.is_dry_run();
        if !missing.blocked.is_empty() || is_dry_run || !is_shown || !Terminal::can_ask() {
            return Ok(None);
        }
        match self.answers(reports, missing).await {
            Ok(message) => Ok(Some(self.args.with_answers(&missing.unaccepted, message))),
            Err(Failure::Declined) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Asks, and returns the reason.
    ///
    /// # Errors
    /// If an answer is no, if it was interrupted, or if the terminal is gone.
    async fn answers(&self, reports: &[Report], missing: &Missing) -> Result<String, Failure> {
        let terminal = self.session.terminal;
        for &id in &missing.unaccepted {
            let facts = facts(reports, id);
            terminal.confirm(&facts, &words::accept(id), false).await?;
        }
        match self.targets {
            Targets::Node(node) => {
                let question = words::type_name(node);
                terminal.confirm_name(&[], &question, node).await?;
            }
            Targets::Pods(_) | Targets::Labeled(_) if missing.unaccepted.is_empty() => {
                let question = words::delete_pods(reports.len());
                terminal.confirm(&[], &question, false).await?;
            }
            Targets::Pods(_) | Targets::Labeled(_) => {}
        }
        if let Some(message) = &self.args.message {
            return Ok(message.clone());
        }
        let typed = terminal.line(REASON).await?;
        match reason(&typed) {
            Ok(message) if !message.is_empty() => Ok(message),
            _ => Err(Failure::Declined),
        }
    }
}

/// What was found, for the risk with this id: each sentence once.
fn facts(reports: &[Report], id: &str) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    let verdicts = reports.iter().flat_map(|report| &report.checks);
    for verdict in verdicts.filter(|verdict| verdict.accepted_as() == Some(id)) {
        let fact = format!("  {}", escape(&verdict.words));
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}
