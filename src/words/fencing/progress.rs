//! Messages during a fencing: what was done, and on which proof.

use std::time::Duration;

use maintenance_lease::protocol::Span;
use pod_safety::Why;
use pod_safety::fencing::Record;
use pod_safety::fencing::steps::Unread;
use pod_safety::node_health::Heartbeat;

use super::machine::state;
use crate::text::escape;
use crate::words::hint_command::Program;
use crate::words::time::length;

/// A fenced node and its proof, in one line.
pub(crate) fn fenced(node: &str, record: &Record, already: bool) -> String {
    let (who, how) = (escape(&record.who), escape(&record.how.to_string()));
    match already {
        true => format!(
            "node/{node} is already fenced by {who}, {how} (since {})",
            escape(&record.when)
        ),
        false => format!("node/{node} fenced by {who}, {how}"),
    }
}

/// The record of an earlier fencing of `node` does not count, and will be replaced.
pub(crate) fn replaced(node: &str, record: &Record) -> String {
    format!(
        "{}, but since then it may have been restarted, or its taint was removed; fencing it again replaces that record",
        was_fenced(node, record)
    )
}

/// The annotation of `node` with this text is no record of a fencing that this release can read, and will be replaced.
pub(crate) fn unreadable_replaced(node: &str, text: &str) -> String {
    format!(
        "node/{node} has an unreadable record of a fencing, perhaps of a later release; fencing it replaces that record: {}",
        escape(text)
    )
}

/// How a node was fenced, for the operator who undoes it.
pub(crate) fn was_fenced(node: &str, record: &Record) -> String {
    format!("node/{node} was fenced {}", record_line(record))
}

/// Who fenced a node, when, how and why.
pub(crate) fn record_line(record: &Record) -> String {
    let (who, how) = (escape(&record.who), escape(&record.how.to_string()));
    let when = escape(&record.when);
    let why = record.why.as_deref();
    let why = why.map_or_else(String::new, |why| format!(": \"{}\"", escape(why)));
    format!("by {who} at {when}, {how}{why}")
}

/// The lease under which `node` is fenced ends by itself.
pub(crate) fn lease_ends(node: &str, program: &Program) -> String {
    format!(
        "your lock on node/{node} ends by itself, and the fenced node is then unlocked; to keep it locked, run `{}`",
        program.run(format_args!("hold {node} -m WHY"))
    )
}

/// The heartbeat of `node` is watched, to tell a kubelet with a wrong clock from one that is gone.
pub(crate) fn watching(node: &str, heartbeat: Heartbeat) -> String {
    let limit = length(Span::from(heartbeat.watch_time()));
    format!("node/{node}: watching its heartbeat for up to {limit}: its clock may be wrong")
}

/// The hook of a dry run.
pub(crate) fn dry_run_hook(hook: &str) -> String {
    format!("would run on this machine: {hook}")
}

/// `node` is in service again.
pub(crate) fn unfenced(node: &str) -> String {
    format!("node/{node} unfenced")
}

/// There is nothing to undo.
pub(crate) fn not_fenced(node: &str) -> String {
    format!("node/{node} is not fenced")
}

/// `node` is unreachable, but its heartbeat is inconclusive.
pub(crate) fn odd_clock(node: &str, why: &Why) -> String {
    format!(
        "node/{node} is unreachable, but {}",
        escape(&why.to_string())
    )
}

/// What could not be read of `node`, and why.
pub(crate) fn not_known(node: &str, unread: &Unread) -> String {
    let what = match unread {
        Unread::Zone(_) => "how many other nodes are unreachable".to_owned(),
        Unread::Remediation(_) => format!("whether another tool is repairing {node}"),
    };
    format!("unknown {what}: {}", escape(&unread.why().to_string()))
}

/// After its hook, waits for a suspect to stop reporting, for at most `limit`.
pub(crate) fn waits_for_reports_to_stop(node: &str, limit: Duration) -> String {
    let limit = length(Span::from(limit));
    format!(
        "node/{node}: waiting up to {limit} for it to stop reporting; it is fenced only after that"
    )
}

/// The same as a line that is updated.
pub(crate) fn waiting_for_reports_to_stop(node: &str) -> String {
    format!("waiting for node/{node} to stop reporting")
}

/// After a hook, waits for `node`, for at most `limit`.
pub(crate) fn awaited(node: &str, limit: Duration) -> String {
    let limit = length(Span::from(limit));
    format!("node/{node}: waiting up to {limit} for it to come back")
}

/// The same as a line that is updated.
pub(crate) fn awaiting(node: &str) -> String {
    format!("waiting for node/{node} to come back")
}

/// The hook for `node` succeeded, but the run ended before that was recorded.
pub(crate) fn unrecorded(node: &str, isolated: bool) -> String {
    let state = state(isolated);
    format!("the hook succeeded, but this was not recorded: node/{node} should be {state} now")
}
