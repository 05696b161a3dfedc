//! The note of the Event that keeps the evidence. The server limits it to one kibibyte, and we cut the
//! rest. So the ids of the accepted risks come first, then the reason, and details last.

use std::iter::once;

use maintenance_lease::shortened;
use pod_safety::checks::{Level, Verdict};
use pod_safety::outcome::Outcome;
use pod_safety::report::Report;

use crate::text::escape;

/// The longest caller name in the note, in bytes.
const LONGEST_CALLER: usize = 128;

/// The longest reason in the note, in bytes, to leave room for what follows.
const LONGEST_WHY: usize = 256;

/// What `caller` did to the object of `report`, and why. `along` are the pods that are deleted with a Node.
pub(crate) fn force_deletion(
    caller: &str,
    why: &str,
    report: &Report,
    along: &[Report],
    outcome: &Outcome,
) -> String {
    let (did, result) = match outcome {
        Outcome::Unknown { .. } => ("tried to force-delete", "; the outcome is unknown"),
        Outcome::Marked { .. } => ("marked Failed", "; it was not deleted"),
        _ => ("force-deleted", ""),
    };
    let target = &report.target;
    let (caller, why) = (escape(caller), escape(why));
    let (caller, why) = (
        shortened(&caller, LONGEST_CALLER),
        shortened(&why, LONGEST_WHY),
    );
    let mut note = format!("{caller} {did} {target} (uid {}){result}.", target.uid);
    for (what, ids) in [
        ("Overridden", ids(once(report).chain(along), is_overridden)),
        (
            "Accepted risks",
            ids(once(report).chain(along), Verdict::accepted_as),
        ),
    ] {
        if !ids.is_empty() {
            note.push_str(&format!(" {what}: {}.", ids.join(", ")));
        }
    }
    note.push_str(&format!(" Why: {why}."));
    let pods: Vec<String> = along.iter().filter_map(of_pod).collect();
    if !pods.is_empty() {
        note.push_str(&format!(" Accepted risks of pods: {}.", pods.join("; ")));
    }
    note.push_str(&format!(" Known at that time: {}", known(report, along)));
    note
}

fn is_overridden(verdict: &Verdict) -> Option<&'static str> {
    (verdict.level == Level::Blocker).then_some(verdict.id)
}

/// The ids of such verdicts, without duplicates.
fn ids<'a>(
    reports: impl IntoIterator<Item = &'a Report>,
    id: fn(&Verdict) -> Option<&'static str>,
) -> Vec<&'static str> {
    let mut ids = Vec::new();
    for id in reports
        .into_iter()
        .flat_map(|report| &report.checks)
        .filter_map(id)
    {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// A pod that is deleted with the Node, with the risks accepted for it; `None` if there are none.
fn of_pod(report: &Report) -> Option<String> {
    let ids = report.to_accept();
    let target = &report.target;
    let namespace = target.namespace.as_deref().unwrap_or_default();
    (!ids.is_empty()).then(|| format!("{namespace}/{} ({})", target.name, ids.join(", ")))
}

/// The findings against the deletion, the worst first.
fn known(report: &Report, along: &[Report]) -> String {
    let own = report.checks.iter().map(|verdict| (verdict, None));
    let of_pods = along.iter().flat_map(|report| {
        let name = &report.target.name;
        report
            .checks
            .iter()
            .map(move |verdict| (verdict, Some(name)))
    });
    let mut known: Vec<(&Verdict, Option<&String>)> = own
        .chain(of_pods)
        .filter(|(verdict, _)| verdict.level != Level::Ok)
        .collect();
    known.sort_by_key(|(verdict, _)| std::cmp::Reverse(verdict.level));
    let known: Vec<String> = known
        .into_iter()
        .map(|(verdict, pod)| {
            let words = escape(&verdict.to_string());
            match pod {
                Some(pod) => format!("{} of {pod}: {words}", verdict.id),
                None => format!("{}: {words}", verdict.id),
            }
        })
        .collect();
    match &known[..] {
        [] => "no warnings".to_owned(),
        known => known.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use pod_safety::report::DeletionTarget;

    use super::*;

    fn report(kind: &'static str, name: &str, verdicts: &[(&'static str, Level)]) -> Report {
        Report {
            target: DeletionTarget {
                kind,
                namespace: (kind == "pod").then(|| "shop".to_owned()),
                name: name.to_owned(),
                uid: "u-1".to_owned(),
                resource_version: "7".to_owned(),
                node: None,
            },
            checks: verdicts
                .iter()
                .map(|&(id, level)| Verdict {
                    id,
                    level,
                    words: format!("so it is with {id}"),
                    names: Vec::new(),
                    is_final: false,
                })
                .collect(),
        }
    }

    #[test]
    fn the_worst_comes_first_and_ids_before_words() {
        let report = report(
            "pod",
            "web-0",
            &[
                ("target", Level::Ok),
                ("node-unreachable", Level::Info),
                ("lease", Level::Unread),
                ("owner", Level::Risk),
                ("in-grace", Level::Blocker),
            ],
        );
        assert_eq!(
            force_deletion(
                "alice@bastion",
                "unplugged",
                &report,
                &[],
                &Outcome::Deleted
            ),
            "alice@bastion force-deleted pod/web-0 (uid u-1). Overridden: in-grace. \
             Accepted risks: unread, owner. Why: unplugged. Known at that time: \
             in-grace: so it is with in-grace; owner: so it is with owner; \
             lease: so it is with lease; node-unreachable: so it is with node-unreachable"
        );
    }

    #[test]
    fn of_a_node_each_pod_is_named_on_which_something_is_accepted() {
        let node = report("node", "worker-1", &[("node-unreachable", Level::Info)]);
        let pods = vec![
            report("pod", "db-0", &[("owner", Level::Risk)]),
            report("pod", "web-1", &[("owner", Level::Ok)]),
            report("pod", "alone", &[("no-owner", Level::Risk)]),
        ];
        assert_eq!(
            force_deletion("alice@bastion", "scrapped", &node, &pods, &Outcome::Deleted),
            "alice@bastion force-deleted node/worker-1 (uid u-1). Accepted risks: owner, no-owner. \
             Why: scrapped. Accepted risks of pods: shop/db-0 (owner); shop/alone (no-owner). \
             Known at that time: \
             owner of db-0: so it is with owner; no-owner of alone: so it is with no-owner; \
             node-unreachable: so it is with node-unreachable"
        );
    }

    #[test]
    fn a_long_reason_leaves_room_for_the_accepted_risks() {
        let report = report("pod", "web-0", &[("owner", Level::Risk)]);
        let note = force_deletion(
            &"a".repeat(900),
            &"w".repeat(1024),
            &report,
            &[],
            &Outcome::Deleted,
        );
        let risks = note.find(" Accepted risks: owner.").expect("the risks");
        assert!(risks < 300, "{note}");
        let words = note.find("so it is with owner").expect("the reason");
        assert!(words < 600, "{note}");
        assert!(note.contains("w…. Known at that time"), "{note}");
    }

    #[test]
    fn a_write_without_an_answer_is_not_reported_as_done() {
        let report = report("pod", "web-0", &[]);
        let outcome = Outcome::Unknown {
            error: Some("no answer within 10s".to_owned()),
        };
        let note = force_deletion("alice@bastion", "why", &report, &[], &outcome);
        let reported =
            "alice@bastion tried to force-delete pod/web-0 (uid u-1); the outcome is unknown.";
        assert!(note.starts_with(reported), "{note}");
    }
}
