//! The loss of a lock while a command runs under it, in two lines: what happened, and what next.

use maintenance_lease::protocol::{Instant, Now, Span};
use maintenance_lease::{Lost, LostBy, NodeLease};
use under_lease::Stage;

use super::holder::{named, of_node, person};
use super::refusal::{about, why};
use super::time::{clock, length};
use crate::text::escape;
use crate::words::program::Program;

/// The two lines, the second without its `hint:`; `before` is the Lease as it was held, and `stage` where
/// the command was when the loss was noticed.
pub(crate) fn lines(
    lost: &Lost,
    before: Option<&NodeLease>,
    stage: Stage,
    now: Now,
    program: &Program,
) -> (String, String) {
    let command = match (&lost.by, stage) {
        (_, Stage::NotBegun) => "the command was not run",
        // It has its limit from before, and may have heard of it before this process did.
        (LostBy::Expiry, _) => "the command is ended before its lease runs out",
        (_, Stage::AtWork) => "the command is being ended",
        (_, Stage::Over) => "the command has ended",
    };
    (
        message(lost, before, now),
        format!("{command}; {}", to_see(lost, program)),
    )
}

/// The two lines of a lock under which something was deleted.
pub(crate) fn of_deletion(
    lost: &Lost,
    before: &NodeLease,
    now: Now,
    program: &Program,
) -> (String, String) {
    (message(lost, Some(before), now), to_see(lost, program))
}

fn message(lost: &Lost, before: Option<&NodeLease>, now: Now) -> String {
    let node = &lost.node;
    let lease = lost.lease.as_ref();
    let holder =
        || lease.map(|lease| format!("{}{}", person(lease), about(lease, lease.state(now), now)));
    match &lost.by {
        LostBy::Expiry => match &lost.problem {
            Some(problem) => format!(
                "node/{node} could not be renewed in time ({})",
                escape(problem)
            ),
            // No request failed: the Lease was to end sooner than it was asked for, or time passed
            // in which nothing here ran.
            None => format!(
                "node/{node} was not renewed in time{}; was it edited, or this process or its \
                 machine stopped?",
                lease.map_or_else(String::new, |lease| format!(": {}", own_end(lease, now)))
            ),
        },
        LostBy::TakeOver(by) => match ran_out(lost, before) {
            Some(end) => format!(
                "the lease of node/{node} ran out at {}, and was taken by {}",
                clock(end, now.latest),
                holder().unwrap_or_else(|| of_node(by))
            ),
            None if before.and_then(NodeLease::holder) == Some(by) => format!(
                "node/{node} has another acquisition in the same name, {}: its Lease was edited, or \
                 released and acquired again",
                of_node(by)
            ),
            None => format!(
                "node/{node} was taken over by {}",
                holder().unwrap_or_else(|| of_node(by))
            ),
        },
        LostBy::Replacement(Some(by)) => format!(
            "the Lease of node/{node} was deleted and made again, for {}",
            holder().unwrap_or_else(|| of_node(by))
        ),
        LostBy::Release => match lease.and_then(|lease| Some((lease, lease.released_by()?))) {
            Some((lease, by)) => format!(
                "node/{node} was released by {} while the command had it{}",
                named(by),
                why(lease)
            ),
            None => format!("node/{node} was released while the command had it"),
        },
        LostBy::Deletion | LostBy::Replacement(None) | LostBy::Election => lost.to_string(),
    }
}

/// When the lease ended that was held `before`, where somebody took it only after that.
fn ran_out(lost: &Lost, before: Option<&NodeLease>) -> Option<Instant> {
    let taken = Instant::from(lost.lease.as_ref()?.acquired()?);
    end(before?).filter(|&end| taken > end)
}

/// When a lease ends.
fn end(lease: &NodeLease) -> Option<Instant> {
    let duration = Span::seconds(lease.duration_seconds());
    Some(Instant::from(lease.renewed()?) + duration)
}

