//! `not-deleting` and `in-grace`: the pod was deleted and its grace period has ended.

use maintenance_lease::protocol::Now;

use super::verdict::Verdict;
use crate::bugs::{self, Bug};
use crate::facts::PodSnapshot;
use crate::words::age;

/// The pod has not been deleted yet.
pub const NOT_DELETING: &str = "not-deleting";
/// The grace period of the pod has not ended.
pub const IN_GRACE: &str = "in-grace";

pub(super) fn check(pod: &PodSnapshot, now: Now) -> Vec<Verdict> {
    let Some(ends) = pod.ends else {
        return vec![Verdict::blocker(
            NOT_DELETING,
            "it has not been deleted with `kubectl delete` yet",
        )];
    };
    let left = match bugs::active(Bug::GraceByLatestClock) {
        true => ends - now.latest,
        false => ends - now.earliest,
    };
    if left.as_micros() > 0 {
        let seconds = left.ceil_seconds();
        return vec![
            Verdict::blocker(IN_GRACE, "its grace period is not over")
                .of([format!("{seconds}s of {}s left", pod.grace)]),
        ];
    }
    let ago = age(now.earliest - ends);
    vec![Verdict::ok(
        IN_GRACE,
        format!(
            "it is terminating, and its grace period of {}s ended {ago} ago",
            pod.grace
        ),
    )]
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Span;

    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::{NOW, pod};

    #[test]
    fn grace_runs_up_to_its_last_instant() {
        let ends = |ends| {
            let verdicts = check(&PodSnapshot { ends, ..pod() }, Now::at(NOW));
            assert_eq!(verdicts.len(), 1);
            (verdicts[0].id, verdicts[0].level, verdicts[0].to_string())
        };
        assert_eq!(ends(None).1, Level::Blocker);
        assert_eq!(ends(None).0, NOT_DELETING);
        let (id, level, words) = ends(Some(NOW + Span::TICK));
        assert_eq!((id, level), (IN_GRACE, Level::Blocker));
        assert!(words.ends_with(": 1s of 30s left"), "{words}");
        let (id, level, words) = ends(Some(NOW - Span::seconds(480)));
        assert_eq!((id, level), (IN_GRACE, Level::Ok));
        assert!(words.ends_with(" of 30s ended 8m ago"), "{words}");
        assert_eq!(ends(Some(NOW)).1, Level::Ok);
    }

    #[test]
    fn the_earliest_clock_says_whether_grace_is_over() {
        let now = Now::between(NOW, NOW + Span::seconds(60));
        let pod = PodSnapshot {
            ends: Some(NOW + Span::seconds(5)),
            ..pod()
        };
        assert_eq!(check(&pod, now)[0].level, Level::Blocker);
    }
}
