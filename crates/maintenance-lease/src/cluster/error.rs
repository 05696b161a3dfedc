//! Failures of requests: refusals of the API server or a proxy, in kubectl's words.

use std::error::Error as StdError;
use std::time::Duration;
use std::{fmt, io, iter};

use http::StatusCode;
use serde::Deserialize;

use crate::env::NoRuntime;

/// A request that did not succeed. A new variant is a breaking change: callers match all of them.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server refused the request or failed, and gave a reason.
    #[error("{0}")]
    Status(Box<Status>),
    /// No answer came in time.
    #[error(
        "Unable to connect to the server: no answer within {} (request canceled)",
        Seconds(*.0)
    )]
    TimedOut(Duration),
    /// The request or its answer was lost on the way, or no connection could be made.
    #[error("Unable to connect to the server: {}", root_cause(.0))]
    Transport(#[source] Box<kube::Error>),
    /// The answer is not what an API server sends.
    #[error("error: the server's answer could not be read: {0}")]
    Unreadable(String),
    /// The server carried out a write, but stored other fields than were sent.
    #[error("the API server changed what was written (an admission webhook may have done this)")]
    Altered,
    /// The answer ended before it was complete: a list lacks some of its elements.
    #[error("the answer to {request} was cut short")]
    CutShort {
        /// Method and path.
        request: String,
    },
    /// Something other than an API server answered, such as a proxy's login page, or the server does not
    /// have the requested API.
    #[error("no Kubernetes API server answered {request}: the answer {what}")]
    NotKubernetes {
        /// Method and path.
        request: String,
        /// The HTTP status code.
        code: u16,
        /// What the answer is instead, and its first characters.
        what: String,
    },
    /// The machine was paused while the request waited for an answer.
    #[error("this machine was paused while it waited for the server's answer")]
    Paused,
    /// No answer since the pause of the machine, so the server's time has no upper bound.
    #[error(
        "the server's time is unknown after a pause of this machine: the server's answers have no date"
    )]
    Undated,
    /// Nothing was sent: there is no tokio runtime here.
    #[error(transparent)]
    NoRuntime(#[from] NoRuntime),
}

/// The root cause. The causes before it only name libraries.
fn root_cause(error: &kube::Error) -> String {
    let root = causes(error).last();
    root.map_or_else(String::new, ToString::to_string)
}

/// The error and its causes, outermost first. `source` alone would skip the inner error of an I/O
/// error.
fn causes(error: &kube::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let error: &(dyn StdError + 'static) = error;
    iter::successors(Some(error), |&error| {
        let carried = error.downcast_ref().and_then(io::Error::get_ref);
        match carried {
            Some(carried) => Some(carried as &(dyn StdError + 'static)),
            None => error.source(),
        }
    })
}

/// Whether an open connection broke. False if it could not be opened.
fn is_lost_connection(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return !(error.is_parse() || error.is_user() || error.is_timeout());
    }
    cause.downcast_ref::<io::Error>().is_some_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        )
    })
}

/// The fields of a `Status` that decisions and messages need, read leniently.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Status {
    #[serde(default)]
    kind: String,
    /// The HTTP status code.
    #[serde(default)]
    pub code: u16,
    /// A reason for programs, such as `NotFound`.
    #[serde(default)]
    pub reason: String,
    /// A message for people.
    #[serde(default)]
    pub message: String,
    /// More details, for some reasons.
    #[serde(default)]
    details: Option<Details>,
    /// `Retry-After`, in seconds.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Details {
    /// The plural of the objects that it is about.
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Cause {
    #[serde(default)]
    reason: String,
}

impl Status {
    /// Parses the body of an answer with `code`. A body that is no `Status` becomes the message.
    pub(crate) fn read(code: StatusCode, retry_after: Option<u64>, body: &[u8]) -> Self {
        let mut status: Self = serde_json::from_slice(body).unwrap_or_default();
        status.code = code.as_u16();
        status.retry_after = retry_after;
        if status.message.is_empty() {
            status.message = match one_line(body, 300) {
                line if line.is_empty() => "no reason given".to_owned(),
                line => line,
            };
        }
        if status.reason.is_empty() {
            status.reason = code
                .canonical_reason()
                .unwrap_or("Unknown")
                .replace(' ', "");
        }
        status
    }

    /// The body was a `Status`, as an API server's refusals are.
    pub(crate) fn is_genuine(&self) -> bool {
        self.kind == "Status"
    }

    /// An admission webhook refused the request, with a code of its choice. The text is that of Kubernetes.
    pub(crate) fn is_by_webhook(&self) -> bool {
        self.is_genuine() && self.message.starts_with("admission webhook \"")
    }

