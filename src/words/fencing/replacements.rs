//! Whether the pods that a fencing removed run again.

use std::collections::BTreeMap;
use std::time::Duration;

use maintenance_lease::protocol::{Now, Span};
use pod_safety::Removed;
use pod_safety::outcome::Outcome;
use pod_safety::why::Reason;

use super::remains::{count, list};
use crate::text::{escape, for_shell};
use crate::words::hint_command::Program;
use crate::words::time::length;
use crate::words::why::sentence;

/// The command waits until this many pods of `node` run again.
pub(crate) fn awaiting_replacements(node: &str, pods: usize, limit: Duration) -> String {
    let (limit, pods) = (length(Span::from(limit)), count(pods, "pod"));
    format!("node/{node}: waiting up to {limit} for {pods} to run again")
}

/// All pods of `node` that were to come back run again.
pub(crate) fn back(node: &str, pods: usize) -> String {
    format!("node/{node}: {} {} again", count(pods, "pod"), run(pods))
}

/// The node was fenced already, and the command does not know which pods it had then.
pub(crate) fn gone_before(node: &str, program: &Program) -> String {
    format!(
        "node/{node}: not checked whether pods that were removed earlier run again; see `{}`",
        program.run("status --pods")
    )
}

/// Why the pods do not run again yet: a line for each reason.
pub(crate) fn not_back(pods: &[(Removed, Outcome)], now: Now) -> Vec<String> {
    let mut lines: BTreeMap<(bool, String), Vec<String>> = BTreeMap::new();
    for (pod, outcome) in pods {
        if outcome.is_unfinished() {
            let shown = match outcome {
                Outcome::Replaced { replacement, .. } if replacement.name != pod.name => {
                    format!("{} (now {})", name(pod), replacement.name)
                }
                _ => name(pod),
            };
            let line = (is_unseen(outcome), why(outcome, now));
            lines.entry(line).or_default().push(shown);
        }
    }
    let lines = lines.iter();
    lines
        .map(|((is_unseen, why), pods)| match is_unseen {
            true => format!(
                "could not check whether {} {} again: {why}",
                list(pods),
                run(pods.len())
            ),
            false => format!("{} not run again yet: {why}", does(pods)),
        })
        .collect()
}

/// At the end of the wait, some pods of `node` do not run again; and how to find out more.
pub(crate) fn still_not_back(
    node: &str,
    pods: &[(Removed, Outcome)],
    program: &Program,
) -> (String, String) {
    let missing = pods.iter().filter(|(_, outcome)| outcome.is_unfinished());
    let names: Vec<String> = missing.clone().map(|(pod, _)| name(pod)).collect();
    let pods = format!("{} ({})", count(names.len(), "pod"), list(&names));
    let missed = match missing.clone().all(|(_, outcome)| is_unseen(outcome)) {
        true => format!("it is unknown whether {pods} {} again", run(names.len())),
        false if names.len() == 1 => format!("{pods} does not run again yet"),
        false => format!("{pods} do not run again yet"),
    };
    let message = format!("node/{node} is fenced, but {missed}");
    let mut explained = missing.clone().filter_map(|(pod, outcome)| {
        let name = match outcome {
            Outcome::Replaced { replacement, .. } => &replacement.name,
            // The others get a new name, so nothing is known of them yet.
            _ if pod.keeps_name() => &pod.name,
            _ => return None,
        };
        Some((&pod.namespace, name))
    });
    let hint = match (explained.next(), missing.clone().next()) {
        (Some((namespace, name)), _) => {
            let (name, namespace) = (for_shell(name), for_shell(namespace));
            format!(
                "see why with `{}`",
                program.run(format_args!("why pod/{name} -n {namespace}"))
            )
        }
        (None, first) => {
            let namespace = first.map_or("", |(pod, _)| &pod.namespace);
            let namespace = for_shell(namespace);
            format!(
                "see why with `{}`",
                program.kubectl(format_args!(
                    "get events -n {namespace} --field-selector=type=Warning"
                ))
            )
        }
    };
    (message, hint)
}

fn name(pod: &Removed) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

fn run(pods: usize) -> &'static str {
    if pods == 1 { "runs" } else { "run" }
}

/// It could not be read what became of the pod.
fn is_unseen(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unseen { .. })
}

fn does(pods: &[String]) -> String {
    let does = if pods.len() == 1 { "does" } else { "do" };
    format!("{} {does}", list(pods))
}

fn why(outcome: &Outcome, now: Now) -> String {
    let sentences = |reasons: &[Reason]| {
        let all: Vec<String> = reasons.iter().map(|one| sentence(one, now)).collect();
        all.join(" ")
    };
    match outcome {
        Outcome::Unreplaced { reasons } if reasons.is_empty() => {
            "no replacement was created yet".to_owned()
        }
        Outcome::Unreplaced { reasons } => sentences(reasons),
        Outcome::Replaced {
            reasons,
            replacement,
        } if reasons.is_empty() => match &replacement.node {
            Some(node) => format!("it is not Running yet on node/{}", escape(node)),
            None => "it has no node yet".to_owned(),
        },
        Outcome::Replaced { reasons, .. } => sentences(reasons),
        Outcome::Held { finalizers } if finalizers.is_empty() => "it still exists".to_owned(),
        Outcome::Held { finalizers } => format!("held by finalizer {}", list(finalizers)),
        Outcome::Unseen { error } => escape(error),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;

    use super::*;

    #[test]
    fn a_pod_that_still_exists_may_have_no_finalizers() {
        let why = |finalizers: &[&str]| {
            let finalizers = finalizers.iter().map(|&name| name.to_owned()).collect();
            why(
                &Outcome::Held { finalizers },
                Now::at(Instant::from_micros(0)),
            )
        };
        assert_eq!(why(&["x/y"]), "held by finalizer x/y");
        assert_eq!(why(&[]), "it still exists");
    }
}
