//! The line to type next: the same command, with what has to be confirmed.

use pod_safety::consent::flag;
use pod_safety::report::Report;

use super::asked::Asked;
use super::carry_out::Work;
use crate::cli::program::Program;
use crate::cli::typed::for_shell;

impl Work<'_> {
    /// The command as it was typed, as `program` is run, that gives up what `reports` show, and `also`
    /// this. Of several pods it names those that are still there.
    pub(super) fn line(
        &self,
        program: &Program,
        reports: &[Report],
        also: Option<&'static str>,
    ) -> String {
        let asked = match self.asked {
            Asked::Pods(_) => {
                let names = reports.iter().map(|report| report.target.name.clone());
                Asked::Pods(names.collect())
            }
            other => other.clone(),
        };
        let overrides: String = self
            .args
            .overrides
            .iter()
            .map(|id| format!(" --override={id}"))
            .collect();
        let because = match &self.args.message {
            Some(message) => for_shell(message),
            None => "\"WHY\"".to_owned(),
        };
        format!(
            "{program} force-delete {}{} {}{overrides} -m {because}",
            asked.typed(self.namespace()),
            program.asked().rest(),
            flag(reports, also),
        )
    }
}
