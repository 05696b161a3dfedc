//! What `force-delete` prints: its findings, the risks that are not accepted, and the outcomes.

mod outcome;
mod questions;
mod report;

use std::collections::BTreeSet;
use std::time::Duration;

use maintenance_lease::protocol::Span;
use pod_safety::checks::{IN_GRACE, LEASE, NODE_ALIVE, NOT_DELETING, REMEDIATION, RIGHTS, UNREAD};
use pod_safety::consent::Missing;
use pod_safety::report::DeletionTarget;

pub(crate) use self::outcome::{no_answer, outcome};
pub(crate) use self::questions::{REASON, accept, delete_pods, type_name};
pub(crate) use self::report::{ALL_PODS, and_more, blocker_hint, checks_ok, heading, level};
use super::fencing::count;
use super::hint_command::Program;
use super::holder_name::behind;
use super::time::length;
use super::with::listed;
use crate::text::{escape, for_shell};

/// What was not accepted.
pub(crate) fn not_accepted(missing: &Missing) -> String {
    match (&missing.blocked[..], &missing.unaccepted[..]) {
        ([], []) => "not confirmed".to_owned(),
        ([], ids) => format!("risks not accepted: {}", ids.join(", ")),
        (ids, _) => format!("refused: {}", ids.join(", ")),
    }
}

/// The command ends because of what is `missing`, after it `deleted` this many targets.
pub(crate) fn refused(missing: &Missing, deleted: usize) -> String {
    let nothing = nothing_deleted(deleted);
    match (&missing.blocked[..], &missing.unaccepted[..]) {
        ([], []) => format!("{nothing}: this was only the report"),
        _ => format!("{}; {nothing}", not_accepted(missing)),
    }
}

fn nothing_deleted(deleted: usize) -> &'static str {
    match deleted {
        0 => "nothing was deleted",
        _ => "nothing more was deleted",
    }
}

/// How to go on if only the risks in `missing` have to be accepted.
pub(crate) fn to_delete(missing: &Missing, line: &str) -> String {
    match &missing.unaccepted[..] {
        [] => format!("no risks found; to delete: `{line}`"),
        _ => format!("to accept these risks and delete: `{line}`"),
    }
}

/// How to go on after something that must be done first.
pub(crate) fn after(first: &str, line: &str) -> String {
    format!("{first}; then: `{line}`")
}

/// What to do about the first of the blockers with these ids; `None` if one of them is final. `holder` is another holder of
/// a lock, if there is one. `undeleted` are the namespaces and names of pods that were not deleted yet.
pub(crate) fn first_step(
    blocked: &[&str],
    holder: Option<&str>,
    undeleted: &[(&str, &str)],
    program: &Program,
) -> Option<String> {
    let step = |id: &&str| step(id, holder, undeleted, program);
    let steps: Option<Vec<String>> = blocked.iter().map(step).collect();
    steps?.into_iter().next()
}

/// With more pods, the command that deletes them is too long to read.
const MOST_PODS: usize = 10;

/// How to delete these pods in the usual way, by namespace and name.
fn delete(pods: &[(&str, &str)], program: &Program) -> String {
    let (namespace, names) = match pods {
        [(first, _), ..] if pods.len() <= MOST_PODS && pods.iter().all(|(it, _)| it == first) => {
            let names: Vec<String> = pods.iter().map(|(_, name)| for_shell(name)).collect();
            (for_shell(first), names.join(" "))
        }
        _ => ("NAMESPACE".to_owned(), "POD...".to_owned()),
    };
    let command = program.kubectl(format_args!(
        "delete pod {names} -n {namespace} --wait=false"
    ));
    format!("run `{command}` and wait until the grace period ends")
}

fn step(
    blocker: &str,
    holder: Option<&str>,
    undeleted: &[(&str, &str)],
    program: &Program,
) -> Option<String> {
    Some(match blocker {
        NOT_DELETING => delete(undeleted, program),
        IN_GRACE => "wait until the grace period ends".to_owned(),
        NODE_ALIVE => "let the kubelet end the pods".to_owned(),
        LEASE => match holder {
            Some(holder) => format!("ask {} to release the lock", behind(holder)),
            None => "renew your lock".to_owned(),
        },
        REMEDIATION => "let the repair finish".to_owned(),
        RIGHTS => "ask an administrator for the permissions above".to_owned(),
        _ => return None,
    })
}

/// How to go on under the lock of the `with` that runs this.
pub(crate) fn inside_with(line: &str) -> String {
    format!("this runs inside `with`, which has the lock; act as its holder: `{line}`")
}

