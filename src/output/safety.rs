//! Reports on the risks of a deletion, for people.

use std::collections::BTreeSet;

use crate::layout::table::with_words;
use pod_safety::checks::{Level, OF_NODE, UNREAD, Verdict};
use pod_safety::report::{DeletionTarget, Report};
use pod_safety::words::few;

use crate::text::escape;
use crate::words::fencing::count;
use crate::words::force_deletion::{ALL_PODS, and_more, blocker_hint, checks_ok, heading, level};

/// How many findings that could not be read are listed.
const MOST_UNREAD: usize = 8;

/// How much of each report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Each finding once, with the number of pods that it is about; of checks that are ok only their number.
    Brief,
    /// The same, without checks that are ok.
    Problems,
    /// Each finding of each report.
    All,
}

/// A finding, as a line shows it.
struct Line<'a> {
    id: &'static str,
    level: Level,
    is_final: bool,
    words: Vec<&'a str>,
    names: Vec<String>,
    /// The targets that it is about.
    of: Vec<&'a DeletionTarget>,
}

/// Lines of the reports, the worst first, of at most `columns`. The caller overrides the blockers with the ids
/// in `overridden`.
pub(crate) fn text(
    reports: &[Report],
    detail: Detail,
    overridden: &[String],
    columns: Option<usize>,
) -> String {
    if detail == Detail::All {
        let reports = reports.iter();
        let parts =
            reports.map(|report| one(std::slice::from_ref(report), detail, overridden, columns));
        return parts.collect::<Vec<_>>().join("\n");
    }
    one(reports, detail, overridden, columns)
}

fn one(
    reports: &[Report],
    detail: Detail,
    overridden: &[String],
    columns: Option<usize>,
) -> String {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for report in reports {
        for verdict in &report.checks {
            add(&mut lines, &report.target, verdict, detail);
        }
    }
    // Stable: findings of one level stay in the order of the checks.
    lines.sort_by_key(|line| std::cmp::Reverse(line.level));
    let problems: BTreeSet<&str> = lines.iter().map(|line| line.id).collect();
    let checks = reports.iter().flat_map(|report| &report.checks);
    let fine: BTreeSet<&str> = checks
        .filter(|verdict| verdict.level == Level::Ok && !problems.contains(verdict.id))
        .map(|verdict| verdict.id)
        .collect();
    let rows = lines.iter().map(|line| {
        let is_overridden = overridden.iter().any(|id| id == line.id);
        let cells = vec![format!("  {}", level(line.level)), line.id.to_owned()];
        (cells, line.words(reports, is_overridden))
    });
    let mut text = vec![heading(reports)];
    if !lines.is_empty() {
        text.push(with_words(rows, &[9], "  ", columns));
    }
    if detail == Detail::Brief && !fine.is_empty() {
        text.push(format!("  {}", checks_ok(fine.len())));
    }
    text.join("\n")
}

/// Adds a finding to the lines: to the one that says the same of other targets, if there is one.
fn add<'a>(
    lines: &mut Vec<Line<'a>>,
    target: &'a DeletionTarget,
    verdict: &'a Verdict,
    detail: Detail,
) {
    let folds = detail != Detail::All;
    if verdict.level == Level::Ok && folds {
        return;
    }
    let is_unread = verdict.level == Level::Unread && folds;
    let id = if is_unread { UNREAD } else { verdict.id };
    let same = lines.iter().position(|line| {
        folds
            && (line.id, line.level) == (id, verdict.level)
            && (is_unread || line.words == [&*verdict.words])
    });
    let index = same.unwrap_or(lines.len());
    if same.is_none() {
        lines.push(Line {
            id,
            level: verdict.level,
            is_final: verdict.is_final,
            words: Vec::new(),
            names: Vec::new(),
            of: Vec::new(),
        });
    }
    let line = &mut lines[index];
    if !line.words.contains(&&*verdict.words) {
        line.words.push(&verdict.words);
    }
    for name in &verdict.names {
        if !line.names.contains(name) {
            line.names.push(name.clone());
        }
    }
    if line.of.last().is_none_or(|last| *last != target) {
        line.of.push(target);
    }
}

