//! The parts of a report on the risks of a deletion.

use std::collections::BTreeSet;

use pod_safety::checks::Level;
use pod_safety::report::{DeletionTarget, Report};
use pod_safety::words::few;

use crate::text::escape;
use crate::words::fencing::count;

/// The subject of a finding about all pods of a report.
pub(crate) const ALL_PODS: &str = "all pods";

/// What the reports are about.
pub(crate) fn heading(reports: &[Report]) -> String {
    let targets = || reports.iter().map(|report| &report.target);
    let text = match reports {
        [one] => single(&one.target),
        [first, pods @ ..] if first.target.kind == "node" => {
            format!("{} with {}", first.target, count(pods.len(), "pod"))
        }
        _ => {
            let namespaces: BTreeSet<&str> = targets()
                .filter_map(|one| one.namespace.as_deref())
                .collect();
            let nodes: BTreeSet<&str> = targets().filter_map(DeletionTarget::node).collect();
            let nodes: Vec<String> = nodes.iter().map(|node| format!("node/{node}")).collect();
            let on = match &nodes[..] {
                [] => String::new(),
                nodes => format!(" on {}", few(nodes)),
            };
            let namespaces: Vec<String> = namespaces.into_iter().map(ToOwned::to_owned).collect();
            let count = count(reports.len(), "pod");
            format!("{count} in namespace {}{on}", namespaces.join(", "))
        }
    };
    escape(&text)
}

fn single(target: &DeletionTarget) -> String {
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
    format!("{target}{namespace}{node}")
}

/// The word for how bad a finding is.
pub(crate) fn level(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Info => "info",
        Level::Unread | Level::Risk => "RISK",
        Level::Blocker => "BLOCKER",
    }
}

/// How to go on despite the blocker with this id.
pub(crate) fn blocker_hint(id: &str, is_final: bool, is_overridden: bool) -> String {
    match is_overridden {
        _ if is_final => "cannot be overridden".to_owned(),
        true => "overridden".to_owned(),
        false => format!("--override={id}"),
    }
}

/// The end of a list of which this many are not shown.
pub(crate) fn and_more(hidden: usize) -> String {
    format!("and {hidden} more")
}

/// How many checks found nothing.
pub(crate) fn checks_ok(checks: usize) -> String {
    format!("{} ok", count(checks, "check"))
}