    /// It is about the object of this name among `plural`.
    pub(crate) fn is_about(&self, plural: &str, name: &str) -> bool {
        self.is_genuine()
            && self
                .details
                .as_ref()
                .is_some_and(|details| details.kind == plural && details.name == name)
    }

    /// The details contain the cause `reason`.
    #[must_use]
    pub fn has_cause(&self, reason: &str) -> bool {
        self.details
            .iter()
            .flat_map(|details| &details.causes)
            .any(|cause| cause.reason == reason)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == 401 {
            return write!(
                f,
                "error: You must be logged in to the server ({})",
                self.message
            );
        }
        // Without a Status, it may also be the answer of a proxy.
        let source = match self.is_genuine() {
            true => "server",
            false => "server or proxy",
        };
        write!(f, "Error from {source} ({}): {}", self.reason, self.message)?;
        if let Some(seconds) = self.retry_after {
            write!(f, " (it asks to wait {seconds}s)")?;
        }
        Ok(())
    }
}

impl ApiError {
    /// The server's `Status`, if it sent one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    /// The server's status code was `code`.
    #[must_use]
    pub fn is(&self, code: StatusCode) -> bool {
        self.status()
            .is_some_and(|status| status.code == code.as_u16())
    }

    /// The API server says that the requested object, or the namespace in its path, does not exist. No
    /// other 404 counts, because any proxy can answer with one.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is(StatusCode::NOT_FOUND) && !self.is_by_webhook()
    }

    /// The server does not have the requested API: a 404 about no object. A proxy's page looks the same,
    /// so this is used only to decide whether to continue without an optional API.
    #[must_use]
    pub fn is_not_installed(&self) -> bool {
        matches!(self, Self::NotKubernetes { code: 404, .. })
    }

    /// The API server says that the user lacks the permission.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.is(StatusCode::FORBIDDEN)
    }

    /// A ResourceQuota refuses it, with the same code as a missing permission. The text is that of
    /// Kubernetes' quota admission plugin.
    #[must_use]
    pub fn exceeds_a_quota(&self) -> bool {
        self.status()
            .is_some_and(|status| status.message.contains("exceeded quota: "))
    }

    /// The code of the rule by which a policy of ours refuses it, such as `maint-clock`; `None` if no policy of
    /// ours does. The text is that of Kubernetes' admission plugin, and our policies begin with a code.
    #[must_use]
    pub fn policy_code(&self) -> Option<&str> {
        let (code, _) = self.policy_refusal()?;
        Some(code)
    }

    /// That code, and what the policy says after it: what is wrong, and after a semicolon what to do.
    #[must_use]
    pub fn policy_refusal(&self) -> Option<(&str, &str)> {
        let message = &self.status().filter(|_| self.is_forbidden())?.message;
        let (_, message) = message.split_once("ValidatingAdmissionPolicy 'kubectl-maint-")?;
        let (_, reason) = message.split_once(" denied request: ")?;
        let (code, explanation) = reason.split_once(": ")?;
        code.starts_with("maint-").then_some((code, explanation))
    }

    /// The name of the object that the request was for, if the server says it.
    #[must_use]
    pub fn object(&self) -> Option<&str> {
        let details = self.status()?.details.as_ref()?;
        Some(&*details.name).filter(|name| !name.is_empty())
    }

    /// A policy of ours refuses it because of a time, which it compares with the server's clock: the lock has
    /// not expired yet by that clock, or the written time is too far from it.
    #[must_use]
    pub(crate) fn is_by_time(&self) -> bool {
        matches!(self.policy_code(), Some("maint-clock" | "maint-live-lock"))
    }

    /// An admission policy refused it, with the same code as a missing permission.
    #[must_use]
    pub fn is_by_policy(&self) -> bool {
        self.status()
            .is_some_and(|status| status.message.contains("ValidatingAdmissionPolicy '"))
    }

    /// The server says that the user lacks this permission, and not that a quota, a policy or a webhook refuses.
    #[must_use]
    pub fn is_missing_right(&self) -> bool {
        self.is_forbidden()
            && !self.exceeds_a_quota()
            && !self.is_by_policy()
            && !self.is_by_webhook()
    }

    /// The object has changed, or exists already.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.is(StatusCode::CONFLICT) && !self.is_by_webhook()
    }

    /// An admission webhook refused it. The code is the webhook's choice, so it says nothing about the object.
    #[must_use]
    pub fn is_by_webhook(&self) -> bool {
        self.status().is_some_and(Status::is_by_webhook)
    }

    /// The server is overloaded and did not process the request.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.is(StatusCode::TOO_MANY_REQUESTS)
    }

    /// The server refuses the request, and would refuse it again: for a missing permission, by a policy or a
    /// webhook, or because the request is invalid.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let is_final = |code| matches!(code, 400..500) && !matches!(code, 401 | 409 | 429);
        self.is_by_webhook() || self.status().is_some_and(|status| is_final(status.code))
    }

    /// The server has not carried out the request and says why: it [refuses](Self::is_refusal) it, or it can't call an
    /// admission webhook that has to allow it.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        let lacks_webhook = |status: &Status| {
            status.is_genuine() && status.message.contains("failed calling webhook \"")
        };
        self.is_refusal() || self.is_by_policy() || self.status().is_some_and(lacks_webhook)
    }

    /// It is a dry run, and an admission webhook does not support these.
    #[must_use]
    pub fn lacks_dry_run_support(&self) -> bool {
        let says = |status: &Status| status.message.ends_with("does not support dry run");
        self.is_by_webhook() && self.status().is_some_and(says)
    }

    /// How long the server asks to wait before a retry; zero if it does not.
    pub(crate) fn retry_after(&self) -> Duration {
        let seconds = self.status().and_then(|status| status.retry_after);
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// The connection broke before the whole answer arrived.
    pub(crate) fn is_connection_lost(&self) -> bool {
        match self {
            Self::CutShort { .. } => true,
            Self::Transport(error) => causes(error).any(is_lost_connection),
            _ => false,
        }
    }

    /// A retry may succeed.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        self.leaves_writes_unknown() || self.is_throttled()
    }

    /// A write that failed like this may have taken effect, or may still do so.
    #[must_use]
    pub fn leaves_writes_unknown(&self) -> bool {
        match self {
            Self::Status(status) => status.code >= 500,
            Self::TimedOut(_)
            | Self::Transport(_)
            | Self::CutShort { .. }
            | Self::Unreadable(_)
            | Self::Altered
            | Self::Paused
            | Self::NotKubernetes { .. } => true,
            Self::Undated | Self::NoRuntime(_) => false,
        }
    }
}