impl Line<'_> {
    fn words(&self, reports: &[Report], is_overridden: bool) -> String {
        let hidden = self.words.len().saturating_sub(MOST_UNREAD);
        let mut words = self.words[..self.words.len() - hidden].join("; ");
        if hidden > 0 {
            words = format!("{words}; {}", and_more(hidden));
        }
        if !self.names.is_empty() {
            words = format!("{words}: {}", few(&self.names));
        }
        let blocker_hint = match self.level {
            Level::Blocker => format!(" ({})", blocker_hint(self.id, self.is_final, is_overridden)),
            _ => String::new(),
        };
        escape(&format!("{}{words}{blocker_hint}", self.subject(reports)))
    }

    /// What the finding is about, if the reports are about more.
    fn subject(&self, reports: &[Report]) -> String {
        let [first, _, ..] = reports else {
            return String::new();
        };
        if self.of.iter().any(|target| target.kind == "node") {
            return String::new();
        }
        let is_of_node = OF_NODE.contains(&self.id);
        let pods = reports.len() - usize::from(first.target.kind == "node");
        let nodes: BTreeSet<&str> = reports
            .iter()
            .filter_map(|report| report.target.node())
            .collect();
        let own: BTreeSet<&str> = self.of.iter().filter_map(|target| target.node()).collect();
        match &self.of[..] {
            _ if is_of_node && nodes.len() == own.len() => String::new(),
            _ if is_of_node => {
                let own: Vec<String> = own.iter().map(|node| format!("node/{node}")).collect();
                format!("{}: ", few(&own))
            }
            [pod] => format!("{pod}: "),
            of if of.len() == pods => format!("{ALL_PODS}: "),
            of => format!("{}: ", count(of.len(), "pod")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(id: &'static str, level: Level, words: &str, names: &[&str]) -> Verdict {
        Verdict {
            id,
            level,
            words: words.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            is_final: false,
        }
    }

    fn pod(number: usize) -> Report {
        let target = DeletionTarget {
            kind: "pod",
            namespace: Some("shop".to_owned()),
            name: format!("web-{number}"),
            uid: format!("u-{number}"),
            resource_version: "7".to_owned(),
            node: Some("worker-1".to_owned()),
        };
        let set = format!("StatefulSet/s-{}", number / 10);
        Report {
            target,
            checks: vec![
                verdict("target", Level::Ok, &format!("uid u-{number}"), &[]),
                verdict("node-unreachable", Level::Info, "it is unreachable", &[]),
                verdict(
                    "lease",
                    Level::Unread,
                    "whether it is locked: no permission",
                    &[],
                ),
                verdict("owner", Level::Risk, "a second pod may start", &[&set]),
                verdict(
                    "pdb",
                    if number == 3 { Level::Info } else { Level::Ok },
                    "bypassed",
                    &[],
                ),
                verdict("in-grace", Level::Blocker, "it has time left", &["9s"]),
            ],
        }
    }

    #[test]
    fn pods_that_lose_the_same_are_one_line_and_the_worst_is_first() {
        let reports: Vec<Report> = (0..110).map(pod).collect();
        assert_eq!(
            text(&reports, Detail::Brief, &[], None),
            "110 pods in namespace shop on node/worker-1\n  \
             BLOCKER  in-grace          all pods: it has time left: 9s (--override=in-grace)\n  \
             RISK     owner             all pods: a second pod may start: StatefulSet/s-0, StatefulSet/s-1, \
             StatefulSet/s-2, StatefulSet/s-3, StatefulSet/s-4 and 6 more\n  \
             RISK     unread            all pods: whether it is locked: no permission\n  \
             info     node-unreachable  it is unreachable\n  \
             info     pdb               pod/web-3: bypassed\n  \
             1 check ok"
        );
        let problems = text(&reports, Detail::Problems, &[], None);
        assert!(!problems.contains(" ok"), "{problems}");
    }

    #[test]
    fn in_full_every_check_of_every_pod_has_its_line() {
        let reports: Vec<Report> = (0..2).map(pod).collect();
        let text = text(&reports, Detail::All, &[], None);
        assert!(
            text.contains("pod/web-1 in namespace shop on node/worker-1"),
            "{text}"
        );
        assert!(
            text.contains("  ok       target            uid u-1"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 14, "{text}");
    }
}