/// What a Lease says of its own end.
fn own_end(lease: &NodeLease, now: Now) -> String {
    match end(lease) {
        Some(end) => format!(
            "its Lease was to end at {}, {} after its last renewal",
            clock(end, now.latest),
            length(Span::seconds(lease.duration_seconds()))
        ),
        None => "its Lease has no readable renewal".to_owned(),
    }
}

fn to_see(lost: &Lost, program: &Program) -> String {
    let node = &lost.node;
    match lost.by {
        // The command may well have released it by itself.
        LostBy::Release | LostBy::TakeOver(_) => {
            format!(
                "if somebody broke it, an Event says who and why: {} describe node {node}",
                program.kubectl()
            )
        }
        _ => format!("to see: {program} status {node}"),
    }
}

/// That a node could not be renewed, while there is time: the command is ended at `end`.
pub(crate) fn warning(node: &str, problem: &str, end: Instant, now: Now) -> String {
    format!(
        "node/{node} could not be renewed ({}); unless that is done by {}, the command is ended",
        escape(problem),
        clock(end, now.latest)
    )
}

/// That the command was stopped, and has until `end`.
pub(crate) fn stopped(end: Instant, now: Now) -> String {
    format!(
        "stopped: the lock is not renewed meanwhile, and the command is ended at {}",
        clock(end, now.latest)
    )
}

/// What a command left running behind it.
pub(crate) fn left(processes: usize) -> String {
    match processes {
        1 => "the command left a process behind, which is being ended".to_owned(),
        _ => format!("the command left {processes} processes behind, which are being ended"),
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::{Maintenance, Subject};
    use sandbox::Sandbox;
    use serde_json::json;

    use super::*;

    /// A Lease as a server stores it, taken and last renewed at these times of a day.
    async fn lease(holder: &str, acquired: &str, renewed: &str) -> NodeLease {
        let sandbox = Sandbox::new();
        let at = |time| format!("2026-03-01T{time}.000000Z");
        sandbox.put(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "worker-1",
                "namespace": maintenance_lease::NAMESPACE,
                "annotations": {"kubectl-maint.dev/reason": "disk"},
            },
            "spec": {
                "holderIdentity": holder,
                "acquireTime": at(acquired),
                "renewTime": at(renewed),
                "leaseDurationSeconds": 60,
            },
        }));
        let maintenance = Maintenance::new(sandbox.client(), "anybody").expect("an identity");
        let lease = maintenance.get("worker-1").await.expect("an answer");
        lease.expect("a Lease")
    }

    async fn said(before: &NodeLease, by: &str, acquired: &str) -> String {
        let lost = Lost {
            subject: Subject::Node,
            node: "worker-1".to_owned(),
            by: LostBy::TakeOver(by.to_owned()),
            lease: Some(lease(by, acquired, acquired).await),
            problem: None,
        };
        // 2026-03-01T12:00:00Z
        let noon = Now::at(Instant::from_micros(1_772_366_400_000_000));
        message(&lost, Some(before), noon)
    }

    #[tokio::test]
    async fn a_lease_that_ran_out_before_it_was_taken_was_not_taken_over() {
        let own = lease("bob@vm/with-7-c0ffee", "11:50:00", "11:55:00").await;
        let later = said(&own, "bob@vm", "11:56:30").await;
        let ran_out = "the lease of node/worker-1 ran out at ";
        assert!(later.starts_with(ran_out), "{later}");
        assert!(
            later.contains(r#" and was taken by bob@vm: "disk" (since "#),
            "{later}"
        );
        let sooner = said(&own, "bob@vm", "11:55:30").await;
        assert!(
            sooner.starts_with("node/worker-1 was taken over by bob@vm: "),
            "{sooner}"
        );
        let namesake = said(&own, "bob@vm/with-7-c0ffee", "11:55:30").await;
        assert!(
            namesake.contains("another acquisition in the same name"),
            "{namesake}"
        );
    }
}
