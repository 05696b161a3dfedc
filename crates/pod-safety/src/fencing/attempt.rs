//! The announcement on a Node that a hook runs for it. It prevents a second hook from running at the same
//! time.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Instant, Now, SKEW_BUDGET, Span};
use serde::{Deserialize, Serialize};

use crate::wire::seconds;

/// The annotation on the Node.
pub const ANNOTATION: &str = "kubectl-maint.dev/hook";

/// The text that replaces the fields of an announcement that can't be read.
const UNREADABLE: &str = "unreadable";

/// A hook that was announced. It may run until the announcement is removed or its time has ended, even if the
/// process that started it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// A nonce that identifies this run.
    pub id: String,
    /// Who runs it.
    pub who: String,
    /// The program. Its arguments are not recorded, because they may contain passwords.
    pub program: String,
    /// When it may have started.
    #[serde(with = "seconds")]
    pub since: Instant,
    /// When the hook and all processes that it started have ended. It includes the clock skew.
    #[serde(with = "seconds")]
    pub until: Instant,
}

impl Attempt {
    /// The announcement on `node`; `None` if there is none. If it can't be read, a hook may be running
    /// without an end.
    #[must_use]
    pub fn on(node: &Node) -> Option<Self> {
        let annotations = node.metadata.annotations.as_ref()?;
        let text = annotations.get(ANNOTATION)?;
        Some(Self::parse(text).unwrap_or_else(|| Self {
            id: UNREADABLE.to_owned(),
            who: UNREADABLE.to_owned(),
            program: UNREADABLE.to_owned(),
            since: Instant::UNREADABLE,
            until: Instant::UNREADABLE,
        }))
    }

    /// Whether the annotation could not be read.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.id == UNREADABLE
    }

    /// Parses the annotation's value; `None` if it is not one of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The annotation's value.
    ///
    /// # Panics
    /// Never, because all fields are serialized as strings.
    #[must_use]
    pub fn print(&self) -> String {
        serde_json::to_string(self).expect("strings print")
    }

    /// The end to record for a hook that starts at `since` and runs for at most `limit`. By then it has
    /// ended, by any clock. Times on the Node have no fractions of a second, so one second is added.
    #[must_use]
    pub fn end(since: Now, limit: Span) -> Instant {
        since.latest + limit + SKEW_BUDGET + Span::seconds(1)
    }

    /// Whether the hook may still be running at `now`.
    #[must_use]
    pub fn may_run(&self, now: Now) -> bool {
        now.earliest <= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt {
            id: "n".to_owned(),
            who: "alice@bastion".to_owned(),
            program: "ipmitool".to_owned(),
            since: Instant::from_micros(5_000_000),
            until: Instant::from_micros(65_000_000),
        }
    }

    #[test]
    fn an_attempt_is_read_as_it_was_written() {
        let text = attempt().print();
        assert_eq!(
            text,
            r#"{"id":"n","who":"alice@bastion","program":"ipmitool","since":"1970-01-01T00:00:05Z","until":"1970-01-01T00:01:05Z"}"#
        );
        assert_eq!(Attempt::parse(&text), Some(attempt()));
        assert_eq!(Attempt::parse(&text.replace("00:01:05Z", "soon")), None);
        assert_eq!(Attempt::parse("yes"), None);
    }

    #[test]
    fn an_announcement_that_cannot_be_read_has_no_end() {
        let on = |text: Option<String>| {
            let mut node = Node::default();
            let annotation = text.map(|text| (ANNOTATION.to_owned(), text));
            node.metadata.annotations = Some(annotation.into_iter().collect());
            Attempt::on(&node)
        };
        assert_eq!(on(None), None);
        assert_eq!(on(Some(attempt().print())), Some(attempt()));
        let unreadable = on(Some("{\"version\":2}".to_owned())).expect("a hook");
        assert!(unreadable.is_unreadable());
        assert!(unreadable.may_run(Now::at(Instant::from_micros(i64::MAX / 2))));
    }

    #[test]
    fn a_hook_may_run_until_its_time_is_over_by_the_slowest_clock() {
        let at = |earliest, latest| {
            Now::between(Instant::from_micros(earliest), Instant::from_micros(latest))
        };
        assert!(attempt().may_run(at(65_000_000, 70_000_000)));
        assert!(!attempt().may_run(at(65_000_001, 70_000_000)));
    }
}
