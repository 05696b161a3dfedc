//! A lost lock while a command runs under it, in two lines: what happened, and the next step.

use crate::platform::KILL;
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{Lost, LostBy, NodeLease};
use supervisor::Signal;
use supervisor::under_lease::Stage;

use super::holder_name::{named, of_node, person};
use super::lock::{about, why};
use super::time::clock;
use crate::text::escape;
use crate::words::hint_command::Program;
use crate::words::holder::HoldingCommand;

/// The two lines, the second without its `hint:`. `before` is the Lease as last held, and `stage` the
/// progress of the command when the loss was noticed.
pub(crate) fn lines(
    lost: &Lost,
    before: Option<&NodeLease>,
    stage: Stage,
    now: Now,
    program: &Program,
) -> (String, String) {
    let has_expired = before
        .and_then(NodeLease::end)
        .is_some_and(|end| end < now.earliest);
    let command = match (&lost.by, stage) {
        (_, Stage::NotStarted) => "the command was not run",
        (_, Stage::Ended) => "the command has ended",
        // The supervisor was paused too.
        (LostBy::Expiry, Stage::Running | Stage::OutOfTime) if has_expired => {
            "the command is being ended, and may have run after the lock expired"
        }
        // The supervisor enforces the time limit and may have acted before this process did.
        (LostBy::Expiry, Stage::Running | Stage::OutOfTime) => {
            "the command is ended before the lock expires"
        }
        (_, Stage::OutOfTime) => "the command was ended",
        (_, Stage::Running) => "the command is being ended",
    };
    if is_own_release(lost, before) {
        let node = &lost.node;
        return (
            format!(
                "the lock on node/{node} was released under its own holder name, probably by the command itself \
                 ({command})"
            ),
            "if the command runs `release`, remove that: `with` releases the lock at the end"
                .to_owned(),
        );
    }
    let message = format!(
        "lost the lock on node/{} ({command}): {}",
        lost.node,
        cause(lost, before, now)
    );
    (message, to_see(lost, program))
}

/// Whether it was released under the name of a `with`, as its own command would do it.
fn is_own_release(lost: &Lost, before: Option<&NodeLease>) -> bool {
    let lease = lost.lease.as_ref().filter(|_| lost.by == LostBy::Release);
    let last = lease.filter(|lease| lease.released_by().is_none());
    let last = last.and_then(NodeLease::last_holder);
    let is_held = |before: &NodeLease| before.holder() == last;
    last.is_some_and(|last| HoldingCommand::of(last).is_some()) && before.is_none_or(is_held)
}

/// The two lines for a lock that was lost while others were locked.
pub(crate) fn while_locking(lost: &Lost, now: Now, program: &Program) -> (String, String) {
    let cause = cause(lost, None, now);
    let message = format!("lost the lock on node/{}: {cause}", lost.node);
    (message, to_see(lost, program))
}

fn cause(lost: &Lost, before: Option<&NodeLease>, now: Now) -> String {
    let lease = lost.lease.as_ref();
    let holder =
        || lease.map(|lease| format!("{}{}", person(lease), about(lease, lease.state(now), now)));
    match &lost.by {
        LostBy::Expiry => match &lost.problem {
            Some(problem) => format!("it could not be renewed in time ({})", escape(problem)),
            // No request failed.
            None => "it was not renewed in time. Either its Lease was edited, or this process or machine \
                     was paused"
                .to_owned(),
        },
        LostBy::TakeOver(by) => match before.and_then(|before| before.ended_before(lease?)) {
            Some(end) => format!(
                "it expired at {} and was then acquired by {}",
                clock(end, now.latest),
                holder().unwrap_or_else(|| of_node(by))
            ),
            None if before.and_then(NodeLease::holder) == Some(by) => format!(
                "another lock of the same holder ({}) replaced it",
                of_node(by)
            ),
            None => format!("taken over by {}", holder().unwrap_or_else(|| of_node(by))),
        },
        LostBy::Release => match lease.and_then(|lease| Some((lease, lease.released_by()?))) {
            Some((lease, by)) => format!("released by {}{}", named(by), why(lease)),
            None => "it was released".to_owned(),
        },
        LostBy::Deletion => "its Lease was deleted".to_owned(),
        LostBy::Replacement(by) => {
            let by = by.as_deref().map(|by| holder().unwrap_or_else(|| of_node(by)));
            let whose = by.map(|by| format!(" for {by}"));
            format!(
                "its Lease was deleted and created again{}",
                whose.unwrap_or_default()
            )
        }
        LostBy::Election => "coordinated leader election took over its Lease".to_owned(),
    }
}

