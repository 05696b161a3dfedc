//! A failure in two lines: what went wrong, in kubectl's words, and what to do about it.

use std::time::Duration;

use connect::ConnectError;
use maintenance_lease::{ApiError, Error};

use super::loss;
use super::refusal::{self, Asked};
use super::time::length;
use crate::error::{Failure, Obstacle, Verb};
use crate::text::escape;

/// Message and hint. `asked` is the request for locks that failed, if it was one.
pub(crate) fn lines(failure: &Failure, asked: Option<Asked<'_>>) -> (String, Option<String>) {
    let run = |text: &str, line: String| {
        let program = asked?.program;
        Some(format!("{text} `{program} {line}`"))
    };
    let check = |node: &str| run("check with", format!("status {node}"));
    let connection = of_connection(failure);
    if let Failure::Lock(Error::Unknown { node, intent, .. }) = failure {
        let cause = connection.map(|(message, _)| message);
        let cause = cause.or_else(|| Some(escape(&failure.api()?.to_string())));
        let cause = cause.unwrap_or_default();
        let message = format!(
            "unknown whether node/{node} was {intent}: the write may still take effect ({cause})"
        );
        return (message, check(node));
    }
    if let Some(lines) = connection {
        return lines;
    }
    match failure {
        Failure::Usage { message, hint }
        | Failure::Unsafe { message, hint }
        | Failure::Hook { message, hint, .. }
        | Failure::OpenWrite { message, hint, .. } => (message.clone(), Some(hint.clone())),
        Failure::NothingFound { hint, .. } => (failure.to_string(), hint.clone()),
        Failure::Unconfirmed(_) => (
            escape(&failure.to_string()),
            Some("add --yes to confirm".to_owned()),
        ),
        Failure::UnknownTime => (failure.to_string(), Some("run it again".to_owned())),
        Failure::TooSlow { .. } => (
            failure.to_string(),
            Some("use a longer --duration".to_owned()),
        ),
        Failure::Lock(Error::Refused(refused)) => match asked {
            Some(asked) => with_hint(refusal::lines(refused, asked)),
            None => (refused.to_string(), None),
        },
        Failure::TimedOut {
            node,
            waited,
            obstacle,
        } => timed_out(node, *waited, obstacle.as_ref(), asked),
        Failure::Lock(Error::MissingRight { right, source }) => (
            escape(&source.to_string()),
            Some(format!(
                "you need permission to {right}: see the roles in deploy/rbac.yaml"
            )),
        ),
        Failure::Lock(Error::Api(source)) if source.policy_code().is_some() => (
            escape(&source.to_string()),
            Some(of_policy(source, asked).to_owned()),
        ),
        Failure::Lock(Error::NamespaceTerminating(_)) => (
            failure.to_string(),
            Some("retry when the namespace is gone; acquire creates it again".to_owned()),
        ),
        Failure::Lock(Error::Contended { node, .. }) => (
            failure.to_string(),
            run("nothing was changed; check with", format!("status {node}")),
        ),
        Failure::Lock(Error::Lost(lost)) => match asked {
            Some(asked) => with_hint(loss::while_waiting(lost, asked.now, asked.program)),
            None => (lost.to_string(), None),
        },
        Failure::InterruptedWrite { node } => (failure.to_string(), check(node)),
        Failure::OtherLease { .. } => (
            failure.to_string(),
            run(
                "stop the work that relied on this lock; show your locks with",
                "status --mine -o lock-id".to_owned(),
            ),
        ),
        Failure::NotGivenBack {
            node,
            lock_id,
            cause,
        } => {
            let (cause, _) = lines(cause, asked);
            let lock_id = lock_id.as_ref().map(|id| format!(" --lock-id {id}"));
            let (was, line) = match asked.map(|asked| asked.verb) {
                Some(Verb::Hold) => ("put on hold", format!("unhold {node}")),
                _ => (
                    "acquired",
                    format!("release {node}{}", lock_id.unwrap_or_default()),
                ),
            };
            (
                format!("node/{node} was {was} but could not be released: {cause}"),
                run("release it with", line),
            )
        }
        other => (escape(&other.to_string()), None),
    }
}

