//! The fencing annotations of a Node, in words.

use maintenance_lease::protocol::{Instant, Now, Span};
use pod_safety::fencing::{Attempt, Record};
use pod_safety::wire::rfc3339 as in_seconds;

use super::fencing::record_line;
use crate::text::escape;

/// What was read from a Node. The texts may come from any user. Boxed to save memory: most Nodes have neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FencingAnnotations {
    /// Who fenced it, when, how and why.
    pub(crate) record: Option<Box<Record>>,
    /// The hook that was recorded last. It may have ended since.
    pub(crate) hook: Option<Box<Attempt>>,
}

impl FencingAnnotations {
    /// For people; `None` if there is nothing to say. A running hook comes first.
    pub(crate) fn words(&self, now: Now) -> Option<String> {
        let hook = self.hook(now).map(|hook| {
            format!(
                "hook {} of {} may be running until {}",
                escape(&hook.program),
                escape(&hook.who),
                in_seconds(hook.until)
            )
        });
        let parts: Vec<String> = hook
            .into_iter()
            .chain(self.record.as_deref().map(record_line))
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// When that changes by time alone.
    pub(crate) fn next_change(&self, now: Now) -> Option<Instant> {
        self.hook(now).map(|hook| hook.until + Span::TICK)
    }

    /// The hook that may be running, unless its annotation can't be read.
    pub(crate) fn hook(&self, now: Now) -> Option<&Attempt> {
        self.announced(now).filter(|hook| !hook.is_unreadable())
    }

    /// The hook that may be running, by any annotation.
    pub(crate) fn announced(&self, now: Now) -> Option<&Attempt> {
        self.hook.as_deref().filter(|hook| hook.may_run(now))
    }
}

#[cfg(test)]
mod tests {
    use pod_safety::fencing::How;

    use super::*;

    const NOW: Instant = Instant::from_micros(1_772_366_400_000_000);

    fn annotations() -> FencingAnnotations {
        FencingAnnotations {
            record: Some(Box::new(Record {
                who: "carol\u{1b}@desk".to_owned(),
                why: Some("no\nanswer".to_owned()),
                when: "2026-03-01T11:00:00Z".to_owned(),
                how: How::PoweredOff("its lights\rare off".to_owned()),
                boot_id: String::new(),
                node_uid: String::new(),
                hold: None,
            })),
            hook: Some(Box::new(Attempt {
                id: "n".to_owned(),
                who: "bob@laptop\u{202e}".to_owned(),
                program: "./power\ton".to_owned(),
                since: NOW,
                until: NOW + Span::seconds(60),
            })),
        }
    }

    #[test]
    fn fencing_and_hook_are_shown_with_escaped_texts() {
        let words = annotations().words(Now::at(NOW));
        assert_eq!(
            words.as_deref(),
            Some(
                r#"hook ./power\ton of bob@laptop\u{202e} may be running until 2026-03-01T12:01:00Z; by carol\u{1b}@desk at 2026-03-01T11:00:00Z, powered off: its lights\rare off: "no\nanswer""#
            )
        );
        assert_eq!(FencingAnnotations::default().words(Now::at(NOW)), None);
    }

    #[test]
    fn a_hook_whose_time_is_over_is_not_at_work() {
        let annotations = annotations();
        let end = NOW + Span::seconds(60);
        assert!(annotations.hook(Now::at(end)).is_some());
        let next = annotations.next_change(Now::at(end)).expect("it ends");
        assert_eq!(annotations.hook(Now::at(next)), None);
        assert_eq!(annotations.next_change(Now::at(next)), None);
        let words = annotations.words(Now::at(next)).expect("the record stays");
        assert!(words.starts_with("by carol"), "{words}");
    }
}