fn to_see(lost: &Lost, program: &Program) -> String {
    let node = &lost.node;
    match lost.by {
        // Otherwise, the message says who ended it.
        LostBy::Release
            if lost
                .lease
                .as_ref()
                .is_none_or(|lease| lease.released_by().is_none()) =>
        {
            format!(
                "an Event may say who ended it and why; see `{}`",
                program.kubectl(format_args!("describe node {node}"))
            )
        }
        _ => format!(
            "check with `{}`",
            program.run(format_args!("status {node}"))
        ),
    }
}

/// A renewal of a node failed, but there is time left: the command is ended at `end`.
pub(crate) fn warning(node: &str, problem: &str, end: Instant, now: Now) -> String {
    format!(
        "could not renew node/{node}; retrying ({}). Unless a renewal succeeds, the command will be ended at {}",
        escape(problem),
        clock(end, now.latest)
    )
}

/// The command was stopped, and has until `end`, if its lock expires. `is_ended` says whether it is ended then even if it
/// is still stopped.
pub(crate) fn stopped(end: Option<Instant>, now: Now, is_ended: bool) -> String {
    let Some(end) = end else {
        return "stopped: continue with `fg` or `bg`; the hold stays".to_owned();
    };
    let end = clock(end, now.latest);
    match is_ended {
        true => format!(
            "stopped: the lock is no longer renewed. Unless you continue with `fg` or `bg`, the command will be ended at {end}"
        ),
        false => format!(
            "stopped: the lock is no longer renewed. Continue with `fg` or `bg` before {end}: after that, the command is \
             ended as soon as it continues"
        ),
    }
}

/// The command did not end after this signal.
pub(crate) fn still_running(after: Signal, pid: Option<u32>) -> String {
    let kill = pid.map(|pid| format!("; to end it now, run `{KILL} {pid}`"));
    format!(
        "the command is still running after {after}: the lock is kept until it ends{}",
        kill.unwrap_or_default()
    )
}

/// The processes that a command left running.
pub(crate) fn left(processes: usize) -> String {
    match processes {
        1 => "the command left 1 process running; ending it".to_owned(),
        _ => format!("the command left {processes} processes running; ending them"),
    }
}

#[cfg(test)]
mod tests {
    use maintenance_lease::{Maintenance, Subject};
    use sandbox::Sandbox;
    use serde_json::json;

    use super::*;

    /// A Lease as a server stores it, acquired and last renewed at these times of day.
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
        cause(&lost, Some(before), noon)
    }

    #[test]
    fn a_loss_by_expiry_is_not_reported_twice_in_the_same_words() {
        let lost = Lost {
            subject: Subject::Node,
            node: "worker-1".to_owned(),
            by: LostBy::Expiry,
            lease: None,
            problem: Some("no answer".to_owned()),
        };
        let noon = Now::at(Instant::from_micros(1_772_366_400_000_000));
        let message = |stage| lines(&lost, None, stage, noon, &Program::default()).0;
        let cause = "it could not be renewed in time (no answer)";
        for (stage, command) in [
            (
                Stage::Running,
                "the command is ended before the lock expires",
            ),
            (
                Stage::OutOfTime,
                "the command is ended before the lock expires",
            ),
            (Stage::Ended, "the command has ended"),
        ] {
            assert_eq!(
                message(stage),
                format!("lost the lock on node/worker-1 ({command}): {cause}")
            );
        }
    }

    #[tokio::test]
    async fn a_lease_that_expired_before_it_was_acquired_was_not_taken_over() {
        let own = lease("bob@vm/with-7-c0ffee", "11:50:00", "11:55:00").await;
        let later = said(&own, "bob@vm", "11:56:30").await;
        assert!(later.starts_with("it expired at "), "{later}");
        assert!(
            later.contains(r#" and was then acquired by bob@vm: "disk" (since "#),
            "{later}"
        );
        let sooner = said(&own, "bob@vm", "11:55:30").await;
        assert!(sooner.starts_with("taken over by bob@vm: "), "{sooner}");
        let same_holder = said(&own, "bob@vm/with-7-c0ffee", "11:55:30").await;
        assert!(
            same_holder.contains("another lock of the same holder (bob@vm"),
            "{same_holder}"
        );
    }
}