/// A duration as kubectl prints it: whole seconds if there is no fraction, otherwise tenths of a second.
/// Under a second, milliseconds.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_nanos() == 0 {
            write!(f, "{}s", self.0.as_secs())
        } else if self.0.as_secs() > 0 {
            write!(f, "{:.1}s", self.0.as_secs_f64())
        } else {
            write!(f, "{}ms", self.0.as_millis())
        }
    }
}

/// At most `most` characters from the start of `body`, with white space as single spaces.
pub(super) fn one_line(body: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(body);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some((end, _)) = line.char_indices().nth(most) {
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Error, Right};

    #[test]
    fn a_status_speaks_as_kubectl_does() {
        let body = br#"{"kind":"Status","reason":"NotFound","message":"nodes \"x\" not found","code":404}"#;
        let status = Status::read(StatusCode::NOT_FOUND, None, body);
        assert_eq!(
            status.to_string(),
            r#"Error from server (NotFound): nodes "x" not found"#
        );
    }

    #[test]
    fn an_answer_that_is_no_status_is_quoted() {
        let status = Status::read(StatusCode::BAD_GATEWAY, None, b"upstream\r\nsulks\n");
        assert_eq!(
            status.to_string(),
            "Error from server or proxy (BadGateway): upstream sulks"
        );
        assert!(ApiError::Status(Box::new(status)).leaves_writes_unknown());
    }

    #[test]
    fn only_refusals_have_a_known_outcome() {
        let ended = |code: StatusCode| ApiError::Status(Box::new(Status::read(code, Some(1), b"")));
        assert!(!ended(StatusCode::CONFLICT).leaves_writes_unknown());
        assert!(!ended(StatusCode::TOO_MANY_REQUESTS).leaves_writes_unknown());
        assert!(ended(StatusCode::SERVICE_UNAVAILABLE).leaves_writes_unknown());
        assert!(ApiError::TimedOut(Duration::from_secs(1)).leaves_writes_unknown());
        let request = "PATCH /x".to_owned();
        assert!(ApiError::CutShort { request }.leaves_writes_unknown());
    }

    #[test]
    fn a_quota_or_a_webhook_is_no_missing_right() {
        let refused = |message: &str| {
            let body = format!(r#"{{"kind":"Status","reason":"Forbidden","message":"{message}"}}"#);
            let status = Status::read(StatusCode::FORBIDDEN, None, body.as_bytes());
            Right::on_nodes("patch").explain(ApiError::Status(Box::new(status)))
        };
        let quota = "leases is forbidden: exceeded quota: few, requested: count/leases=1";
        assert!(matches!(refused(quota), Error::Api(_)));
        let webhook = r#"admission webhook \"a.example.com\" denied the request: ask the owner"#;
        assert!(matches!(refused(webhook), Error::Api(_)));
        let right = "nodes is forbidden: User cannot patch resource nodes";
        assert!(matches!(refused(right), Error::MissingRight { .. }));
    }

    #[test]
    fn a_policy_names_its_rule_and_the_right_that_the_rule_wants() {
        let refused = |by: &str, reason: &str| {
            let message = format!(
                "leases \\\"n\\\" is forbidden: ValidatingAdmissionPolicy '{by}' with binding '{by}' denied \
                 request: {reason}"
            );
            let body = format!(r#"{{"kind":"Status","reason":"Forbidden","message":"{message}"}}"#);
            ApiError::Status(Box::new(Status::read(
                StatusCode::FORBIDDEN,
                None,
                body.as_bytes(),
            )))
        };
        let right = |error: ApiError| match Right::on_nodes("patch").explain(error) {
            Error::MissingRight { right, .. } => Some(right.verb),
            _ => None,
        };
        let ours = "kubectl-maint-leases";
        for (by, reason, code, verb) in [
            (ours, "maint-clock: too late", Some("maint-clock"), None),
            (
                ours,
                "maint-hold-right: no",
                Some("maint-hold-right"),
                Some("hold"),
            ),
            (
                ours,
                "maint-live-lock: bob: no",
                Some("maint-live-lock"),
                Some("takeover"),
            ),
            ("others", "maint-clock: imitated", None, None),
        ] {
            let error = refused(by, reason);
            assert_eq!(error.policy_code(), code, "{reason}");
            assert_eq!(right(error), verb, "{reason}");
        }
    }

    #[test]
    fn the_code_of_a_webhook_says_nothing_about_the_object() {
        let refused = |code: StatusCode, message: &str| {
            let body = format!(r#"{{"kind":"Status","message":"{message}"}}"#);
            ApiError::Status(Box::new(Status::read(code, None, body.as_bytes())))
        };
        let webhook = r#"admission webhook \"guard.example.com\" denied the request: no"#;
        for code in [StatusCode::NOT_FOUND, StatusCode::CONFLICT] {
            let error = refused(code, webhook);
            assert!(!error.is_not_found() && !error.is_conflict(), "{error}");
            assert!(
                error.is_refusal() && !error.leaves_writes_unknown(),
                "{error}"
            );
        }
        assert!(refused(StatusCode::NOT_FOUND, "gone").is_not_found());
        assert!(refused(StatusCode::CONFLICT, "changed").is_conflict());
    }

    #[test]
    fn a_rejection_says_why_nothing_was_carried_out() {
        let answered = |code: u16, message: &str| {
            let code = StatusCode::from_u16(code).expect("a status code");
            let body = format!(r#"{{"kind":"Status","message":"{message}"}}"#);
            ApiError::Status(Box::new(Status::read(code, None, body.as_bytes())))
        };
        let policy = "nodes is forbidden: ValidatingAdmissionPolicy 'quiet' with binding 'quiet' denied request: no";
        let webhook = r#"admission webhook \"guard.example.com\" denied the request: no"#;
        let dead = r#"Internal error occurred: failed calling webhook \"guard.example.com\": connection refused"#;
        for (code, message, is_rejection) in [
            (403, "no right", true),
            (422, policy, true),
            (401, policy, true),
            (400, webhook, true),
            (409, webhook, true),
            (500, webhook, true),
            (500, dead, true),
            (500, "etcdserver: request timed out", false),
            (409, "changed", false),
            (401, "no token", false),
            (429, "too many requests", false),
        ] {
            let error = answered(code, message);
            assert_eq!(error.is_rejection(), is_rejection, "{error}");
        }
        assert!(!ApiError::TimedOut(Duration::from_secs(1)).is_rejection());
        let dry_run = r#"admission webhook \"guard.example.com\" does not support dry run"#;
        assert!(answered(400, dry_run).lacks_dry_run_support());
        assert!(!answered(400, webhook).lacks_dry_run_support());
    }

    #[test]
    fn errors_show_the_cause_without_names_of_libraries() {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let error = ApiError::Transport(Box::new(kube::Error::Service(reset.into())));
        assert_eq!(
            error.to_string(),
            "Unable to connect to the server: connection reset"
        );
    }

    #[test]
    fn causes_are_found() {
        let body = br#"{"kind":"Status","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#;
        let status = Status::read(StatusCode::FORBIDDEN, None, body);
        assert!(status.has_cause("NamespaceTerminating"));
        assert!(!status.has_cause("Other"));
    }
}
