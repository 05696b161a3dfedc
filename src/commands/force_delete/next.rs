//! The line to type next: the same command, with what has to be confirmed.

use pod_safety::consent::flag;
use pod_safety::report::Report;

use super::asked::Asked;
use super::carry_out::Work;
use crate::text::for_shell;
use crate::words::command_line::NO_REASON;
use crate::words::program::Program;

impl Work<'_> {
    /// The command as it was typed, as `program` is run, that gives up what `reports` show, and `also`
    /// this. It names the pods that they show, also in place of a selector: one that matches only later
    /// was never looked at.
    pub(super) fn line(
        &self,
        program: &Program,
        reports: &[Report],
        also: Option<&'static str>,
    ) -> String {
        let asked = match self.asked {
            Asked::Node(node) => Asked::Node(node.clone()),
            Asked::Pods(_) | Asked::Labelled(_) => {
                let names = reports.iter().map(|report| report.target.name.clone());
                Asked::Pods(names.collect())
            }
        };
        let because = match &self.args.message {
            Some(message) => for_shell(message),
            None => format!("\"{NO_REASON}\""),
        };
        format!(
            "{program} force-delete {}{} {} -m {because}",
            asked.typed(self.namespace()),
            program.asked().rest(),
            flag(reports, also.into_iter().chain(self.args.overridden())),
        )
    }
}