/// Another way, for nodes that can be fenced; `None` without any.
pub(crate) fn fence_instead(nodes: &BTreeSet<&str>, program: &Program) -> Option<String> {
    let node = match nodes.len() {
        1 => nodes.first()?,
        _ => "NODE",
    };
    let nodes: Vec<&&str> = nodes.iter().collect();
    (!nodes.is_empty()).then(|| {
        format!(
            "safer, if you can power off or isolate {}: `{}`",
            listed(&nodes),
            program.run(format_args!("fence {node} -- HOOK"))
        )
    })
}

/// There is more to accept than the report showed.
pub(crate) fn changed(target: &DeletionTarget) -> String {
    format!("{target} changed after the check:")
}

/// The same if there is nothing new to accept, and what to do.
pub(crate) fn stopped(target: &DeletionTarget, deleted: usize, line: &str) -> (String, String) {
    let nothing = nothing_deleted(deleted);
    (
        format!("{target} changed after the check; {nothing}"),
        format!("to check again and delete: `{line}`"),
    )
}

/// Somebody acquired the lock of a node after the report showed it as free.
pub(crate) fn taken(why: &str) -> String {
    format!("refused: lease: {why}; {}", nothing_deleted(0))
}

/// The caller's own lock of `node` has ended since the report.
pub(crate) fn own_ended(node: &str, deleted: usize) -> String {
    let nothing = nothing_deleted(deleted);
    format!("refused: lease: you no longer have the lock on node/{node}; {nothing}")
}

/// The nodes can't be locked, for the reason in `failure`.
pub(crate) fn not_locked(failure: &str) -> String {
    format!("{failure}; {}", nothing_deleted(0))
}

/// The server refuses the caller a lock, although the report did not mention it; and what to do.
pub(crate) fn lock_refused(error: &maintenance_lease::Error, line: &str) -> (String, String) {
    let error = escape(&error.to_string());
    let nothing = nothing_deleted(0);
    (
        format!("could not lock the node: {error}; {nothing}"),
        format!("to accept the risk `{UNREAD}` and delete without the lock: `{line}`"),
    )
}

/// The deletion goes on without the lock, as the caller accepted.
pub(crate) fn unlocked(node: &str, error: &maintenance_lease::Error) -> String {
    let error = escape(&error.to_string());
    format!("node/{node} is not locked during the deletion: {error}")
}

/// These nodes are locked for the deletion.
pub(crate) fn locked(nodes: &[&str], caller: &str) -> String {
    let (nodes, caller) = (listed(nodes), escape(caller));
    format!("{nodes} locked by {caller} during the deletion")
}

/// The lock of `node` was not released, or maybe not. It expires after `duration`.
pub(crate) fn not_released(
    node: &str,
    may_be_released: bool,
    why: &str,
    duration: Duration,
) -> String {
    let what = match may_be_released {
        true => format!("unknown whether the lock on node/{node} was released"),
        false => format!("could not release the lock on node/{node}"),
    };
    let (why, seconds) = (escape(why), duration.as_secs());
    format!("{what}: {why}; it expires within {seconds}s")
}

/// These targets were not deleted, because the command ended before.
pub(crate) fn not_deleted(targets: &[String]) -> String {
    format!("not deleted: {}", targets.join(", "))
}

/// Why a target without a problem was not deleted.
pub(crate) const OTHER_FAILED: &str = "not deleted, because of another target";

/// Shown while the command waits until the pods are gone.
pub(crate) const WAITING_FOR_PODS: &str = "waiting for pods to be gone";

/// The command waits until `target` is gone, or until these many `pods` of a deleted Node are gone.
pub(crate) fn waiting_until_gone(target: &DeletionTarget, pods: usize, limit: Duration) -> String {
    let limit = length(Span::from(limit));
    match target.kind {
        "node" => {
            let pods = count(pods, "pod");
            format!("{target}: waiting up to {limit} for {pods} to be deleted")
        }
        _ => format!("{target}: waiting up to {limit} until its Job has counted it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_named_for_the_first_blocker() {
        let program = Program::default();
        let step = |id| first_step(&[id, "lease"], None, &[], &program);
        assert_eq!(
            step("in-grace").as_deref(),
            Some("wait until the grace period ends")
        );
        assert_eq!(
            step("node-alive").as_deref(),
            Some("let the kubelet end the pods")
        );
        assert_eq!(step("lease").as_deref(), Some("renew your lock"));
        assert!(step("rights").is_some_and(|step| step.starts_with("ask an administrator")));
        assert_eq!(step("mirror"), None);
    }
}
