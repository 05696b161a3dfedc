//! The command to run next: the same command, with what has to be confirmed.

use pod_safety::consent::flags;
use pod_safety::report::Report;

use super::context::Run;
use super::targets::Targets;
use crate::text::for_shell;
use crate::words::hint_command::{NO_REASON, Program};

impl Run<'_> {
    /// The next command, run as `program`, that accepts the risks in `reports` and in `also`. It names
    /// the pods in `reports`, even if a selector was typed: a pod that matches only later was never
    /// checked.
    pub(super) fn line(
        &self,
        program: &Program,
        reports: &[Report],
        also: Option<&'static str>,
    ) -> String {
        let targets = match self.targets {
            Targets::Node(node) => Targets::Node(node.clone()),
            Targets::Pods(_) | Targets::Labeled(_) => {
                let names = reports.iter().map(|report| report.target.name.clone());
                Targets::Pods(names.collect())
            }
        };
        let because = match &self.args.message {
            Some(message) => for_shell(message),
            None => NO_REASON.to_owned(),
        };
        program.run(format_args!(
            "force-delete {}{} {} -m {because}",
            targets.typed(self.namespace()),
            program.dry_run(),
            flags(reports, also, self.args.overridden()),
        ))
    }
}
