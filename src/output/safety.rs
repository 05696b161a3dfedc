//! Reports on the risks of a deletion, for people.

use pod_safety::checks::{Level, Verdict};
use pod_safety::report::{Report, Target};

use super::grid::hanging;
use crate::text::escape;

/// Which findings of the reports are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// All of them.
    All,
    /// All findings of the first report; of the others, those that are not ok.
    Brief,
    /// Findings that are not ok, and only reports that have any.
    NotOk,
}

impl Lines {
    fn shows(self, verdict: &Verdict, index: usize) -> bool {
        match self {
            Self::All => true,
            Self::Brief => index == 0 || verdict.level != Level::Ok,
            Self::NotOk => verdict.level != Level::Ok,
        }
    }
}

/// Lines of the reports, of at most `columns`.
pub(crate) fn text(reports: &[Report], shown: Lines, columns: Option<usize>) -> String {
    let width = reports
        .iter()
        .flat_map(|report| &report.checks)
        .map(|verdict| verdict.id.len())
        .max();
    let mut lines = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let checks = report.checks.iter();
        let checks = checks.filter(|verdict| shown.shows(verdict, index));
        let checks: Vec<String> = checks
            .map(|verdict| line(verdict, width.unwrap_or(0), columns))
            .collect();
        if checks.is_empty() && shown == Lines::NotOk {
            continue;
        }
        lines.push(heading(&report.target));
        if checks.is_empty() {
            lines.push("  ok".to_owned());
        }
        lines.extend(checks);
    }
    lines.join("\n")
}

fn heading(target: &Target) -> String {
    let namespace = target
        .namespace
        .as_ref()
        .map(|namespace| format!(" in namespace {namespace}"))
        .unwrap_or_default();
    let node = match (target.kind, &target.node) {
        (_, Some(node)) => format!(" on node/{node}"),
        ("pod", None) => ", which has no node".to_owned(),
        _ => String::new(),
    };
    escape(&format!("{target}{namespace}{node}"))
}

fn line(verdict: &Verdict, width: usize, columns: Option<usize>) -> String {
    let level = match verdict.level {
        Level::Ok => "ok",
        Level::Warn => "WARN",
        Level::Unknown => "UNKNOWN",
        Level::Confirm => "CONFIRM",
        Level::Refuse => "REFUSE",
    };
    let way_out = match verdict.level {
        Level::Refuse if verdict.is_final => " (cannot be accepted)".to_owned(),
        Level::Refuse => format!(" (--accept-risk={})", verdict.id),
        _ => String::new(),
    };
    let (id, words) = (verdict.id, escape(&verdict.words));
    hanging(
        &format!("  {level:<7}  {id:<width$}  "),
        &format!("{words}{way_out}"),
        columns,
    )
}