/// What to do if a policy of ours refused a write, but for a missing right.
fn of_policy(source: &ApiError, asked: Option<Asked<'_>>) -> &'static str {
    let is_live = source.policy_code() == Some("maint-live-lock");
    match asked.map(|asked| asked.verb) {
        Some(Verb::Acquire | Verb::With) if is_live => {
            "try again after that time; if it has passed, the clocks differ: compare this computer's clock with the \
             API server's"
        }
        Some(Verb::Hold) if is_live => {
            "another API user took this lock under your holder name; to end it, use --take-over and another --holder"
        }
        Some(Verb::Release) if is_live => {
            "another API user took this lock under your holder name; to end it, use --force and another --holder"
        }
        _ => "docs/policies.md explains this rule",
    }
}

fn timed_out(
    node: &str,
    waited: Duration,
    obstacle: Option<&Obstacle>,
    asked: Option<Asked<'_>>,
) -> (String, Option<String>) {
    let tried_once = waited.is_zero();
    let timed_out = format!(
        "timed out after {} waiting for node/{node}",
        length(waited.into())
    );
    match (obstacle, asked) {
        (Some(Obstacle::Refused(refused)), Some(asked)) => {
            let asked = Asked {
                waited: true,
                ..asked
            };
            let (message, hint) = refusal::lines(refused, asked);
            let cause = refusal::cause(refused, asked);
            let message = match asked.verb {
                _ if tried_once => message,
                Verb::Wait => format!("{timed_out} to be free: {cause}"),
                _ => format!("{timed_out}: {cause}"),
            };
            (message, Some(hint))
        }
        (Some(Obstacle::Refused(refused)), None) => (format!("{timed_out}: {refused}"), None),
        (Some(Obstacle::State { how, awaited, hint }), _) => {
            let message = match tried_once {
                true => format!("node/{node} is not {awaited}: {how}"),
                false => format!("{timed_out} to be {awaited}: {how}"),
            };
            (message, hint.clone())
        }
        (None, _) => (timed_out, None),
    }
}

fn with_hint((message, hint): (String, String)) -> (String, Option<String>) {
    (message, Some(hint))
}

/// Message and hint of the problem with the connection or the credentials behind a failure, if it is one.
fn of_connection(failure: &Failure) -> Option<(String, Option<String>)> {
    let words = |error: &ConnectError| (escape(&error.to_string()), error.hint());
    if let Failure::Connect(error) = failure {
        return Some(words(error));
    }
    let error = match failure.api()? {
        ApiError::Transport(source) => ConnectError::classify(source)?,
        ApiError::TimedOut(after) => ConnectError::TimedOut { after: *after },
        ApiError::Status(status) if status.code == 401 => ConnectError::Unauthorized {
            message: status.message.clone(),
        },
        _ => return None,
    };
    Some(words(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_of_our_policies_are_explained_and_no_others() {
        let hint = |policy: &str, reason: &str| {
            let message = format!(
                "leases \"n\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied \
                 request: {reason}"
            );
            let status = json!({"kind": "Status", "code": 403, "message": message});
            let status = serde_json::from_value(status).expect("a status");
            lines(&ApiError::Status(Box::new(status)).into(), None).1
        };
        assert_eq!(
            hint("kubectl-maint-leases", "maint-clock: too late").as_deref(),
            Some("docs/policies.md explains this rule")
        );
        assert_eq!(
            hint(
                "kubectl-maint-leases",
                "maint-live-lock: alice has the lock"
            )
            .as_deref(),
            Some("docs/policies.md explains this rule")
        );
        assert_eq!(hint("quiet-hours", "not at night"), None);
    }
}
