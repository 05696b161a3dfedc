//! What is left of a fenced node: what still has to be removed, and what stays.

use pod_safety::Why;
use pod_safety::fencing::Remains;
use pod_safety::owners::IncompleteOwner;
use pod_safety::words::few;

use crate::text::escape;
use crate::words::hint_command::Program;

/// What is left of a node.
pub(crate) fn left(node: &str, remains: &Remains) -> String {
    format!("node/{node}: waiting for {} to be removed", what(remains))
}

/// How much is left of a node, for a line that is updated.
pub(crate) fn counts(remains: &Remains) -> String {
    let attachments = remains.attachments.value().map_or(0, Vec::len);
    format!(
        "{} and {} left",
        count(remains.pods.len(), "pod"),
        count(attachments, "volume attachment")
    )
}

/// Nothing is left of `node`, as far as known.
pub(crate) fn nothing_left(node: &str) -> String {
    format!("node/{node}: nothing is left to evict or detach")
}

/// An owner that does not have all its pods ready.
pub(crate) fn incomplete(owner: &IncompleteOwner) -> String {
    let IncompleteOwner {
        namespace,
        kind,
        name,
        ready,
        replicas,
    } = owner;
    escape(&format!(
        "{kind}/{name}: {ready} of {replicas} ready (namespace {namespace})"
    ))
}

/// Nobody waits any longer until nothing is left of `node`.
pub(crate) fn stays_fenced(node: &str, program: &Program) -> String {
    format!(
        "node/{node} stays fenced; see what is left with `{}`",
        program.run(format_args!("status --pods {node}"))
    )
}

/// `unfence` was interrupted after its hook.
pub(crate) fn undone_but_fenced(node: &str, program: &Program) -> String {
    format!(
        "the hook succeeded, but node/{node} stays fenced; when it is back, run `{}`",
        program.run(format_args!("unfence {node}"))
    )
}

/// `unfence` was interrupted before it changed something.
pub(crate) fn unchanged(node: &str, is_fenced: bool) -> String {
    let state = if is_fenced { "fenced" } else { "on hold" };
    format!("node/{node} stays {state}")
}

/// It is unknown whether the kubelet of `node` is alive again.
pub(crate) fn kubelet_state_unknown(node: &str, why: &str) -> String {
    format!(
        "unknown whether node/{node} is alive again: {}",
        escape(why)
    )
}

/// What is left of `node` at the end of a wait, and how to find out more.
pub(crate) fn remaining_pods(
    node: &str,
    remains: &Remains,
    tried_once: bool,
    program: &Program,
) -> (String, String) {
    let hint = format!(
        "{}; see what is left with `{}`",
        keep_waiting(tried_once, program),
        program.run(format_args!("status --pods {node}"))
    );
    (remaining(node, remains), hint)
}

/// How to keep waiting for the fenced node.
fn keep_waiting(tried_once: bool, program: &Program) -> String {
    let note = match program.has_hook() {
        true => " (the hook does not run again)",
        false => "",
    };
    let to_wait = match tried_once {
        true => "to wait, run the command again without --timeout=0",
        false => "to keep waiting, run the command again",
    };
    format!("{to_wait}{note}")
}

fn remaining(node: &str, remains: &Remains) -> String {
    let finalized = match &remains.finalized[..] {
        [] => String::new(),
        pods => format!("; held by finalizers: {}", list(pods)),
    };
    format!(
        "node/{node} is fenced, but not empty: {}{finalized}",
        what(remains)
    )
}

/// Which pods stay on `node`.
pub(crate) fn tolerating(node: &str, remains: &Remains) -> String {
    format!(
        "pods that stay on node/{node} (static, or tolerating the taint): {}",
        list(&remains.tolerating)
    )
}

/// Why it is unknown which volumes of `node` will be detached.
pub(crate) fn unread_volumes(node: &str, why: &Why) -> String {
    format!(
        "node/{node} is fenced, but it is unknown which volumes will be detached: {}; waiting only for its pods",
        escape(&why.to_string())
    )
}

fn what(remains: &Remains) -> String {
    let none = Vec::new();
    let attachments = remains.attachments.value().unwrap_or(&none);
    let parts = [(&remains.pods, "pod"), (attachments, "volume attachment")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, noun)| format!("{} ({})", count(names.len(), noun), list(names)))
        .collect();
    parts.join(" and ")
}

pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

pub(super) fn list(names: &[String]) -> String {
    escape(&few(names))
}

#[cfg(test)]
mod tests {
    use pod_safety::Known;

    use super::*;

    #[test]
    fn remaining_objects_are_counted_and_named() {
        let names = |count: usize| (0..count).map(|n| format!("shop/web-{n}")).collect();
        let remains = Remains {
            pods: names(7),
            attachments: Known::Yes(vec!["csi-1".to_owned()]),
            finalized: names(1),
            ..Remains::default()
        };
        assert_eq!(
            left("worker-1", &remains),
            "node/worker-1: waiting for 7 pods (shop/web-0, shop/web-1, shop/web-2, shop/web-3, \
             shop/web-4 and 2 more) and 1 volume attachment (csi-1) to be removed"
        );
        let held = "and 1 volume attachment (csi-1); held by finalizers: shop/web-0";
        assert!(remaining("worker-1", &remains).ends_with(held));
    }
}
